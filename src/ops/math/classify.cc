// SPDX-License-Identifier: Apache-2.0
// What kind of number is it? Integers and bool are looked at as floating point.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kIsnan = record([](Expr x) { return isnan(x); });
inline constexpr Program kIsinf = record([](Expr x) { return isinf(x); });
inline constexpr Program kIsfinite = record([](Expr x) { return isfinite(x); });
inline constexpr Program kIsposinf = record([](Expr x) { return x == formula::infinity(); });
inline constexpr Program kIsneginf = record([](Expr x) { return -x == formula::infinity(); });
inline constexpr Program kSignbit = record([](Expr x) { return signbit(x); });

TW_OP(isnan) = whole({
    .name = "isnan",
    .doc = "True where x is NaN.",
    .names = {"np.isnan", "nd.contrib.isnan"},
    .onnx = {.names = "IsNaN"},
    .in = kX,
    .program = &kIsnan,
    .rule = Rule::floating,
    .types = kFloats,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(isinf) = whole({
    .name = "isinf",
    .doc = "True where x is infinite.",
    .names = {"np.isinf", "nd.contrib.isinf"},
    .in = kX,
    .program = &kIsinf,
    .rule = Rule::floating,
    .types = kFloats,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(isfinite) = whole({
    .name = "isfinite",
    .doc = "True where x is neither infinite nor NaN.",
    .names = {"np.isfinite", "nd.contrib.isfinite"},
    .in = kX,
    .program = &kIsfinite,
    .rule = Rule::floating,
    .types = kFloats,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(isposinf) = whole({
    .name = "isposinf",
    .doc = "True where x is +infinity.",
    .names = {"np.isposinf"},
    .in = kX,
    .program = &kIsposinf,
    .rule = Rule::floating,
    .types = kFloats,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(isneginf) = whole({
    .name = "isneginf",
    .doc = "True where x is -infinity.",
    .names = {"np.isneginf"},
    .in = kX,
    .program = &kIsneginf,
    .rule = Rule::floating,
    .types = kFloats,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(signbit) = whole({
    .name = "signbit",
    .doc = "True where the sign of x is negative, -0 and NaN with a sign included.",
    .names = {"np.signbit"},
    .in = kX,
    .program = &kSignbit,
    .rule = Rule::floating,
    .types = kFloats,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::real),
});

}  // namespace twibil::ops
