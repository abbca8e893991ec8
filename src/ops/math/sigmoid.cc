// SPDX-License-Identifier: Apache-2.0
// The sigmoid and the curves like it. Their gradients are written by hand: the formulas hold abs and max inside
// something smooth, and most gradients need the result alone.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kSigmoid = record([](Expr x) { return sigmoid(x); });
inline constexpr Program kLogSigmoid = record([](Expr x) { return min(x, 0) - log1p(exp(-abs(x))); });
inline constexpr Program kSoftplus = record([](Expr x) { return softplus(x); });
inline constexpr Program kSoftsign = record([](Expr x) { return x / (1 + abs(x)); });
inline constexpr Program kHardSigmoid =
    record([](Expr x, Param alpha, Param beta) { return clip(alpha * x + beta, 0, 1); });

TW_OP(sigmoid) = whole({
    .name = "sigmoid",
    .doc = "1 / (1 + exp(-x)) for each element.",
    .names = {"npx.sigmoid", "ndarray.sigmoid", "nd.sigmoid"},
    .onnx = {.names = "Sigmoid"},
    .in = kData,
    .program = &kSigmoid,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * g.y() * (1 - g.y())}; }),
    .inplace = kOverX,
    .samples = samples_with_zeros(),
});

TW_OP(log_sigmoid) = whole({
    .name = "log_sigmoid",
    .doc = "The logarithm of the sigmoid of each element, without overflow on the way.",
    .names = {"npx.log_sigmoid", "ndarray.log_sigmoid", "nd.log_sigmoid"},
    .in = kData,
    .program = &kLogSigmoid,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * sigmoid(-g.x(0))}; }),
    .inplace = kOverX,
    .samples = samples_with_zeros(),
});

TW_OP(softplus) = whole({
    .name = "softplus",
    .doc = "log(1 + exp(x)) for each element, without overflow on the way: a smooth relu.",
    .names = {"npx.softplus"},
    .onnx = {.names = "Softplus"},
    .in = kData,
    .program = &kSoftplus,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * sigmoid(g.x(0))}; }),
    .inplace = kOverX,
    .samples = samples_with_zeros(),
});

TW_OP(softsign) = whole({
    .name = "softsign",
    .doc = "x / (1 + |x|) for each element.",
    .names = {"npx.softsign", "nd.softsign"},
    .onnx = {.names = "Softsign"},
    .in = kData,
    .program = &kSoftsign,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * square(1 - absolute(g.y()))}; }),
    .inplace = kOverX,
    .samples = samples_with_zeros(),
});

struct HardSigmoidAttrs {
  double alpha = 0.2, beta = 0.5;
};
inline constexpr Field kHardSigmoidFields[] = {
    TW_ATTR(HardSigmoidAttrs, alpha, "Slope of the straight part."),
    TW_ATTR(HardSigmoidAttrs, beta, "Value at 0."),
};

TW_OP(hard_sigmoid) = whole({
    .name = "hard_sigmoid",
    .doc = "alpha * x + beta, clipped to [0, 1]: the sigmoid in three straight lines.",
    .names = {"npx.hard_sigmoid", "nd.hard_sigmoid"},
    .onnx = {.names = "HardSigmoid", .attrs = "alpha=0.2 beta=0.5"},
    .attrs = schema<HardSigmoidAttrs>(kHardSigmoidFields),
    .in = kData,
    .program = &kHardSigmoid,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<HardSigmoidAttrs>([](auto& a, const Grad& g) -> Vals {
      return {where(logical_and(greater(g.y(), 0), less(g.y(), 1)), g.dy() * a.alpha, 0)};
    }),
    .inplace = kOverX,
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{3, 4}}}, .attrs = "alpha=0.7, beta=0.5"}}},
});

}  // namespace twibil::ops
