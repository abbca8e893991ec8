// SPDX-License-Identifier: Apache-2.0
// Derivatives of every primitive and of formulas with kinks, against differences, first and second order.
#include "ir/formula_derivative.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace twibil {
namespace {

// Evaluates a program on values of all its arguments.
double at(const Program& p, const std::vector<double>& arguments, const std::vector<double>& params = {}) {
  std::vector<double> in;
  for (int i = 0; i < p.input_count; ++i) in.push_back(arguments[p.sources[i]]);
  return evaluate(p, in, params);
}

double difference(const Program& p, std::vector<double> x, int k, const std::vector<double>& params = {}) {
  const double h = 1e-6 * std::max(1.0, std::fabs(x[static_cast<size_t>(k)]));
  x[static_cast<size_t>(k)] += h;
  const double up = at(p, x, params);
  x[static_cast<size_t>(k)] -= 2 * h;
  return (up - at(p, x, params)) / (2 * h);
}

void check(const Program& p, std::vector<double> x, const std::vector<double>& params = {}) {
  x.resize(p.argument_count);
  const double y = at(p, x, params), dy = 0.75;
  for (int k = 0; k < p.argument_count; ++k) {
    const double want = dy * difference(p, x, k, params);
    std::vector<double> with_dy = x, with_y = x;
    with_dy.push_back(dy);
    with_y.push_back(y);
    with_y.push_back(dy);
    const Program d = derivative(p, k), dk = derivative(p, k, true);
    EXPECT_NEAR(at(d, with_dy, params), want, 1e-6 * (1 + std::fabs(want))) << to_text(p) << "by " << k << "\n"
                                                                            << to_text(d);
    EXPECT_NEAR(at(dk, with_y, params), want, 1e-6 * (1 + std::fabs(want))) << to_text(p) << "by " << k << "\n"
                                                                            << to_text(dk);
    for (int j = 0; j <= p.argument_count; ++j) {  // second order, dy included
      const double second = difference(d, with_dy, j, params);
      std::vector<double> more = with_dy;
      more.push_back(1);
      EXPECT_NEAR(at(derivative(d, j), more, params), second, 2e-6 * (1 + std::fabs(second)))
          << to_text(d) << "by " << j;
    }
  }
}

TEST(Derivative, EveryPrimitive) {
  for (int i = 0; i < kPrimCount; ++i) {
    const Prim prim = static_cast<Prim>(i);
    const PrimInfo& info = info_of(prim);
    if (info.mask_result || prim_has(prim, DType::float64) == false) continue;
    formula::Recorder r;
    formula::Id o[3] = {formula::kNoId, formula::kNoId, formula::kNoId};
    for (int k = 0; k < info.arity; ++k)
      o[k] = prim == Prim::polygamma && k == 0 ? r.number(1) : r.argument((info.mask_operands >> k & 1) != 0);
    if (prim == Prim::polygamma) {  // arguments come first
      r = {};
      o[1] = r.argument(false);
      o[0] = r.number(1);
    }
    const Program p = r.finish(prim == Prim::identity ? o[0] : r.emit(prim, o[0], o[1], o[2]));
    if (prim == Prim::select || prim == Prim::from_mask) continue;  // below
    const double away = prim == Prim::acosh ? 1 : 0;
    check(p, {0.3 + away, 0.8, 0.45});
    if (prim != Prim::acosh && prim != Prim::power && prim != Prim::log && prim != Prim::log2 && prim != Prim::log10 &&
        prim != Prim::sqrt && prim != Prim::rsqrt)
      check(p, {-0.6, 1.7, -2});
  }
}

constexpr Program kXLogX = record([](Expr x) { return select(x > 0, x * log(x), 0); });
constexpr Program kGelu = record([](Expr x) { return 0.5 * x * (1 + erf(x * 0.7071067811865476)); });
constexpr Program kLeaky = record([](Expr x, Param slope) { return select(x > 0, x, slope * x); });
constexpr Program kSoftplus = record([](Expr x) { return formula::softplus(x); });
constexpr Program kWhere = record([](Mask m, Expr x, Expr y) { return select(m, x * x, exp(y)); });
constexpr Program kXLogXGradient = derivative(kXLogX, 0);  // at compile time

TEST(Derivative, Formulas) {
  for (double x : {-2.5, -0.3, 0.4, 3.0}) {
    check(kXLogX, {x});
    check(kGelu, {x});
    check(kLeaky, {x}, {0.1});
    check(kSoftplus, {x});
    check(kWhere, {1, x, 0.5});
    check(kWhere, {0, x, 0.5});
  }
}

TEST(Derivative, TheBranchNotTakenDoesNotMatter) {
  EXPECT_EQ(at(kXLogXGradient, {0, 2}), 0);  // 0 * infinity is in the other branch
  EXPECT_EQ(at(kXLogXGradient, {-1, 2}), 0);
  EXPECT_DOUBLE_EQ(at(kXLogXGradient, {1, 2}), 2);
}

TEST(Derivative, PowersAtZero) {
  constexpr Program p = record([](Expr x, Expr y) { return power(x, y); });
  EXPECT_EQ(at(derivative(p, 0), {0, 0, 1}), 0);
  EXPECT_EQ(at(derivative(p, 0), {0, 1, 1}), 1);
  EXPECT_EQ(at(derivative(p, 1), {0, 2, 1}), 0);
  constexpr Program cube = record([](Expr x) { return power(x, 3); });
  EXPECT_EQ(at(derivative(cube, 0), {0, 1}), 0);
  constexpr Program one = record([](Expr x) { return power(x, 0) + x; });
  EXPECT_EQ(at(derivative(one, 0), {0, 1}), 1);
}

TEST(Derivative, WithTheResultTheArgumentIsNotRead) {
  constexpr Program p = record([](Expr x) { return tanh(x); });
  const Program d = derivative(p, 0, true);
  ASSERT_EQ(d.input_count, 2);
  EXPECT_EQ(d.sources[0], 1);  // y
  EXPECT_EQ(d.sources[1], 2);  // dy
  const Program product = derivative(record([](Expr x, Expr y) { return x * y; }), 0);
  ASSERT_EQ(product.input_count, 2);
  EXPECT_EQ(product.sources[0], 1);
}

TEST(Derivative, OfWhatDoesNotMatterIsZero) {
  constexpr Program p = record([](Expr x, Expr y) { return floor(x) + y; });
  const Program d = derivative(p, 0);
  EXPECT_EQ(d.input_count, 0);
  EXPECT_EQ(at(d, {}), 0);
}

TEST(Derivative, TiesGoToTheFirst) {
  constexpr Program p = record([](Expr x, Expr y) { return max(x, y); });
  EXPECT_EQ(at(derivative(p, 0), {1, 1, 5}), 5);
  EXPECT_EQ(at(derivative(p, 1), {1, 1, 5}), 0);
}

}  // namespace
}  // namespace twibil
