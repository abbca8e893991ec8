// SPDX-License-Identifier: Apache-2.0
// What every epilogue ends with. Include after "hwy/foreach_target.h".
#include "hwy/highway.h"

#if defined(TWIBIL_KERNELS_CLAMP_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TWIBIL_KERNELS_CLAMP_H
#undef TWIBIL_KERNELS_CLAMP_H
#else
#define TWIBIL_KERNELS_CLAMP_H
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// x between two numbers; what is not a number stays so.
template <class V> HWY_INLINE V clamped(V x, V lower, V upper) {
  const V y = hn::Min(upper, hn::Max(lower, x));  // x86 keeps the second one then, ARM the number
#if HWY_ARCH_ARM
  return hn::IfThenElse(hn::IsNaN(x), x, y);
#else
  return y;
#endif
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
