// SPDX-License-Identifier: Apache-2.0
// The primitives: what a pointwise formula is made of. This list is the one source; the recorder, the derivative, the
// reference evaluation and the kernels all expand it, so that a primitive that one of them forgets does not compile.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace twibil {

// X(name, number of operands, operands that are masks (bit i: operand i), result, working dtypes, order matters)
//   result  value: has the working dtype; mask: true or false, one byte each
//   dtypes  real: float32, float64 (halves compute in float32); whole: the integers; number: both;
//           any: both and bool; bits: whole and bool; mask: operands are masks, whatever the working dtype
//   order   ordered or commutative (same bits when the operands change places)
//
// Meanings that are not obvious, all of them without undefined behaviour:
//   integers       wrap around; x / 0 and x mod 0 are 0; lowest / -1 wraps to lowest; a shift by less than 0 or by the
//                  width or more gives 0 (shift_right of a negative value: -1); power with a negative exponent
//                  truncates to an integer (1 for base 1, +-1 for base -1, else 0, also for base 0); neg of unsigned
//                  values wraps
//   bool           add, max, bit_or are "or"; mul, min, bit_and are "and"; bit_not negates
//   floor_div mod  NumPy's: the quotient rounds down, the remainder has the divisor's sign
//   fmod           C's: the remainder has the dividend's sign
//   max min        NaN if any operand is NaN; fmax fmin: the other operand
//   sign           NaN of NaN; 0 of 0
//   rint           halves to even; round: halves away from zero
//   polygamma      operand 0 is the order n >= 0, operand 1 is x; polygamma(0, x) is digamma(x)
//   fma            a * b + c, rounded once
//   select         operand 0 (a mask) ? operand 1 : operand 2
//   from_mask      1 where true, else 0
// clang-format off
#define TW_PRIMITIVES(X)                          \
  X(identity, 1, 0, value, any, ordered)          \
  X(add, 2, 0, value, any, commutative)           \
  X(sub, 2, 0, value, number, ordered)            \
  X(mul, 2, 0, value, any, commutative)           \
  X(div, 2, 0, value, real, ordered)              \
  X(floor_div, 2, 0, value, number, ordered)      \
  X(mod, 2, 0, value, number, ordered)            \
  X(fmod, 2, 0, value, number, ordered)           \
  X(power, 2, 0, value, number, ordered)          \
  X(max, 2, 0, value, any, ordered)               \
  X(min, 2, 0, value, any, ordered)               \
  X(fmax, 2, 0, value, number, ordered)           \
  X(fmin, 2, 0, value, number, ordered)           \
  X(atan2, 2, 0, value, real, ordered)            \
  X(hypot, 2, 0, value, real, commutative)        \
  X(copysign, 2, 0, value, real, ordered)         \
  X(polygamma, 2, 0, value, real, ordered)        \
  X(gcd, 2, 0, value, whole, commutative)         \
  X(bit_and, 2, 0, value, bits, commutative)      \
  X(bit_or, 2, 0, value, bits, commutative)       \
  X(bit_xor, 2, 0, value, bits, commutative)      \
  X(shift_left, 2, 0, value, whole, ordered)      \
  X(shift_right, 2, 0, value, whole, ordered)     \
  X(bit_not, 1, 0, value, bits, ordered)          \
  X(neg, 1, 0, value, number, ordered)            \
  X(abs, 1, 0, value, any, ordered)               \
  X(sign, 1, 0, value, number, ordered)           \
  X(floor, 1, 0, value, any, ordered)             \
  X(ceil, 1, 0, value, any, ordered)              \
  X(trunc, 1, 0, value, any, ordered)             \
  X(rint, 1, 0, value, any, ordered)              \
  X(round, 1, 0, value, any, ordered)             \
  X(sqrt, 1, 0, value, real, ordered)             \
  X(rsqrt, 1, 0, value, real, ordered)            \
  X(cbrt, 1, 0, value, real, ordered)             \
  X(exp, 1, 0, value, real, ordered)              \
  X(exp2, 1, 0, value, real, ordered)             \
  X(expm1, 1, 0, value, real, ordered)            \
  X(log, 1, 0, value, real, ordered)              \
  X(log2, 1, 0, value, real, ordered)             \
  X(log10, 1, 0, value, real, ordered)            \
  X(log1p, 1, 0, value, real, ordered)            \
  X(sigmoid, 1, 0, value, real, ordered)          \
  X(sin, 1, 0, value, real, ordered)              \
  X(cos, 1, 0, value, real, ordered)              \
  X(tan, 1, 0, value, real, ordered)              \
  X(asin, 1, 0, value, real, ordered)             \
  X(acos, 1, 0, value, real, ordered)             \
  X(atan, 1, 0, value, real, ordered)             \
  X(sinh, 1, 0, value, real, ordered)             \
  X(cosh, 1, 0, value, real, ordered)             \
  X(tanh, 1, 0, value, real, ordered)             \
  X(asinh, 1, 0, value, real, ordered)            \
  X(acosh, 1, 0, value, real, ordered)            \
  X(atanh, 1, 0, value, real, ordered)            \
  X(erf, 1, 0, value, real, ordered)              \
  X(erfinv, 1, 0, value, real, ordered)           \
  X(gamma, 1, 0, value, real, ordered)            \
  X(lgamma, 1, 0, value, real, ordered)           \
  X(digamma, 1, 0, value, real, ordered)          \
  X(eq, 2, 0, mask, any, commutative)             \
  X(ne, 2, 0, mask, any, commutative)             \
  X(lt, 2, 0, mask, any, ordered)                 \
  X(le, 2, 0, mask, any, ordered)                 \
  X(gt, 2, 0, mask, any, ordered)                 \
  X(ge, 2, 0, mask, any, ordered)                 \
  X(logical_and, 2, 0b11, mask, mask, commutative) \
  X(logical_or, 2, 0b11, mask, mask, commutative)  \
  X(logical_xor, 2, 0b11, mask, mask, commutative) \
  X(logical_not, 1, 0b1, mask, mask, ordered)      \
  X(from_mask, 1, 0b1, value, any, ordered)        \
  X(fma, 3, 0, value, number, ordered)             \
  X(select, 3, 0b1, value, any, ordered)
