// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/kernel_fixture.h"

namespace twibil::kernels {
namespace {

class Convolution : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(EachIsa, Convolution, testing::ValuesIn(kIsas), isa_of_test);

int64_t volume(const int64_t (&n)[3]) { return n[0] * n[1] * n[2]; }
int64_t x_size(const ConvolutionShape& s) { return s.batch * s.in_channels * volume(s.in); }
int64_t w_size(const ConvolutionShape& s) { return s.out_channels * (s.in_channels / s.groups) * volume(s.kernel); }
int64_t y_size(const ConvolutionShape& s) { return s.batch * s.out_channels * volume(s.out); }

/// Calls visit(index in x, in w, in y) for every product that a convolution sums.
template <class Visit> void each_product(const ConvolutionShape& s, const Visit& visit) {
  const int64_t c = s.in_channels / s.groups, o = s.out_channels / s.groups;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      for (int64_t ic = 0; ic < c; ++ic) {
        for (int64_t p = 0; p < volume(s.out); ++p) {
          const int64_t out[3] = {p / (s.out[1] * s.out[2]), p / s.out[2] % s.out[1], p % s.out[2]};
          for (int64_t t = 0; t < volume(s.kernel); ++t) {
            const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
            int64_t at = 0;
            bool inside = true;
            for (int axis = 0; axis < 3; ++axis) {
              const int64_t i = out[axis] * s.stride[axis] + tap[axis] * s.dilation[axis] - s.pad[axis];
              inside = inside && i >= 0 && i < s.in[axis];
              at = at * s.in[axis] + i;
            }
            if (!inside) continue;
            visit((n * s.in_channels + oc / o * c + ic) * volume(s.in) + at, (oc * c + ic) * volume(s.kernel) + t,
                  (n * s.out_channels + oc) * volume(s.out) + p);
          }
        }
      }
    }
  }
}

std::string describe(const ConvolutionShape& s) {
  return text("batch ", s.batch, " channels ", s.in_channels, "->", s.out_channels, " groups ", s.groups, " in ",
              std::span(s.in), " kernel ", std::span(s.kernel), " stride ", std::span(s.stride), " dilation ",
              std::span(s.dilation), " pad ", std::span(s.pad));
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& sum, const std::vector<double>& scale,
                 double tolerance, const std::string& what) {
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(in_double(got[i]), sum[i], tolerance * (1e-30 + scale[i])) << what << " at " << i;
  }
}

/// A convolution's data and its three results as sums in double, with the sums of the products' absolute values.
template <class T> struct Case {
  ConvolutionShape s;
  std::vector<T> x, w, dy, bias, in_bias;
  std::vector<double> y, dx, dw, dbias, y_scale, dx_scale, dw_scale, dbias_scale;

  explicit Case(const ConvolutionShape& shape)
      : s(shape),
        x(random_values<T>(x_size(s), 1)),
        w(random_values<T>(w_size(s), 2)),
        dy(random_values<T>(y_size(s), 3)),
        bias(random_values<T>(s.out_channels, 4)),
        in_bias(random_values<T>(s.in_channels, 5)),
        y(dy.size()),
        dx(x.size()),
        dw(w.size()),
        dbias(bias.size()),
        y_scale(y.size()),
        dx_scale(x.size()),
        dw_scale(w.size()),
        dbias_scale(bias.size()) {
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t c = i / static_cast<size_t>(volume(s.out)) % bias.size();
      add(y[i], y_scale[i], in_double(bias[c]));
      add(dbias[c], dbias_scale[c], in_double(dy[i]));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      add(dx[i], dx_scale[i], in_double(in_bias[i / static_cast<size_t>(volume(s.in)) % in_bias.size()]));
    }
    each_product(s, [&](int64_t i, int64_t j, int64_t k) {
      const double a = in_double(x[i]), b = in_double(w[j]), g = in_double(dy[k]);
      add(y[k], y_scale[k], a * b);
      add(dx[i], dx_scale[i], g * b);
      add(dw[j], dw_scale[j], g * a);
    });
  }
  static void add(double& sum, double& scale, double product) {
    sum += product;
    scale += std::abs(product);
  }
};

