// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce.h"

#include <chrono>
#include <limits>

#include "kernels/isa.h"
#include "kernels/kernel_cases.h"

namespace twibil::kernels {
namespace {

// Groups of values in C order of the reduced axes, one group per output.
std::vector<std::vector<double>> groups_of(const Strided& x, AxisSet axes) {
  int64_t outputs = 1;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (!(axes >> i & 1)) outputs *= x.shape[i];
  std::vector<std::vector<double>> groups(outputs);
  for (int64_t k = 0; k < x.size(); ++k) {
    int64_t rest = k, at = 0, step = 1;
    for (size_t i = x.shape.size(); i-- > 0; rest /= x.shape[i])
      if (!(axes >> i & 1)) {
        at += rest % x.shape[i] * step;
        step *= x.shape[i];
      }
    groups[at].push_back(x.at(k));
  }
  return groups;
}

double naive(Reduction op, const std::vector<double>& g) {
  long double sum = 0, prod = 1, abs = 0, squares = 0;
  double top = -INFINITY, low = INFINITY;
  bool any = false, all = true, nan = false;
  for (double v : g) {
    sum += v, prod *= v, abs += std::abs(v), squares += v * v;
    top = std::max(top, v), low = std::min(low, v);
    any |= v != 0, all &= v != 0, nan |= std::isnan(v);
  }
  switch (op) {
    case Reduction::sum: return sum;
    case Reduction::mean: return sum / g.size();
    case Reduction::prod: return prod;
    case Reduction::max: return nan ? NAN : top;
    case Reduction::min: return nan ? NAN : low;
    case Reduction::any: return any;
    case Reduction::all: return all;
    case Reduction::sum_abs: return abs;
    case Reduction::sum_squares: return squares;
  }
  return 0;
}

constexpr Reduction kReductions[] = {Reduction::sum, Reduction::mean,    Reduction::prod,
                                     Reduction::max, Reduction::min,     Reduction::any,
                                     Reduction::all, Reduction::sum_abs, Reduction::sum_squares};

DType out_dtype(Reduction op, DType in) {
  if (op == Reduction::any || op == Reduction::all) return DType::bool_;
  if (op == Reduction::max || op == Reduction::min || is_floating(in)) return in;
  return op == Reduction::mean ? DType::float64 : DType::int64;
}

struct ReduceCase {
  Shape shape;
  AxisSet axes;
};
const ReduceCase kCases[] = {{{}, 0},          {{}, 0},          {{1}, 1},           {{7}, 1},
                             {{7}, 0},         {{8, 8}, 2},      {{8, 8}, 1},        {{3, 5, 4}, 2},
                             {{3, 5, 4}, 5},   {{3, 5, 4}, 7},   {{2, 0, 3}, 1},     {{2, 0, 3}, 2},
                             {{5, 33}, 2},     {{33, 5}, 1},     {{2, 3, 130}, 5},   {{1031}, 1},
                             {{2, 1, 300}, 4}, {{70, 2, 70}, 1}, {{3, 2, 4, 5}, 10}, {{40, 3, 9}, 1 | 4}};

TEST(Reduce, EveryDTypeLayoutAndAxes) {
  for (DType t : kAllDTypes)
    for (const auto& [shape, axes] : kCases)
      for (Layout layout : kLayouts) {
        Strided x(t, shape, layout);
        x.randomise(11, t == DType::uint8 || t == DType::bool_ ? 0 : -3, 4, !is_floating(t));
        auto groups = groups_of(x, axes);
        for (Reduction op : kReductions) {
          if (groups.empty()) continue;
          if (groups[0].empty() && (op == Reduction::max || op == Reduction::min)) continue;
          if (op == Reduction::prod && groups[0].size() > 20) continue;
          DType out = out_dtype(op, t);
          Strided y(out, {static_cast<int64_t>(groups.size())});
          reduce(op, t, out, shape, x.data(), x.strides, axes, y.data());
          for (size_t i = 0; i < groups.size(); ++i) {
            double want = naive(op, groups[i]), scale = 0;
            if (out == DType::int64 && op == Reduction::prod && std::abs(want) > 9e18) continue;
            for (double v : groups[i]) scale += op == Reduction::sum_squares ? v * v : std::abs(v);
            if (op == Reduction::prod) scale = std::abs(want) * groups[i].size();
            double tolerance = 1e-7 * is_half(out) + epsilon_of(is_half(t) ? DType::float32 : t) * 4 * scale +
                               epsilon_of(out) * std::abs(want);
            double got = y.at(i);
            ASSERT_TRUE((std::isnan(want) && std::isnan(got)) || std::abs(got - want) <= tolerance)
                << describe(t, shape, layout) << " axes " << axes << " op " << static_cast<int>(op) << ": " << got
                << " for " << want;
          }
        }
      }
}

TEST(Reduce, NanWinsEverywhere) {
  for (int64_t n : {3, 8, 9, 64, 200, 1025, 5000})
    for (int64_t at : {int64_t{0}, n / 2, n - 1})
      for (int columns : {1, 6}) {
        Strided x(DType::float32, {n, columns});
        x.randomise(3);
        for (int c = 0; c < columns; ++c) x.set(at * columns + c, NAN);
        Strided y(DType::float32, {columns});
        int64_t index[6];
        for (Reduction op : {Reduction::max, Reduction::min, Reduction::sum}) {
          reduce(op, x.dtype, y.dtype, x.shape, x.data(), x.strides, 1, y.data());
          for (int c = 0; c < columns; ++c) EXPECT_TRUE(std::isnan(y.at(c))) << n << " " << at;
        }
        for (bool maximum : {true, false}) {
          arg_reduce(maximum, x.dtype, x.shape, x.data(), x.strides, 1, index);
          for (int c = 0; c < columns; ++c) EXPECT_EQ(at, index[c]);
        }
      }
}

TEST(Reduce, IntegersWrap) {
  Strided x(DType::int64, {3});
  int64_t values[] = {INT64_MAX, 1, 5}, sum = 0;
  std::memcpy(x.data(), values, sizeof values);
  reduce(Reduction::sum, x.dtype, DType::int64, x.shape, x.data(), x.strides, 1, &sum);
  EXPECT_EQ(INT64_MIN + 5, sum);
  int64_t low = INT64_MIN;
  reduce(Reduction::sum_abs, x.dtype, DType::int64, Shape{1}, &low, Shape{1}, 1, &sum);
  EXPECT_EQ(INT64_MIN, sum);
}

TEST(Reduce, SumsAreAccurate) {
  for (ReduceCase c : {ReduceCase{{1 << 20}, 1}, ReduceCase{{1 << 17, 8}, 1}}) {
    Strided x(DType::float32, c.shape);
    x.randomise(5, 0, 1);
    auto groups = groups_of(x, c.axes);
    std::vector<float> y(groups.size());
    reduce(Reduction::sum, x.dtype, x.dtype, c.shape, x.data(), x.strides, c.axes, y.data());
    for (size_t i = 0; i < y.size(); ++i) {
      double want = naive(Reduction::sum, groups[i]);
      EXPECT_NEAR(y[i], want, want * 4e-7);
    }
  }
}

TEST(Reduce, SameBitsForThreadsAndInstructionSets) {
  const ReduceCase cases[] = {{{300007}, 1},   {{70000, 5}, 1},    {{513, 700}, 2},
                              {{513, 700}, 1}, {{4, 16, 5000}, 5}, {{9, 100}, 2}};
  for (const ReduceCase& c : cases) {
    Strided x(DType::float32, c.shape);
    x.randomise(8);
    std::vector<char> y(4 * 800), first;
    Isa before = isa();
    for (Isa i : kIsas) {
      if (!isa_available(i)) continue;
      set_isa(i);
      expect_same_bits(
          y, [&] { reduce(Reduction::sum, x.dtype, x.dtype, c.shape, x.data(), x.strides, c.axes, y.data()); });
      if (first.empty()) first = y;
      EXPECT_EQ(first, y) << name_of(i);
    }
    set_isa(before);
  }
}

TEST(ArgReduce, FirstIndexInEveryLayout) {
  for (DType t : {DType::bool_, DType::int32, DType::int64, DType::bfloat16, DType::float32, DType::float64})
    for (const auto& [shape, axes] : kCases)
      for (Layout layout : kLayouts) {
        Strided x(t, shape, layout);
        x.randomise(13, 0, 4, true);  // many ties
        auto groups = groups_of(x, axes);
        if (groups.empty() || groups[0].empty()) continue;
        std::vector<int64_t> index(groups.size());
        for (bool maximum : {true, false}) {
          arg_reduce(maximum, t, shape, x.data(), x.strides, axes, index.data());
          for (size_t i = 0; i < groups.size(); ++i) {
            auto& g = groups[i];
            auto want = maximum ? std::max_element(g.begin(), g.end()) : std::min_element(g.begin(), g.end());
            ASSERT_EQ(want - g.begin(), index[i]) << describe(t, shape, layout) << " axes " << axes;
          }
        }
      }
}

TEST(Variance, AgainstLongDouble) {
  for (DType t : kAllDTypes)
    for (const auto& [shape, axes] : kCases)
      for (Layout layout : kLayouts)
        for (double ddof : {0., 1.}) {
          Strided x(t, shape, layout);
          bool wide = t == DType::float32 || t == DType::float64;
          x.randomise(17, wide ? 1000 : 0, wide ? 1008 : 8, !is_floating(t));
          auto groups = groups_of(x, axes);
          DType out = is_floating(t) ? t : DType::float32;
          Strided mean(out, {static_cast<int64_t>(groups.size())}), var(out, mean.shape);
          variance(t, out, shape, x.data(), x.strides, axes, ddof, mean.data(), var.data());
          for (size_t i = 0; i < groups.size(); ++i) {
            long double m = 0, v = 0;
            for (double g : groups[i]) m += g;
            m /= groups[i].size();
            for (double g : groups[i]) v += (g - m) * (g - m);
            v /= groups[i].size() - ddof;
            ASSERT_TRUE(close(mean.at(i), m, epsilon_of(out) * 4)) << describe(t, shape, layout) << axes;
            if (groups[i].size() > ddof) {
              ASSERT_TRUE(close(var.at(i), v, epsilon_of(out) * 1000))
                  << describe(t, shape, layout) << axes << " " << var.at(i) << " " << v;
            }
          }
        }
}

}  // namespace
}  // namespace twibil::kernels
