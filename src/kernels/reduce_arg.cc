// SPDX-License-Identifier: Apache-2.0
// Positions of the first maximum or minimum, in index order.
#include "kernels/copy_convert.h"
#include "kernels/reduce.h"
#include "kernels/reduce_job.h"

namespace twibil::kernels {
namespace {

// True when x comes before the best so far: greater (smaller), or the first NaN.
template <bool kMax, class V> bool better(V x, V best) {
  return (kMax ? x > best : x < best) | ((x != x) & (best == best));
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
  ReduceJob job = plan_reduce(Fold::max, in, Accumulate::int64, shape, src, strides, axes, Order::kept);
  if (job.count == 0) std::fill_n(dst, job.outputs, int64_t{0});
  if (job.count == 0 || job.outputs == 0) return;
  dispatch(in, [&]<class T>() {
    const T* x = static_cast<const T*>(src);
    maximum ? arg_reduce_as<true>(job, x, dst) : arg_reduce_as<false>(job, x, dst);
  });
}

}  // namespace twibil::kernels
