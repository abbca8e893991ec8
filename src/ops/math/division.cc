// SPDX-License-Identifier: Apache-2.0
// Quotients that are rounded, and what they leave over.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kFloorDivide = record([](Expr x, Expr y) { return floor_div(x, y); });
inline constexpr Program kMod = record([](Expr x, Expr y) { return mod(x, y); });
inline constexpr Program kFmod = record([](Expr x, Expr y) { return fmod(x, y); });

TW_OP(floor_divide) = whole({
    .name = "floor_divide",
    .doc = "Divides x1 by x2 and rounds down. Integers divided by zero give 0.",
    .names = {"np.floor_divide"},
    .in = kX1X2,
    .program = &kFloorDivide,
    .rule = Rule::arithmetic,
    .types = kReals,
    .grad = kZeroGrad,
    .inplace = kOverEither,
    .samples = samples_not_smooth(Domain::real, Domain::positive),
});

extern const OpDef op_mod_scalar, op_rmod_scalar;  // legacy/scalar.cc
TW_OP(mod) = whole({
    .name = "mod",
    .doc = "What x1 leaves over when divided by x2 rounding down; it has the sign of x2. Integers modulo zero give 0.",
    .names = {"np.mod", "np.remainder", "nd.broadcast_mod", "nd.modulo"},
    .graph = {.names = "broadcast_mod _mod _Mod _npi_mod", .inputs = "lhs rhs"},
    .scalar_form = &op_mod_scalar,
    .reversed_scalar_form = &op_rmod_scalar,
    .in = kX1X2,
    .program = &kMod,
    .rule = Rule::arithmetic,
    .types = kReals,
    .needs = X0 | X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.dy(), g.wants(1) ? -(g.dy() * floor_divide(g.x(0), g.x(1))) : Val()};
    }),
    .inplace = kOverEither,
    .samples = samples_of(Domain::real, Domain::above_one),
});

TW_OP(fmod) = whole({
    .name = "fmod",
    .doc = "What x1 leaves over when divided by x2 rounding towards zero; it has the sign of x1. Integers modulo zero "
           "give 0.",
    .names = {"np.fmod"},
    .in = kX1X2,
    .program = &kFmod,
    .rule = Rule::arithmetic,
    .types = kReals,
    .needs = X0 | X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.dy(), g.wants(1) ? -(g.dy() * trunc(g.x(0) / g.x(1))) : Val()};
    }),
    .inplace = kOverEither,
    .samples = samples_of(Domain::real, Domain::above_one),
});

}  // namespace twibil::ops
