// SPDX-License-Identifier: Apache-2.0
// The loop nest of strided kernels: drops and merges dimensions, then walks rows in parallel pieces.
// Used inside kernels/ by every kernel that visits elements of several strided operands in one shape.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"

namespace twibil::kernels {

using Dims = std::span<const int64_t>;    // a shape, or strides in elements (negative and zero allowed)
inline constexpr int kMaxDims = 16;       // arrays have fewer; tile and repeat view an array with twice its rank
inline constexpr int64_t kPiece = 32768;  // elements that make a piece of work worth a thread

/// The loop nest over N operands; at least one dimension (a scalar has one of size 1), the last one is innermost.
template <int N> struct LoopNest {
  int rank = 0;
  int64_t shape[kMaxDims];  // entries from rank on are not set
  int64_t stride[N][kMaxDims];

  int64_t inner() const { return shape[rank - 1]; }
  int64_t inner_stride(int operand) const { return stride[operand][rank - 1]; }
  /// The number of innermost rows when the last `inner_dims` dimensions form a row.
  int64_t rows(int inner_dims = 1) const {
    int64_t n = 1;
    for (int i = 0; i < rank - inner_dims; ++i) n *= shape[i];
    return n;
  }
  void swap_dims(int a, int b) {
    std::swap(shape[a], shape[b]);
    for (int k = 0; k < N; ++k) std::swap(stride[k][a], stride[k][b]);
  }
};

enum class Order { kept, by_last_operand };  // by_last_operand: largest stride of the last operand outermost

/// Drops dimensions of size 1 and merges neighbours that every operand walks as one.
template <int N> LoopNest<N> make_nest(Dims shape, const Dims (&strides)[N], Order order = Order::kept) {
  TW_ASSERT(shape.size() <= static_cast<size_t>(kMaxDims));
  LoopNest<N> nest;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    nest.shape[nest.rank] = shape[i];
    for (int k = 0; k < N; ++k) nest.stride[k][nest.rank] = strides[k][i];
    ++nest.rank;
  }
  if (order == Order::by_last_operand)
    for (int i = 1; i < nest.rank; ++i)
      for (int j = i; j > 0 && std::abs(nest.stride[N - 1][j]) > std::abs(nest.stride[N - 1][j - 1]); --j)
        nest.swap_dims(j, j - 1);
  int last = 0;
  for (int i = 1; i < nest.rank; ++i) {
    bool merge = true;
    for (int k = 0; k < N; ++k) merge &= nest.stride[k][last] == nest.stride[k][i] * nest.shape[i];
    if (merge) nest.shape[last] *= nest.shape[i];
    else nest.shape[++last] = nest.shape[i];
    for (int k = 0; k < N; ++k) nest.stride[k][last] = nest.stride[k][i];
  }
  if (nest.rank == 0) {
    nest.shape[0] = 1;
    for (int k = 0; k < N; ++k) nest.stride[k][0] = 0;
  }
  nest.rank = last + 1;
  return nest;
}

/// Starting a row costs about as much as ten of its elements. So when the innermost dimension is short, the longer one
/// next to it becomes the row, unless the plane of both is too large to stay in the cache while columns are walked.
template <int N> void prefer_long_rows(LoopNest<N>& nest) {
  constexpr int64_t kShort = 16;
  int r = nest.rank - 2;
  if (r >= 0 && nest.inner() < kShort && nest.shape[r] > nest.inner() && nest.shape[r] * nest.inner() <= kPiece)
    nest.swap_dims(r, r + 1);
}

/// Walks the offsets of rows [begin, end) of a nest whose last `inner_dims` dimensions are left to the caller.
template <int N> class RowWalk {
 public:
  RowWalk(const LoopNest<N>& nest, int64_t row, int inner_dims = 1) : nest_(nest), outer_(nest.rank - inner_dims) {
    if (row == 0) {  // the usual start; divisions are slow
      for (int i = 0; i < outer_; ++i) at_[i] = 0;
      return;
    }
    for (int i = outer_ - 1; i >= 0; --i) {
      at_[i] = row % nest.shape[i];
      row /= nest.shape[i];
      for (int k = 0; k < N; ++k) offset[k] += at_[i] * nest.stride[k][i];
    }
  }
  void next() {
    for (int i = outer_ - 1; i >= 0; --i) {
      for (int k = 0; k < N; ++k) offset[k] += nest_.stride[k][i];
      if (++at_[i] < nest_.shape[i]) return;
      for (int k = 0; k < N; ++k) offset[k] -= nest_.shape[i] * nest_.stride[k][i];
      at_[i] = 0;
    }
  }
  int64_t offset[N] = {};

 private:
  const LoopNest<N>& nest_;
  int outer_;
  int64_t at_[kMaxDims];  // only the outer entries are ever read
};

/// Calls row(offsets, n) for every innermost row, or pieces of it when it is long, on several threads when large.
template <int N, class Row> void for_each_row(const LoopNest<N>& nest, const Row& row) {
  int64_t rows = nest.rows(), n = nest.inner();
  if (rows == 0 || n == 0) return;
  if (n > kPiece) {
    int64_t pieces = (n + kPiece - 1) / kPiece;
    parallel_for(rows * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        RowWalk<N> walk(nest, i / pieces);
        int64_t first = i % pieces * kPiece;
        for (int k = 0; k < N; ++k) walk.offset[k] += first * nest.inner_stride(k);
        row(walk.offset, std::min(kPiece, n - first));
      }
    });
    return;
  }
  auto some_rows = [&](int64_t begin, int64_t end) {
    RowWalk<N> walk(nest, begin);
    for (int64_t i = begin; i < end; ++i, walk.next()) row(walk.offset, n);
  };
  if (rows * n <= kPiece) some_rows(0, rows);
  else parallel_for(rows, std::max<int64_t>(1, kPiece / n), some_rows);
}

/// Strides of a C-ordered array of `shape`, in elements.
inline void contiguous_strides(Dims shape, int64_t* strides) {
  int64_t s = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = s;
    s *= std::max<int64_t>(shape[i], 1);
  }
}

}  // namespace twibil::kernels
