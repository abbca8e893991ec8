// SPDX-License-Identifier: Apache-2.0
// The derivative of a program as a program again, at compile time or at run time. Tangent mode: the change of each
// register is computed along with it, from the change dy of the one argument asked for (that the seed is dy, and not 1,
// makes the result the gradient: the program is pointwise). So a `select` stays outermost: the branch that is not taken
// may be NaN.
#pragma once
#include "ir/formula.h"

namespace twibil {
namespace formula {

struct Tangent {  // the change of a register; none: zero
  bool some = false;
  Expr value = 0;
};

constexpr Tangent operator+(const Tangent& a, const Tangent& b) {
  return !a.some ? b : !b.some ? a : Tangent{true, a.value + b.value};
}

struct Operands {
  Expr a, b, c, y;  // y is the result
  bool b_is_number;
};

// What the change `d` of a unary primitive's operand does to its result. Where a form in y is as accurate, it is taken:
// then the operand need not be kept.
constexpr Tangent unary_change(Prim prim, const Expr& a, const Expr& y, const Expr& d) {
  constexpr double kLn2 = 0.69314718055994530942, kLn10 = 2.30258509299404568402;
  constexpr double kTwoBySqrtPi = 1.12837916709551257390, kHalfSqrtPi = 0.88622692545275801365;
  switch (prim) {
    case Prim::identity: return {true, d};
    case Prim::neg: return {true, -d};
    case Prim::abs: return {true, d * sign(a)};
    case Prim::sqrt: return {true, d * 0.5 / y};
    case Prim::rsqrt: return {true, d * -0.5 * (y * y * y)};
    case Prim::cbrt: return {true, d / (3 * (y * y))};
    case Prim::exp: return {true, d * y};
    case Prim::exp2: return {true, d * kLn2 * y};
    case Prim::expm1: return {true, d * exp(a)};  // y + 1 has no digits left where y is nearly -1
    case Prim::log: return {true, d / a};
    case Prim::log2: return {true, d / (a * kLn2)};
    case Prim::log10: return {true, d / (a * kLn10)};
    case Prim::log1p: return {true, d / (1 + a)};
    case Prim::sigmoid: return {true, d * (y * (1 - y))};
    case Prim::sin: return {true, d * cos(a)};
    case Prim::cos: return {true, -(d * sin(a))};
    case Prim::tan: return {true, d * (1 + y * y)};
    case Prim::asin: return {true, d * rsqrt((1 - a) * (1 + a))};
    case Prim::acos: return {true, -(d * rsqrt((1 - a) * (1 + a)))};
    case Prim::atan: return {true, d / (1 + a * a)};
    case Prim::sinh: return {true, d * cosh(a)};
    case Prim::cosh: return {true, d * sinh(a)};
    case Prim::tanh: return {true, d * (1 - y * y)};
    case Prim::asinh: return {true, d * rsqrt(a * a + 1)};
    case Prim::acosh: return {true, d * rsqrt((a - 1) * (a + 1))};
    case Prim::atanh: return {true, d / ((1 - a) * (1 + a))};
    case Prim::erf: return {true, d * (kTwoBySqrtPi * exp(-(a * a)))};
    case Prim::erfinv: return {true, d * (kHalfSqrtPi * exp(y * y))};
    case Prim::gamma: return {true, d * (y * digamma(a))};
    case Prim::lgamma: return {true, d * digamma(a)};
    case Prim::digamma: return {true, d * polygamma(1, a)};
    default: return {};  // steps and masks: no change almost everywhere
  }
}

// The same for operand `k` of a primitive with several. The choosing ones (max, select) are in change().
constexpr Tangent partial_change(Prim prim, int k, const Operands& o, const Expr& d) {
  const auto& [a, b, c, y, b_is_number] = o;
  switch (prim) {
    case Prim::add: return {true, d};
    case Prim::sub: return {true, k == 0 ? d : -d};
    case Prim::mul: return {true, d * (k == 0 ? b : a)};
    case Prim::div: return {true, k == 0 ? d / b : -(d * y / b)};
    case Prim::mod: return {true, k == 0 ? d : -(d * floor_div(a, b))};
    case Prim::fmod: return {true, k == 0 ? d : -(d * trunc(a / b))};
    case Prim::power:
      // At a = 0 or b = 0 the rules give 0 * infinity where the change is zero.
      if (k == 1) return {true, select(a == 0 && b >= 0, 0, d * (y * log(a)))};
      if (b_is_number) return {true, d * (b * power(a, b - 1))};
      return {true, select(b == 0, 0, d * (b * power(a, b - 1)))};
    case Prim::atan2: return {true, k == 0 ? d * (b / (a * a + b * b)) : -(d * (a / (a * a + b * b)))};
    case Prim::hypot: return {true, d * ((k == 0 ? a : b) / y)};
    case Prim::copysign: return k == 0 ? Tangent{true, d * (copysign(1, a) * copysign(1, b))} : Tangent{};
    case Prim::polygamma: return k == 1 ? Tangent{true, d * polygamma(a + 1, b)} : Tangent{};
    case Prim::fma: return {true, k == 0 ? d * b : k == 1 ? d * a : d};
    default: return {};
  }
}

// The change of a result from those of its operands.
constexpr Tangent change(Prim prim, const Operands& o, const Tangent (&d)[3]) {
  if (!d[0].some && !d[1].some && !d[2].some) return {};
  switch (prim) {
    case Prim::select: return {true, select(o.a, d[1].value, d[2].value)};
    // At a tie all goes to the first operand.
    case Prim::max: return {true, select(o.a >= o.b, d[0].value, d[1].value)};
    case Prim::min: return {true, select(o.a <= o.b, d[0].value, d[1].value)};
    case Prim::fmax: return {true, select(o.a >= o.b || o.b != o.b, d[0].value, d[1].value)};
    case Prim::fmin: return {true, select(o.a <= o.b || o.b != o.b, d[0].value, d[1].value)};
    default: break;
  }
  if (info_of(prim).arity == 1) return unary_change(prim, o.a, o.y, d[0].value);
  Tangent sum;
  for (int k = 0; k < info_of(prim).arity; ++k)
    if (d[k].some) sum = sum + partial_change(prim, k, o, d[k].value);
  return sum;
}

}  // namespace formula

/// The gradient of a pointwise formula by its argument number `argument`: a program of (the arguments of p..., dy), or
/// of (the arguments of p..., y, dy) if `with_output`, where y, the result of p, spares its recomputation. The
/// parameters are p's. Sources tell what it reads; a gradient that is zero everywhere is a program of no inputs.
constexpr Program derivative(const Program& p, int argument, bool with_output = false) {
  using namespace formula;
  Recorder r;
  bool is_mask[32] = {};
  for (int i = 0; i < p.input_count; ++i) is_mask[p.sources[i]] = p.reads_mask(i);
  Id arguments[32] = {}, params[kMaxParams] = {}, temps[kMaxTemps] = {};
  Tangent changes[kMaxTemps];
  for (int i = 0; i < p.argument_count; ++i) arguments[i] = r.argument(is_mask[i]);
  const Id y = with_output ? r.argument(p.mask_output()) : kNoId;
  const Expr dy{&r, r.argument(false)};
  for (int i = 0; i < p.param_count; ++i) params[i] = r.param();

  auto id_of = [&](const Ref& ref) -> Id {
    switch (ref.kind) {
      case Ref::Kind::temp: return temps[ref.index];
      case Ref::Kind::input: return arguments[p.sources[ref.index]];
      case Ref::Kind::param: return params[ref.index];
      case Ref::Kind::constant: return r.constant(p.constants[ref.index]);
      case Ref::Kind::none: break;
    }
    return kNoId;
  };
  for (int i = 0; i < p.instruction_count; ++i) {
    const Instruction& in = p.instructions[i];
    Id ids[3] = {kNoId, kNoId, kNoId};
    Tangent d[3];
    for (int k = 0; k < info_of(in.prim).arity; ++k) {
      const Ref& ref = in.operands[k];
      ids[k] = id_of(ref);
      if (ref.kind == Ref::Kind::temp) d[k] = changes[ref.index];
      else if (ref.kind == Ref::Kind::input && p.sources[ref.index] == argument && !p.reads_mask(ref.index))
        d[k] = {true, dy};
    }
    const Id result = with_output && i + 1 == p.instruction_count ? y : r.emit(in.prim, ids[0], ids[1], ids[2]);
    auto expr = [&](Id id) { return id == kNoId ? Expr(0) : Expr(&r, id); };
    const bool b_is_number = ids[1] != kNoId && r.node(ids[1]).kind == formula::Node::Kind::constant;
    changes[in.dst] = change(in.prim, {expr(ids[0]), expr(ids[1]), expr(ids[2]), expr(result), b_is_number}, d);
    temps[in.dst] = result;
  }
  const Tangent& total = changes[p.last().dst];
  return r.finish(total.some ? total.value.id_in(r) : r.number(0));
}

}  // namespace twibil
