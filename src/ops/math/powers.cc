// SPDX-License-Identifier: Apache-2.0
// Powers and the two of them that have names.
#include <cmath>

#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kPower = record([](Expr x, Expr y) { return power(x, y); });
inline constexpr Program kSquare = record([](Expr x) { return x * x; });
inline constexpr Program kReciprocal = record([](Expr x) { return 1 / x; });

// d(x ** y)/dx = y * x ** (y - 1). It is 0 where y is 0, also at x = 0, where the product would be 0 * infinity.
static Val power_grad_by_base(const Val& x, const Val& y, const Val& dy) {
  if (!y->has(kWeak)) return where(equal(y, 0), 0, dy * y * power(x, y - 1));
  double n = scalar_of(*y).as_double();  // computed here: two numbers alone would meet in the default float
  if (n == 0) return zeros_like(dy);
  if (n == 1) return dy;
  return dy * (n == 2 ? x : power(x, n - 1)) * n;
}

// d(x ** y)/dy = x ** y * log(x). Where x <= 0 the power is no smooth function of y; the gradient is 0 there.
static Val power_grad_by_exponent(const Val& x, const Val& z, const Val& dy) {
  if (x->has(kWeak)) {
    double base = scalar_of(*x).as_double();
    return base > 0 ? dy * z * std::log(base) : zeros_like(dy);
  }
  Val positive = greater(x, 0);
  return where(positive, dy * z * log(where(positive, x, 1)), 0);
}

inline constexpr GradFunction kPowerGrad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
  return {g.wants(0) ? power_grad_by_base(g.x(0), g.x(1), g.dy()) : Val(),
          g.wants(1) ? power_grad_by_exponent(g.x(0), g.y(), g.dy()) : Val()};
});
inline constexpr std::array<Sample, 6> kPowerSamples = {{
    {.in = {{{{3, 4}, Domain::positive}, {3, 4}}}},
    {.in = {{{{2, 3, 4}, Domain::positive}, {4}}}},
    {.in = {{{3, 4}, {{3, 4}, Domain::integer}}}, .smooth = false},
}};

extern const OpDef op_power_scalar, op_rpower_scalar;  // legacy/scalar.cc
TW_OP(power) = whole({
    .name = "power",
    .doc = "Raises x1 to the power x2. Integers stay integers; with a negative exponent the result is truncated.",
    .names = {"np.power", "np.pow", "nd.broadcast_power", "nd.power"},
    .graph = {.names = "broadcast_power _power _Power _npi_power", .inputs = "lhs rhs"},
    .scalar_form = &op_power_scalar,
    .reversed_scalar_form = &op_rpower_scalar,
    .in = kX1X2,
    .program = &kPower,
    .rule = Rule::arithmetic,
    .types = kReals,
    .needs = X0 | X1 | Y0,
    .grad = kPowerGrad,
    .inplace = kOverEither,
    .samples = kPowerSamples,
});

TW_OP(float_power) = whole({
    .name = "float_power",
    .doc = "Raises x1 to the power x2 in floating point, also for integers.",
    .names = {"np.float_power"},
    .in = kX1X2,
    .program = &kPower,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0 | X1 | Y0,
    .grad = kPowerGrad,
    .inplace = kOverEither,
    .samples = kPowerSamples,
});

TW_OP(square) = whole({
    .name = "square",
    .doc = "Multiplies each element by itself.",
    .names = {"np.square", "ndarray.square", "nd.square"},
    .in = kX,
    .program = &kSquare,
    .rule = Rule::arithmetic,
    .types = kReals,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(reciprocal) = whole({
    .name = "reciprocal",
    .doc = "Divides one by each element; integers give floating-point results.",
    .names = {"np.reciprocal", "ndarray.reciprocal", "nd.reciprocal"},
    .onnx = {.names = "Reciprocal"},
    .in = kX,
    .program = &kReciprocal,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {-(g.dy() * square(g.y()))}; }),
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

}  // namespace twibil::ops
