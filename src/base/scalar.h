// SPDX-License-Identifier: Apache-2.0
// A number given as an argument: keeps integers exact beyond 2^53 and remembers whether it was written as a float.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace twibil {

struct Scalar {
  enum class Kind : uint8_t { boolean, integer, real } kind = Kind::real;
  union {
    double real = 0;
    int64_t integer;
  };
  constexpr Scalar() = default;
  constexpr Scalar(bool v) : kind(Kind::boolean), integer(v) {}
  constexpr Scalar(int v) : kind(Kind::integer), integer(v) {}
  constexpr Scalar(int64_t v) : kind(Kind::integer), integer(v) {}
  constexpr Scalar(double v) : kind(Kind::real), real(v) {}
  constexpr bool is_real() const { return kind == Kind::real; }
  constexpr bool is_boolean() const { return kind == Kind::boolean; }
  constexpr double as_double() const { return is_real() ? real : static_cast<double>(integer); }
  /// Truncates towards zero; out-of-range reals saturate.
  constexpr int64_t as_int() const {
    if (!is_real()) return integer;
    if (real != real) return 0;
    if (real >= 9223372036854775807.0) return INT64_MAX;
    if (real <= -9223372036854775808.0) return INT64_MIN;
    return static_cast<int64_t>(real);
  }
  constexpr bool operator==(const Scalar& o) const {
    return kind == o.kind && (is_real() ? real == o.real : integer == o.integer);
  }
};

}  // namespace twibil
