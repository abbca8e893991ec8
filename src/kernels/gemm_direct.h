// SPDX-License-Identifier: Apache-2.0
// Matrix products on matrices as they stand: register tiles that read A through any strides and B by its rows. Nothing
// is copied, so a product of any size starts at once; the hardware fetches the rows of B ahead.
#pragma once
#include <cstdint>
#include <limits>

namespace twibil::kernels {

/// C = min(max(A x B + column_bias, lower), upper), where A x B includes the old C if `accumulate`. Rows of B and C are
/// contiguous, and nothing outside `rows` x `columns` is read or written.
template <class T> struct DirectProduct {
  const T* a;
  int64_t a_row_step, a_depth_step;
  const T* b;
  int64_t b_step;
  T* c;
  int64_t c_step;
  int64_t rows, columns, depth;
  bool accumulate = false;
  const T* column_bias = nullptr;
  T lower = -std::numeric_limits<T>::infinity();
  T upper = std::numeric_limits<T>::infinity();
};

/// The kernels of one instruction set.
template <class T> struct DirectKernels {
  int width;     // columns of a tile: B may be cut there, into panels of this width
  int max_rows;  // of a tile
  /// A product of any size; chooses the tiles.
  void (*run)(const DirectProduct<T>&);
  /// Rows of B, b_step apart, into panels [columns / width][panel_step], each [rows][width]. What is missing in the
  /// last panel is left out.
  void (*pack)(const T* b, int64_t b_step, int64_t rows, int64_t columns, T* to, int64_t panel_step);
};
template <class T> const DirectKernels<T>& direct_kernels();

}  // namespace twibil::kernels
