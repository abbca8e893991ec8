// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocked_pool.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/blocked.h"
#include "kernels/kernel_fixture.h"

namespace twibil::kernels {
namespace {

class BlockedPool : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(EachIsa, BlockedPool, testing::ValuesIn(kIsas), isa_of_test);

struct Axis {
  int64_t in, out, kernel, stride, pad;
};
PoolShape shape_of(int64_t planes, const Axis& h, const Axis& w) {
  const int64_t in[] = {h.in, w.in}, out[] = {h.out, w.out}, kernel[] = {h.kernel, w.kernel};
  const int64_t stride[] = {h.stride, w.stride}, pad[] = {h.pad, w.pad};
  return pool_shape(planes, in, out, kernel, stride, pad);
}

/// One window of one lane in double.
double expected(PoolKind kind, const PoolShape& s, const float* plane, int64_t oh, int64_t ow, int64_t lane) {
  double sum = 0, most = std::numeric_limits<float>::lowest();
  int64_t elements = 0, padded = 0;
  for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
    for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
      const int64_t y = oh * s.stride[1] - s.pad[1] + kh, x = ow * s.stride[2] - s.pad[2] + kw;
      padded += y < s.in[1] + s.pad[1] && x < s.in[2] + s.pad[2];
      if (y < 0 || x < 0 || y >= s.in[1] || x >= s.in[2]) continue;
      const double v = plane[(y * s.in[2] + x) * kChannelBlock + lane];
      if (elements++ == 0 || v > most || std::isnan(v)) most = std::isnan(most) ? most : v;
      sum += v;
    }
  }
  if (kind == PoolKind::max) return most;
  if (elements == 0) return 0;
  return kind == PoolKind::sum ? sum : sum / static_cast<double>(kind == PoolKind::average ? padded : elements);
}

void check(const PoolShape& s, std::vector<float>& x) {
  for (PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::average_of_elements, PoolKind::sum}) {
    std::vector<float> y(static_cast<size_t>(s.planes * s.out[1] * s.out[2] * kChannelBlock) + 16, 7.f);
    blocked_pool(kind, s, x.data(), y.data());
    for (size_t i = 0; i + 16 < y.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) / kChannelBlock, lane = static_cast<int64_t>(i) % kChannelBlock;
      const int64_t ow = at % s.out[2], oh = at / s.out[2] % s.out[1], plane = at / s.out[2] / s.out[1];
      const double e = expected(kind, s, x.data() + plane * s.in[1] * s.in[2] * kChannelBlock, oh, ow, lane);
      if (std::isnan(e)) ASSERT_TRUE(std::isnan(y[i])) << "kind " << static_cast<int>(kind) << " element " << i;
      else if (std::isinf(e)) ASSERT_EQ(y[i], e);
      else ASSERT_NEAR(y[i], e, 1e-5 * (1 + std::abs(e))) << "kind " << static_cast<int>(kind) << " element " << i;
    }
    for (size_t i = y.size() - 16; i < y.size(); ++i) ASSERT_EQ(y[i], 7.f) << "written behind the end";
  }
}

const PoolShape kShapes[] = {
    shape_of(3, {12, 6, 2, 2, 0}, {12, 6, 2, 2, 0}), shape_of(2, {13, 6, 3, 2, 0}, {15, 7, 3, 2, 0}),
    shape_of(2, {14, 7, 3, 2, 1}, {14, 8, 3, 2, 1}),  // up: the last window hangs over
    shape_of(2, {9, 9, 3, 1, 1}, {21, 21, 3, 1, 1}), shape_of(1, {17, 5, 5, 3, 0}, {17, 6, 4, 3, 1}),
    shape_of(5, {7, 1, 7, 1, 0}, {7, 1, 7, 1, 0}),   shape_of(2, {1, 1, 1, 1, 0}, {1, 1, 1, 1, 0}),
    shape_of(2, {3, 1, 3, 1, 0}, {1, 1, 1, 1, 0}),   shape_of(2, {9, 3, 1, 4, 0}, {9, 3, 1, 4, 0}),
    shape_of(1, {5, 4, 2, 3, 1}, {5, 4, 2, 3, 1}),  // the last windows cover nothing
    shape_of(1, {6, 1, 8, 1, 1}, {6, 1, 8, 1, 1}),   shape_of(1, {40, 2, 20, 20, 0}, {33, 33, 5, 1, 2}),
};

TEST_P(BlockedPool, EqualsDouble) {
  set_num_threads(3);
  for (const PoolShape& s : kShapes) {
    auto x = random_values<float>(s.planes * s.in[1] * s.in[2] * kChannelBlock, 1);
    check(s, x);
  }
}

TEST_P(BlockedPool, NaNWinsWhereverItStands) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  for (const PoolShape& s : kShapes) {
    auto x = random_values<float>(s.planes * s.in[1] * s.in[2] * kChannelBlock, 2);
    for (size_t i = 3; i < x.size(); i += 97) x[i] = kNaN;
    for (size_t i = 5; i < x.size(); i += 89) x[i] = i % 2 ? kInf : -kInf;
    check(s, x);
  }
}

TEST_P(BlockedPool, SameBitsForAnyNumberOfThreads) {
  const PoolShape s = shape_of(8, {56, 28, 3, 2, 1}, {56, 28, 3, 2, 1});
  const auto x = random_values<float>(s.planes * s.in[1] * s.in[2] * kChannelBlock, 3);
  std::vector<float> one(static_cast<size_t>(s.planes * s.out[1] * s.out[2] * kChannelBlock)), three(one.size());
  set_num_threads(1);
  blocked_pool(PoolKind::average, s, x.data(), one.data());
  set_num_threads(3);
  blocked_pool(PoolKind::average, s, x.data(), three.data());
  EXPECT_EQ(one, three);
}

TEST_P(BlockedPool, RefusesWhatItCannot) {
  float x[16] = {}, y[16];
  EXPECT_THROW(blocked_pool(PoolKind::lp, shape_of(1, {1, 1, 1, 1, 0}, {1, 1, 1, 1, 0}), x, y), Error);
}

}  // namespace
}  // namespace twibil::kernels
