// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax.h"

#include "kernels/isa.h"
#include "kernels/kernel_cases.h"

namespace twibil::kernels {
namespace {

constexpr DType kReals[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};

// member(o, j, i) says whether an element takes part.
template <class Member>
std::vector<double> naive(const Strided& x, const SoftmaxShape& s, bool log, double t, const Member& member) {
  std::vector<double> y(x.size(), log ? -INFINITY : 0);
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      double top = -INFINITY, sum = 0;
      auto at = [&](int64_t j) { return (o * s.n + j) * s.inner + i; };
      for (int64_t j = 0; j < s.n; ++j)
        if (member(o, j, i)) top = std::max(top, x.at(at(j)) / t);
      for (int64_t j = 0; j < s.n; ++j)
        if (member(o, j, i)) sum += std::exp(x.at(at(j)) / t - top);
      for (int64_t j = 0; j < s.n; ++j)
        if (member(o, j, i))
          y[at(j)] = log ? x.at(at(j)) / t - top - std::log(sum) : std::exp(x.at(at(j)) / t - top) / sum;
    }
  return y;
}

const int64_t kSizes[][3] = {{1, 1, 1}, {3, 5, 1}, {2, 100, 1}, {2, 33, 7},
                             {0, 4, 2}, {2, 0, 3}, {5, 2, 3},   {40, 1000, 1}};

TEST(Softmax, SizesTypesMasks) {
  Isa before = isa();
  for (Isa set : kIsas) {
    if (!isa_available(set)) continue;
    set_isa(set);
    for (DType t : kReals)
      for (auto [outer, n, inner] : kSizes)
        for (bool log : {false, true})
          for (double temperature : {1., 2.5}) {
            SoftmaxShape s{t, outer, n, inner};
            Strided x(t, {outer, n, inner}), y(t, x.shape), mask(DType::bool_, x.shape);
            x.randomise(1, -20, 20), mask.randomise(2, 0, 2, true);
            std::vector<int64_t> lengths(outer * inner);
            for (size_t g = 0; g < lengths.size(); ++g) lengths[g] = g % (n + 1);
            for (int kind = 0; kind < 3; ++kind) {
              SoftmaxMask m;
              if (kind == 1) m.lengths = lengths.data();
              if (kind == 2) m.mask = mask.data();
              auto want = naive(x, s, log, temperature, [&](int64_t o, int64_t j, int64_t i) {
                return kind == 0 ||
                       (kind == 1 ? j < lengths[o * s.inner + i] : mask.at((o * s.n + j) * s.inner + i) != 0);
              });
              softmax(s, log, temperature, m, x.data(), y.data());
              for (int64_t k = 0; k < x.size(); ++k)
                ASSERT_TRUE(close(y.at(k), want[k], log ? 4 * epsilon_of(t) : epsilon_of(t) * 2))
                    << describe(t, x.shape, Layout::contiguous) << " kind " << kind << " log " << log << " " << y.at(k)
                    << " " << want[k];
            }
          }
  }
  set_isa(before);
}

TEST(Softmax, RelativeErrorOfSmallValues) {
  for (int shift : {0, 10000}) {
    Strided x(DType::float32, {1, 2000, 1}), y(DType::float32, x.shape);
    for (int k = 0; k < 2000; ++k) x.set(k, shift - k * 0.0625);
    softmax({x.dtype, 1, 2000, 1}, false, 1, {}, x.data(), y.data());
    auto want = naive(x, {x.dtype, 1, 2000, 1}, false, 1, [](int64_t, int64_t, int64_t) { return true; });
    for (int k = 0; k < 2000; ++k) EXPECT_NEAR(y.at(k), want[k], want[k] * 1e-6 + 2e-45);
  }
}

TEST(Softmax, Specials) {
  auto run = [](std::vector<float> x) {
    softmax({DType::float32, 1, static_cast<int64_t>(x.size()), 1}, false, 1, {}, x.data(), x.data());
    return x;
  };
  for (float v : run({-INFINITY, -INFINITY})) EXPECT_TRUE(std::isnan(v));
  for (float v : run({1, NAN, 2})) EXPECT_TRUE(std::isnan(v));
  for (float v : run(std::vector<float>(70, NAN))) EXPECT_TRUE(std::isnan(v));
  std::vector<float> y = run({0, -INFINITY, 0});
  EXPECT_EQ((std::vector<float>{0.5, 0, 0.5}), y);
  EXPECT_TRUE(std::isnan(run({INFINITY, 0})[0]));
}

TEST(SoftmaxBackward, AgainstFormula) {
  for (DType t : kReals)
    for (auto [outer, n, inner] : kSizes)
      for (bool log : {false, true}) {
        SoftmaxShape s{t, outer, n, inner};
        Strided x(t, {outer, n, inner}), y(t, x.shape), dy(t, x.shape), dx(t, x.shape);
        x.randomise(1, -2, 2), dy.randomise(2, -1, 1);
        softmax(s, log, 2, {}, x.data(), y.data());
        softmax_backward(s, log, 2, y.data(), dy.data(), dx.data());
        for (int64_t o = 0; o < outer; ++o)
          for (int64_t i = 0; i < inner; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < n; ++j) {
              int64_t k = (o * n + j) * inner + i;
              sum += log ? dy.at(k) : dy.at(k) * y.at(k);
            }
            for (int64_t j = 0; j < n; ++j) {
              int64_t k = (o * n + j) * inner + i;
              double want = (log ? dy.at(k) - std::exp(y.at(k)) * sum : y.at(k) * (dy.at(k) - sum)) / 2;
              ASSERT_TRUE(close(dx.at(k), want, 8 * epsilon_of(t))) << describe(t, x.shape, Layout::contiguous) << log;
            }
          }
      }
}

TEST(Softmax, SameBitsForThreads) {
  Strided x(DType::float32, {300, 1000, 1}), y(DType::float32, x.shape);
  x.randomise(1);
  expect_same_bits(y.bytes, [&] { softmax({x.dtype, 300, 1000, 1}, false, 1, {}, x.data(), y.data()); });
}

}  // namespace
}  // namespace twibil::kernels
