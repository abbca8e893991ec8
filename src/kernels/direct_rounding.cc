// SPDX-License-Identifier: Apache-2.0
// Rounding to whole numbers; integers and bool stay as they are.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/direct_rounding.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "kernels/direct_loops.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

template <> struct Op<Prim::floor> {
  template <class D, class V> static HWY_INLINE V vector(D, V a) { return hn::Floor(a); }
  template <class T> static HWY_INLINE T scalar(T a) { return a; }
};
template <> struct Op<Prim::ceil> {
  template <class D, class V> static HWY_INLINE V vector(D, V a) { return hn::Ceil(a); }
  template <class T> static HWY_INLINE T scalar(T a) { return a; }
};
template <> struct Op<Prim::trunc> {
  template <class D, class V> static HWY_INLINE V vector(D, V a) { return hn::Trunc(a); }
  template <class T> static HWY_INLINE T scalar(T a) { return a; }
};
template <> struct Op<Prim::rint> {
  template <class D, class V> static HWY_INLINE V vector(D, V a) { return hn::Round(a); }
  template <class T> static HWY_INLINE T scalar(T a) { return a; }
};
template <> struct Op<Prim::round> {
  template <class D, class V> static HWY_INLINE V vector(D d, V a) {
    // Not floor(|a| + 0.5): the sum rounds up for the number just below one half.
    const V size = hn::Abs(a), down = hn::Trunc(size);
    const V up = hn::IfThenElseZero(hn::Ge(hn::Sub(size, down), hn::Set(d, 0.5f)), hn::Set(d, 1));
    return hn::CopySign(hn::Add(down, up), a);
  }
  template <class T> static HWY_INLINE T scalar(T a) { return a; }
};

void fill_rounding(DirectTable& table) { enter<Prim::floor, Prim::ceil, Prim::trunc, Prim::rint, Prim::round>(table); }

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_rounding);
void fill_rounding(DirectTable& table) { TW_DISPATCH(fill_rounding)(table); }
}  // namespace twibil::kernels
#endif