// clang-format on

enum class Prim : uint8_t {
#define TW_PRIM_NAME(name, ...) name,
  TW_PRIMITIVES(TW_PRIM_NAME)
#undef TW_PRIM_NAME
};

struct PrimInfo {
  std::string_view name;
  uint8_t arity;
  uint8_t mask_operands;  // bit i: operand i is a mask
  bool mask_result;
  uint8_t dtypes;  // set of dtype classes, see prim_has
  bool commutative;
};

namespace prim_detail {
enum DTypes : uint8_t {
  real = 1,
  whole = 2,
  boolean = 4,
  number = real | whole,
  bits = whole | boolean,
  any = 7,
  mask = boolean
};
enum Order { ordered, commutative };
}  // namespace prim_detail

inline constexpr PrimInfo kPrims[] = {
#define TW_RESULT_value false
#define TW_RESULT_mask true
#define TW_PRIM_INFO(name, arity, masks, result, dtypes, order) \
  {#name,                                                       \
   arity,                                                       \
   masks,                                                       \
   TW_RESULT_##result,                                          \
   prim_detail::DTypes::dtypes,                                 \
   prim_detail::Order::order == prim_detail::commutative},
    TW_PRIMITIVES(TW_PRIM_INFO)
#undef TW_PRIM_INFO
#undef TW_RESULT_value
#undef TW_RESULT_mask
};
inline constexpr int kPrimCount = sizeof(kPrims) / sizeof(kPrims[0]);

constexpr const PrimInfo& info_of(Prim p) { return kPrims[static_cast<int>(p)]; }
constexpr std::string_view name_of(Prim p) { return info_of(p).name; }
inline void append_part(std::string& to, Prim p) { to += name_of(p); }

/// The dtype in which data of dtype `t` is computed: halves are storage only.
constexpr DType work_dtype(DType t) { return is_half(t) ? DType::float32 : t; }

/// True if the primitive has a meaning in working dtype `t` (halves count as float32).
constexpr bool prim_has(Prim p, DType t) {
  int bit = is_floating(t) ? prim_detail::real : is_integer(t) ? prim_detail::whole : prim_detail::boolean;
  return t != kUnknownDType && (info_of(p).dtypes & bit) != 0;
}

}  // namespace twibil
