// SPDX-License-Identifier: Apache-2.0
// Logic on arrays of any dtype: zero is false, all else, NaN included, is true.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kLogicalAnd = record([](Mask x, Mask y) { return x && y; });
inline constexpr Program kLogicalOr = record([](Mask x, Mask y) { return x || y; });
inline constexpr Program kLogicalXor = record([](Mask x, Mask y) { return logical_xor(x, y); });
inline constexpr Program kLogicalNot = record([](Mask x) { return !x; });

TW_OP(logical_and) = whole({
    .name = "logical_and",
    .doc = "True where both x1 and x2 are true (not zero).",
    .names = {"np.logical_and"},
    .onnx = {.names = "And"},
    .in = kX1X2,
    .program = &kLogicalAnd,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::boolean),
});

TW_OP(logical_or) = whole({
    .name = "logical_or",
    .doc = "True where x1 or x2 is true (not zero).",
    .names = {"np.logical_or"},
    .onnx = {.names = "Or"},
    .in = kX1X2,
    .program = &kLogicalOr,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::boolean),
});

TW_OP(logical_xor) = whole({
    .name = "logical_xor",
    .doc = "True where exactly one of x1 and x2 is true (not zero).",
    .names = {"np.logical_xor"},
    .onnx = {.names = "Xor"},
    .in = kX1X2,
    .program = &kLogicalXor,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::boolean),
});

TW_OP(logical_not) = whole({
    .name = "logical_not",
    .doc = "True where x is false (zero).",
    .names = {"np.logical_not"},
    .onnx = {.names = "Not"},
    .in = kX,
    .program = &kLogicalNot,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer),
});

}  // namespace twibil::ops
