// SPDX-License-Identifier: Apache-2.0
// Division with remainder (integers and floats), integer powers, bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/direct_integer.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "kernels/direct_loops.h"
// clang-format on

#include <cmath>

#include "base/special.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

// x / 0 is 0, and lowest / -1, which the processor traps on, wraps: division by -1 is negation.
template <class T> HWY_INLINE T negative(T a) { return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)); }
template <> struct Op<Prim::floor_div> {
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return floor_div_real(a, b);
    } else {
      if (b == 0) return 0;
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return negative(a);
      return static_cast<T>(a / b - ((a % b != 0) & ((a < 0) != (b < 0))));
    }
  }
};
template <> struct Op<Prim::mod> {
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return mod_real(a, b);
    } else {
      if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
      const T rest = static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    }
  }
};
template <> struct Op<Prim::fmod> {
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return std::fmod(a, b);
    else if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
    else return static_cast<T>(a % b);
  }
};
template <> struct Op<Prim::gcd> {
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    using U = std::make_unsigned_t<T>;
    U x = static_cast<U>(a < 0 ? negative(a) : a), y = static_cast<U>(b < 0 ? negative(b) : b);
    while (y != 0) {
      const U rest = static_cast<U>(x % y);
      x = y;
      y = rest;
    }
    return static_cast<T>(x);
  }
};
template <> struct Op<Prim::bit_and> {
  template <class T> static HWY_INLINE T scalar(T a, T b) { return static_cast<T>(a & b); }
};
template <> struct Op<Prim::bit_or> {
  template <class T> static HWY_INLINE T scalar(T a, T b) { return static_cast<T>(a | b); }
};
template <> struct Op<Prim::bit_xor> {
  template <class T> static HWY_INLINE T scalar(T a, T b) { return static_cast<T>(a ^ b); }
};
template <> struct Op<Prim::bit_not> {
  template <class T> static HWY_INLINE T scalar(T a) {
    if constexpr (std::is_same_v<T, bool>) return !a;
    else return static_cast<T>(~a);
  }
};
template <> struct Op<Prim::shift_left> {
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    using U = std::make_unsigned_t<T>;
    constexpr U kBits = 8 * sizeof(T);
    return static_cast<U>(b) < kBits ? static_cast<T>(static_cast<uint64_t>(static_cast<U>(a)) << static_cast<U>(b))
                                     : T(0);
  }
};
template <> struct Op<Prim::shift_right> {
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    using U = std::make_unsigned_t<T>;
    constexpr U kBits = 8 * sizeof(T);
    return static_cast<T>(a >> (static_cast<U>(b) < kBits ? static_cast<U>(b) : kBits - 1) >>
                          (static_cast<U>(b) >= kBits));
  }
};

void fill_integer(DirectTable& table) {
  enter<Prim::floor_div, Prim::mod, Prim::fmod, Prim::gcd, Prim::bit_and, Prim::bit_or, Prim::bit_xor, Prim::bit_not,
        Prim::shift_left, Prim::shift_right>(table);
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_integer);
void fill_integer(DirectTable& table) { TW_DISPATCH(fill_integer)(table); }
}  // namespace twibil::kernels
#endif
