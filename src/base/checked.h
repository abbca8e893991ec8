// SPDX-License-Identifier: Apache-2.0
// 64-bit size arithmetic that reports overflow instead of wrapping.
#pragma once
#include <cstdint>
#include <span>

#include "base/error.h"

namespace twibil {

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  TW_CHECK(!__builtin_mul_overflow(a, b, &r), value, "size ", a, " x ", b, " does not fit 64 bits");
  return r;
}
inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  TW_CHECK(!__builtin_add_overflow(a, b, &r), value, "size ", a, " + ", b, " does not fit 64 bits");
  return r;
}
/// The number of elements of a shape; 1 for rank 0. A zero anywhere gives 0, but the rest must still not overflow.
inline int64_t checked_product(std::span<const int64_t> dims) {
  int64_t product = 1;
  bool zero = false;
  for (int64_t d : dims) {
    if (d == 0) zero = true;
    else product = checked_mul(product, d);
  }
  return zero ? 0 : product;
}

}  // namespace twibil
