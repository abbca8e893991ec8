// SPDX-License-Identifier: Apache-2.0
// The error function and the gamma family. What is rare is computed in double, element by element.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/direct_special.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "kernels/direct_loops.h"
#include "kernels/vector_math.h"
// clang-format on

#include <cmath>

#include "base/special.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

TW_OP_BY_VECTOR(erf, std::erf);
template <> struct Op<Prim::erfinv> {
  template <class T> static HWY_INLINE T scalar(T a) { return static_cast<T>(twibil::erfinv(static_cast<double>(a))); }
};
template <> struct Op<Prim::gamma> {
  template <class T> static HWY_INLINE T scalar(T a) {
    return static_cast<T>(twibil::gamma_of(static_cast<double>(a)));
  }
};
template <> struct Op<Prim::lgamma> {
  template <class T> static HWY_INLINE T scalar(T a) {
    return static_cast<T>(twibil::lgamma_of(static_cast<double>(a)));
  }
};
template <> struct Op<Prim::digamma> {
  template <class T> static HWY_INLINE T scalar(T a) { return static_cast<T>(twibil::digamma(static_cast<double>(a))); }
};
template <> struct Op<Prim::polygamma> {
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    return static_cast<T>(twibil::polygamma(static_cast<double>(a), static_cast<double>(b)));
  }
};

void fill_special(DirectTable& table) {
  enter<Prim::erf, Prim::erfinv, Prim::gamma, Prim::lgamma, Prim::digamma, Prim::polygamma>(table);
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_special);
void fill_special(DirectTable& table) { TW_DISPATCH(fill_special)(table); }
}  // namespace twibil::kernels
#endif
