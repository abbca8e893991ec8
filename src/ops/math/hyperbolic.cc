// SPDX-License-Identifier: Apache-2.0
// Hyperbolic functions and their inverses.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kSinh = record([](Expr x) { return sinh(x); });
inline constexpr Program kCosh = record([](Expr x) { return cosh(x); });
inline constexpr Program kTanh = record([](Expr x) { return tanh(x); });
inline constexpr Program kArcsinh = record([](Expr x) { return asinh(x); });
inline constexpr Program kArccosh = record([](Expr x) { return acosh(x); });
inline constexpr Program kArctanh = record([](Expr x) { return atanh(x); });

TW_OP(sinh) = whole({
    .name = "sinh",
    .doc = "The hyperbolic sine of each element.",
    .names = {"np.sinh", "ndarray.sinh", "nd.sinh"},
    .onnx = {.names = "Sinh"},
    .in = kX,
    .program = &kSinh,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(cosh) = whole({
    .name = "cosh",
    .doc = "The hyperbolic cosine of each element.",
    .names = {"np.cosh", "ndarray.cosh", "nd.cosh"},
    .onnx = {.names = "Cosh"},
    .in = kX,
    .program = &kCosh,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(tanh) = whole({
    .name = "tanh",
    .doc = "The hyperbolic tangent of each element.",
    .names = {"np.tanh", "ndarray.tanh", "nd.tanh", "npx.tanh"},
    .onnx = {.names = "Tanh"},
    .in = kX,
    .program = &kTanh,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * (1 - square(g.y()))}; }),
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(arcsinh) = whole({
    .name = "arcsinh",
    .doc = "The number whose hyperbolic sine is x.",
    .names = {"np.arcsinh", "np.asinh", "ndarray.arcsinh", "nd.arcsinh"},
    .onnx = {.names = "Asinh"},
    .in = kX,
    .program = &kArcsinh,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(arccosh) = whole({
    .name = "arccosh",
    .doc = "The number, not negative, whose hyperbolic cosine is x; NaN below 1.",
    .names = {"np.arccosh", "np.acosh", "ndarray.arccosh", "nd.arccosh"},
    .onnx = {.names = "Acosh"},
    .in = kX,
    .program = &kArccosh,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::above_one),
});

TW_OP(arctanh) = whole({
    .name = "arctanh",
    .doc = "The number whose hyperbolic tangent is x; NaN outside -1 to 1.",
    .names = {"np.arctanh", "np.atanh", "ndarray.arctanh", "nd.arctanh"},
    .onnx = {.names = "Atanh"},
    .in = kX,
    .program = &kArctanh,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::unit),
});

}  // namespace twibil::ops
