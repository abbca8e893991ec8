// SPDX-License-Identifier: Apache-2.0
// Comparisons. A comparison with NaN is false, but for not_equal.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kEqual = record([](Expr x, Expr y) { return x == y; });
inline constexpr Program kNotEqual = record([](Expr x, Expr y) { return x != y; });
inline constexpr Program kLess = record([](Expr x, Expr y) { return x < y; });
inline constexpr Program kLessEqual = record([](Expr x, Expr y) { return x <= y; });
inline constexpr Program kGreater = record([](Expr x, Expr y) { return x > y; });
inline constexpr Program kGreaterEqual = record([](Expr x, Expr y) { return x >= y; });

TW_OP(equal) = whole({
    .name = "equal",
    .doc = "True where x1 equals x2.",
    .names = {"np.equal"},
    .in = kX1X2,
    .program = &kEqual,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(not_equal) = whole({
    .name = "not_equal",
    .doc = "True where x1 differs from x2.",
    .names = {"np.not_equal"},
    .in = kX1X2,
    .program = &kNotEqual,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(less) = whole({
    .name = "less",
    .doc = "True where x1 is less than x2.",
    .names = {"np.less"},
    .in = kX1X2,
    .program = &kLess,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(less_equal) = whole({
    .name = "less_equal",
    .doc = "True where x1 is at most x2.",
    .names = {"np.less_equal"},
    .in = kX1X2,
    .program = &kLessEqual,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(greater) = whole({
    .name = "greater",
    .doc = "True where x1 is greater than x2.",
    .names = {"np.greater"},
    .in = kX1X2,
    .program = &kGreater,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(greater_equal) = whole({
    .name = "greater_equal",
    .doc = "True where x1 is at least x2.",
    .names = {"np.greater_equal"},
    .in = kX1X2,
    .program = &kGreaterEqual,
    .rule = Rule::compare,
    .types = kAll,
    .no_grad = kNoGradOfBool,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

}  // namespace twibil::ops
