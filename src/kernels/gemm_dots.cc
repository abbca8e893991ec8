// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_dots.cc"
#include "kernels/gemm_dots.h"

#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/isa.h"
#include "kernels/scratch.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/clamp.h"
#include "kernels/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace {

// A tile multiplies MR rows of x with NR rows of weights. Its sums, a vector of each row of x and one of weights fill
// the registers. Up to kStreamMost rows of x wait for memory: their tiles take eight rows of weights, streams that
// memory delivers together. More rows compute, and take the shape that loads least.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kStreamRows = 2, kStreamMost = 8, kMaxRows = 6;
#else
constexpr int kStreamRows = 1, kStreamMost = 2, kMaxRows = 3;
#endif
constexpr int kStreamColumns = 8, kColumns = 4;

constexpr int64_t kStreamBytes = 2048;            // of a row at a time: the rows of weights and a tile of x share the
constexpr int64_t kChunkBytes = 4096;             // L1 cache
constexpr int64_t kPassBytes = int64_t{3} << 17;  // of x: what fits an L2 cache beside the weights that go by

/// Where a tile reads, and what it brings into the cache meanwhile: a share of the weights that are multiplied next.
template <class T> struct Chunk {
  const T* w;
  int64_t w_step;
  int64_t depth;
  bool first;  // of its sums
  const T* next[kStreamColumns];
};

/// Adds the products along `depth` to MR x NR sums, vector by vector; finish() joins their lanes.
template <class T, int MR, int NR> HWY_NOINLINE void tile(const Chunk<T>& g, const T* x, T* sums) {
  const Tag<T> d;
  Vector<T> sum[MR][NR];
#pragma GCC unroll 8
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 8
    for (int n = 0; n < NR; ++n) {
      sum[m][n] = g.first ? hn::Zero(d) : hn::Load(d, sums + (m * NR + n) * kLanes<T>);
    }
  }
  // A step times 0, 1, 2, 4 is one address.
  const int64_t step = g.w_step;
  const T *w0 = g.w, *w3 = w0 + 3 * step, *w6 = w0 + 6 * step;
  const auto row = [&](int n) {
    return n == 6 ? w6 : n == 3 || n == 5 || n == 7 ? w3 + (n - 3) * step : w0 + n * step;
  };
  Vector<T> left[MR];
  const auto load = [&] HWY_ATTR {
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) left[m] = hn::Load(d, x + m * kLanes<T>);
  };
  const auto add = [&](Vector<T> right, int n) HWY_ATTR {
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) sum[m][n] = hn::MulAdd(left[m], right, sum[m][n]);
  };
  int64_t k = 0;
  for (; k + kLanes<T> <= g.depth; k += kLanes<T>) {
    load();
#pragma GCC unroll 8
    for (int n = 0; n < NR; ++n) add(hn::LoadU(d, row(n)), n);
#pragma GCC unroll 8
    for (int n = 0; n < NR; ++n) __builtin_prefetch(g.next[n] + k);
    x += MR * kLanes<T>, w0 += kLanes<T>, w3 += kLanes<T>, w6 += kLanes<T>;
  }
  if (k < g.depth) {
    load();
#pragma GCC unroll 8
    for (int n = 0; n < NR; ++n) add(load_n(row(n), g.depth - k), n);
  }
#pragma GCC unroll 8
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 8
    for (int n = 0; n < NR; ++n) hn::Store(sum[m][n], d, sums + (m * NR + n) * kLanes<T>);
  }
}

template <class T> constexpr int kQuad = 16 / sizeof(T);  // sums that are joined together: a vector of 128 bits
template <class T> using QuadTag = hn::FixedTag<T, kQuad<T>>;

