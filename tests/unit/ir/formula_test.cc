// SPDX-License-Identifier: Apache-2.0
#include "ir/formula.h"

#include <gtest/gtest.h>

#include <cmath>

namespace twibil {
namespace {

constexpr Program kRelu = record([](Expr x) { return max(x, 0); });
constexpr Program kLeaky = record([](Expr x, Param slope) { return select(x > 0, x, slope * x); });
constexpr Program kWhere = record([](Mask m, Expr x, Expr y) { return select(m, x, y); });
constexpr Program kAnd = record([](Mask a, Mask b) { return a && b; });
constexpr Program kSame = record([](Mask m) { return m; });
constexpr Program kAdd = record([](Expr a, Expr b) { return a + b; });
constexpr Program kSwapped = record([](Expr a, Expr b) { return b - a; });
constexpr Program kReverse = record([](Expr a, Param p) { return p - a; });
constexpr Program kOne = record([](Expr, Expr) { return Expr(1); });
constexpr Program kSecond = record([](Expr, Expr y) { return exp(y) * exp(y); });
constexpr Program kGelu = record([](Expr x) { return 0.5 * x * (1 + erf(x * 0.7071067811865476)); });

// What can go to the direct kernels: one primitive of the inputs in order, at most one of its operands a scalar.
static_assert(kRelu.is_single() && kAdd.is_single() && kReverse.is_single() && kAnd.is_single());
static_assert(!kGelu.is_single() && !kSwapped.is_single() && !kOne.is_single() && !kWhere.is_single());

double at(const Program& p, std::initializer_list<double> in, std::initializer_list<double> params = {}) {
  return evaluate(p, std::span(in.begin(), in.size()), std::span(params.begin(), params.size()));
}

TEST(Formula, TextShowsEachInstruction) {
  EXPECT_EQ(to_text(kRelu), "t0 = max(x0, 0.0)\n");
  EXPECT_EQ(to_text(kReverse), "t0 = sub(p0, x0)\n");
  EXPECT_EQ(to_text(kWhere), "t0 = select(m0, x1, x2)\n");
}

TEST(Formula, EvaluatesInDouble) {
  EXPECT_EQ(at(kRelu, {-2}), 0);
  EXPECT_EQ(at(kLeaky, {-2}, {0.1}), -0.2);
  EXPECT_EQ(at(kWhere, {0.25, 3, 4}), 3);
  EXPECT_EQ(at(kWhere, {0, 3, 4}), 4);
  EXPECT_DOUBLE_EQ(at(kGelu, {1.5}), 0.75 * (1 + std::erf(1.5 / std::sqrt(2.0))));
}

TEST(Formula, UnusedArgumentsArePruned) {
  EXPECT_EQ(kSecond.argument_count, 2);
  ASSERT_EQ(kSecond.input_count, 1);
  EXPECT_EQ(kSecond.sources[0], 1);
  EXPECT_EQ(kOne.input_count, 0);
  EXPECT_EQ(at(kOne, {}), 1);
}

TEST(Formula, EqualExpressionsAreOne) {
  EXPECT_EQ(kSecond.instruction_count, 2);  // exp, mul
  constexpr Program p = record([](Expr x, Expr y) { return (x + y) * (y + x); });
  EXPECT_EQ(p.instruction_count, 2);
  EXPECT_EQ(p.temp_count, 1);  // the product takes the place of the sum
}

TEST(Formula, NumbersFoldAndIdentitiesVanish) {
  constexpr Program p = record([](Expr x) { return -(-(x * 1.0)) - 0 + 6; });
  EXPECT_EQ(to_text(p), "t0 = add(x0, 6.0)\n");
  constexpr Program q = record([](Expr x) { return power(x, 2); });
  EXPECT_EQ(to_text(q), "t0 = mul(x0, x0)\n");
}

TEST(Formula, ZerosOfBothSignsStayApart) {
  constexpr Program p = record([](Expr x) { return select(x > 0.0, Expr(0.0), Expr(-0.0)); });
  EXPECT_FALSE(std::signbit(at(p, {1})));
  EXPECT_TRUE(std::signbit(at(p, {-1})));
}

TEST(Formula, MasksAndValuesConvert) {
  constexpr Program p = record([](Expr x, Expr y) { return (x > 1) * y + (x && !y); });
  EXPECT_EQ(at(p, {2, 5}), 5);
  EXPECT_EQ(at(p, {2, 0}), 1);
  EXPECT_TRUE(kSame.mask_output());
  EXPECT_EQ(at(kSame, {7}), 1);
}

// A mask is narrower than a value: a result must never take the place of an operand of the other class.
TEST(Formula, TemporariesOfTwoClassesDoNotShare) {
  constexpr Program p = record([](Expr x, Expr y) { return select(x + y > 0, exp(x), log(y)) * ((x < y) + 1); });
  bool mask[kMaxTemps] = {};
  for (int i = 0; i < p.instruction_count; ++i) {
    const Instruction& in = p.instructions[i];
    for (const Ref& r : in.operands)
      EXPECT_TRUE(r.kind != Ref::Kind::temp || r.index != in.dst || mask[r.index] == info_of(in.prim).mask_result);
    mask[in.dst] = info_of(in.prim).mask_result;
  }
}

TEST(Formula, WholeNumbersStayExact) {
  constexpr Program p = record([](Expr x) { return x + ((int64_t{1} << 62) + 1); });
  EXPECT_EQ(p.constants[0].number.integer, (int64_t{1} << 62) + 1);
  EXPECT_FALSE(p.constants[0].number.is_real());
}

TEST(Formula, TooLongIsAnError) {
  auto grow = [] {
    formula::Recorder r;
    formula::Id x = r.argument(false);
    for (int i = 0; i < 300; ++i) x = r.emit(Prim::exp, x);
    return r.finish(x);
  };
  EXPECT_THROW(grow(), Error);
}

TEST(Formula, DerivedFunctions) {
  constexpr Program inf = record([](Expr x) { return isinf(x); });
  constexpr Program sp = record([](Expr x) { return softplus(x); });
  constexpr Program sb = record([](Expr x) { return signbit(x); });
  EXPECT_EQ(at(inf, {-INFINITY}), 1);
  EXPECT_EQ(at(inf, {NAN}), 0);
  EXPECT_DOUBLE_EQ(at(sp, {800}), 800);
  EXPECT_DOUBLE_EQ(at(sp, {-40}), std::exp(-40));
  EXPECT_EQ(at(sb, {-0.0}), 1);
}

}  // namespace
}  // namespace twibil
