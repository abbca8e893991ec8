// SPDX-License-Identifier: Apache-2.0
// Addition, subtraction, multiplication, division and negation.
#include "ops/forms.h"

namespace twibil::ops {

inline constexpr Program kAdd = record([](Expr x, Expr y) { return x + y; });
inline constexpr Program kSubtract = record([](Expr x, Expr y) { return x - y; });
inline constexpr Program kMultiply = record([](Expr x, Expr y) { return x * y; });
inline constexpr Program kDivide = record([](Expr x, Expr y) { return x / y; });
inline constexpr Program kNegative = record([](Expr x) { return -x; });

extern const OpDef op_plus_scalar;  // legacy/scalar.cc
TW_OP(add) = whole({
    .name = "add",
    .doc = "Adds x and y element by element.",
    .names = {"np.add", "nd.broadcast_add", "nd.elemwise_add"},
    .graph = {.names = "broadcast_add elemwise_add _plus _Plus _add broadcast_plus _grad_add _npi_add",
              .inputs = "lhs rhs"},
    .onnx = {.names = "Add:7"},
    .scalar_form = &op_plus_scalar,
    .reversed_scalar_form = &op_plus_scalar,
    .in = {{{.name = "x1"}, {.name = "x2"}}},
    .program = &kAdd,
    .types = kAll,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.dy(), g.dy()};
    }),
    .inplace = {{{0, 0}, {0, 1}}},
    .role = Role::accumulate,
    .samples = {{{.in = {{{3, 4}, {3, 4}}}}, {.in = {{{2, 3, 4}, {4}}}}, {.in = {{{3, 1}, {1, 4}}}}}},
});

extern const OpDef op_minus_scalar, op_rminus_scalar;  // legacy/scalar.cc
TW_OP(subtract) = whole({
    .name = "subtract",
    .doc = "Subtracts y from x element by element.",
    .names = {"np.subtract", "nd.broadcast_sub", "nd.elemwise_sub"},
    .graph = {.names = "broadcast_sub elemwise_sub _minus _Minus _sub broadcast_minus _npi_subtract",
              .inputs = "lhs rhs"},
    .onnx = {.names = "Sub:7"},
    .scalar_form = &op_minus_scalar,
    .reversed_scalar_form = &op_rminus_scalar,
    .in = {{{.name = "x1"}, {.name = "x2"}}},
    .program = &kSubtract,
    .types = kReals,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.dy(), g.wants(1) ? -g.dy() : Val()};
    }),
    .inplace = {{{0, 0}, {0, 1}}},
    .samples = {{{.in = {{{3, 4}, {3, 4}}}}, {.in = {{{2, 3, 4}, {4}}}}}},
});

extern const OpDef op_mul_scalar;  // legacy/scalar.cc
TW_OP(multiply) = whole({
    .name = "multiply",
    .doc = "Multiplies x and y element by element.",
    .names = {"np.multiply", "nd.broadcast_mul", "nd.elemwise_mul"},
    .graph = {.names = "broadcast_mul elemwise_mul _mul _Mul _npi_multiply", .inputs = "lhs rhs"},
    .onnx = {.names = "Mul:7"},
    .scalar_form = &op_mul_scalar,
    .reversed_scalar_form = &op_mul_scalar,
    .in = {{{.name = "x1"}, {.name = "x2"}}},
    .program = &kMultiply,
    .types = kAll,
    .needs = X0 | X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.wants(0) ? g.dy() * g.x(1) : Val(), g.wants(1) ? g.dy() * g.x(0) : Val()};
    }),
    .inplace = {{{0, 0}, {0, 1}}},
    .samples = {{{.in = {{{3, 4}, {3, 4}}}}, {.in = {{{2, 3, 4}, {3, 1}}}}}},
});

extern const OpDef op_div_scalar, op_rdiv_scalar;  // legacy/scalar.cc
TW_OP(true_divide) = whole({
    .name = "true_divide",
    .doc = "Divides x by y element by element; integers give floating-point results.",
    .names = {"np.true_divide", "np.divide", "nd.broadcast_div", "nd.elemwise_div"},
    .graph = {.names = "broadcast_div elemwise_div _div _Div _npi_true_divide", .inputs = "lhs rhs"},
    .scalar_form = &op_div_scalar,
    .reversed_scalar_form = &op_rdiv_scalar,
    .in = {{{.name = "x1"}, {.name = "x2"}}},
    .program = &kDivide,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X1 | Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      Val dx = g.dy() / g.x(1);
      return {dx, g.wants(1) ? -(dx * g.y()) : Val()};
    }),
    .inplace = {{{0, 0}, {0, 1}}},
    .samples = {{{.in = {{{3, 4}, {{3, 4}, Domain::positive}}}}, {.in = {{{2, 3, 4}, {{4}, Domain::positive}}}}}},
});

TW_OP(negative) = whole({
    .name = "negative",
    .doc = "Changes the sign of each element.",
    .names = {"np.negative", "ndarray.negative", "nd.negative"},
    .onnx = {.names = "Neg"},
    .in = {{{.name = "x"}}},
    .program = &kNegative,
    .types = kReals,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {-g.dy()}; }),
    .inplace = {{{0, 0}}},
    .samples = {{{.in = {{{3, 4}}}}}},
});

}  // namespace twibil::ops