template <class D, class V> HWY_INLINE auto join_blocks([[maybe_unused]] D d, V v) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 16) {
    return v;
  } else {
    const hn::Half<D> half;
    return join_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
/// The totals of kQuad vectors that follow each other.
HWY_INLINE hn::Vec<QuadTag<float>> totals(const float* v) {
  const Tag<float> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto pair = [&](const float* at) HWY_ATTR {
    const auto a = hn::Load(d, at), b = hn::Load(d, at + kLanes<float>);
    return hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto a = pair(v), b = pair(v + 2 * kLanes<float>);
  return join_blocks(
      d, hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), hn::BitCast(d, hn::InterleaveUpper(wide, a, b))));
}
HWY_INLINE hn::Vec<QuadTag<double>> totals(const double* v) {
  const Tag<double> d;
  const auto a = hn::Load(d, v), b = hn::Load(d, v + kLanes<double>);
  return join_blocks(d, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
}

/// Joins the sums of all rows x `width` and writes those of the columns from `column` on, which are the last ones of
/// the width.
template <class T> void finish(const DotProducts<T>& g, const T* sums, int64_t width, int64_t column, int64_t columns) {
  const QuadTag<T> d;
  const auto lower = hn::Set(d, g.lower), upper = hn::Set(d, g.upper);
  const int64_t old = width - columns;  // that were written before
  HWY_ALIGN T part[kQuad<T>] = {};
  for (int64_t m = 0; m < g.rows; ++m) {
    for (int64_t i = old / kQuad<T> * kQuad<T>; i < width; i += kQuad<T>) {
      auto x = totals(sums + (m * width + i) * kLanes<T>);
      const int64_t n = column + i - old, skip = std::max<int64_t>(0, old - i);
      T* y = g.y + m * g.y_row + n * g.y_column;
      if (skip == 0 && g.y_column == 1) {
        if (g.column_bias) x = hn::Add(x, hn::LoadU(d, g.column_bias + n));
        if (g.row_bias) x = hn::Add(x, hn::Set(d, g.row_bias[m]));
        if (g.accumulate) x = hn::Add(x, hn::LoadU(d, y));
        hn::StoreU(clamped(x, lower, upper), d, y);
        continue;
      }
      for (int64_t j = skip; j < kQuad<T>; ++j) {
        part[j] = (g.column_bias ? g.column_bias[n + j] : T{}) + (g.row_bias ? g.row_bias[m] : T{});
        if (g.accumulate) part[j] += y[j * g.y_column];
      }
      x = clamped(hn::Add(x, hn::Load(d, part)), lower, upper);
      hn::Store(x, d, part);
      for (int64_t j = skip; j < kQuad<T>; ++j) y[j * g.y_column] = part[j];
    }
  }
}

template <class T> using TileFunction = void (*)(const Chunk<T>&, const T*, T*);
template <class T, int MR, int NR> constexpr void fill_rows(TileFunction<T>* tiles) {
  if constexpr (MR >= 1) {
    tiles[MR] = tile<T, MR, NR>;
    fill_rows<T, MR - 1, NR>(tiles);
  }
}
template <class T> struct TileTable {
  TileFunction<T> stream[kStreamRows + 1] = {}, tile[kMaxRows + 1] = {};
  constexpr TileTable() {
    fill_rows<T, kStreamRows, kStreamColumns>(stream);
    fill_rows<T, kMaxRows, kColumns>(tile);
  }
};
template <class T> constexpr TileTable<T> kTable;

/// How the rows of x are cut into tiles: the same for pack and run.
EvenSplit tiles_of(int64_t rows) { return EvenSplit(rows, rows <= kStreamMost ? kStreamRows : kMaxRows); }

template <class T> int64_t padded(int64_t depth) { return (depth + kLanes<T> - 1) / kLanes<T> * kLanes<T>; }

template <class T> int64_t packed_size(int64_t rows, int64_t depth) { return rows * padded<T>(depth); }

template <class T> void pack(const T* x, int64_t row_step, int64_t depth_step, int64_t rows, int64_t depth, T* to) {
  const Tag<T> d;
  const EvenSplit split = tiles_of(rows);
  for (int64_t i = 0; i < split.pieces; ++i) {
    const int64_t row = split.begin(i), high = split.begin(i + 1) - row;
    for (int64_t k = 0; k < depth; k += kLanes<T>) {
      const int64_t n = std::min<int64_t>(kLanes<T>, depth - k);
      for (int64_t m = row; m < row + high; ++m, to += kLanes<T>) {
        const T* from = x + m * row_step + k * depth_step;
        if (depth_step == 1 && n == kLanes<T>) {
          hn::Store(hn::LoadU(d, from), d, to);
        } else {
          for (int64_t j = 0; j < kLanes<T>; ++j) to[j] = j < n ? from[j * depth_step] : T{};
        }
      }
    }
  }
}

/// One pass over the depth, [k0, k1), for columns in groups of `width` that share their reads of x.
template <class T> void run_pass(const DotProducts<T>& g, int64_t k0, int64_t k1, T* sums) {
  const bool stream = g.rows <= kStreamMost;
  const EvenSplit split = tiles_of(g.rows);
  const TileFunction<T>* tiles = stream ? kTable<T>.stream : kTable<T>.tile;
  const int64_t width = stream ? kStreamColumns : kColumns, depth = padded<T>(g.depth);
  const int64_t chunk = (stream ? kStreamBytes : kChunkBytes) / static_cast<int64_t>(sizeof(T));
  for (int64_t n = 0; n < g.columns;) {
    // The last group reads some columns again; fewer than a group are taken one by one, each in the place of all.
    const int64_t rest = std::min(width, g.columns - n), count = g.columns < width ? 1 : rest;
    const int64_t step = g.columns < width ? 0 : g.w_step;
    const T* w = g.w + n * g.w_step - (g.columns < width ? 0 : width - rest) * g.w_step;
    for (int64_t k = k0; k < k1 || k == k0; k += chunk) {
      Chunk<T> c{w + k, step, std::min(chunk, k1 - k), k == k0, {}};
      // The weights after these: along the row, then in the next rows.
      const bool same = k + chunk < k1, more = same || n + 2 * width <= g.columns;
      const T* next = same ? c.w + chunk : c.w + width * step - (k - k0);
      for (int64_t i = 0; i < split.pieces; ++i) {
        const int64_t row = split.begin(i), rows = split.begin(i + 1) - row;
        const T* x = g.x + row * depth + k * rows;
        const int64_t from = width * i / split.pieces, until = more ? width * (i + 1) / split.pieces : 0;
        for (int64_t j = 0; j < width; ++j) c.next[j] = j >= from && j < until ? next + j * step : x;
        tiles[rows](c, x, sums + row * width * kLanes<T>);
      }
    }
    finish(g, sums, width, n, count);
    n += count;
  }
}

template <class T> void run(const DotProducts<T>& all) {
  if (all.rows <= 0) return;
  // What a pass reads of x stays in the L2 cache while the weights go by.
  const int64_t lanes = kLanes<T>, row_bytes = all.rows * lanes * static_cast<int64_t>(sizeof(T));
  const EvenSplit pass(padded<T>(all.depth) / lanes, std::max<int64_t>(1, kPassBytes / row_bytes));
  ScratchFrame frame;
  T* sums = frame.take<T>(all.rows * kStreamColumns * lanes);
  for (int64_t p = 0; p < std::max<int64_t>(1, pass.pieces); ++p) {
    DotProducts<T> g = all;
    g.accumulate = all.accumulate || p > 0;
    if (p + 1 < pass.pieces) {
      g.column_bias = g.row_bias = nullptr;
      g.lower = -std::numeric_limits<T>::infinity();
      g.upper = std::numeric_limits<T>::infinity();
    }
    run_pass(g, pass.begin(p) * lanes, std::min(all.depth, pass.begin(p + 1) * lanes), sums);
  }
}

template <class T> constexpr DotKernels<T> kKernels = {packed_size<T>, pack<T>, run<T>};

}  // namespace

const DotKernels<float>& dots_float() { return kKernels<float>; }
const DotKernels<double>& dots_double() { return kKernels<double>; }

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {

HWY_EXPORT(dots_float);
HWY_EXPORT(dots_double);

template <> const DotKernels<float>& dot_kernels<float>() { return TW_DISPATCH(dots_float)(); }
template <> const DotKernels<double>& dot_kernels<double>() { return TW_DISPATCH(dots_double)(); }

}  // namespace twibil::kernels
#endif
