// SPDX-License-Identifier: Apache-2.0
// The loops around primitives, once per instruction set: a family defines Op<Prim> with a vector form, a scalar form or
// both, and enter<Prim...>(table) enters it for every dtype that the primitive has and every mode.
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/direct_table.h"

#if defined(TWIBIL_KERNELS_DIRECT_LOOPS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TWIBIL_KERNELS_DIRECT_LOOPS_H
#undef TWIBIL_KERNELS_DIRECT_LOOPS_H
#else
#define TWIBIL_KERNELS_DIRECT_LOOPS_H
#endif

// Elements of different positions are independent, even where out is a or b.
#ifdef __clang__
#define TW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TW_INDEPENDENT _Pragma("GCC ivdep")
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Specialised by families; either or both of
//   template <class D, class V> static V vector(D d, V a[, V b[, V c]])     for float and double
//   template <class T> static T scalar(T a[, T b[, T c]])                   result bool for masks
// and, to exclude float32 from the vector form, etc.: nothing; a vector form must serve float and double.
template <Prim prim> struct Op;

template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;  // bool bytes may hold any value but 0 for true

template <Prim prim, class T> using OpResult = std::conditional_t<info_of(prim).mask_result, bool, T>;

template <class T> using TagOf = hn::ScalableTag<std::conditional_t<std::is_floating_point_v<T>, T, float>>;

template <Prim prim, class T> constexpr bool has_vector() {
  if constexpr (!std::is_floating_point_v<T> || info_of(prim).mask_result) {
    return false;
  } else {
    using V = hn::Vec<TagOf<T>>;
    constexpr int arity = info_of(prim).arity;
    if constexpr (arity == 1) return requires(TagOf<T> d, V v) {
        Op<prim>::vector(d, v);
      };
    else if constexpr (arity == 2) return requires(TagOf<T> d, V v) {
        Op<prim>::vector(d, v, v);
      };
    else return requires(TagOf<T> d, V v) {
        Op<prim>::vector(d, v, v, v);
      };
  }
}

// The first `count` lanes, others zero. Below AVX2 a masked load reads the whole vector, so lanes go one by one.
template <class D, class T = hn::TFromD<D>> HWY_INLINE hn::Vec<D> load_part(D d, const T* from, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
#else
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
#endif
}
template <class D, class T = hn::TFromD<D>> HWY_INLINE void store_part(D d, hn::Vec<D> v, T* to, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, to);
#else
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

template <Prim prim, class T> void unary_loop(void* out, const void* a, const void*, int64_t n) {
  const auto* x = static_cast<const Stored<T>*>(a);
  auto* o = static_cast<Stored<OpResult<prim, T>>*>(out);
  if constexpr (has_vector<prim, T>()) {
    const TagOf<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(Op<prim>::vector(d, hn::LoadU(d, x + i)), d, o + i);
    if (i < n) store_part(d, Op<prim>::vector(d, load_part(d, x + i, n - i)), o + i, n - i);
  } else {
    TW_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) o[i] = Op<prim>::scalar(static_cast<T>(x[i]));
  }
}

template <Prim prim, class T, Mode mode> void binary_loop(void* out, const void* a, const void* b, int64_t n) {
  constexpr bool a_moves = mode != Mode::scalar_vector, b_moves = mode != Mode::vector_scalar;
  const auto* x = static_cast<const Stored<T>*>(a);
  const auto* y = static_cast<const Stored<T>*>(b);
  auto* o = static_cast<Stored<OpResult<prim, T>>*>(out);
  if constexpr (has_vector<prim, T>()) {
    const TagOf<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    auto va = hn::Set(d, a_moves ? T(0) : *x), vb = hn::Set(d, b_moves ? T(0) : *y);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      if constexpr (a_moves) va = hn::LoadU(d, x + i);
      if constexpr (b_moves) vb = hn::LoadU(d, y + i);
      hn::StoreU(Op<prim>::vector(d, va, vb), d, o + i);
    }
    if (i < n) {
      if constexpr (a_moves) va = load_part(d, x + i, n - i);
      if constexpr (b_moves) vb = load_part(d, y + i, n - i);
      store_part(d, Op<prim>::vector(d, va, vb), o + i, n - i);
    }
  } else {
    const T sa = static_cast<T>(a_moves ? Stored<T>() : *x), sb = static_cast<T>(b_moves ? Stored<T>() : *y);
    TW_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
      o[i] = Op<prim>::scalar(a_moves ? static_cast<T>(x[i]) : sa, b_moves ? static_cast<T>(y[i]) : sb);
  }
}

// The primitive that gives the same with its operands exchanged, for the third mode without a third loop.
constexpr Prim exchanged(Prim prim) {
  switch (prim) {
    case Prim::lt: return Prim::gt;
    case Prim::le: return Prim::ge;
    case Prim::gt: return Prim::lt;
    case Prim::ge: return Prim::le;
    case Prim::max:
    case Prim::min:
    case Prim::fmax:
    case Prim::fmin: return prim;
    default: return info_of(prim).commutative ? prim : Prim::identity;  // identity: there is none
  }
}

template <Prim prim, class T> void exchanged_loop(void* out, const void* a, const void* b, int64_t n) {
  binary_loop<exchanged(prim), T, Mode::vector_scalar>(out, b, a, n);
}

template <Prim prim, class T> void enter_one(DirectTable& table) {
  constexpr DType dtype = dtype_of<T>;
  if constexpr (prim_has(prim, dtype)) {
    if constexpr (info_of(prim).arity == 1) {
      table.at(prim, dtype, Mode::unary) = unary_loop<prim, T>;
    } else {
      table.at(prim, dtype, Mode::vector_vector) = binary_loop<prim, T, Mode::vector_vector>;
      table.at(prim, dtype, Mode::vector_scalar) = binary_loop<prim, T, Mode::vector_scalar>;
      if constexpr (exchanged(prim) != Prim::identity)
        table.at(prim, dtype, Mode::scalar_vector) = exchanged_loop<prim, T>;
      else table.at(prim, dtype, Mode::scalar_vector) = binary_loop<prim, T, Mode::scalar_vector>;
    }
  }
}

template <Prim... prims> void enter(DirectTable& table) {
  (enter_one<prims, float>(table), ...);
  (enter_one<prims, double>(table), ...);
  (enter_one<prims, int8_t>(table), ...);
  (enter_one<prims, uint8_t>(table), ...);
  (enter_one<prims, int32_t>(table), ...);
  (enter_one<prims, int64_t>(table), ...);
  (enter_one<prims, bool>(table), ...);
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
