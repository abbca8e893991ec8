// SPDX-License-Identifier: Apache-2.0
// Pointwise formulas. A formula is a lambda without captures that computes on Expr; record() runs it once, at compile
// time where the result is constexpr, and keeps what it did as a Program.
//
//   inline constexpr Program kRelu = record([](Expr x) { return max(x, 0); });
//   inline constexpr Program kLeakyRelu = record([](Expr x, Param slope) { return select(x > 0, x, slope * x); });
//   inline constexpr Program kWhere = record([](Mask condition, Expr x, Expr y) { return select(condition, x, y); });
//   inline constexpr Program kXor = record([](Mask a, Mask b) { return logical_xor(a, b); });   // a mask: bool output
//
// Parameters of the lambda, in any order:
//   Expr   an array argument, read in the working dtype
//   Mask   an array argument of any dtype, read as true (not zero) or false
//   Param  a number given at run time (at most 4), numbered in order among the Params
// Results: Expr (an array of the working dtype) or Mask (an array of bool).
//
// Every primitive of base/prim.h is a function here (`max(x, y)`, `exp(x)`, `floor_div(x, y)`, `bit_and`, `select(mask,
// a, b)`), found by its arguments, so nothing needs to be imported. Operators: + - * / (true division) unary -,
// comparisons (giving Mask), && || ! on masks. A Mask used as a number is 0 or 1; an Expr used as a mask is `x != 0`.
// Numbers mix freely. Derived functions: square, reciprocal, softplus, isnan, isinf, isfinite, signbit, clip,
// logaddexp; lowest(), highest() are the finite limits of the working dtype, infinity() its infinity. In a header or a
// class where names of this namespace are hidden by others, say `using namespace twibil::formula`.
//
// What a formula reads is found out: arguments that do not matter are dropped (Program::sources tells which are left).
#pragma once
#include <concepts>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include "ir/recorder.h"

namespace twibil::formula {

/// A value of the working dtype inside a formula: a node of the recording, or a number.
class Expr {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Expr(T v) : constant_{ProgramConstant::Kind::number, to_scalar(v)} {}
  constexpr Expr(const ProgramConstant& c) : constant_(c) {}
  constexpr Expr(Recorder* r, Id id) : recorder_(r), id_(id) {}

  constexpr Recorder* recorder() const { return recorder_; }
  constexpr Id id_in(Recorder& r) const { return recorder_ ? id_ : r.constant(constant_); }

 private:
  template <class T> static constexpr Scalar to_scalar(T v) {
    if constexpr (std::is_floating_point_v<T>) return Scalar(static_cast<double>(v));
    else return Scalar(static_cast<int64_t>(v));
  }
  Recorder* recorder_ = nullptr;
  Id id_ = kNoId;
  ProgramConstant constant_;
};

/// True or false per element.
class Mask {
 public:
  constexpr Mask(Recorder* r, Id id) : recorder_(r), id_(id) {}
  constexpr Mask(const Expr& x) : recorder_(x.recorder()), id_(recorder_->as_mask(x.id_in(*recorder_))) {}
  constexpr operator Expr() const { return {recorder_, recorder_->as_value(id_)}; }
  constexpr Recorder* recorder() const { return recorder_; }
  constexpr Id id_in(Recorder&) const { return id_; }

