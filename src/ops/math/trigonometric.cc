// SPDX-License-Identifier: Apache-2.0
// Functions of angles and their inverses.
#include <numbers>

#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kSin = record([](Expr x) { return sin(x); });
inline constexpr Program kCos = record([](Expr x) { return cos(x); });
inline constexpr Program kTan = record([](Expr x) { return tan(x); });
inline constexpr Program kArcsin = record([](Expr x) { return asin(x); });
inline constexpr Program kArccos = record([](Expr x) { return acos(x); });
inline constexpr Program kArctan = record([](Expr x) { return atan(x); });
inline constexpr Program kArctan2 = record([](Expr y, Expr x) { return atan2(y, x); });
inline constexpr Program kDegrees = record([](Expr x) { return x * (180 / std::numbers::pi); });
inline constexpr Program kRadians = record([](Expr x) { return x * (std::numbers::pi / 180); });

TW_OP(sin) = whole({
    .name = "sin",
    .doc = "The sine of each element, an angle in radians.",
    .names = {"np.sin", "ndarray.sin", "nd.sin"},
    .onnx = {.names = "Sin"},
    .in = kX,
    .program = &kSin,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(cos) = whole({
    .name = "cos",
    .doc = "The cosine of each element, an angle in radians.",
    .names = {"np.cos", "ndarray.cos", "nd.cos"},
    .onnx = {.names = "Cos"},
    .in = kX,
    .program = &kCos,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(tan) = whole({
    .name = "tan",
    .doc = "The tangent of each element, an angle in radians.",
    .names = {"np.tan", "ndarray.tan", "nd.tan"},
    .onnx = {.names = "Tan"},
    .in = kX,
    .program = &kTan,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::unit),
});

TW_OP(arcsin) = whole({
    .name = "arcsin",
    .doc = "The angle in radians whose sine is x; NaN outside -1 to 1.",
    .names = {"np.arcsin", "np.asin", "ndarray.arcsin", "nd.arcsin"},
    .onnx = {.names = "Asin"},
    .in = kX,
    .program = &kArcsin,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::unit),
});

TW_OP(arccos) = whole({
    .name = "arccos",
    .doc = "The angle in radians whose cosine is x; NaN outside -1 to 1.",
    .names = {"np.arccos", "np.acos", "ndarray.arccos", "nd.arccos"},
    .onnx = {.names = "Acos"},
    .in = kX,
    .program = &kArccos,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::unit),
});

TW_OP(arctan) = whole({
    .name = "arctan",
    .doc = "The angle in radians, between -pi/2 and pi/2, whose tangent is x.",
    .names = {"np.arctan", "np.atan", "ndarray.arctan", "nd.arctan"},
    .onnx = {.names = "Atan"},
    .in = kX,
    .program = &kArctan,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(arctan2) = whole({
    .name = "arctan2",
    .doc = "The angle in radians, between -pi and pi, of the point with height x1 and distance x2. Its gradient at the "
           "origin is 0.",
    .names = {"np.arctan2", "np.atan2"},
    .in = kX1X2,
    .program = &kArctan2,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0 | X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      Val length = hypot(g.x(0), g.x(1));
      length = where(equal(length, 0), 1, length);
      Val turn = g.dy() / length;
      return {g.wants(0) ? turn * (g.x(1) / length) : Val(), g.wants(1) ? -(turn * (g.x(0) / length)) : Val()};
    }),
    .inplace = kOverEither,
    .samples = {{{.in = {{{{3, 4}, Domain::positive}, {3, 4}}}},
                 {.in = {{{{2, 3, 4}, Domain::positive}, {3, 1}}}},
                 {.in = {{{3, 4}, {3, 4}}}, .smooth = false}}},
});

TW_OP(degrees) = whole({
    .name = "degrees",
    .doc = "Degrees from radians.",
    .names = {"np.degrees", "np.rad2deg", "ndarray.degrees", "nd.degrees"},
    .in = kX,
    .program = &kDegrees,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(radians) = whole({
    .name = "radians",
    .doc = "Radians from degrees.",
    .names = {"np.radians", "np.deg2rad", "ndarray.radians", "nd.radians"},
    .in = kX,
    .program = &kRadians,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

}  // namespace twibil::ops
