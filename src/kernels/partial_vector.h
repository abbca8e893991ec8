// SPDX-License-Identifier: Apache-2.0
// Vectors of which only the first few lanes exist in memory, for the last columns of a matrix. Include after
// "hwy/foreach_target.h".
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#if defined(TWIBIL_KERNELS_PARTIAL_VECTOR_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TWIBIL_KERNELS_PARTIAL_VECTOR_H
#undef TWIBIL_KERNELS_PARTIAL_VECTOR_H
#else
#define TWIBIL_KERNELS_PARTIAL_VECTOR_H
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> using Tag = hn::ScalableTag<T>;
template <class T> using Vector = hn::Vec<Tag<T>>;
template <class T> constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag<T>()));

// The first n lanes (n < lanes) without touching memory behind them. SSE4 and NEON have no masked access.
template <class T> HWY_INLINE Vector<T> load_n(const T* p, int64_t n) {
  const Tag<T> d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, p);
#else
  HWY_ALIGN T buffer[kLanes<T>] = {};
  std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(T));
  return hn::Load(d, buffer);
#endif
}
template <class T> HWY_INLINE void store_n(Vector<T> v, T* p, int64_t n) {
  const Tag<T> d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, p);
#else
  HWY_ALIGN T buffer[kLanes<T>];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(T));
#endif
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
