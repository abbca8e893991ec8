// SPDX-License-Identifier: Apache-2.0
// Pooling in one to three dimensions, forward and backward, on contiguous planes [D] [H] W.
#pragma once
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace twibil::kernels {

enum class PoolKind : uint8_t {
  max,                  // NaN wins; a window without elements gives the lowest finite number
  average,              // divides by the window's size, elements in the padding included
  average_of_elements,  // divides by the number of elements in the window; none gives 0
  sum,
  lp,  // (sum of x^p)^(1/p)
};

/// Axes are depth, height, width, with ones in front. Window o covers [o * stride - pad, + kernel), cut to the input.
/// `out` and the padding in front are the caller's, so any rule for rounding the output's size can be had.
struct PoolShape {
  int64_t planes;  // batch x channels
  int64_t in[3], out[3], kernel[3];
  int64_t stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  int64_t p = 2;  // of PoolKind::lp: 1, 2 or 3
};
/// Fills the axes from one to three given ones; kernel = in with stride 1 and no padding pools globally.
PoolShape pool_shape(int64_t planes, std::span<const int64_t> in, std::span<const int64_t> out,
                     std::span<const int64_t> kernel, std::span<const int64_t> stride, std::span<const int64_t> pad);

/// y from x; dtypes: all floats.
void pool_forward(DType t, PoolKind kind, const PoolShape& shape, const void* x, void* y);
/// dx from dy, and x and y where the kind needs them (max: x; lp: both). The gradient of max goes to the first
/// maximum of each window.
void pool_backward(DType t, PoolKind kind, const PoolShape& shape, const void* x, const void* y, const void* dy,
                   void* dx);

}  // namespace twibil::kernels
