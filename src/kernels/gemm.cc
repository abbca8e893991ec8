// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cc"
#include "kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/isa.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

// 14 x 2 vectors fill 32 registers and reach 98 % of the multiply-add roof; with 16 registers 6 x 2 is the largest.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kMaxRows[] = {0, 14, 14, 8};
constexpr int kWidest = 3;
#else
constexpr int kMaxRows[] = {0, 6, 6, 0};
constexpr int kWidest = 2;
#endif

template <class T, int MR, int NV> struct Accumulators {
  Vector<T> sum[MR][NV];

  HWY_INLINE void clear() {
    const Tag<T> d;
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[m][v] = hn::Zero(d);
    }
  }

  /// One step in depth: the outer product of a column of A and a row of B.
  HWY_INLINE void add(const T* a, const T* b) {
    const Tag<T> d;
    Vector<T> row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) row[v] = hn::LoadU(d, b + v * kLanes<T>);
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const Vector<T> value = hn::Set(d, a[m * kGemmDepth]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[m][v] = hn::MulAdd(value, row[v], sum[m][v]);
    }
  }

  HWY_INLINE void store(const GemmTile<T>& g) {
    const Tag<T> d;
    const bool whole = g.columns >= NV * kLanes<T>;
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      if (m >= g.rows) return;
      T* c = g.c + m * g.c_step;
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        Vector<T> x = sum[m][v];
        if (g.row_bias) x = hn::Add(x, hn::Set(d, g.row_bias[m]));
        if (whole) {
          if (g.column_bias) x = hn::Add(x, hn::LoadU(d, g.column_bias + v * kLanes<T>));
          if (g.accumulate) x = hn::Add(x, hn::LoadU(d, c + v * kLanes<T>));
          hn::StoreU(x, d, c + v * kLanes<T>);
        } else {
          store_part(g, x, c, v * kLanes<T>);
        }
      }
    }
  }

  static HWY_INLINE void store_part(const GemmTile<T>& g, Vector<T> x, T* c, int64_t column) {
    const int64_t n = std::min<int64_t>(g.columns - column, kLanes<T>);
    if (n <= 0) return;
    if (n == kLanes<T>) {
      const Tag<T> d;
      if (g.column_bias) x = hn::Add(x, hn::LoadU(d, g.column_bias + column));
      if (g.accumulate) x = hn::Add(x, hn::LoadU(d, c + column));
      hn::StoreU(x, d, c + column);
      return;
    }
    if (g.column_bias) x = hn::Add(x, load_n(g.column_bias + column, n));
    if (g.accumulate) x = hn::Add(x, load_n(c + column, n));
    store_n(x, c + column, n);
  }
};

template <class T, int MR, int NV> HWY_NOINLINE void tile(const GemmTile<T>& g) {
  // C is added at the end; fetching it now hides its latency even when its rows share a cache set.
  for (int64_t m = 0; m < g.rows; ++m) __builtin_prefetch(g.c + m * g.c_step, 1);
  Accumulators<T, MR, NV> acc;
  acc.clear();
  const T* a = g.a;
  const int64_t* offset = g.b_offsets;
  for (int64_t i = 0; i < g.blocks; ++i, a += g.a_step) {
    const T* b = g.b + *offset++;
#pragma GCC unroll 4
    for (int k = 0; k < kGemmDepth; ++k, b += g.b_step) acc.add(a + k, b);
  }
  for (int64_t i = 0; i < g.rest_blocks; ++i, a += g.a_step) {
    const T* b = g.b + *offset++;
    for (int64_t k = 0; k < g.rest_depth; ++k, b += g.b_step) acc.add(a + k, b);
  }
  acc.store(g);
}

// Rows that have no tile of their own take the next larger one. Every count matters for the main width in float32
// (49 rows are 13 + 12 + 12 + 12); elsewhere a few keep the library small.
template <class T, int NV> constexpr bool has_rows(int rows) {
  if (NV == 2 && sizeof(T) == 4) return true;
  return rows == kMaxRows[NV] || rows == 1 || rows == 4 || rows == 8;
}

