// SPDX-License-Identifier: Apache-2.0
// Element types: names, sizes, promotion, and the two 16-bit floats (storage only; arithmetic happens in float32).
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/error.h"

namespace twibil {

enum class DType : uint8_t { bool_, int8, uint8, int32, int64, float16, bfloat16, float32, float64 };
inline constexpr int kDTypeCount = 9;
inline constexpr DType kUnknownDType = static_cast<DType>(255);

struct float16 {
  uint16_t bits;
  float16() = default;
  TW_API explicit float16(float f);
  TW_API explicit operator float() const;
};
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  TW_API explicit bfloat16(float f);
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

inline constexpr uint8_t kDTypeSize[kDTypeCount] = {1, 1, 1, 4, 8, 2, 2, 4, 8};
constexpr int64_t size_of(DType t) { return kDTypeSize[static_cast<int>(t)]; }
TW_API std::string_view name_of(DType t);             // "float32", NumPy's names; "bfloat16"
TW_API DType dtype_from_name(std::string_view name);  // throws type error that lists the names
constexpr bool is_floating(DType t) { return t >= DType::float16 && t <= DType::float64; }
constexpr bool is_half(DType t) { return t == DType::float16 || t == DType::bfloat16; }
constexpr bool is_integer(DType t) { return t >= DType::int8 && t <= DType::int64; }

/// NumPy's promotion among booleans and integers, and among floats; an integer next to a float takes the
/// float's type (the library's default float is float32, so int32 + float32 is float32; docs/decisions.md).
/// float16 with bfloat16 is float32.
TW_API DType promote(DType a, DType b);
/// The type in which a Python scalar next to an array of type `t` computes: scalars are weak, as in NumPy 2.
constexpr DType promote_weak(DType t, bool scalar_is_float, bool scalar_is_bool = false,
                             DType default_float = DType::float32) {
  if (scalar_is_float) return is_floating(t) ? t : default_float;
  if (scalar_is_bool) return t;
  return t == DType::bool_ ? DType::int64 : t;
}

inline void append_part(std::string& to, DType t) { to += name_of(t); }

template <class T> inline constexpr DType dtype_of = kUnknownDType;
template <> inline constexpr DType dtype_of<bool> = DType::bool_;
template <> inline constexpr DType dtype_of<int8_t> = DType::int8;
template <> inline constexpr DType dtype_of<uint8_t> = DType::uint8;
template <> inline constexpr DType dtype_of<int32_t> = DType::int32;
template <> inline constexpr DType dtype_of<int64_t> = DType::int64;
template <> inline constexpr DType dtype_of<float16> = DType::float16;
template <> inline constexpr DType dtype_of<bfloat16> = DType::bfloat16;
template <> inline constexpr DType dtype_of<float> = DType::float32;
template <> inline constexpr DType dtype_of<double> = DType::float64;

/// dispatch(t, [&]<class T>() { ... }) calls the lambda with T the element type of t.
template <class F> decltype(auto) dispatch(DType t, F&& f) {
  switch (t) {
    case DType::bool_: return f.template operator()<bool>();
    case DType::int8: return f.template operator()<int8_t>();
    case DType::uint8: return f.template operator()<uint8_t>();
    case DType::int32: return f.template operator()<int32_t>();
    case DType::int64: return f.template operator()<int64_t>();
    case DType::float16: return f.template operator()<float16>();
    case DType::bfloat16: return f.template operator()<bfloat16>();
    case DType::float32: return f.template operator()<float>();
    case DType::float64: return f.template operator()<double>();
  }
  throw_error(ErrorKind::type, "unknown dtype");
}
/// The same for element types only by width (copies, gathers): uint8, uint16, uint32, uint64.
template <class F> decltype(auto) dispatch_width(DType t, F&& f) {
  switch (size_of(t)) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    default: return f.template operator()<uint64_t>();
  }
}

/// Whether the integers of dtype t contain n. Floats round, and bool asks for truth: both take any.
inline bool holds(DType t, int64_t n) {
  return dispatch(t, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return n >= int64_t{std::numeric_limits<T>::lowest()} && n <= int64_t{std::numeric_limits<T>::max()};
    else return true;
  });
}

/// The type that sums and products of T accumulate in.
template <class T> struct Accumulator { using type = T; };
template <> struct Accumulator<float16> { using type = float; };
template <> struct Accumulator<bfloat16> { using type = float; };
template <> struct Accumulator<bool> { using type = int64_t; };
template <> struct Accumulator<int8_t> { using type = int64_t; };
template <> struct Accumulator<uint8_t> { using type = int64_t; };
template <> struct Accumulator<int32_t> { using type = int64_t; };
template <class T> using accumulator_t = typename Accumulator<T>::type;

}  // namespace twibil
