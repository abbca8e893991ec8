// SPDX-License-Identifier: Apache-2.0
// Positions of the first maximum or minimum, in index order.
#include <type_traits>

#include "kernels/copy_convert.h"
#include "kernels/reduce.h"
#include "kernels/reduce_job.h"

namespace twibil::kernels {
namespace {

// True when x comes before the best so far: greater (smaller), or the first NaN.
template <bool kMax, class V> bool better(V x, V best) {
  return (kMax ? x > best : x < best) | ((x != x) & (best == best));
}

// n contiguous elements. Sixteen lanes keep their own best and the step at which it came; then the best lane wins, ties
// and NaN going to the lower index.
template <bool kMax, class T> int64_t arg_of_row(const T* x, int64_t n) {
  using V = native_t<T>;
  using Step = std::conditional_t<sizeof(V) == 8, int64_t, int32_t>;
  constexpr int kLane = 16;
  V best = load(x, 0);
  int64_t index = 0, i = 0;
  if (n >= 4 * kLane && n / kLane < INT32_MAX) {
    V top[kLane];
    Step when[kLane] = {};
    for (int j = 0; j < kLane; ++j) top[j] = load(x, j);
    for (Step step = 1; (step + 1) * int64_t{kLane} <= n; ++step)
      for (int j = 0; j < kLane; ++j) {
        V v = load(x, step * int64_t{kLane} + j);
        bool take = better<kMax>(v, top[j]);
        top[j] = take ? v : top[j];
        when[j] = take ? step : when[j];
      }
    best = top[0], index = when[0] * int64_t{kLane};
    for (int j = 1; j < kLane; ++j) {
      int64_t at = when[j] * int64_t{kLane} + j;
      bool same = top[j] == best || (top[j] != top[j] && best != best);
      if (better<kMax>(top[j], best) || (same && at < index)) best = top[j], index = at;
    }
    i = n / kLane * kLane;
  }
  // What is left is short. Whether one of them is NaN is asked once: it takes as long as everything else together.
  V first = best;
  int64_t at = index;
  bool nan = best != best;
  for (int64_t k = i; k < n; ++k) {
    V v = load(x, k);
    bool take = kMax ? v > best : v < best;
    best = take ? v : best;
    at = take ? k : at;
    nan |= v != v;
  }
  if (!nan) return at;
  for (best = first; i < n; ++i) {
    V v = load(x, i);
    if (better<kMax>(v, best)) best = v, index = i;
  }
  return index;
}

// The same for `width` groups side by side, rows `stride` apart.
template <bool kMax, class T> void arg_of_rows(const T* src, int64_t n, int64_t stride, int64_t width, int64_t* index) {
  native_t<T> best[kColumns];
  for (int64_t j = 0; j < width; ++j) best[j] = load(src, j), index[j] = 0;
  for (int64_t r = 1; r < n; ++r) {
    const T* row = src + r * stride;
    for (int64_t j = 0; j < width; ++j) {
      native_t<T> x = load(row, j);
      bool take = better<kMax>(x, best[j]);
      best[j] = take ? x : best[j];
      index[j] = take ? r : index[j];
    }
  }
}

template <bool kMax, class T> void arg_contiguous(const SmallReduce& r, const T* src, int64_t* index) {
  if (r.n == 1) return static_cast<void>(std::fill_n(index, r.outer * r.inner, int64_t{0}));
  int64_t width = std::min(r.inner, kColumns), tiles = r.inner == width ? 1 : (r.inner + width - 1) / width;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t o = tiles == 1 ? i : i / tiles, first = (i - o * tiles) * width;
      if (r.inner == 1) index[i] = arg_of_row<kMax>(src + i * r.n, r.n);
      else
        arg_of_rows<kMax>(src + o * r.n * r.inner + first, r.n, r.inner, std::min(width, r.inner - first),
                          index + o * r.inner + first);
    }
  };
  if (r.outer * r.n * r.inner <= kPiece) run(0, r.outer * tiles);
  else parallel_for(r.outer * tiles, std::max<int64_t>(1, kPiece / (width * r.n)), run);
}

template <bool kMax, class T> int64_t arg_of_group(const ReduceJob& job, const T* src) {
  int64_t rows = job.reduced.rows(), inner = job.reduced.inner(), stride = job.reduced.inner_stride(0), index = 0;
  native_t<T> best = load(src, 0);
  RowWalk<1> walk(job.reduced, 0);
  for (int64_t r = 0; r < rows; ++r, walk.next()) {
    const T* row = src + walk.offset[0];
    for (int64_t i = 0; i < inner; ++i) {
      native_t<T> x = load(row, i * stride);
      if (better<kMax>(x, best)) best = x, index = r * inner + i;
    }
  }
  return index;
}

template <bool kMax, class T> void arg_of_columns(const ReduceJob& job, const T* src, int64_t width, int64_t* index) {
  native_t<T> best[kColumns];
  for (int64_t j = 0; j < width; ++j) best[j] = load(src, j), index[j] = 0;
  RowWalk<1> walk(job.reduced, 0, 0);
  for (int64_t r = 0; r < job.count; ++r, walk.next()) {
    const T* row = src + walk.offset[0];
    for (int64_t j = 0; j < width; ++j) {
      native_t<T> x = load(row, j);
      bool take = better<kMax>(x, best[j]);
      best[j] = take ? x : best[j];
      index[j] = take ? r : index[j];
    }
  }
}

template <bool kMax, class T> void arg_reduce_as(const ReduceJob& job, const T* src, int64_t* index) {
  int64_t inner = job.kept.inner(), stride = job.kept.inner_stride(0);
  bool columns = stride == 1 && inner >= 4 && job.reduced.inner_stride(0) != 1;
  int64_t width = columns ? std::min(inner, kColumns) : 1, tiles = (inner + width - 1) / width;
  int64_t grain = std::max<int64_t>(1, kPiece / (width * job.count));
  parallel_for(job.kept.rows() * tiles, grain, [&](int64_t begin, int64_t end) {
    RowWalk<1> walk(job.kept, begin / tiles);
    for (int64_t i = begin; i < end; ++i) {
      int64_t first = i % tiles * width;
      const T* at = src + walk.offset[0] + first * stride;
      int64_t* to = index + i / tiles * inner + first;
      if (columns) arg_of_columns<kMax>(job, at, std::min(width, inner - first), to);
      else *to = arg_of_group<kMax>(job, at);
      if (first + width >= inner) walk.next();
    }
  });
}

}  // namespace

void arg_reduce(bool maximum, DType in, Dims shape, const void* src, Dims strides, AxisSet axes, int64_t* dst) {
  SmallReduce plain{Fold::max, Accumulate::int64, src, dst, 1, 1, 1};
  if (split_contiguous(shape, strides, axes, plain) && plain.outer * plain.n * plain.inner > 0)
    return dispatch(in, [&]<class T>() {
      const T* x = static_cast<const T*>(src);
      maximum ? arg_contiguous<true>(plain, x, dst) : arg_contiguous<false>(plain, x, dst);
    });
  ReduceJob job = plan_reduce(Fold::max, in, Accumulate::int64, shape, src, strides, axes, Order::kept);
  if (job.count == 0) std::fill_n(dst, job.outputs, int64_t{0});
  if (job.count == 0 || job.outputs == 0) return;
  dispatch(in, [&]<class T>() {
    const T* x = static_cast<const T*>(src);
    maximum ? arg_reduce_as<true>(job, x, dst) : arg_reduce_as<false>(job, x, dst);
  });
}

}  // namespace twibil::kernels
