// SPDX-License-Identifier: Apache-2.0
// Convolutions in one to three dimensions, forward and both gradients, on contiguous N C [D] [H] W memory.
// Results have the same bits for any number of threads.
#pragma once
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace twibil::kernels {

/// `direct` sums products as they stand; `automatic` may use Winograd's algorithm for 3x3 kernels in float32, with two
/// to three times the rounding error.
enum class ConvolutionAlgorithm : uint8_t { automatic, direct };

/// Sizes of a convolution. Axes are depth, height, width; a convolution with fewer has ones in front.
///   x[batch, in_channels, in...]  w[out_channels, in_channels / groups, kernel...]  y[batch, out_channels, out...]
///   y[n, o, p] = bias[o] + sum over c, t of w[o, c, t] * x[n, c, p * stride + t * dilation - pad]; 0 outside of x
/// `out` is the caller's choice: padding at the end may differ from the padding in front.
struct ConvolutionShape {
  int64_t batch, in_channels, out_channels, groups = 1;
  int64_t in[3], out[3], kernel[3];
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::automatic;
};
/// Fills the axes from one to three given ones; `out` follows from the same padding on both sides.
ConvolutionShape convolution_shape(int64_t batch, int64_t in_channels, int64_t out_channels, int64_t groups,
                                   std::span<const int64_t> in, std::span<const int64_t> kernel,
                                   std::span<const int64_t> stride, std::span<const int64_t> dilation,
                                   std::span<const int64_t> pad);

/// y from x and w; bias[out_channels] may be null. dtypes: all floats (16-bit ones compute in float32).
void convolution_forward(DType t, const ConvolutionShape& shape, const void* x, const void* w, const void* bias,
                         void* y);

/// dx from dy and w. A transposed convolution is this, with its input as dy, its output as dx, and its
/// bias[in_channels].
void convolution_backward_data(DType t, const ConvolutionShape& shape, const void* dy, const void* w, const void* bias,
                               void* dx);

/// dw from x and dy. (For a transposed convolution x is its output's gradient and dy its input.)
void convolution_backward_weights(DType t, const ConvolutionShape& shape, const void* x, const void* dy, void* dw);

/// Which algorithm the forward pass, or (`backward`) the gradient of the data takes, for people.
const char* convolution_algorithm(DType t, const ConvolutionShape& shape, bool backward);

/// dbias[channels] = sum of dy[batch, channels, size] over batch and size.
void convolution_backward_bias(DType t, int64_t batch, int64_t channels, int64_t size, const void* dy, void* dbias);

}  // namespace twibil::kernels
