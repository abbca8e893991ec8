// SPDX-License-Identifier: Apache-2.0
// One loop per pair of dtypes that the compiler vectorises; halves by the processor's own conversion where it has one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cast.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include <cstring>

#include "kernels/cast.h"
#include "kernels/copy_convert.h"

#ifndef TWIBIL_KERNELS_CAST_TABLE
#define TWIBIL_KERNELS_CAST_TABLE
namespace twibil::kernels {
struct CastTable {
  CastFunction functions[kDTypeCount][kDTypeCount];
};
}  // namespace twibil::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class From, class To> void cast_loop(const void* src, void* dst, int64_t n) {
  const auto* s = static_cast<const From*>(src);
  auto* d = static_cast<To*>(dst);
  if constexpr (std::is_same_v<From, bool>) {
    const auto* bytes = static_cast<const uint8_t*>(src);
    for (int64_t i = 0; i < n; ++i) d[i] = convert_value<To>(static_cast<int32_t>(bytes[i] != 0));
  } else if constexpr (std::is_same_v<From, To>) {
    if (n > 0) std::memmove(dst, src, static_cast<size_t>(n) * sizeof(To));
  } else {
    for (int64_t i = 0; i < n; ++i) d[i] = convert_value<To>(s[i]);
  }
}

// float16 <-> float32. The rest goes one by one through base/dtype.h, which rounds the same way.
void widen_float16(const void* src, void* dst, int64_t n) {
  const auto* s = static_cast<const hwy::float16_t*>(src);
  auto* d = static_cast<float*>(dst);
#if HWY_TARGET <= HWY_AVX2
  int64_t i = 0;
  const hn::ScalableTag<float> df;
  const hn::Rebind<hwy::float16_t, decltype(df)> dh;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::PromoteTo(df, hn::LoadU(dh, s + i)), df, d + i);
  if (i < n) {
    HWY_ALIGN hwy::float16_t part[HWY_MAX_BYTES / 4] = {};
    HWY_ALIGN float wide[HWY_MAX_BYTES / 4];
    for (int64_t j = i; j < n; ++j) part[j - i] = s[j];
    hn::Store(hn::PromoteTo(df, hn::Load(dh, part)), df, wide);
    for (int64_t j = i; j < n; ++j) d[j] = wide[j - i];
  }
#else
  cast_loop<twibil::float16, float>(s, d, n);
#endif
}
void narrow_float16(const void* src, void* dst, int64_t n) {
  const auto* s = static_cast<const float*>(src);
  auto* d = static_cast<hwy::float16_t*>(dst);
#if HWY_TARGET <= HWY_AVX2
  int64_t i = 0;
  const hn::ScalableTag<float> df;
  const hn::Rebind<hwy::float16_t, decltype(df)> dh;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::DemoteTo(dh, hn::LoadU(df, s + i)), dh, d + i);
  if (i < n) {
    HWY_ALIGN float part[HWY_MAX_BYTES / 4] = {};
    HWY_ALIGN hwy::float16_t half[HWY_MAX_BYTES / 4];
    for (int64_t j = i; j < n; ++j) part[j - i] = s[j];
    hn::Store(hn::DemoteTo(dh, hn::Load(df, part)), dh, half);
    for (int64_t j = i; j < n; ++j) d[j] = half[j - i];
  }
#else
  cast_loop<float, twibil::float16>(s, d, n);
#endif
}

// The rounding of bfloat16(float), inline so that the loop is vectorised.
void narrow_bfloat16(const void* src, void* dst, int64_t n) {
  const auto* s = static_cast<const uint32_t*>(src);
  auto* d = static_cast<uint16_t*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t x = s[i], even = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16, quiet = (x >> 16) | 0x40u;
    d[i] = static_cast<uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? quiet : even);
  }
}

template <class From> void enter_from(CastTable& table) {
  CastFunction* row = table.functions[static_cast<int>(dtype_of<From>)];
  for (int to = 0; to < kDTypeCount; ++to)
    row[to] = dispatch(static_cast<DType>(to), []<class To>() -> CastFunction { return cast_loop<From, To>; });
}

void fill_casts(CastTable& table) {
  for (int from = 0; from < kDTypeCount; ++from)
    dispatch(static_cast<DType>(from), [&]<class From>() { enter_from<From>(table); });
  table.functions[static_cast<int>(DType::float16)][static_cast<int>(DType::float32)] = widen_float16;
  table.functions[static_cast<int>(DType::float32)][static_cast<int>(DType::float16)] = narrow_float16;
  table.functions[static_cast<int>(DType::float32)][static_cast<int>(DType::bfloat16)] = narrow_bfloat16;
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_casts);

namespace {
template <Isa> const CastTable& table_of() {
  static const CastTable table = [] {
    CastTable t;
    TW_DISPATCH(fill_casts)(t);
    return t;
  }();
  return table;
}
const CastTable& cast_table() {
  switch (isa()) {
    case Isa::avx512: return table_of<Isa::avx512>();
    case Isa::avx2: return table_of<Isa::avx2>();
    case Isa::baseline: break;
  }
  return table_of<Isa::baseline>();
}
}  // namespace

CastFunction cast_function(DType from, DType to) {
  return cast_table().functions[static_cast<int>(from)][static_cast<int>(to)];
}

void store_scalar(const Scalar& value, DType to, void* dst) {
  dispatch(to, [&]<class T>() {
    const T v = scalar_as<T>(value);
    std::memcpy(dst, &v, sizeof(T));
  });
}

}  // namespace twibil::kernels
#endif
