// SPDX-License-Identifier: Apache-2.0
// Circular functions and their inverses.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/direct_trigonometric.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "kernels/direct_loops.h"
#include "kernels/vector_math.h"
// clang-format on

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

TW_OP_BY_VECTOR(sin, std::sin);
TW_OP_BY_VECTOR(cos, std::cos);
TW_OP_BY_VECTOR(tan, std::tan);
template <> struct Op<Prim::asin> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::asin(a); }
};
template <> struct Op<Prim::acos> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::acos(a); }
};
template <> struct Op<Prim::atan> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::atan(a); }
};
template <> struct Op<Prim::asinh> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::asinh(a); }
};
template <> struct Op<Prim::acosh> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::acosh(a); }
};
template <> struct Op<Prim::atanh> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::atanh(a); }
};
template <> struct Op<Prim::cbrt> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::cbrt(a); }
};
template <> struct Op<Prim::atan2> {
  template <class T> static HWY_INLINE T scalar(T a, T b) { return std::atan2(a, b); }
};
template <> struct Op<Prim::hypot> {
  template <class T> static HWY_INLINE T scalar(T a, T b) { return std::hypot(a, b); }
};

void fill_trigonometric(DirectTable& table) {
  enter<Prim::sin, Prim::cos, Prim::tan, Prim::asin, Prim::acos, Prim::atan, Prim::asinh, Prim::acosh, Prim::atanh,
        Prim::cbrt, Prim::atan2, Prim::hypot>(table);
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_trigonometric);
void fill_trigonometric(DirectTable& table) { TW_DISPATCH(fill_trigonometric)(table); }
}  // namespace twibil::kernels
#endif
