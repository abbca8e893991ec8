// SPDX-License-Identifier: Apache-2.0
#include "kernels/lrn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/blocked.h"
#include "kernels/blocked_convert.h"
#include "kernels/kernel_fixture.h"

namespace twibil::kernels {
namespace {

class Lrn : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(EachIsa, Lrn, testing::ValuesIn(kIsas), isa_of_test);

template <class T> std::vector<double> expected(const LrnShape& s, const std::vector<T>& x) {
  std::vector<double> y(x.size());
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t p = 0; p < s.pixels; ++p) {
        const auto at = [&](int64_t channel) { return static_cast<size_t>((n * s.channels + channel) * s.pixels + p); };
        double sum = 0;
        for (int64_t k = c - s.window / 2; k <= c + s.window / 2; ++k)
          if (k >= 0 && k < s.channels) sum += in_double(x[at(k)]) * in_double(x[at(k)]);
        y[at(c)] = in_double(x[at(c)]) / std::pow(s.knorm + s.alpha / static_cast<double>(s.window) * sum, s.beta);
      }
  return y;
}

const LrnShape kShapes[] = {
    {1, 5, 6, 3, 0.5, 0.75, 1},      {2, 20, 35, 5, 1e-1, 0.75, 2}, {1, 96, 700, 5, 1e-4, 0.75, 2},
    {3, 17, 1, 1, 2, 0.5, 1},        {1, 40, 33, 37, 1, 1.5, 0.1},  {1, 3, 9, 11, 1, 2, 1},
    {2, 33, 16, 4095, 0.3, 0.75, 1},
};

TEST_P(Lrn, EqualsDouble) {
  set_num_threads(3);
  for (const LrnShape& s : kShapes) {
    const auto x = random_values<float>(s.batch * s.channels * s.pixels, 1);
    const auto e = expected(s, x);
    std::vector<float> y(x.size() + 16, 7.F);
    lrn(DType::float32, s, x.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], e[i], 2e-6 * (1 + std::abs(e[i]))) << "element " << i;
    for (size_t i = x.size(); i < y.size(); ++i) ASSERT_EQ(y[i], 7.F);
  }
}

TEST_P(Lrn, OnBlocksEqualsDouble) {
  set_num_threads(3);
  for (const LrnShape& s : kShapes) {
    const auto x = random_values<float>(s.batch * s.channels * s.pixels, 2);
    const auto e = expected(s, x);
    const int64_t size = channel_blocks(s.channels) * kChannelBlock * s.batch * s.pixels;
    std::vector<float> blocks(static_cast<size_t>(size)), z(blocks.size() + 16, 7.F), y(x.size());
    to_blocked(s.batch, s.channels, s.pixels, x.data(), blocks.data());
    // What fills the last block must not be seen.
    for (int64_t i = 0; i < size; ++i)
      if (i / (kChannelBlock * s.batch * s.pixels) * kChannelBlock + i % kChannelBlock >= s.channels)
        blocks[static_cast<size_t>(i)] = 1e30F;
    blocked_lrn(s, blocks.data(), z.data());
    for (int64_t i = 0; i < size; ++i) ASSERT_TRUE(std::isfinite(z[static_cast<size_t>(i)]));
    for (size_t i = static_cast<size_t>(size); i < z.size(); ++i) ASSERT_EQ(z[i], 7.F);
    from_blocked(s.batch, s.channels, s.pixels, z.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], e[i], 2e-6 * (1 + std::abs(e[i]))) << "element " << i;
  }
}

TEST_P(Lrn, OtherTypesAndNegativeSums) {
  const LrnShape s{1, 7, 5, 3, -0.5, 2, 0.1};
  const auto x = random_values<double>(35, 3);
  std::vector<double> y(x.size()), e = expected(s, x);
  lrn(DType::float64, s, x.data(), y.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], e[i], 1e-9 * (1 + std::abs(e[i])));
  const auto f = random_values<float>(35, 4);
  std::vector<float> z(f.size());
  const auto ef = expected(s, f);
  lrn(DType::float32, s, f.data(), z.data());
  for (size_t i = 0; i < f.size(); ++i) ASSERT_NEAR(z[i], ef[i], 1e-3 * (1 + std::abs(ef[i])));
}

}  // namespace
}  // namespace twibil::kernels
