// SPDX-License-Identifier: Apache-2.0
// Matrix products whose one side has few rows and whose other side, "the weights", is large: sums of products along the
// rows of both, so the weights are read as they stand, once, whatever the number of rows of x is. A dense layer at
// small batch, a matrix times a vector, the products of recurrent cells.
#pragma once
#include <cstdint>
#include <limits>

namespace twibil::kernels {

/// y[m * y_row + n * y_column] = clamp(sum over k of x[m, k] * w[n * w_step + k] + bias), where the sum includes the
/// old y if `accumulate`. x is packed: below.
template <class T> struct DotProducts {
  const T* x;
  int64_t rows;
  const T* w;
  int64_t w_step;
  int64_t columns, depth;
  T* y;
  int64_t y_row, y_column;
  bool accumulate = false;
  const T* column_bias = nullptr;
  const T* row_bias = nullptr;
  T lower = -std::numeric_limits<T>::infinity();
  T upper = std::numeric_limits<T>::infinity();
};

/// The kernels of one instruction set.
template <class T> struct DotKernels {
  /// Elements of packed x.
  int64_t (*packed_size)(int64_t rows, int64_t depth);
  /// x[m * row_step + k * depth_step] by tiles of a few rows, each [depth / lanes][rows][lanes], zeros behind the
  /// depth: what a tile reads follows each other.
  void (*pack)(const T* x, int64_t row_step, int64_t depth_step, int64_t rows, int64_t depth, T* to);
  /// Any part of the columns: their sums do not depend on what else a call computes. Takes scratch memory.
  void (*run)(const DotProducts<T>&);
};
template <class T> const DotKernels<T>& dot_kernels();

}  // namespace twibil::kernels
