// SPDX-License-Identifier: Apache-2.0
// Programs at run time: the reference evaluation in double, the printed form, errors of recording.
#include "ir/formula.h"

#include <cmath>
#include <numeric>

#include "base/special.h"

namespace twibil {
namespace formula {

void formula_is_too_long() {
  throw_error(ErrorKind::runtime, "formula: it must fit a Program (base/program.h has the limits); it is longer");
}
void formula_of_numbers_alone() {
  throw_error(ErrorKind::runtime,
              "formula: a primitive must have an argument of the formula among its operands; all are numbers");
}

}  // namespace formula

namespace {

int64_t whole(double x) { return Scalar(x).as_int(); }

double shift(double a, double b, bool left) {
  int64_t x = whole(a), by = whole(b);
  if (by < 0 || by > 63) return left || x >= 0 ? 0 : -1;
  return static_cast<double>(left ? static_cast<int64_t>(static_cast<uint64_t>(x) << by) : x >> by);
}

double round_half_even(double x) {
  double r = std::round(x);
  return std::fabs(x - std::trunc(x)) == 0.5 ? 2 * std::round(x / 2) : r;
}

double value_of(Prim prim, double a, double b, double c) {
  switch (prim) {
    case Prim::identity:
    case Prim::from_mask: return a;
    case Prim::add: return a + b;
    case Prim::sub: return a - b;
    case Prim::mul: return a * b;
    case Prim::div: return a / b;
    case Prim::floor_div: return floor_div_real(a, b);
    case Prim::mod: return mod_real(a, b);
    case Prim::fmod: return std::fmod(a, b);
    case Prim::power: return std::pow(a, b);
    case Prim::max: return max_real(a, b);
    case Prim::min: return min_real(a, b);
    case Prim::fmax: return std::fmax(a, b);
    case Prim::fmin: return std::fmin(a, b);
    case Prim::atan2: return std::atan2(a, b);
    case Prim::hypot: return std::hypot(a, b);
    case Prim::copysign: return std::copysign(a, b);
    case Prim::polygamma: return polygamma(a, b);
    case Prim::gcd: return static_cast<double>(std::gcd(whole(a), whole(b)));
    case Prim::bit_and: return static_cast<double>(whole(a) & whole(b));
    case Prim::bit_or: return static_cast<double>(whole(a) | whole(b));
    case Prim::bit_xor: return static_cast<double>(whole(a) ^ whole(b));
    case Prim::shift_left: return shift(a, b, true);
    case Prim::shift_right: return shift(a, b, false);
    case Prim::bit_not: return static_cast<double>(~whole(a));
    case Prim::neg: return -a;
    case Prim::abs: return std::fabs(a);
    case Prim::sign: return sign_real(a);
    case Prim::floor: return std::floor(a);
    case Prim::ceil: return std::ceil(a);
    case Prim::trunc: return std::trunc(a);
    case Prim::rint: return round_half_even(a);
    case Prim::round: return std::round(a);
    case Prim::sqrt: return std::sqrt(a);
    case Prim::rsqrt: return 1 / std::sqrt(a);
    case Prim::cbrt: return std::cbrt(a);
    case Prim::exp: return std::exp(a);
    case Prim::exp2: return std::exp2(a);
    case Prim::expm1: return std::expm1(a);
    case Prim::log: return std::log(a);
    case Prim::log2: return std::log2(a);
    case Prim::log10: return std::log10(a);
    case Prim::log1p: return std::log1p(a);
    case Prim::sigmoid: return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a));
    case Prim::sin: return std::sin(a);
    case Prim::cos: return std::cos(a);
    case Prim::tan: return std::tan(a);
    case Prim::asin: return std::asin(a);
    case Prim::acos: return std::acos(a);
    case Prim::atan: return std::atan(a);
    case Prim::sinh: return std::sinh(a);
    case Prim::cosh: return std::cosh(a);
    case Prim::tanh: return std::tanh(a);
    case Prim::asinh: return std::asinh(a);
    case Prim::acosh: return std::acosh(a);
    case Prim::atanh: return std::atanh(a);
    case Prim::erf: return std::erf(a);
    case Prim::erfinv: return erfinv(a);
    case Prim::gamma: return gamma_of(a);
    case Prim::lgamma: return lgamma_of(a);
    case Prim::digamma: return digamma(a);
    case Prim::eq: return a == b;
    case Prim::ne: return a != b;
    case Prim::lt: return a < b;
    case Prim::le: return a <= b;
    case Prim::gt: return a > b;
    case Prim::ge: return a >= b;
    case Prim::logical_and: return a != 0 && b != 0;
    case Prim::logical_or: return a != 0 || b != 0;
    case Prim::logical_xor: return (a != 0) != (b != 0);
    case Prim::logical_not: return a == 0;
    case Prim::fma: return std::fma(a, b, c);
    case Prim::select: return a != 0 ? b : c;
  }
  TW_ASSERT(!"a primitive");
}

double value_of(const ProgramConstant& c) {
  switch (c.kind) {
    case ProgramConstant::Kind::lowest: return std::numeric_limits<double>::lowest();
    case ProgramConstant::Kind::highest: return std::numeric_limits<double>::max();
    case ProgramConstant::Kind::number: break;
  }
  return c.number.as_double();
}

std::string name_of(const Program& p, const Ref& r) {
  switch (r.kind) {
    case Ref::Kind::temp: return text("t", r.index);
    case Ref::Kind::input: return text(p.reads_mask(r.index) ? "m" : "x", p.sources[r.index]);
    case Ref::Kind::param: return text("p", r.index);
    case Ref::Kind::constant: {
      const ProgramConstant& c = p.constants[r.index];
      return c.kind == ProgramConstant::Kind::lowest    ? "lowest"
             : c.kind == ProgramConstant::Kind::highest ? "highest"
                                                        : text(c.number.as_double());
    }
    case Ref::Kind::none: break;
  }
  return "?";
}

}  // namespace

double evaluate(const Program& p, std::span<const double> inputs, std::span<const double> params) {
  TW_ASSERT(!p.empty() && inputs.size() == p.input_count && params.size() == p.param_count);
  double temps[kMaxTemps];
  auto read = [&](const Ref& r) {
    switch (r.kind) {
      case Ref::Kind::temp: return temps[r.index];
      case Ref::Kind::input: return p.reads_mask(r.index) ? static_cast<double>(inputs[r.index] != 0) : inputs[r.index];
      case Ref::Kind::param: return params[r.index];
      case Ref::Kind::constant: return value_of(p.constants[r.index]);
      case Ref::Kind::none: break;
    }
    return 0.0;
  };
  for (int i = 0; i < p.instruction_count; ++i) {
    const Instruction& in = p.instructions[i];
    temps[in.dst] = value_of(in.prim, read(in.operands[0]), read(in.operands[1]), read(in.operands[2]));
  }
  return temps[p.last().dst];
}

std::string to_text(const Program& p) {
  std::string out;
  for (int i = 0; i < p.instruction_count; ++i) {
    const Instruction& in = p.instructions[i];
    out += text("t", in.dst, " = ", in.prim, "(");
    for (int j = 0; j < info_of(in.prim).arity; ++j) out += text(j ? ", " : "", name_of(p, in.operands[j]));
    out += ")\n";
  }
  return out;
}

}  // namespace twibil
