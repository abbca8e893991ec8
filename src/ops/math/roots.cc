// SPDX-License-Identifier: Apache-2.0
// Roots, and the length of a vector of two. Gradients are written in the result, so that x need not be kept.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kSqrt = record([](Expr x) { return sqrt(x); });
inline constexpr Program kRsqrt = record([](Expr x) { return rsqrt(x); });
inline constexpr Program kCbrt = record([](Expr x) { return cbrt(x); });
inline constexpr Program kRcbrt = record([](Expr x) { return 1 / cbrt(x); });
inline constexpr Program kHypot = record([](Expr x, Expr y) { return hypot(x, y); });

TW_OP(sqrt) = whole({
    .name = "sqrt",
    .doc = "The square root of each element; NaN for negative ones.",
    .names = {"np.sqrt", "ndarray.sqrt", "nd.sqrt"},
    .onnx = {.names = "Sqrt"},
    .in = kX,
    .program = &kSqrt,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * 0.5 / g.y()}; }),
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

TW_OP(rsqrt) = whole({
    .name = "rsqrt",
    .doc = "One over the square root of each element.",
    .names = {"npx.rsqrt", "ndarray.rsqrt", "nd.rsqrt"},
    .in = kData,
    .program = &kRsqrt,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * -0.5 * g.y() * square(g.y())}; }),
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

TW_OP(cbrt) = whole({
    .name = "cbrt",
    .doc = "The cube root of each element, negative ones included.",
    .names = {"np.cbrt", "ndarray.cbrt", "nd.cbrt"},
    .in = kX,
    .program = &kCbrt,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() / (square(g.y()) * 3)}; }),
    .inplace = kOverX,
    .samples = samples_with_kinks(Domain::positive),
});

TW_OP(rcbrt) = whole({
    .name = "rcbrt",
    .doc = "One over the cube root of each element.",
    .names = {"npx.rcbrt", "ndarray.rcbrt", "nd.rcbrt"},
    .in = kData,
    .program = &kRcbrt,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.dy() * (-1.0 / 3) * square(square(g.y()))};
    }),
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

extern const OpDef op_hypot_scalar;  // legacy/scalar.cc
TW_OP(hypot) = whole({
    .name = "hypot",
    .doc = "The length of the vector (x1, x2), without overflow on the way. Its gradient at the origin is 0.",
    .names = {"np.hypot", "nd.broadcast_hypot"},
    .graph = {.names = "broadcast_hypot _hypot _Hypot _npi_hypot", .inputs = "lhs rhs"},
    .scalar_form = &op_hypot_scalar,
    .reversed_scalar_form = &op_hypot_scalar,
    .in = kX1X2,
    .program = &kHypot,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0 | X1 | Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      Val length = where(equal(g.y(), 0), 1, g.y());
      return {g.wants(0) ? g.dy() * g.x(0) / length : Val(), g.wants(1) ? g.dy() * g.x(1) / length : Val()};
    }),
    .inplace = kOverEither,
    .samples = {{{.in = {{{{3, 4}, Domain::positive}, {3, 4}}}},
                 {.in = {{{{2, 3, 4}, Domain::positive}, {3, 1}}}},
                 {.in = {{{3, 4}, {3, 4}}}, .smooth = false}}},
});

}  // namespace twibil::ops