/// All three passes; the tolerance is relative to the sum of absolute products.
template <class T> void check(const Case<T>& c, double tolerance) {
  const DType t = dtype_of<T>;
  const ConvolutionShape& s = c.s;
  std::vector<T> y(c.y.size(), T(99.f)), dx(c.dx.size(), T(99.f)), dw(c.dw.size(), T(99.f)),
      dbias(c.dbias.size(), T(99.f));
  convolution_forward(t, s, c.x.data(), c.w.data(), c.bias.data(), y.data());
  expect_near(y, c.y, c.y_scale, tolerance, "y " + describe(s));
  convolution_backward_data(t, s, c.dy.data(), c.w.data(), c.in_bias.data(), dx.data());
  expect_near(dx, c.dx, c.dx_scale, tolerance, "dx " + describe(s));
  convolution_backward_weights(t, s, c.x.data(), c.dy.data(), dw.data());
  expect_near(dw, c.dw, c.dw_scale, tolerance, "dw " + describe(s));
  convolution_backward_bias(t, s.batch, s.out_channels, volume(s.out), c.dy.data(), dbias.data());
  expect_near(dbias, c.dbias, c.dbias_scale, tolerance, "dbias " + describe(s));
}

using Axes = std::vector<int64_t>;
ConvolutionShape shape(int64_t n, int64_t c, int64_t o, int64_t g, const Axes& in, const Axes& k, const Axes& s = {},
                       const Axes& d = {}, const Axes& p = {}) {
  const Axes one(in.size(), 1), zero(in.size(), 0);
  return convolution_shape(n, c, o, g, in, k, s.empty() ? one : s, d.empty() ? one : d, p.empty() ? zero : p);
}

std::vector<ConvolutionShape> shapes() {
  std::vector<ConvolutionShape> all = {
      shape(1, 1, 1, 1, {1}, {1}),
      shape(2, 3, 16, 1, {20, 33}, {3, 3}, {}, {}, {1, 1}),  // a first layer
      shape(2, 16, 16, 1, {12, 64}, {3, 3}, {}, {}, {1, 1}),
      shape(1, 24, 31, 1, {9, 7}, {3, 3}, {}, {}, {1, 1}),  // rest of the depth, flat tiles
      shape(3, 17, 40, 1, {4, 4}, {3, 3}, {}, {}, {1, 1}),  // several pictures in a band
      shape(2, 5, 7, 1, {11, 13}, {5, 3}, {2, 3}, {}, {2, 0}),
      shape(2, 3, 8, 1, {31, 29}, {7, 7}, {2, 2}, {}, {3, 3}),
      shape(1, 6, 9, 1, {15, 17}, {3, 3}, {1, 1}, {2, 3}, {2, 3}),
      shape(2, 4, 6, 1, {14, 15}, {3, 2}, {2, 2}, {3, 2}, {1, 1}),
      shape(1, 40, 50, 1, {6, 9}, {1, 1}),                       // flattened
      shape(2, 20, 10, 1, {9, 8}, {1, 1}, {2, 2}),               // phases that no tap reaches
      shape(2, 12, 18, 3, {10, 10}, {3, 3}, {}, {}, {1, 1}),     // groups
      shape(2, 10, 10, 10, {9, 40}, {3, 3}, {}, {}, {1, 1}),     // depthwise
      shape(1, 6, 12, 6, {11, 12}, {3, 3}, {2, 2}, {}, {1, 1}),  // depthwise with a multiplier
      shape(2, 9, 9, 9, {12, 19}, {5, 5}, {2, 1}, {1, 2}, {2, 2}),
      shape(2, 5, 8, 1, {100}, {4}, {}, {}, {2}),
      shape(1, 7, 3, 1, {50}, {3}, {3}, {2}, {0}),
      shape(1, 20, 4, 2, {6000}, {9}, {}, {}, {4}),  // a row that is cut
      shape(1, 3, 5, 1, {5, 6, 7}, {3, 3, 3}, {}, {}, {1, 1, 1}),
      shape(2, 8, 6, 2, {6, 7, 9}, {2, 3, 1}, {2, 1, 2}, {1, 2, 1}, {1, 0, 0}),
      shape(1, 4, 4, 4, {4, 6, 8}, {3, 3, 3}, {}, {}, {1, 1, 1}),
      shape(1, 70, 66, 1, {5, 40}, {3, 3}, {}, {}, {1, 1}),
      shape(20, 8, 9, 1, {3, 4}, {3, 3}, {}, {}, {1, 1}),    // pictures that share a band
      shape(1, 32, 128, 1, {7, 7}, {3, 3}, {}, {}, {1, 1}),  // output channels as tasks
  };
  ConvolutionShape uneven = shape(1, 4, 5, 1, {8, 8}, {3, 3}, {2, 2}, {}, {0, 0});
  uneven.out[1] = uneven.out[2] = 4;  // padding behind only
  all.push_back(uneven);
  return all;
}

