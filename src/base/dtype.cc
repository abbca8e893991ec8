// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <algorithm>
#include <cmath>

namespace twibil {

static constexpr std::string_view kNames[kDTypeCount] = {"bool",    "int8",     "uint8",   "int32",  "int64",
                                                         "float16", "bfloat16", "float32", "float64"};

std::string_view name_of(DType t) { return t == kUnknownDType ? "unknown" : kNames[static_cast<int>(t)]; }

DType dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kNames[i] == name) return static_cast<DType>(i);
  if (name == "bool_") return DType::bool_;
  if (name == "float") return DType::float64;
  if (name == "int") return DType::int64;
  if (name == "half") return DType::float16;
  if (name == "double") return DType::float64;
  if (name == "single") return DType::float32;
  throw_error(ErrorKind::type, text("dtype: ", name,
                                    " is not supported; the dtypes are bool, int8, uint8, int32, int64, "
                                    "float16, bfloat16, float32, float64"));
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  if (is_floating(b)) {
    if (a == DType::float16 && b == DType::bfloat16) return DType::float32;
    return b;
  }
  if (a == DType::bool_) return b;
  // int8 with uint8 needs a wider type, as in NumPy (whose int16 is not among ours, so int32).
  if (a == DType::int8 && b == DType::uint8) return DType::int32;
  return b;
}

float16::float16(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f), sign = (x >> 16) & 0x8000u;
  x &= 0x7fffffffu;
  if (x >= 0x7f800000u) {  // infinity or NaN (kept quiet)
    bits = static_cast<uint16_t>(sign | (x > 0x7f800000u ? 0x7e00u : 0x7c00u));
  } else if (x >= 0x477ff000u) {  // rounds to at least 65520: infinity
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (x < 0x38800000u) {  // subnormal: let float addition round to the nearest multiple of 2^-24
    float magic = std::bit_cast<float>(0x3f000000u) + std::bit_cast<float>(x);
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(magic) - 0x3f000000u));
  } else {
    x += 0xc8000000u + 0xfffu + ((x >> 13) & 1u);
    bits = static_cast<uint16_t>(sign | (x >> 13));
  }
}

float16::operator float() const {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, x = bits & 0x7fffu;
  if (x >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((x & 0x3ffu) << 13));
  if (x < 0x400u) {
    float f = static_cast<float>(x) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(f) | sign);
  }
  return std::bit_cast<float>(sign | ((x << 13) + 0x38000000u));
}

bfloat16::bfloat16(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) bits = static_cast<uint16_t>((x >> 16) | 0x40u);
  else bits = static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

}  // namespace twibil
