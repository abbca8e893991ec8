// SPDX-License-Identifier: Apache-2.0
// Exponentials.
#include <numbers>

#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kExp = record([](Expr x) { return exp(x); });
inline constexpr Program kExp2 = record([](Expr x) { return exp2(x); });
inline constexpr Program kExpm1 = record([](Expr x) { return expm1(x); });
inline constexpr Program kLdexp = record([](Expr x, Expr y) { return x * exp2(y); });

TW_OP(exp) = whole({
    .name = "exp",
    .doc = "e to the power of each element.",
    .names = {"np.exp", "ndarray.exp", "nd.exp"},
    .onnx = {.names = "Exp"},
    .in = kX,
    .program = &kExp,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * g.y()}; }),
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(exp2) = whole({
    .name = "exp2",
    .doc = "2 to the power of each element.",
    .names = {"np.exp2"},
    .in = kX,
    .program = &kExp2,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * g.y() * std::numbers::ln2}; }),
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(expm1) = whole({
    .name = "expm1",
    .doc = "exp(x) - 1, exact near 0.",
    .names = {"np.expm1", "ndarray.expm1", "nd.expm1"},
    .in = kX,
    .program = &kExpm1,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,  // y + 1 would lose the digits of exp(x) where x is far below 0
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(ldexp) = whole({
    .name = "ldexp",
    .doc = "x1 times 2 to the power x2.",
    .names = {"np.ldexp"},
    .in = kX1X2,
    .program = &kLdexp,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverEither,
    .samples = {{{.in = {{{3, 4}, {3, 4}}}}, {.in = {{{2, 3, 4}, {{3, 1}, Domain::integer}}}}}},
});

}  // namespace twibil::ops