 private:
  Recorder* recorder_;
  Id id_;
};

/// A number that the caller gives at run time.
class Param : public Expr {
 public:
  using Expr::Expr;
};

// A formula of numbers alone (`exp(Expr(1))`) has nowhere to be recorded: compute it in C++.
[[noreturn]] void formula_of_numbers_alone();

template <class Result, class... Operands> constexpr Result emit(Prim prim, const Operands&... operands) {
  Recorder* r = nullptr;
  ((r = r ? r : operands.recorder()), ...);
  if (!r) formula_of_numbers_alone();
  return {r, r->emit(prim, operands.id_in(*r)...)};
}

namespace signature {  // the C++ types of primitives' operands and results, by the columns of the list
template <int masks, int i> using Operand = std::conditional_t<(masks >> i & 1) != 0, const Mask&, const Expr&>;
using value = Expr;
using mask = Mask;
}  // namespace signature

#define TW_ARITY_1(name, masks, result) \
  constexpr signature::result name(signature::Operand<masks, 0> a) { return emit<signature::result>(Prim::name, a); }
#define TW_ARITY_2(name, masks, result)                                                              \
  constexpr signature::result name(signature::Operand<masks, 0> a, signature::Operand<masks, 1> b) { \
    return emit<signature::result>(Prim::name, a, b);                                                \
  }
#define TW_ARITY_3(name, masks, result)                                                            \
  constexpr signature::result name(signature::Operand<masks, 0> a, signature::Operand<masks, 1> b, \
                                   signature::Operand<masks, 2> c) {                               \
    return emit<signature::result>(Prim::name, a, b, c);                                           \
  }
#define TW_PRIM_FUNCTION(name, arity, masks, result, ...) TW_ARITY_##arity(name, masks, result)
TW_PRIMITIVES(TW_PRIM_FUNCTION)
#undef TW_PRIM_FUNCTION
#undef TW_ARITY_1
#undef TW_ARITY_2
#undef TW_ARITY_3

constexpr Expr operator+(const Expr& a, const Expr& b) { return add(a, b); }
constexpr Expr operator-(const Expr& a, const Expr& b) { return sub(a, b); }
constexpr Expr operator*(const Expr& a, const Expr& b) { return mul(a, b); }
constexpr Expr operator/(const Expr& a, const Expr& b) { return div(a, b); }
constexpr Expr operator-(const Expr& a) { return neg(a); }
constexpr Mask operator==(const Expr& a, const Expr& b) { return eq(a, b); }
constexpr Mask operator!=(const Expr& a, const Expr& b) { return ne(a, b); }
constexpr Mask operator<(const Expr& a, const Expr& b) { return lt(a, b); }
constexpr Mask operator<=(const Expr& a, const Expr& b) { return le(a, b); }
constexpr Mask operator>(const Expr& a, const Expr& b) { return gt(a, b); }
constexpr Mask operator>=(const Expr& a, const Expr& b) { return ge(a, b); }
constexpr Mask operator&&(const Mask& a, const Mask& b) { return logical_and(a, b); }
constexpr Mask operator||(const Mask& a, const Mask& b) { return logical_or(a, b); }
constexpr Mask operator!(const Mask& a) { return logical_not(a); }

constexpr Expr lowest() { return ProgramConstant{ProgramConstant::Kind::lowest, {}}; }
constexpr Expr highest() { return ProgramConstant{ProgramConstant::Kind::highest, {}}; }
constexpr Expr infinity() { return std::numeric_limits<double>::infinity(); }
constexpr Expr square(const Expr& x) { return x * x; }
constexpr Expr reciprocal(const Expr& x) { return 1 / x; }
constexpr Expr clip(const Expr& x, const Expr& low, const Expr& high) { return min(max(x, low), high); }
constexpr Mask isnan(const Expr& x) { return x != x; }
constexpr Mask isinf(const Expr& x) { return abs(x) == infinity(); }
constexpr Mask isfinite(const Expr& x) { return abs(x) < infinity(); }
constexpr Mask signbit(const Expr& x) {
  return copysign(1, x) < 0;
}  // sees -0 and the sign of NaN; for integers say x < 0
constexpr Expr softplus(const Expr& x) { return max(x, 0) + log1p(exp(-abs(x))); }
constexpr Expr logaddexp(const Expr& a, const Expr& b) {
  return select(a == b, a + 0.69314718055994530942, max(a, b) + log1p(exp(-abs(a - b))));
}

namespace detail {
template <class Argument> constexpr Argument make_argument(Recorder& r) {
  if constexpr (std::same_as<Argument, Param>) return {&r, r.param()};
  else return {&r, r.argument(std::same_as<Argument, Mask>)};
}
template <class F, class Result, class... Arguments>
constexpr Program record_with(const F& formula, Result (F::*)(Arguments...) const) {
  static_assert(std::is_empty_v<F>, "a formula is a lambda without captures");
  static_assert(
      ((std::same_as<Arguments, Expr> || std::same_as<Arguments, Mask> || std::same_as<Arguments, Param>)&&...),
      "the parameters of a formula are Expr, Mask or Param, by value");
  Recorder r;
  std::tuple<Arguments...> arguments{make_argument<Arguments>(r)...};  // braces: evaluated in order, which numbers them
  const auto result = std::apply(formula, arguments);
  if constexpr (std::same_as<Result, Mask>) return r.finish(result.id_in(r));
  else return r.finish(Expr(result).id_in(r));
}
}  // namespace detail

/// Records a formula. See the top of this file.
template <class F> constexpr Program record(F formula) { return detail::record_with(formula, &F::operator()); }

}  // namespace twibil::formula

namespace twibil {

using formula::Expr;
using formula::Mask;
using formula::Param;
using formula::record;

/// The program in double, one value per input (Program::sources tells which arguments those are; a mask input is true
/// if not zero). The reference that kernels and gradients are compared with. A mask result is 0 or 1. Integers: as
/// doubles.
double evaluate(const Program& program, std::span<const double> inputs, std::span<const double> params = {});

/// One instruction per line: `t0 = max(x0, 0)`.
std::string to_text(const Program& program);

}  // namespace twibil
