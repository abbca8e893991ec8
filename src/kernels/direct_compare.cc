// SPDX-License-Identifier: Apache-2.0
// Comparisons, which give bool bytes, and what is made of masks; multiply-add.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/direct_compare.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "kernels/direct_loops.h"
// clang-format on

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

template <> struct Op<Prim::eq> {
  template <class T> static HWY_INLINE bool scalar(T a, T b) { return a == b; }
};
template <> struct Op<Prim::ne> {
  template <class T> static HWY_INLINE bool scalar(T a, T b) { return a != b; }
};
template <> struct Op<Prim::lt> {
  template <class T> static HWY_INLINE bool scalar(T a, T b) { return a < b; }
};
template <> struct Op<Prim::le> {
  template <class T> static HWY_INLINE bool scalar(T a, T b) { return a <= b; }
};
template <> struct Op<Prim::gt> {
  template <class T> static HWY_INLINE bool scalar(T a, T b) { return a > b; }
};
template <> struct Op<Prim::ge> {
  template <class T> static HWY_INLINE bool scalar(T a, T b) { return a >= b; }
};
template <> struct Op<Prim::logical_and> {
  static HWY_INLINE bool scalar(bool a, bool b) { return a & b; }
};
template <> struct Op<Prim::logical_or> {
  static HWY_INLINE bool scalar(bool a, bool b) { return a | b; }
};
template <> struct Op<Prim::logical_xor> {
  static HWY_INLINE bool scalar(bool a, bool b) { return a != b; }
};
template <> struct Op<Prim::logical_not> {
  static HWY_INLINE bool scalar(bool a) { return !a; }
};

template <class T> void from_mask_loop(void* out, const void* a, const void*, int64_t n) {
  const auto* m = static_cast<const uint8_t*>(a);
  auto* o = static_cast<Stored<T>*>(out);
  TW_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<Stored<T>>(m[i] != 0);
}

template <class T> void select_loop(void* out, const void* a, const void* b, const void* c, int64_t n) {
  const auto* m = static_cast<const uint8_t*>(a);
  const auto *x = static_cast<const Stored<T>*>(b), *y = static_cast<const Stored<T>*>(c);
  auto* o = static_cast<Stored<T>*>(out);
  TW_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Stored<T> yes = x[i], no = y[i];  // both are read, so that no branch is needed
    o[i] = m[i] != 0 ? yes : no;
  }
}

// The lowest target has no fused multiply-add; the C library has.
template <class T> void fma_loop(void* out, const void* a, const void* b, const void* c, int64_t n) {
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  auto* o = static_cast<T*>(out);
  if constexpr (std::is_floating_point_v<T> && HWY_TARGET <= HWY_AVX2) {
    const TagOf<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), hn::LoadU(d, z + i)), d, o + i);
    if (i < n)
      store_part(d, hn::MulAdd(load_part(d, x + i, n - i), load_part(d, y + i, n - i), load_part(d, z + i, n - i)),
                 o + i, n - i);
  } else if constexpr (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < n; ++i) o[i] = std::fma(x[i], y[i], z[i]);
  } else {
    using U = std::make_unsigned_t<T>;
    TW_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
      o[i] = static_cast<T>(static_cast<U>(x[i]) * static_cast<U>(y[i]) + static_cast<U>(z[i]));
  }
}

template <class T> void enter_others(DirectTable& table) {
  constexpr DType dtype = dtype_of<T>;
  table.at(Prim::from_mask, dtype, Mode::unary) = from_mask_loop<T>;
  table.ternary[static_cast<int>(Prim::select)][static_cast<int>(dtype)] = select_loop<T>;
  if constexpr (!std::is_same_v<T, bool>)
    table.ternary[static_cast<int>(Prim::fma)][static_cast<int>(dtype)] = fma_loop<T>;
}

void fill_compare(DirectTable& table) {
  enter<Prim::eq, Prim::ne, Prim::lt, Prim::le, Prim::gt, Prim::ge, Prim::logical_and, Prim::logical_or,
        Prim::logical_xor, Prim::logical_not>(table);
  enter_others<float>(table);
  enter_others<double>(table);
  enter_others<int8_t>(table);
  enter_others<uint8_t>(table);
  enter_others<int32_t>(table);
  enter_others<int64_t>(table);
  enter_others<bool>(table);
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_compare);
void fill_compare(DirectTable& table) { TW_DISPATCH(fill_compare)(table); }
}  // namespace twibil::kernels
#endif
