// SPDX-License-Identifier: Apache-2.0
// Magnitudes and signs.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kAbsolute = record([](Expr x) { return abs(x); });
inline constexpr Program kSign = record([](Expr x) { return sign(x); });
inline constexpr Program kPositive = record([](Expr x) { return x; });
inline constexpr Program kCopysign = record([](Expr x, Expr y) { return copysign(x, y); });
inline constexpr Program kHeaviside = record([](Expr x, Expr at_zero) {
  return select(x == 0, at_zero, select(x < 0, 0, select(x > 0, 1, x)));  // NaN stays NaN
});

TW_OP(absolute) = whole({
    .name = "absolute",
    .doc = "The magnitude of each element. Its gradient at 0 is 0.",
    .names = {"np.absolute", "np.abs", "np.fabs", "ndarray.abs", "nd.abs"},
    .onnx = {.names = "Abs"},
    .in = kX,
    .program = &kAbsolute,
    .types = kAll,
    .needs = X0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * sign(g.x(0))}; }),
    .inplace = kOverX,
    .samples = samples_with_kinks(Domain::positive),
});

TW_OP(sign) = whole({
    .name = "sign",
    .doc = "-1, 0 or 1 by the sign of each element; NaN stays NaN.",
    .names = {"np.sign", "ndarray.sign", "nd.sign"},
    .onnx = {.names = "Sign"},
    .in = kX,
    .program = &kSign,
    .types = kReals,
    .grad = kZeroGrad,
    .inplace = kOverX,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(positive) = whole({
    .name = "positive",
    .doc = "Each element as it is: +x.",
    .names = {"np.positive"},
    .in = kX,
    .program = &kPositive,
    .types = kReals,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy()}; }),
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(copysign) = whole({
    .name = "copysign",
    .doc = "The magnitude of x1 with the sign of x2, the sign of -0 and NaN included.",
    .names = {"np.copysign"},
    .in = kX1X2,
    .program = &kCopysign,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0 | X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.wants(0) ? g.dy() * sign(g.x(0)) * copysign(1.0, g.x(1)) : Val(),
              g.wants(1) ? zeros_like(g.dy()) : Val()};
    }),
    .inplace = kOverEither,
    .samples = samples_with_ties(),
});

TW_OP(heaviside) = whole({
    .name = "heaviside",
    .doc = "0 where x1 is negative, 1 where it is positive, x2 where it is 0; NaN stays NaN.",
    .names = {"np.heaviside"},
    .in = kX1X2,
    .program = &kHeaviside,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.wants(0) ? zeros_like(g.dy()) : Val(), g.wants(1) ? where(equal(g.x(0), 0), g.dy(), 0) : Val()};
    }),
    .inplace = kOverEither,
    .samples = samples_with_ties(),
});

}  // namespace twibil::ops
