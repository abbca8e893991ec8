// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_direct.cc"
#include "kernels/gemm_direct.h"

#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/isa.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/clamp.h"
#include "kernels/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace {

// The sums, a row of B and one broadcast fill the registers: 14 x 2 vectors of 32, 6 x 2 of 16.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kMaxRows = 14;
#else
constexpr int kMaxRows = 6;
#endif
constexpr int kMaxVectors = 2;

/// MR rows from `a` on, into `c`. kPart: the last vector has not all its columns.
template <class T, int MR, int NV, bool kPart> HWY_NOINLINE void tile(const DirectProduct<T>& g, const T* a, T* c) {
  const Tag<T> d;
  constexpr int64_t kLast = (NV - 1) * kLanes<T>;
  const int64_t part = g.columns - kLast;  // columns in the last vector
  if (g.accumulate) {                      // C is needed at the end only: fetching it now hides its latency
    for (int m = 0; m < MR; ++m) {
      for (int v = 0; v < NV; ++v) __builtin_prefetch(c + m * g.c_step + v * kLanes<T>, 1);
    }
  }
  Vector<T> sum[MR][NV];
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) sum[m][v] = hn::Zero(d);
  }
  const T* b = g.b;
  const T* fives[3] = {a, a + 5 * g.a_row_step, a + 10 * g.a_row_step};  // a step times 0 to 4 is one address
  for (int64_t k = 0; k < g.depth; ++k, b += g.b_step) {
    Vector<T> row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      if (kPart && v == NV - 1) row[v] = load_n(b + kLast, part);
      else row[v] = hn::LoadU(d, b + v * kLanes<T>);
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const Vector<T> value = hn::Set(d, fives[m / 5][m % 5 * g.a_row_step]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[m][v] = hn::MulAdd(value, row[v], sum[m][v]);
    }
    for (const T*& five : fives) five += g.a_depth_step;
  }
  // One pass over the sums for each part, so that the tests stay out of the unrolled loops.
  const auto add = [&](const T* from, int64_t step) HWY_ATTR {
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        const T* at = from + m * step + v * kLanes<T>;
        sum[m][v] = hn::Add(sum[m][v], kPart && v == NV - 1 ? load_n(at, part) : hn::LoadU(d, at));
      }
    }
  };
  if (g.accumulate) add(c, g.c_step);
  if (g.column_bias) add(g.column_bias, 0);
  const Vector<T> lower = hn::Set(d, g.lower), upper = hn::Set(d, g.upper);
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const Vector<T> x = clamped(sum[m][v], lower, upper);
      T* at = c + m * g.c_step + v * kLanes<T>;
      if (kPart && v == NV - 1) store_n(x, at, part);
      else hn::StoreU(x, d, at);
    }
  }
}

template <class T> using TileFunction = void (*)(const DirectProduct<T>&, const T* a, T* c);
template <class T> struct TileTable {
  TileFunction<T> tile[kMaxVectors + 1][2][kMaxRows + 1];  // [vectors][part][rows]
};
template <class T, int NV, int MR> constexpr void fill_rows(TileTable<T>& table) {
  if constexpr (MR >= 1) {
    table.tile[NV][0][MR] = tile<T, MR, NV, false>;
    table.tile[NV][1][MR] = tile<T, MR, NV, true>;
    fill_rows<T, NV, MR - 1>(table);
  }
}
template <class T> constexpr TileTable<T> make_table() {
  TileTable<T> table{};
  fill_rows<T, 1, kMaxRows>(table);
  fill_rows<T, 2, kMaxRows>(table);
  return table;
}
template <class T> constexpr TileTable<T> kTable = make_table<T>();

template <class T> void run(const DirectProduct<T>& all) {
  if (all.rows <= 0) return;
  constexpr int64_t kWidth = kMaxVectors * kLanes<T>;
  const EvenSplit split(all.rows, kMaxRows);
  DirectProduct<T> g = all;
  for (int64_t n = 0; n < all.columns; n += kWidth) {
    g.columns = std::min(kWidth, all.columns - n);
    const TileFunction<T>* tiles = kTable<T>.tile[g.columns > kLanes<T> ? 2 : 1][g.columns % kLanes<T> != 0];
    const T* a = g.a;
    T* c = g.c;
    for (int64_t i = 0; i < split.pieces; ++i) {
      const int64_t rows = i < split.larger ? split.size : split.size - 1;
      tiles[rows](g, a, c);
      a += rows * g.a_row_step, c += rows * g.c_step;
    }
    g.b += kWidth;
    g.c += kWidth;
    if (g.column_bias) g.column_bias += kWidth;
  }
}

template <class T> void pack(const T* b, int64_t b_step, int64_t rows, int64_t columns, T* to, int64_t panel_step) {
  const Tag<T> d;
  constexpr int64_t kWidth = kMaxVectors * kLanes<T>, kRows = 8;
  // A few rows at a time through all panels: one after the other the rows are what the hardware fetches ahead, and a
  // column of panels alone would touch a page per row.
  for (int64_t k = 0; k < rows; k += kRows, b += kRows * b_step, to += kRows * kWidth) {
    const int64_t high = std::min(kRows, rows - k);
    for (int64_t n = 0; n < columns; n += kWidth) {
      T* panel = to + n / kWidth * panel_step;
      const int64_t wide = std::min(kWidth, columns - n);
      for (int64_t i = 0; i < high; ++i) {
        const T* from = b + i * b_step + n;
        T* line = panel + i * kWidth;
        if (wide == kWidth) {
          hn::StoreU(hn::LoadU(d, from), d, line);
          hn::StoreU(hn::LoadU(d, from + kLanes<T>), d, line + kLanes<T>);
        } else {
          for (int64_t j = 0; j < wide; ++j) line[j] = from[j];
        }
      }
    }
  }
}

template <class T> constexpr DirectKernels<T> kKernels = {kMaxVectors* kLanes<T>, kMaxRows, run<T>, pack<T>};

}  // namespace

const DirectKernels<float>& direct_float() { return kKernels<float>; }
const DirectKernels<double>& direct_double() { return kKernels<double>; }

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {

HWY_EXPORT(direct_float);
HWY_EXPORT(direct_double);

template <> const DirectKernels<float>& direct_kernels<float>() { return TW_DISPATCH(direct_float)(); }
template <> const DirectKernels<double>& direct_kernels<double>() { return TW_DISPATCH(direct_double)(); }

}  // namespace twibil::kernels
#endif
