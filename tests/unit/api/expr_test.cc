// SPDX-License-Identifier: Apache-2.0
// Expression templates against the operators: values, dtypes, views, broadcasting, aliasing, errors.
#include "twibil/expr.h"

#include <gtest/gtest.h>

#include "twibil/jit.h"
#include "twibil/ops.h"

using namespace twibil;

namespace {

std::vector<double> elements(const Array& a) { return a.to_vector<double>(); }
template <class T> Array row(std::vector<T> v) { return Array::from(v, Shape{static_cast<int64_t>(v.size())}); }
Array numbers(const Shape& shape, DType t = DType::float32) {
  std::vector<double> v;
  for (int64_t i = 0; i < shape.size(); ++i) v.push_back(static_cast<double>(i % 17) - 5);
  return Array::from(v, shape).astype(t);
}
void expect_same(const Array& got, const Array& want) {
  EXPECT_EQ(got.shape(), want.shape());
  EXPECT_EQ(got.dtype(), want.dtype());
  EXPECT_EQ(elements(got), elements(want));
}

TEST(Expr, ComputesWhatTheOperatorsDoForEveryDtypeAndSize) {
  for (DType t : {DType::float32, DType::float64, DType::int32, DType::int64, DType::int8, DType::uint8, DType::float16,
                  DType::bfloat16})
    for (int64_t n : {0, 1, 7, 255, 256, 257, 100000}) {
      Array a = numbers(Shape{n}, t), b = numbers(Shape{n}, t) + 3;
      SCOPED_TRACE(text(t, " ", n));
      if (is_half(t)) {  // the operators round after each step, the loop once
        EXPECT_EQ(Array(expr(a) * 2).dtype(), t);
        expect_same(expr(a) * 2, a * 2);
        continue;
      }
      expect_same(expr(a) * b + 1, a * b + 1);
      expect_same(expr(a) - b * expr(a), a - b * a);
    }
}

TEST(Expr, DtypesFollowTheLibrarysRules) {
  Array i = row<int32_t>({1, 2, 3}), f = row<float>({0.5f, 1, 2}), d = row<double>({1, 2, 4});
  expect_same(expr(i) / 2, i / 2);
  expect_same(expr(i) * 0.5, i * 0.5);
  expect_same(expr(i) + f, i + f);
  expect_same(expr(f) + d, f + d);
  expect_same(expr(i) > 1, i > 1);
  EXPECT_EQ(Array(exp(expr(i))).dtype(), DType::float32);
  Array huge = row<int64_t>({INT64_MAX});
  expect_same(expr(huge) + 1, huge + 1);  // wraps around
}

TEST(Expr, BroadcastsAndReadsViews) {
  Array m = numbers(Shape{3, 4}), r = numbers(Shape{4}), c = numbers(Shape{3, 1}), s = numbers(Shape{});
  expect_same(expr(m) * r + c, m * r + c);
  expect_same(expr(r) + c, r + c);
  expect_same(expr(s) + m, s + m);
  expect_same(expr(m.transpose()) * 2 + c.reshape(Shape{3}), m.transpose() * 2 + c.reshape(Shape{3}));
  Array wide = numbers(Shape{5, 600});
  expect_same(expr(wide.slice(100, 400, 1)) * wide.slice(0, 5)[0].slice(0, 300),
              wide.slice(100, 400, 1) * wide.slice(0, 5)[0].slice(0, 300));
  Array cube = numbers(Shape{2, 1, 5}), other = numbers(Shape{3, 1});
  expect_same(expr(cube) + other, cube + other);
}

TEST(Expr, WritesIntoViews) {
  Array m = Array::zeros({3, 4}), r = numbers(Shape{4});
  expr(m[1]) = expr(r) * 2;
  expr(m.transpose()[3]) += 1;
  expr(m.slice(0, 1)) = 7;
  EXPECT_EQ(elements(m), (std::vector<double>{7, 7, 7, 7, -10, -8, -6, -3, 0, 0, 0, 1}));
  Array ints = Array::zeros({3}, DType::int8);
  expr(ints) = expr(row<float>({1.9f, -3.5f, 300}));
  EXPECT_EQ(elements(ints), (std::vector<double>{1, -3, 44}));
  Array copied = row<float>({0, 0});
  expr(copied) = expr(row<float>({1, 2}));
  EXPECT_EQ(elements(copied), (std::vector<double>{1, 2}));
}

TEST(Expr, OverlappingArraysAreReadBeforeTheyAreWritten) {
  Array a = numbers(Shape{1000}), want = a.slice(0, 999) + 1;
  expr(a.slice(1, 1000)) = expr(a.slice(0, 999)) + 1;
  expect_same(a.slice(1, 1000).copy(), want);
  Array m = numbers(Shape{40, 40}), turned = m.transpose().copy();
  expr(m) = expr(m.transpose());
  expect_same(m, turned);
  Array b = numbers(Shape{1000}), twice = b * b + b;
  expr(b) = expr(b) * b + b;
  expect_same(b, twice);
}

TEST(Expr, FunctionsAndAnyLambda) {
  Array a = numbers(Shape{50}, DType::float64), b = op::absolute(a) + 1;
  for (auto& [got, want] : {std::pair{Array(exp(expr(a))), op::exp(a)},
                            {Array(log(expr(b))), op::log(b)},
                            {Array(sqrt(expr(b))), op::sqrt(b)},
                            {Array(tanh(expr(a))), op::tanh(a)}}) {
    std::vector<double> x = elements(got), y = elements(want);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-14 * (1 + std::abs(y[i])));
  }
  expect_same(max(expr(a), 0), op::maximum(a, 0));
  expect_same(min(expr(a), b), op::minimum(a, b));
  expect_same(abs(expr(a)), op::absolute(a));
  expect_same(-expr(a), 0 - a);
  expect_same(select(expr(a) > 0, a, -1), op::where(a > 0, a, -1));
  expect_same(map([](auto x, auto y) { return x > y ? x * x : y; }, a, b), op::where(a > b, a * a, b));
  const double offset = 3;
  expect_same(map([offset](auto x) { return x + offset; }, a), a + 3);
}

TEST(Expr, WaitsForWhatIsQueued) {
  Array big = Array::ones({1 << 20});
  for (int i = 0; i < 5; ++i) {
    big = big * 1.5;
    Array out = expr(big) - 1;
    ASSERT_EQ(out[12345].item(), big[12345].item() - 1);
    expr(big) = expr(big) + 1;
  }
}

TEST(Expr, MistakesAreErrors) {
  Array a = Array::ones({3}), b = Array::ones({4});
  EXPECT_THROW(elements(expr(a) + b), Error);
  EXPECT_THROW(expr(a) = expr(Array::ones({2, 3})), Error);
  EXPECT_THROW(elements(expr(Array()) + 1), Error);
  a.attach_grad();
  {
    Record scope;
    EXPECT_THROW(elements(expr(a) + 1), Error);
  }
  EXPECT_EQ(elements(expr(a) + 1), (std::vector<double>{2, 2, 2}));
  EXPECT_THROW(jit([](const Array& x) { return Array(expr(x) + 1); })(a), Error);
}

}  // namespace
