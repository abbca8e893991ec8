// SPDX-License-Identifier: Apache-2.0
#include "kernels/pooling.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <vector>

#include "kernels/kernel_fixture.h"

namespace twibil::kernels {
namespace {

class Pooling : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(EachIsa, Pooling, testing::ValuesIn(kIsas), isa_of_test);

int64_t volume(const int64_t (&n)[3]) { return n[0] * n[1] * n[2]; }

/// The elements of window `o`, in order, and the size of the window with its padding.
std::vector<int64_t> window(const PoolShape& s, int64_t o, int64_t& padded) {
  const int64_t out[3] = {o / (s.out[1] * s.out[2]), o / s.out[2] % s.out[1], o % s.out[2]};
  padded = 1;
  for (int a = 0; a < 3; ++a) {
    int64_t n = 0;
    for (int64_t t = 0; t < s.kernel[a]; ++t) n += out[a] * s.stride[a] - s.pad[a] + t < s.in[a] + s.pad[a];
    padded *= n;
  }
  std::vector<int64_t> at;
  for (int64_t t = 0; t < volume(s.kernel); ++t) {
    const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
    int64_t index = 0;
    bool inside = true;
    for (int a = 0; a < 3; ++a) {
      const int64_t i = out[a] * s.stride[a] - s.pad[a] + tap[a];
      inside = inside && i >= 0 && i < s.in[a];
      index = index * s.in[a] + i;
    }
    if (inside) at.push_back(index);
  }
  return at;
}

template <class T> void check(PoolKind kind, const PoolShape& s, double tolerance) {
  const int64_t in = volume(s.in), out = volume(s.out);
  auto x = random_values<T>(s.planes * in, 1);
  for (size_t i = 0; i + 7 < x.size(); i += 5) x[i + 2] = x[i];  // equal maxima
  if (kind == PoolKind::lp)
    for (T& v : x) v = T(std::abs(static_cast<float>(v)) + 0.1f);
  const auto dy = random_values<T>(s.planes * out, 2);
  std::vector<T> y(dy.size(), T(9.f)), dx(x.size(), T(9.f));
  pool_forward(dtype_of<T>, kind, s, x.data(), y.data());
  pool_backward(dtype_of<T>, kind, s, x.data(), y.data(), dy.data(), dx.data());
  std::vector<double> gradient(x.size());
  for (int64_t plane = 0; plane < s.planes; ++plane) {
    for (int64_t o = 0; o < out; ++o) {
      int64_t padded = 0;
      const auto at = window(s, o, padded);
      const double g = in_double(dy[plane * out + o]), got = in_double(y[plane * out + o]);
      double sum = 0, power_sum = 0;
      int64_t most = -1;
      for (int64_t i : at) {
        const double v = in_double(x[plane * in + i]);
        sum += v;
        power_sum += std::pow(v, s.p);
        if (most < 0 || v > in_double(x[plane * in + most])) most = i;
      }
      const double n = kind == PoolKind::average               ? static_cast<double>(padded)
                       : kind == PoolKind::average_of_elements ? static_cast<double>(at.size())
                                                               : 1;
      double expected = at.empty() ? 0 : sum / n;
      if (kind == PoolKind::lp) expected = std::pow(power_sum, 1.0 / static_cast<double>(s.p));
      if (kind == PoolKind::max && most >= 0) expected = in_double(x[plane * in + most]);
      if (kind == PoolKind::max && most < 0) {
        EXPECT_LT(got, -60000);
        EXPECT_TRUE(std::isfinite(got));
        continue;
      }
      ASSERT_NEAR(got, expected, tolerance) << "window " << o << " kind " << static_cast<int>(kind);
      for (int64_t i : at) {
        double& to = gradient[plane * in + i];
        if (kind == PoolKind::max) to += i == most ? g : 0;
        else if (kind == PoolKind::lp) to += g * std::pow(in_double(x[plane * in + i]) / expected, s.p - 1);
        else to += g / n;
      }
    }
  }
  for (size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(in_double(dx[i]), gradient[i], 4 * tolerance) << "dx at " << i;
}

TEST_P(Pooling, MatchesDouble) {
  using Axes = std::vector<int64_t>;
  const auto shape = [](int64_t planes, const Axes& in, const Axes& out, const Axes& k, const Axes& s, const Axes& p) {
    return pool_shape(planes, in, out, k, s, p);
  };
  std::vector<PoolShape> shapes = {
      shape(3, {8, 36}, {4, 18}, {2, 2}, {2, 2}, {0, 0}),
      shape(2, {9, 37}, {5, 19}, {2, 2}, {2, 2}, {0, 0}),  // rounded up
      shape(2, {9, 11}, {5, 6}, {3, 3}, {2, 2}, {1, 1}),
      shape(2, {7, 9}, {7, 9}, {3, 3}, {1, 1}, {1, 1}),
      shape(4, {5, 6}, {1, 1}, {5, 6}, {1, 1}, {0, 0}),  // global
      shape(1, {4, 4}, {3, 4}, {2, 1}, {3, 2}, {2, 2}),  // windows in the padding only
      shape(2, {19}, {9}, {3}, {2}, {0}),
      shape(2, {4, 5, 6}, {2, 3, 3}, {2, 3, 2}, {2, 2, 2}, {0, 1, 0}),
      shape(0, {4}, {2}, {2}, {2}, {0}),
  };
  for (PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::average_of_elements, PoolKind::sum, PoolKind::lp}) {
    for (PoolShape& s : shapes) {
      for (int64_t p : {1, 2, 3}) {
        s.p = p;
        if (kind != PoolKind::lp && p > 1) continue;
        check<float>(kind, s, 4e-6);
        check<double>(kind, s, 1e-13);
        check<float16>(kind, s, 1e-2);
        check<bfloat16>(kind, s, 1e-1);
      }
    }
  }
}

TEST_P(Pooling, NanWinsAndTakesTheGradient) {
  for (int64_t at = 0; at < 4; ++at) {
    std::vector<float> x = {1, 2, 3, 4}, y(1), dy = {5}, dx(4, 9.f);
    x[at] = NAN;
    const std::vector<int64_t> two = {2, 2}, one = {1, 1}, zero = {0, 0};
    const PoolShape s = pool_shape(1, two, one, two, two, zero);
    pool_forward(DType::float32, PoolKind::max, s, x.data(), y.data());
    pool_backward(DType::float32, PoolKind::max, s, x.data(), y.data(), dy.data(), dx.data());
    EXPECT_TRUE(std::isnan(y[0]));
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(dx[i], i == at ? 5 : 0) << at << " " << i;
  }
}

TEST_P(Pooling, MinusInfinityIsAMaximum) {
  const std::vector<int64_t> three = {3}, one = {1}, zero = {0};
  std::vector<float> x(3, -INFINITY), y(1);
  pool_forward(DType::float32, PoolKind::max, pool_shape(1, three, one, three, one, zero), x.data(), y.data());
  EXPECT_EQ(y[0], -INFINITY);
}

TEST(PoolShapes, Mistakes) {
  const std::vector<int64_t> one = {1}, two = {2, 2}, zero = {0};
  EXPECT_THROW(pool_shape(1, two, one, one, one, zero), Error);
  PoolShape s = pool_shape(1, one, one, one, one, zero);
  EXPECT_THROW(pool_forward(DType::int32, PoolKind::max, s, nullptr, nullptr), Error);
  s.p = 4;
  EXPECT_THROW(pool_forward(DType::float32, PoolKind::lp, s, nullptr, nullptr), Error);
  s.kernel[2] = 0;
  EXPECT_THROW(pool_forward(DType::float32, PoolKind::max, s, nullptr, nullptr), Error);
}

}  // namespace
}  // namespace twibil::kernels
