// SPDX-License-Identifier: Apache-2.0
// The loops around primitives, once per instruction set: a family defines Op<Prim> with a vector form, a scalar form or
// both, and enter<Prim...>(table) enters it for every dtype that the primitive has and every mode.
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/direct_table.h"

#ifndef TW_OP_BY_VECTOR
// Elements of different positions are independent, even where out is a or b.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"  // some loops call the C library, and need not be vectorised
#define TW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TW_INDEPENDENT _Pragma("GCC ivdep")
#endif

// float32 by vectors, float64 by the C library.
// clang-format off
#define TW_OP_BY_VECTOR(prim, c_function)                                        \
  template <> struct Op<Prim::prim> {                                            \
    template <class D, class V>                                                  \
      requires std::is_same_v<hn::TFromD<D>, float>                              \
    static HWY_INLINE V vector(D d, V a) { return vector_##prim(d, a); }         \
    template <class T> static HWY_INLINE T scalar(T a) { return c_function(a); } \
  }
// clang-format on
#endif

#if defined(TWIBIL_KERNELS_DIRECT_LOOPS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TWIBIL_KERNELS_DIRECT_LOOPS_H
#undef TWIBIL_KERNELS_DIRECT_LOOPS_H
#else
#define TWIBIL_KERNELS_DIRECT_LOOPS_H
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Specialised by families; either or both of
//   template <class D, class V> static V vector(D d, V a[, V b])   for float and double, or constrained to one of them
//   template <class T> static T scalar(T a[, T b])                 for the rest; bool for masks
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

// ---- comparisons: lanes become bits, bits become bytes ----

// Bit j of `bits` as byte j, 0 or 1.
HWY_INLINE uint64_t bytes_of_bits(uint64_t bits) {
  const uint64_t spread = (bits * 0x0101010101010101u) & 0x8040201008040201u;  // byte j keeps bit j
  return ((spread + 0x7f7f7f7f7f7f7f7fu) >> 7) & 0x0101010101010101u;
}

template <Prim prim, class T, class V> HWY_INLINE auto compare_lanes(V a, V b) {
  if constexpr (prim == Prim::eq) return hn::Eq(a, b);
  else if constexpr (prim == Prim::ne) return hn::Not(hn::Eq(a, b));  // true for NaN, which Ne is not on every target
  else if constexpr (prim == Prim::lt) return hn::Lt(a, b);
  else if constexpr (prim == Prim::gt) return hn::Gt(a, b);
  else if constexpr (!std::is_floating_point_v<T>)
    return hn::Not(compare_lanes < prim == Prim::le ? Prim::gt : Prim::lt, T > (a, b));
  else if constexpr (prim == Prim::le) return hn::Le(a, b);
  else return hn::Ge(a, b);
}

template <Prim prim, class T> constexpr bool has_compare() {
  return info_of(prim).mask_result && info_of(prim).mask_operands == 0 && info_of(prim).arity == 2 && sizeof(T) >= 4;
}

template <Prim prim, class T, Mode mode>
HWY_NOINLINE void compare_loop(void* out, const void* a, const void* b, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int64_t lanes = HWY_MAX_BYTES / sizeof(T), block = lanes < 8 ? 8 : lanes;
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  auto* o = static_cast<uint8_t*>(out);
  const auto sa = hn::Set(d, mode == Mode::scalar_vector ? *x : T()),
             sb = hn::Set(d, mode == Mode::vector_scalar ? *y : T());
  auto bits_at = [&](int64_t i, int64_t count) HWY_ATTR {  // of `count` elements from i; those beyond are arbitrary
    uint64_t bits = 0;
    for (int64_t k = 0; k < count; k += lanes) {
      auto va = sa, vb = sb;
      const bool whole = k + lanes <= count;
      if constexpr (mode != Mode::scalar_vector)
        va = whole ? hn::LoadU(d, x + i + k) : load_part(d, x + i + k, count - k);
      if constexpr (mode != Mode::vector_scalar)
        vb = whole ? hn::LoadU(d, y + i + k) : load_part(d, y + i + k, count - k);
      uint8_t part[8] = {};
      hn::StoreMaskBits(d, compare_lanes<prim, T>(va, vb), part);
      uint64_t word;
      __builtin_memcpy(&word, part, 8);
      bits |= word << k;
    }
    return bits;
  };
#if HWY_TARGET == HWY_AVX3
  // A mask register is the bits already, and 16 of them become 16 bytes in one instruction.
  for (int64_t i = 0; i < n; i += 16) {
    const int64_t count = n - i < 16 ? n - i : 16;
    const auto part = static_cast<__mmask16>((1u << count) - 1);
    _mm_mask_storeu_epi8(o + i, part, _mm_maskz_set1_epi8(static_cast<__mmask16>(bits_at(i, count)), 1));
  }
#else
  int64_t i = 0;
  for (; i + block <= n; i += block) {
    const uint64_t bits = bits_at(i, block);
    for (int64_t k = 0; k < block; k += 8) {
      const uint64_t bytes = bytes_of_bits(bits >> k & 0xff);
      __builtin_memcpy(o + i + k, &bytes, 8);
    }
  }
  if (i < n) {
    const uint64_t bits = bits_at(i, n - i);
    for (int64_t k = 0; k < n - i; ++k) o[i + k] = static_cast<uint8_t>(bits >> k & 1);
  }
#endif
}

template <Prim prim, class T, Mode mode> constexpr DirectFunction binary_function() {
  if constexpr (has_compare<prim, T>()) return compare_loop<prim, T, mode>;
  else return binary_loop<prim, T, mode>;
}

// The primitive that gives the same bits with its operands exchanged, for the third mode without a third loop. Not max
// and min: of 0 and -0 they give the one that stands first.
constexpr Prim exchanged(Prim prim) {
  switch (prim) {
    case Prim::lt: return Prim::gt;
    case Prim::le: return Prim::ge;
    case Prim::gt: return Prim::lt;
    case Prim::ge: return Prim::le;
    default: return info_of(prim).commutative ? prim : Prim::identity;  // identity: there is none
  }
}

template <Prim prim, class T> void exchanged_loop(void* out, const void* a, const void* b, int64_t n) {
  binary_function<exchanged(prim), T, Mode::vector_scalar>()(out, b, a, n);
}

template <Prim prim, class T> void enter_one(DirectTable& table) {
  constexpr DType dtype = dtype_of<T>;
  if constexpr (prim_has(prim, dtype)) {
    if constexpr (info_of(prim).arity == 1) {
      table.at(prim, dtype, Mode::unary) = unary_loop<prim, T>;
    } else {
      table.at(prim, dtype, Mode::vector_vector) = binary_function<prim, T, Mode::vector_vector>();
      table.at(prim, dtype, Mode::vector_scalar) = binary_function<prim, T, Mode::vector_scalar>();
      if constexpr (exchanged(prim) != Prim::identity)
        table.at(prim, dtype, Mode::scalar_vector) = exchanged_loop<prim, T>;
      else table.at(prim, dtype, Mode::scalar_vector) = binary_function<prim, T, Mode::scalar_vector>();
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
