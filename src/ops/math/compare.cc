// SPDX-License-Identifier: Apache-2.0
// Comparisons. A comparison with NaN is false, but for not_equal.
#include "ops/math/elementwise.h"

namespace twibil::ops {

/// What all comparisons share.
static constexpr OpDef comparison(OpDef d) {
  d.in = kX1X2;
  d.rule = Rule::compare;
  d.types = kAll;
  d.no_grad = kNoGradOfBool;
  d.samples = samples_not_smooth(Domain::integer, Domain::integer);
  return whole(d);
}

// legacy/scalar.cc
extern const OpDef op_equal_scalar, op_not_equal_scalar, op_less_scalar, op_less_equal_scalar, op_greater_scalar,
    op_greater_equal_scalar;

inline constexpr Program kEqual = record([](Expr x, Expr y) { return x == y; });
inline constexpr Program kNotEqual = record([](Expr x, Expr y) { return x != y; });
inline constexpr Program kLess = record([](Expr x, Expr y) { return x < y; });
inline constexpr Program kLessEqual = record([](Expr x, Expr y) { return x <= y; });
inline constexpr Program kGreater = record([](Expr x, Expr y) { return x > y; });
inline constexpr Program kGreaterEqual = record([](Expr x, Expr y) { return x >= y; });

TW_OP(equal) = comparison({
    .name = "equal",
    .doc = "True where x1 equals x2.",
    .names = {"np.equal"},
    .onnx = {.names = "Equal"},
    .scalar_form = &op_equal_scalar,
    .reversed_scalar_form = &op_equal_scalar,
    .program = &kEqual,
});

TW_OP(not_equal) = comparison({
    .name = "not_equal",
    .doc = "True where x1 differs from x2.",
    .names = {"np.not_equal"},
    .scalar_form = &op_not_equal_scalar,
    .reversed_scalar_form = &op_not_equal_scalar,
    .program = &kNotEqual,
});

TW_OP(less) = comparison({
    .name = "less",
    .doc = "True where x1 is less than x2.",
    .names = {"np.less"},
    .onnx = {.names = "Less"},
    .scalar_form = &op_less_scalar,
    .reversed_scalar_form = &op_greater_scalar,
    .program = &kLess,
});

TW_OP(less_equal) = comparison({
    .name = "less_equal",
    .doc = "True where x1 is at most x2.",
    .names = {"np.less_equal"},
    .onnx = {.names = "LessOrEqual"},
    .scalar_form = &op_less_equal_scalar,
    .reversed_scalar_form = &op_greater_equal_scalar,
    .program = &kLessEqual,
});

TW_OP(greater) = comparison({
    .name = "greater",
    .doc = "True where x1 is greater than x2.",
    .names = {"np.greater"},
    .onnx = {.names = "Greater"},
    .scalar_form = &op_greater_scalar,
    .reversed_scalar_form = &op_less_scalar,
    .program = &kGreater,
});

TW_OP(greater_equal) = comparison({
    .name = "greater_equal",
    .doc = "True where x1 is at least x2.",
    .names = {"np.greater_equal"},
    .onnx = {.names = "GreaterOrEqual"},
    .scalar_form = &op_greater_equal_scalar,
    .reversed_scalar_form = &op_less_equal_scalar,
    .program = &kGreaterEqual,
});

}  // namespace twibil::ops