/// The sums are made once, for all instruction sets.
template <class T> const std::vector<Case<T>>& cases() {
  static const std::vector<Case<T>> all = [] {
    std::vector<Case<T>> made;
    for (const ConvolutionShape& s : shapes()) made.emplace_back(s);
    return made;
  }();
  return all;
}

TEST_P(Convolution, MatchesDouble) {
  for (const auto& c : cases<float>()) {
    check(c, 2e-6);
    if (HasFatalFailure()) return;
  }
}
TEST_P(Convolution, MatchesDoubleInFloat64) {
  for (const auto& c : cases<double>()) {
    check(c, 1e-14);
    if (HasFatalFailure()) return;
  }
}
/// Both algorithms, where Winograd's is taken: the results differ, and both are right.
TEST_P(Convolution, WinogradMatchesDouble) {
  for (const ConvolutionShape& s :
       {shape(1, 16, 20, 1, {33, 70}, {3, 3}, {}, {}, {1, 1}), shape(16, 9, 8, 1, {16, 16}, {3, 3}, {}, {}, {1, 1}),
        shape(2, 40, 10, 1, {32, 32}, {3, 3}, {}, {}, {0, 2}), shape(1, 16, 32, 2, {20, 150}, {3, 3}, {}, {}, {1, 0}),
        shape(1, 8, 8, 1, {12, 300}, {3, 3}, {}, {}, {1, 1}), shape(9, 12, 10, 1, {7, 9}, {3, 3}, {}, {}, {1, 1})}) {
    const Case<float> c(s);
    check(c, 2e-6);
    if (HasFatalFailure()) return;
    ConvolutionShape direct = s;
    direct.algorithm = ConvolutionAlgorithm::direct;
    std::vector<float> y(c.y.size()), other(c.y.size());
    convolution_forward(DType::float32, s, c.x.data(), c.w.data(), c.bias.data(), y.data());
    convolution_forward(DType::float32, direct, c.x.data(), c.w.data(), c.bias.data(), other.data());
    expect_near(other, c.y, c.y_scale, 1e-6, "direct " + describe(s));
    EXPECT_NE(y, other) << "Winograd's algorithm was not used: " << describe(s);
  }
}
/// An output that is written past the caches.
TEST_P(Convolution, WinogradAgreesWithDirectOnLargeOutputs) {
  ConvolutionShape s = shape(2, 8, 24, 1, {300, 320}, {3, 3}, {}, {}, {1, 1});
  const auto x = random_values<float>(x_size(s), 1), w = random_values<float>(w_size(s), 2);
  std::vector<float> y(static_cast<size_t>(y_size(s))), direct(y.size());
  convolution_forward(DType::float32, s, x.data(), w.data(), nullptr, y.data());
  s.algorithm = ConvolutionAlgorithm::direct;
  convolution_forward(DType::float32, s, x.data(), w.data(), nullptr, direct.data());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], direct[i], 4e-5) << i;
}
TEST_P(Convolution, HalvesComputeInFloat) {
  check(Case<float16>(shape(1, 5, 6, 1, {9, 10}, {3, 3}, {}, {}, {1, 1})), 1.0 / 1024);
  check(Case<bfloat16>(shape(1, 5, 6, 1, {9, 10}, {3, 3}, {2, 2}, {}, {1, 1})), 1.0 / 128);
}

