// SPDX-License-Identifier: Apache-2.0
// Bits of integers and truth values, and divisors of integers.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kBitwiseAnd = record([](Expr x, Expr y) { return bit_and(x, y); });
inline constexpr Program kBitwiseOr = record([](Expr x, Expr y) { return bit_or(x, y); });
inline constexpr Program kBitwiseXor = record([](Expr x, Expr y) { return bit_xor(x, y); });
inline constexpr Program kLeftShift = record([](Expr x, Expr y) { return shift_left(x, y); });
inline constexpr Program kRightShift = record([](Expr x, Expr y) { return shift_right(x, y); });
inline constexpr Program kGcd = record([](Expr x, Expr y) { return gcd(x, y); });
inline constexpr Program kLcm = record([](Expr x, Expr y) { return abs(floor_div(x, gcd(x, y)) * y); });
inline constexpr Program kInvert = record([](Expr x) { return bit_not(x); });

TW_OP(bitwise_and) = whole({
    .name = "bitwise_and",
    .doc = "The bits that x1 and x2 have in common.",
    .names = {"np.bitwise_and"},
    .onnx = {.names = "BitwiseAnd"},
    .in = kX1X2,
    .program = &kBitwiseAnd,
    .rule = Rule::same,
    .types = kBool | kInts,
    .no_grad = kNoGradOfIntegers,
    .inplace = kOverEither,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(bitwise_or) = whole({
    .name = "bitwise_or",
    .doc = "The bits that x1 or x2 has.",
    .names = {"np.bitwise_or"},
    .onnx = {.names = "BitwiseOr"},
    .in = kX1X2,
    .program = &kBitwiseOr,
    .rule = Rule::same,
    .types = kBool | kInts,
    .no_grad = kNoGradOfIntegers,
    .inplace = kOverEither,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(bitwise_xor) = whole({
    .name = "bitwise_xor",
    .doc = "The bits that exactly one of x1 and x2 has.",
    .names = {"np.bitwise_xor"},
    .onnx = {.names = "BitwiseXor"},
    .in = kX1X2,
    .program = &kBitwiseXor,
    .rule = Rule::same,
    .types = kBool | kInts,
    .no_grad = kNoGradOfIntegers,
    .inplace = kOverEither,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(left_shift) = whole({
    .name = "left_shift",
    .doc = "Shifts the bits of x1 left by x2 places; by the width or more gives 0.",
    .names = {"np.left_shift", "np.bitwise_left_shift"},
    .in = kX1X2,
    .program = &kLeftShift,
    .rule = Rule::same,
    .types = kInts,
    .no_grad = kNoGradOfIntegers,
    .inplace = kOverEither,
    .samples = {{{.in = {{{{3, 4}, Domain::integer}, {{3, 4}, Domain::index, 6}}}, .smooth = false}}},
});

TW_OP(right_shift) = whole({
    .name = "right_shift",
    .doc = "Shifts the bits of x1 right by x2 places, keeping the sign.",
    .names = {"np.right_shift", "np.bitwise_right_shift"},
    .in = kX1X2,
    .program = &kRightShift,
    .rule = Rule::same,
    .types = kInts,
    .no_grad = kNoGradOfIntegers,
    .inplace = kOverEither,
    .samples = {{{.in = {{{{3, 4}, Domain::integer}, {{3, 4}, Domain::index, 6}}}, .smooth = false}}},
});

TW_OP(gcd) = whole({
    .name = "gcd",
    .doc = "The greatest common divisor of x1 and x2; gcd(0, 0) is 0.",
    .names = {"np.gcd"},
    .in = kX1X2,
    .program = &kGcd,
    .rule = Rule::same,
    .types = kInts,
    .no_grad = kNoGradOfIntegers,
    .inplace = kOverEither,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(lcm) = whole({
    .name = "lcm",
    .doc = "The least common multiple of x1 and x2; 0 if one of them is 0.",
    .names = {"np.lcm"},
    .in = kX1X2,
    .program = &kLcm,
    .rule = Rule::same,
    .types = kInts,
    .no_grad = kNoGradOfIntegers,
    .inplace = kOverEither,
    .samples = samples_not_smooth(Domain::integer, Domain::integer),
});

TW_OP(invert) = whole({
    .name = "invert",
    .doc = "Flips all bits of integers; negates truth values.",
    .names = {"np.invert", "np.bitwise_not", "np.bitwise_invert"},
    .onnx = {.names = "BitwiseNot"},
    .in = kX,
    .program = &kInvert,
    .rule = Rule::same,
    .types = kBool | kInts,
    .no_grad = kNoGradOfIntegers,
    .inplace = kOverX,
    .samples = samples_not_smooth(Domain::integer),
});

}  // namespace twibil::ops
