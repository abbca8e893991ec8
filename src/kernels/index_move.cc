// SPDX-License-Identifier: Apache-2.0
// Moves slices by offset: gather, scatter, and scatter_add in a fixed order.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/copy_convert.h"
#include "base/recycled.h"
#include "kernels/index.h"

namespace twibil::kernels {
namespace {

// Slices of a few elements apart from each other; operand 0 is read, operand 1 written.
struct Slices {
  LoopNest<2> nest;
  int64_t rows, n, ss, ds, size;

  Slices(Dims slice, Dims src, Dims dst) : nest(make_nest<2>(slice, {src, dst}, Order::by_last_operand)) {
    rows = nest.rows(), n = nest.inner(), ss = nest.inner_stride(0), ds = nest.inner_stride(1), size = rows * n;
  }
  /// row(from, to, n) for each row of the slice.
  template <class From, class To, class Row> void each_row(const From* from, To* to, const Row& row) const {
    if (rows == 1) return row(from, to, n);
    RowWalk<2> walk(nest, 0);
    for (int64_t r = 0; r < rows; ++r, walk.next()) row(from + walk.offset[0], to + walk.offset[1], n);
  }
};

template <class U> void move_row(const U* from, int64_t ss, U* to, int64_t ds, int64_t n) {
  if (ss == 1 && ds == 1 && n * sizeof(U) >= 64) std::memcpy(to, from, n * sizeof(U));
  else
    for (int64_t j = 0; j < n; ++j) to[j * ds] = from[j * ss];
}

// The indexed axis is the contiguous one of dst: for each element of the slice, all offsets in a run.
template <class U> void gather_runs(const Slices& s, int64_t count, const int64_t* offsets, const U* src, U* dst) {
  int64_t grain = std::max<int64_t>(1, kPiece / count);
  parallel_for(s.size, grain, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      RowWalk<2> walk(s.nest, e, 0);
      const U* from = src + walk.offset[0];
      U* to = dst + walk.offset[1];
      for (int64_t i = 0; i < count; ++i) to[i] = from[offsets[i]];
    }
  });
}

template <class T> void add_row(const T* from, int64_t ss, T* to, int64_t ds, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (std::is_same_v<T, bool>) store(to, j * ds, load(to, j * ds) | load(from, j * ss));
    else if constexpr (std::is_integral_v<T>)
      to[j * ds] = static_cast<T>(static_cast<uint64_t>(to[j * ds]) + static_cast<uint64_t>(from[j * ss]));
    else to[j * ds] += from[j * ss];
  }
}

// Adds the slices order[begin..end), which share one offset, through float sums.
template <class T>
void add_group(const Slices& s, const int64_t* order, int64_t count, const T* src, int64_t src_step, T* to,
               float* sum) {
  float* at = sum;
  s.each_row(src, to, [&](const T*, T* row, int64_t n) {
    for (int64_t j = 0; j < n; ++j) *at++ = load(row, j * s.ds);
  });
  for (int64_t i = 0; i < count; ++i) {
    at = sum;
    s.each_row(src + order[i] * src_step, to, [&](const T* row, T*, int64_t n) {
      for (int64_t j = 0; j < n; ++j) *at++ += load(row, j * s.ss);
    });
  }
  at = sum;
  s.each_row(src, to, [&](const T*, T* row, int64_t n) {
    for (int64_t j = 0; j < n; ++j) store(row, j * s.ds, *at++);
  });
}

template <class T>
void scatter_add_as(const Slices& s, int64_t count, const int64_t* offsets, const T* src, int64_t src_step, T* dst) {
  auto add_one = [&](int64_t i) {
    if constexpr (!kIsHalf<T>)
      s.each_row(src + i * src_step, dst + offsets[i],
                 [&](const T* from, T* to, int64_t n) { add_row(from, s.ss, to, s.ds, n); });
  };
  if (!kIsHalf<T> && count * s.size <= kPiece) {
    for (int64_t i = 0; i < count; ++i) add_one(i);
    return;
  }
  // Groups of equal offsets, each in index order: groups are independent.
  Recycled<int64_t> order(count), starts;
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return offsets[a] < offsets[b]; });
  for (int64_t i = 0; i < count; ++i)
    if (i == 0 || offsets[order[i]] != offsets[order[i - 1]]) starts.push_back(i);
  int64_t groups = static_cast<int64_t>(starts.size());
  starts.push_back(count);
  int64_t grain = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, s.size * count / groups));
  parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
    if constexpr (kIsHalf<T>) {
      Recycled<float> sum(s.size);
      for (int64_t g = begin; g < end; ++g)
        add_group(s, &order[starts[g]], starts[g + 1] - starts[g], src, src_step, dst + offsets[order[starts[g]]],
                  sum.data());
    } else {
      for (int64_t i = starts[begin]; i < starts[end]; ++i) add_one(order[i]);
    }
  });
}

}  // namespace

void gather(DType dtype, int64_t count, const int64_t* offsets, Dims slice, const void* src, Dims src_strides,
            void* dst, int64_t dst_step, Dims dst_strides) {
  Slices s(slice, src_strides, dst_strides);
  if (count == 0 || s.size == 0) return;
  dispatch_width(dtype, [&]<class U>() {
    const U* from = static_cast<const U*>(src);
    U* to = static_cast<U*>(dst);
    if (dst_step == 1 && (s.ds != 1 || s.n == 1)) return gather_runs(s, count, offsets, from, to);
    parallel_for(count, std::max<int64_t>(1, kPiece / s.size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        s.each_row(from + offsets[i], to + i * dst_step,
                   [&](const U* a, U* b, int64_t n) { move_row(a, s.ss, b, s.ds, n); });
    });
  });
}

void scatter(DType dtype, int64_t count, const int64_t* offsets, Dims slice, const void* src, int64_t src_step,
             Dims src_strides, void* dst, Dims dst_strides) {
  Slices s(slice, src_strides, dst_strides);
  if (count == 0 || s.size == 0) return;
  dispatch_width(dtype, [&]<class U>() {
    for (int64_t i = 0; i < count; ++i)
      s.each_row(static_cast<const U*>(src) + i * src_step, static_cast<U*>(dst) + offsets[i],
                 [&](const U* a, U* b, int64_t n) { move_row(a, s.ss, b, s.ds, n); });
  });
}

void scatter_add(DType dtype, int64_t count, const int64_t* offsets, Dims slice, const void* src, int64_t src_step,
                 Dims src_strides, void* dst, Dims dst_strides) {
  Slices s(slice, src_strides, dst_strides);
  if (count == 0 || s.size == 0) return;
  dispatch(dtype, [&]<class T>() {
    scatter_add_as(s, count, offsets, static_cast<const T*>(src), src_step, static_cast<T*>(dst));
  });
}

}  // namespace twibil::kernels