TEST_P(Convolution, SameBitsForAnyNumberOfThreads) {
  for (const ConvolutionShape& s : {shape(5, 16, 24, 1, {40, 32}, {3, 3}, {}, {}, {1, 1}),
                                    shape(1, 32, 32, 1, {64, 64}, {3, 3}, {2, 2}, {}, {1, 1}),
                                    shape(8, 32, 32, 32, {28, 28}, {3, 3}, {}, {}, {1, 1})}) {
    const auto x = random_values<float>(x_size(s), 1), w = random_values<float>(w_size(s), 2);
    const auto dy = random_values<float>(y_size(s), 3);
    std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
    std::vector<std::vector<float>> first;
    for (int threads : {1, 2, 3}) {
      set_num_threads(threads);
      convolution_forward(DType::float32, s, x.data(), w.data(), nullptr, y.data());
      convolution_backward_data(DType::float32, s, dy.data(), w.data(), nullptr, dx.data());
      convolution_backward_weights(DType::float32, s, x.data(), dy.data(), dw.data());
      if (threads == 1) first = {y, dx, dw};
      else ASSERT_TRUE(first == (std::vector{y, dx, dw})) << threads << " threads, " << describe(s);
    }
  }
}

TEST_P(Convolution, NanReachesOnlyItsNeighbours) {
  ConvolutionShape s = shape(1, 16, 16, 1, {8, 40}, {3, 3}, {}, {}, {1, 1});
  s.algorithm = ConvolutionAlgorithm::direct;
  auto x = random_values<float>(x_size(s), 1);
  const auto w = random_values<float>(w_size(s), 2);
  x[40 * 4 + 20] = NAN;
  std::vector<float> y(static_cast<size_t>(y_size(s)));
  convolution_forward(DType::float32, s, x.data(), w.data(), nullptr, y.data());
  for (int64_t i = 0; i < y_size(s); ++i) {
    const bool near = std::abs(i / 40 % 8 - 4) <= 1 && std::abs(i % 40 - 20) <= 1;
    ASSERT_EQ(std::isnan(y[i]), near) << i;
  }
}

TEST(ConvolutionShapes, EmptyBatchAndMistakes) {
  const ConvolutionShape s = shape(0, 2, 3, 1, {4, 4}, {3, 3});
  std::vector<float> dw(static_cast<size_t>(w_size(s)), 1.f);
  convolution_forward(DType::float32, s, nullptr, dw.data(), nullptr, nullptr);
  convolution_backward_weights(DType::float32, s, nullptr, nullptr, dw.data());
  EXPECT_EQ(dw, std::vector<float>(dw.size()));
  EXPECT_EQ(shape(1, 1, 1, 1, {2}, {5}).out[2], 0);
  EXPECT_THROW(shape(1, 1, 1, 1, {2}, {0}), Error);
  EXPECT_THROW(shape(1, 1, 1, 1, {2, 2}, {1}), Error);
  EXPECT_THROW(convolution_forward(DType::int32, s, nullptr, nullptr, nullptr, nullptr), Error);
  EXPECT_THROW(convolution_forward(DType::float32, shape(1, 3, 4, 2, {4}, {1}), nullptr, nullptr, nullptr, nullptr),
               Error);
}

}  // namespace
}  // namespace twibil::kernels