template <class T, int NV, int MR> void fill_rows(GemmTiles<T>& tiles) {
  if constexpr (MR >= 1) {
    if constexpr (has_rows<T, NV>(MR)) tiles.tile[NV][MR] = tile<T, MR, NV>;
    else tiles.tile[NV][MR] = tiles.tile[NV][MR + 1];
    fill_rows<T, NV, MR - 1>(tiles);
  }
}

// ---- One channel ----------------------------------------------------------------------------------------------------

template <class T, int NV>
HWY_INLINE void stencil_part(const T* b, const int64_t* offsets, const T* weights, int64_t taps, T bias,
                             int64_t columns, T* c) {
  const Tag<T> d;
  Vector<T> sum[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) sum[v] = hn::Set(d, bias);
  for (int64_t t = 0; t < taps; ++t) {
    const Vector<T> w = hn::Set(d, weights[t]);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) sum[v] = hn::MulAdd(w, hn::LoadU(d, b + offsets[t] + v * kLanes<T>), sum[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v + 1 < NV; ++v) hn::StoreU(sum[v], d, c + v * kLanes<T>);
  const int64_t last = columns - (NV - 1) * kLanes<T>;
  if (last >= kLanes<T>) hn::StoreU(sum[NV - 1], d, c + (NV - 1) * kLanes<T>);
  else store_n(sum[NV - 1], c + (NV - 1) * kLanes<T>, last);
}

template <class T>
void stencil(const T* b, const int64_t* offsets, const T* weights, int64_t taps, T bias, int64_t columns, T* c) {
  constexpr int64_t kWide = 4 * kLanes<T>;
  int64_t j = 0;
  for (; j + kWide <= columns; j += kWide) stencil_part<T, 4>(b + j, offsets, weights, taps, bias, kWide, c + j);
  for (; j < columns; j += kLanes<T>) stencil_part<T, 1>(b + j, offsets, weights, taps, bias, columns - j, c + j);
}

template <class T, int NT>
HWY_INLINE void correlate_taps(const T* a, int64_t a_step, const T* b, int64_t b_step, const int64_t* offsets,
                               int64_t rows, int64_t columns, T* sums) {
  const Tag<T> d;
  Vector<T> sum[NT];
#pragma GCC unroll 8
  for (int t = 0; t < NT; ++t) sum[t] = hn::Zero(d);
  for (int64_t i = 0; i < rows; ++i, a += a_step, b += b_step) {
    int64_t j = 0;
    for (; j + kLanes<T> <= columns; j += kLanes<T>) {
      const Vector<T> x = hn::LoadU(d, a + j);
#pragma GCC unroll 8
      for (int t = 0; t < NT; ++t) sum[t] = hn::MulAdd(x, hn::LoadU(d, b + offsets[t] + j), sum[t]);
    }
    if (j == columns) continue;
    const Vector<T> x = load_n(a + j, columns - j);
#pragma GCC unroll 8
    for (int t = 0; t < NT; ++t) sum[t] = hn::MulAdd(x, load_n(b + offsets[t] + j, columns - j), sum[t]);
  }
#pragma GCC unroll 8
  for (int t = 0; t < NT; ++t) sums[t] += hn::GetLane(hn::SumOfLanes(d, sum[t]));
}

template <class T>
void correlate(const T* a, int64_t a_step, const T* b, int64_t b_step, const int64_t* offsets, int64_t taps,
               int64_t rows, int64_t columns, T* sums) {
  int64_t t = 0;
  for (; t + 5 <= taps; t += 5) correlate_taps<T, 5>(a, a_step, b, b_step, offsets + t, rows, columns, sums + t);
  for (; t + 3 <= taps; t += 3) correlate_taps<T, 3>(a, a_step, b, b_step, offsets + t, rows, columns, sums + t);
  for (; t < taps; ++t) correlate_taps<T, 1>(a, a_step, b, b_step, offsets + t, rows, columns, sums + t);
}

// ---- Copies ---------------------------------------------------------------------------------------------------------

/// Rows are short (a picture's width), so a call of memcpy and two of memset for each would cost more than the copy.
template <class T> void copy_row(const T* row, int64_t size, int64_t start, int64_t n, T* to) {
  const Tag<T> d;
  row += start;
  const int64_t first = std::clamp<int64_t>(-start, 0, n), last = std::clamp<int64_t>(size - start, first, n);
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    if (i >= first && i + kLanes<T> <= last) {
      hn::StoreU(hn::LoadU(d, row + i), d, to + i);
      continue;
    }
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    const auto until = [&](int64_t end) {
      return hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(end - i, 0, kLanes<T>)));
    };
    hn::StoreU(hn::MaskedLoad(hn::AndNot(until(first), until(last)), d, row + i), d, to + i);
