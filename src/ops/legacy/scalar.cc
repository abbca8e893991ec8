// SPDX-License-Identifier: Apache-2.0
// An array and a number, the number an attribute: how MXNet's graphs write x + 2.
#include "ops/math/elementwise.h"

namespace twibil::ops {

TW_DECLARE(mod)

namespace {

struct ScalarAttrs {
  Scalar scalar = Scalar(1);
};
constexpr Field kScalarFields[] = {TW_ATTR(ScalarAttrs, scalar, "The number.")};

Val number(const Scalar& s) { return s.is_real() ? Val(s.real) : Val(s.integer); }

template <Captureless F> constexpr ExpandFunction with_scalar(F) {
  return [](const void* a, std::span<const Val> in) -> Vals {
    return {F{}(in[0], number(static_cast<const ScalarAttrs*>(a)->scalar))};
  };
}

/// What these operators share.
constexpr OpDef with_number(OpDef d) {
  d.graph.attrs = "scalar";
  d.attrs = schema<ScalarAttrs>(kScalarFields);
  d.in = kData;
  d.types = kReals;
  d.samples = {{{.in = {{{{3, 4}, Domain::positive}}}, .attrs = "scalar=3.5"}}};
  return whole(d);
}
/// Comparisons have no gradient; MXNet's older ones are floats.
constexpr OpDef compared(OpDef d) {
  d.no_grad = "the result is true or false";
  d = with_number(d);
  d.samples = {{{.in = {{{{3, 4}, Domain::integer}}}, .attrs = "scalar=2", .smooth = false}}};
  return d;
}

}  // namespace

// clang-format off
TW_OP(plus_scalar) = with_number({.name = "plus_scalar", .doc = "data + scalar.",
    .graph = {.names = "_plus_scalar _PlusScalar _npi_add_scalar _scatter_plus_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return x + s; })});
TW_OP(minus_scalar) = with_number({.name = "minus_scalar", .doc = "data - scalar.",
    .graph = {.names = "_minus_scalar _MinusScalar _npi_subtract_scalar _scatter_minus_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return x - s; })});
TW_OP(rminus_scalar) = with_number({.name = "rminus_scalar", .doc = "scalar - data.",
    .graph = {.names = "_rminus_scalar _RMinusScalar _npi_rsubtract_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return s - x; })});
TW_OP(mul_scalar) = with_number({.name = "mul_scalar", .doc = "data * scalar.",
    .graph = {.names = "_mul_scalar _MulScalar _npi_multiply_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return x * s; })});
TW_OP(div_scalar) = with_number({.name = "div_scalar", .doc = "data / scalar.",
    .graph = {.names = "_div_scalar _DivScalar _npi_true_divide_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return x / s; })});
TW_OP(rdiv_scalar) = with_number({.name = "rdiv_scalar", .doc = "scalar / data.",
    .graph = {.names = "_rdiv_scalar _RDivScalar _npi_rtrue_divide_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return s / x; })});
TW_OP(mod_scalar) = with_number({.name = "mod_scalar", .doc = "The remainder of data / scalar, with the sign of the scalar.",
    .graph = {.names = "_mod_scalar _ModScalar _npi_mod_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return apply(op_mod, {x, s}); })});
TW_OP(rmod_scalar) = with_number({.name = "rmod_scalar", .doc = "The remainder of scalar / data, with the sign of data.",
    .graph = {.names = "_rmod_scalar _RModScalar _npi_rmod_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return apply(op_mod, {s, x}); })});
TW_OP(power_scalar) = with_number({.name = "power_scalar", .doc = "data to the power scalar.",
    .graph = {.names = "_power_scalar _PowerScalar _npi_power_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return power(x, s); })});
TW_OP(rpower_scalar) = with_number({.name = "rpower_scalar", .doc = "scalar to the power data.",
    .graph = {.names = "_rpower_scalar _RPowerScalar _npi_rpower_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return power(s, x); })});
TW_OP(maximum_scalar) = with_number({.name = "maximum_scalar", .doc = "The larger of data and scalar.",
    .graph = {.names = "_maximum_scalar _MaximumScalar _npi_maximum_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return maximum(x, s); })});
TW_OP(minimum_scalar) = with_number({.name = "minimum_scalar", .doc = "The smaller of data and scalar.",
    .graph = {.names = "_minimum_scalar _MinimumScalar _npi_minimum_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return minimum(x, s); })});
TW_OP(hypot_scalar) = with_number({.name = "hypot_scalar", .doc = "The root of data squared plus scalar squared.",
    .graph = {.names = "_hypot_scalar _HypotScalar _npi_hypot_scalar"},
    .expand = with_scalar([](const Val& x, const Val& s) { return hypot(x, s); })});

extern const OpDef op_legacy_less_scalar, op_legacy_less_equal_scalar;

#define TW_COMPARED(name_, word, pascal, formula)                                                        \
  TW_OP(name_##_scalar) = compared({.name = #name_ "_scalar", .doc = "Whether data " word " scalar.",     \
      .graph = {.names = "_npi_" #name_ "_scalar"},                                                      \
      .expand = with_scalar([](const Val& x, const Val& s) { return formula; })});
#define TW_FLOAT_COMPARED(name_, reversed_, word, file, pascal, formula)                                           \
  TW_OP(legacy_##name_##_scalar) = compared({.name = "legacy_" #name_ "_scalar",                            \
      .doc = "1 where data " word " scalar, else 0, in the dtype of data.",                                \
      .graph = {.names = "_" file "_scalar _" pascal "Scalar"},                                            \
      .expand = with_scalar([](const Val& x, const Val& s) { return cast(formula, x->dtype()); })});       \
  TW_OP(legacy_##name_) = whole({.name = "legacy_" #name_,                                                  \
      .doc = "1 where lhs " word " rhs, else 0, in the dtype of lhs.",                                     \
      .graph = {.names = "broadcast_" file " _" file " _" pascal},                                         \
      .scalar_form = &op_legacy_##name_##_scalar, .reversed_scalar_form = &op_legacy_##reversed_##_scalar,  \
      .in = {{{.name = "lhs"}, {.name = "rhs"}}}, .types = kReals,                                         \
      .expand = [](const void*, std::span<const Val> in) -> Vals {                                         \
        const Val &x = in[0], &s = in[1];                                                                  \
        return {cast(formula, x->dtype())};                                                                \
      },                                                                                                   \
      .no_grad = "the result is 0 or 1",                                                                   \
      .samples = {{{.in = {{{{3, 4}, Domain::integer}, {{3, 1}, Domain::integer}}}, .smooth = false}}}});
#define TW_BOTH_COMPARED(name_, reversed_, word, file, pascal, formula) \
  TW_COMPARED(name_, word, pascal, formula)                  \
  TW_FLOAT_COMPARED(name_, reversed_, word, file, pascal, formula)

TW_BOTH_COMPARED(equal, equal, "equals", "equal", "Equal", equal(x, s))
TW_BOTH_COMPARED(not_equal, not_equal, "differs from", "not_equal", "NotEqual", not_equal(x, s))
TW_BOTH_COMPARED(greater, less, "is greater than", "greater", "Greater", greater(x, s))
TW_BOTH_COMPARED(greater_equal, less_equal, "is at least", "greater_equal", "GreaterEqual", greater_equal(x, s))
TW_BOTH_COMPARED(less, greater, "is less than", "lesser", "Lesser", less(x, s))
TW_BOTH_COMPARED(less_equal, greater_equal, "is at most", "lesser_equal", "LesserEqual", less_equal(x, s))
TW_FLOAT_COMPARED(logical_and, logical_and, "and", "logical_and", "LogicalAnd", logical_and(x, s))
TW_FLOAT_COMPARED(logical_or, logical_or, "or", "logical_or", "LogicalOr", logical_or(x, s))
TW_FLOAT_COMPARED(logical_xor, logical_xor, "xor", "logical_xor", "LogicalXor", not_equal(not_equal(x, 0), not_equal(s, 0)))
// clang-format on

}  // namespace twibil::ops
