// SPDX-License-Identifier: Apache-2.0
// The value of one element in another dtype; the one place that defines what a cast means.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/dtype.h"
#include "base/scalar.h"

namespace twibil::kernels {

/// How an element is read in arithmetic: halves as float, bool as its byte (any non-zero byte is true).
template <class T> struct Native { using type = T; };
template <> struct Native<float16> { using type = float; };
template <> struct Native<bfloat16> { using type = float; };
template <> struct Native<bool> { using type = uint8_t; };
template <class T> using native_t = typename Native<T>::type;
template <class T> inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T> inline constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsHalf<T>;

template <class Int, class Float> Int saturate(Float v) {
  // The largest float of the range is not representable when Int has more digits: compare with its successor.
  constexpr Float kAbove = static_cast<Float>(uint64_t{1} << (8 * sizeof(Int) - 1));
  if (v >= kAbove) return std::numeric_limits<Int>::max();
  if (v < -kAbove) return std::numeric_limits<Int>::min();
  return v != v ? Int{0} : static_cast<Int>(v);
}

/// v as To. Integers wrap; a float becomes an integer by truncation, saturating at int32 or int64 (8-bit types take
/// the low byte of the int32, as NumPy does on x86), NaN becomes 0; anything non-zero (NaN too) is true. Halves
/// round to nearest even from float32, and float64 and integers reach them through float32.
template <class To, class From> To convert_value(From v) {
  if constexpr (std::is_same_v<To, From>) return v;
  else if constexpr (kIsHalf<From>) return convert_value<To>(static_cast<float>(v));
  else if constexpr (std::is_same_v<To, bool>) return v != From{0};
  else if constexpr (kIsHalf<To>) return To(static_cast<float>(v));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) < 4) return static_cast<To>(saturate<int32_t>(v));
    else return saturate<To>(v);
  } else return static_cast<To>(v);
}

/// Reads element i as its arithmetic type, and writes an arithmetic value back.
template <class T> native_t<T> load(const T* p, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) return reinterpret_cast<const uint8_t*>(p)[i] != 0;
  else return static_cast<native_t<T>>(p[i]);
}
template <class T, class V> void store(T* p, int64_t i, V v) { p[i] = convert_value<T>(v); }

/// A scalar argument in an element type.
template <class T> T scalar_as(const Scalar& s) {
  return s.is_real() ? convert_value<T>(s.real) : convert_value<T>(s.integer);
}

}  // namespace twibil::kernels