#else
    for (int64_t j = i; j < i + kLanes<T>; ++j) to[j] = j >= first && j < last ? row[j] : T{};
#endif
  }
}

// ---- Transposition --------------------------------------------------------------------------------------------------

// 4 x 4 floats in 128-bit vectors: half a cycle per element, and the same code for every target.
HWY_INLINE void transpose_4x4(const float* src, int64_t src_step, float* dst, int64_t dst_step) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> wide;
  const auto r0 = hn::LoadU(d, src), r1 = hn::LoadU(d, src + src_step);
  const auto r2 = hn::LoadU(d, src + 2 * src_step), r3 = hn::LoadU(d, src + 3 * src_step);
  const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1)),
             b = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
  const auto e = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3)),
             f = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, e)), d, dst);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, e)), d, dst + dst_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, b, f)), d, dst + 2 * dst_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, b, f)), d, dst + 3 * dst_step);
}
HWY_INLINE void transpose_4x4(const double* src, int64_t src_step, double* dst, int64_t dst_step) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) dst[j * dst_step + i] = src[i * src_step + j];
  }
}

template <class T>
void transpose(const T* src, int64_t src_step, int64_t rows, int64_t columns, T* dst, int64_t dst_step) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) transpose_4x4(src + i * src_step + j, src_step, dst + j * dst_step + i, dst_step);
    for (; j < columns; ++j) {
      for (int64_t m = i; m < i + 4; ++m) dst[j * dst_step + m] = src[m * src_step + j];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) dst[j * dst_step + i] = src[i * src_step + j];
  }
}

template <class T> const GemmTiles<T>& make_tiles() {
  static const GemmTiles<T> tiles = [] {
    GemmTiles<T> t{};
    t.lanes = kLanes<T>;
    t.max_vectors = kWidest;
    std::copy(std::begin(kMaxRows), std::end(kMaxRows), t.max_rows);
    fill_rows<T, 1, kMaxRows[1]>(t);
    fill_rows<T, 2, kMaxRows[2]>(t);
    if constexpr (kWidest == 3) fill_rows<T, 3, kMaxRows[3]>(t);
    t.stencil = stencil<T>;
    t.correlate = correlate<T>;
    t.copy_row = copy_row<T>;
    t.transpose = transpose<T>;
    return t;
  }();
  return tiles;
}
const GemmTiles<float>& float_tiles() { return make_tiles<float>(); }
const GemmTiles<double>& double_tiles() { return make_tiles<double>(); }

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {

HWY_EXPORT(float_tiles);
HWY_EXPORT(double_tiles);

template <> const GemmTiles<float>& gemm_tiles<float>() { return TW_DISPATCH(float_tiles)(); }
template <> const GemmTiles<double>& gemm_tiles<double>() { return TW_DISPATCH(double_tiles)(); }

}  // namespace twibil::kernels
#endif
