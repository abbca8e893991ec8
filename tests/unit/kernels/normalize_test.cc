// SPDX-License-Identifier: Apache-2.0
#include "kernels/normalize.h"

#include "kernels/isa.h"
#include "kernels/kernel_cases.h"

namespace twibil::kernels {
namespace {

constexpr DType kReals[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};
DType statistics_type(DType t) { return t == DType::float64 ? t : DType::float32; }

struct ChannelSums {
  double mean = 0, var = 0;
};
std::vector<ChannelSums> naive_statistics(const Strided& x, const ChannelShape& s) {
  std::vector<ChannelSums> all(s.channels);
  double m = static_cast<double>(s.batch * s.inner);
  for (int64_t k = 0; k < x.size(); ++k) all[k / s.inner % s.channels].mean += x.at(k) / m;
  for (int64_t k = 0; k < x.size(); ++k) {
    auto& c = all[k / s.inner % s.channels];
    c.var += (x.at(k) - c.mean) * (x.at(k) - c.mean) / m;
  }
  return all;
}

const int64_t kShapes[][3] = {{1, 1, 1},  {4, 3, 1},    {200, 5, 1}, {2, 3, 2},
                              {3, 2, 49}, {2, 2, 1500}, {0, 3, 4},   {2, 0, 4}};

TEST(BatchNorm, ForwardAndBackward) {
  Isa before = isa();
  for (Isa set : kIsas) {
    if (!isa_available(set)) continue;
    set_isa(set);
    for (DType t : kReals)
      for (auto [batch, channels, inner] : kShapes)
        for (bool training : {true, false}) {
          ChannelShape s{t, batch, channels, inner};
          DType p = statistics_type(t);
          Strided x(t, {batch, channels, inner}), y(t, x.shape), dy(t, x.shape), dx(t, x.shape);
          Strided mean(p, {channels}), var(p, {channels}), gamma(p, {channels}), beta(p, {channels}),
              dgamma(p, {channels}), dbeta(p, {channels});
          x.randomise(1, 3, 5), dy.randomise(2, -1, 1), gamma.randomise(3, 1, 2), beta.randomise(4, -1, 1);
          batch_norm_statistics(s, x.data(), mean.data(), var.data());
          auto want = naive_statistics(x, s);
          double e = epsilon_of(p) * 8, eps = 1e-3;
          for (int64_t c = 0; c < channels && batch > 0; ++c) {
            ASSERT_TRUE(close(mean.at(c), want[c].mean, e)) << describe(t, x.shape, Layout::contiguous);
            ASSERT_TRUE(close(var.at(c), want[c].var, e)) << describe(t, x.shape, Layout::contiguous);
          }
          batch_norm_apply(s, eps, mean.data(), var.data(), gamma.data(), beta.data(), x.data(), y.data());
          batch_norm_backward_sums(s, eps, mean.data(), var.data(), x.data(), dy.data(), dgamma.data(), dbeta.data());
          batch_norm_backward_dx(s, eps, mean.data(), var.data(), gamma.data(), training ? dgamma.data() : nullptr,
                                 training ? dbeta.data() : nullptr, x.data(), dy.data(), dx.data());
          std::vector<double> sum(channels), sum_x(channels);
          auto hat = [&](int64_t k, int64_t c) { return (x.at(k) - mean.at(c)) / std::sqrt(var.at(c) + eps); };
          for (int64_t k = 0; k < x.size(); ++k) {
            int64_t c = k / inner % channels;
            ASSERT_TRUE(close(y.at(k), hat(k, c) * gamma.at(c) + beta.at(c), epsilon_of(t) * 40))
                << describe(t, x.shape, Layout::contiguous);
            sum[c] += dy.at(k), sum_x[c] += dy.at(k) * hat(k, c);
          }
          double m = static_cast<double>(batch * inner);
          for (int64_t c = 0; c < channels; ++c) {
            ASSERT_TRUE(close(dbeta.at(c), sum[c], e * 10)) << describe(t, x.shape, Layout::contiguous);
            ASSERT_TRUE(close(dgamma.at(c), sum_x[c], e * 100)) << describe(t, x.shape, Layout::contiguous);
          }
          for (int64_t k = 0; k < x.size(); ++k) {
            int64_t c = k / inner % channels;
            double d = dy.at(k) - (training ? sum[c] / m + hat(k, c) * sum_x[c] / m : 0);
            ASSERT_TRUE(close(dx.at(k), d * gamma.at(c) / std::sqrt(var.at(c) + eps), epsilon_of(t) * 400))
                << describe(t, x.shape, Layout::contiguous);
          }
        }
  }
  set_isa(before);
}

TEST(BatchNorm, LargeOffsetDoesNotCancel) {
  for (int64_t inner : {1, 300}) {
    Strided x(DType::float32, {50, 2, inner});
    for (int64_t k = 0; k < x.size(); ++k) x.set(k, 10000 + k % 7);
    float mean[2], var[2];
    batch_norm_statistics({x.dtype, 50, 2, inner}, x.data(), mean, var);
    auto want = naive_statistics(x, {x.dtype, 50, 2, inner});
    for (int c = 0; c < 2; ++c) EXPECT_NEAR(want[c].var, var[c], 2e-3);
  }
}

TEST(BatchNorm, SameBitsForThreads) {
  for (auto [batch, channels, inner] : {std::array<int64_t, 3>{8, 16, 3000}, {40000, 16, 1}}) {
    ChannelShape s{DType::float32, batch, channels, inner};
    Strided x(s.dtype, {batch, channels, inner}), dy(s.dtype, x.shape), y(s.dtype, {4, channels});
    x.randomise(1), dy.randomise(2);
    float* out = static_cast<float*>(y.data());
    expect_same_bits(y.bytes, [&] {
      batch_norm_statistics(s, x.data(), out, out + s.channels);
      batch_norm_backward_sums(s, 1e-5, out, out + s.channels, x.data(), dy.data(), out + 2 * s.channels,
                               out + 3 * s.channels);
    });
  }
}

TEST(LayerNorm, ForwardAndBackward) {
  for (DType t : kReals)
    for (auto [rows, n] : {std::array<int64_t, 2>{1, 1}, {3, 7}, {70, 33}, {5, 1500}, {0, 4}, {3, 0}})
      for (bool affine : {true, false}) {
        DType p = statistics_type(t);
        Strided x(t, {rows, n}), y(t, x.shape), dy(t, x.shape), dx(t, x.shape), mean(p, {rows}), inv(p, {rows});
        Strided gamma(p, {n}), beta(p, {n}), dgamma(p, {n}), dbeta(p, {n});
        x.randomise(1, 3, 5), dy.randomise(2, -1, 1), gamma.randomise(3, 1, 2), beta.randomise(4, -1, 1);
        layer_norm(t, rows, n, 1e-3, affine ? gamma.data() : nullptr, affine ? beta.data() : nullptr, x.data(),
                   y.data(), mean.data(), inv.data());
        layer_norm_backward(t, rows, n, affine ? gamma.data() : nullptr, mean.data(), inv.data(), x.data(), dy.data(),
                            dx.data(), dgamma.data(), dbeta.data());
        std::vector<double> sum(n), sum_x(n);
        for (int64_t r = 0; r < rows; ++r) {
          double m = 0, v = 0, a = 0, b = 0;
          auto g = [&](int64_t i) { return affine ? gamma.at(i) : 1.0; };
          for (int64_t i = 0; i < n; ++i) m += x.at(r * n + i) / n;
          for (int64_t i = 0; i < n; ++i) v += (x.at(r * n + i) - m) * (x.at(r * n + i) - m) / n;
          double s = 1 / std::sqrt(v + 1e-3);
          auto hat = [&, n = n](int64_t i) { return (x.at(r * n + i) - m) * s; };
          for (int64_t i = 0; i < n; ++i) {
            double d = dy.at(r * n + i);
            ASSERT_TRUE(close(y.at(r * n + i), hat(i) * g(i) + (affine ? beta.at(i) : 0), epsilon_of(t) * 100))
                << name_of(t) << rows << "x" << n;
            a += d * g(i) / n, b += d * g(i) * hat(i) / n, sum[i] += d, sum_x[i] += d * hat(i);
          }
          for (int64_t i = 0; i < n; ++i)
            ASSERT_TRUE(close(dx.at(r * n + i), s * (dy.at(r * n + i) * g(i) - a - hat(i) * b), epsilon_of(t) * 600))
                << name_of(t) << rows << "x" << n;
        }
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_TRUE(close(dgamma.at(i), sum_x[i], epsilon_of(p) * 200));
          ASSERT_TRUE(close(dbeta.at(i), sum[i], epsilon_of(p) * 50));
        }
      }
}

}  // namespace
}  // namespace twibil::kernels
