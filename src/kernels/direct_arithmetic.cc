// SPDX-License-Identifier: Apache-2.0
// Arithmetic of every dtype: + - * /, extremes, signs, roots. Integers wrap around.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/direct_arithmetic.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "kernels/direct_loops.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

// Integers wrap by computing in the unsigned type; 8-bit operands are promoted to int, which cannot overflow.
template <class T> using Wrapping = std::make_unsigned_t<T>;

template <> struct Op<Prim::identity> {
  template <class T> static HWY_INLINE T scalar(T a) { return a; }
};
template <> struct Op<Prim::add> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) { return hn::Add(a, b); }
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) return a | b;
    else return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
template <> struct Op<Prim::sub> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) { return hn::Sub(a, b); }
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
template <> struct Op<Prim::mul> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) { return hn::Mul(a, b); }
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) return a & b;
    else return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
template <> struct Op<Prim::div> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) { return hn::Div(a, b); }
};
// x86's maximum gives its second operand if either is NaN, so only a NaN in the first needs care (fmax: the second).
template <> struct Op<Prim::max> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::Max(a, b));
  }
  template <class T> static HWY_INLINE T scalar(T a, T b) { return a > b ? a : b; }
};
template <> struct Op<Prim::min> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::Min(a, b));
  }
  template <class T> static HWY_INLINE T scalar(T a, T b) { return a < b ? a : b; }
};
template <> struct Op<Prim::fmax> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) {
    return hn::IfThenElse(hn::IsNaN(b), a, hn::Max(a, b));
  }
  template <class T> static HWY_INLINE T scalar(T a, T b) { return a > b ? a : b; }
};
template <> struct Op<Prim::fmin> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) {
    return hn::IfThenElse(hn::IsNaN(b), a, hn::Min(a, b));
  }
  template <class T> static HWY_INLINE T scalar(T a, T b) { return a < b ? a : b; }
};
template <> struct Op<Prim::neg> {
  template <class D, class V> static HWY_INLINE V vector(D, V a) { return hn::Neg(a); }
  template <class T> static HWY_INLINE T scalar(T a) { return static_cast<T>(0 - static_cast<Wrapping<T>>(a)); }
};
template <> struct Op<Prim::abs> {
  template <class D, class V> static HWY_INLINE V vector(D, V a) { return hn::Abs(a); }
  template <class T> static HWY_INLINE T scalar(T a) {
    if constexpr (std::is_unsigned_v<T>) return a;
    else return a < 0 ? Op<Prim::neg>::scalar(a) : a;
  }
};
template <> struct Op<Prim::sign> {
  template <class D, class V> static HWY_INLINE V vector(D d, V a) {
    const V zero = hn::Zero(d), one = hn::Set(d, 1);
    V rest = hn::Add(a, zero);  // NaN stays, -0 becomes 0
    return hn::IfThenElse(hn::Gt(a, zero), one, hn::IfThenElse(hn::Lt(a, zero), hn::Neg(one), rest));
  }
  template <class T> static HWY_INLINE T scalar(T a) { return static_cast<T>((a > 0) - (a < 0)); }
};
template <> struct Op<Prim::copysign> {
  template <class D, class V> static HWY_INLINE V vector(D, V a, V b) { return hn::CopySign(a, b); }
};
template <> struct Op<Prim::sqrt> {
  template <class D, class V> static HWY_INLINE V vector(D, V a) { return hn::Sqrt(a); }
};
template <> struct Op<Prim::rsqrt> {
  template <class D, class V> static HWY_INLINE V vector(D d, V a) { return hn::Div(hn::Set(d, 1), hn::Sqrt(a)); }
};

void fill_arithmetic(DirectTable& table) {
  enter<Prim::identity, Prim::add, Prim::sub, Prim::mul, Prim::div, Prim::max, Prim::min, Prim::fmax, Prim::fmin,
        Prim::neg, Prim::abs, Prim::sign, Prim::copysign, Prim::sqrt, Prim::rsqrt>(table);
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_arithmetic);
void fill_arithmetic(DirectTable& table) { TW_DISPATCH(fill_arithmetic)(table); }
}  // namespace twibil::kernels
#endif
