// SPDX-License-Identifier: Apache-2.0
// What the forward pass and the gradient of the data have in common: every output gathers shifted inputs.
// convolution.cc describes both as a GatherConvolution; convolution_gather.cc computes it with the GEMM tiles.
#pragma once
#include <cstdint>
#include <vector>

#include "base/recycled.h"

namespace twibil::kernels {

/// One tap of the kernel: the input that output p reads is p * src_stride + shift.
struct GatherTap {
  int64_t shift[3];
  int64_t weight;  // where its weight lies, counted from the weight of (row, channel)
};

/// dst[n, g, row, dst_start + p * dst_stride] = bias[g, row] + sum over channel, tap of
///     weights[g * group_step + row * row_step + channel * channel_step + tap.weight]
///   * src[n, g, channel, p * src_stride + tap.shift]        for p in [0, count); src is 0 outside of src_size.
template <class T> struct GatherConvolution {
  int64_t images, groups, rows, channels;  // rows and channels of one group
  Recycled<GatherTap> taps;
  const T* src;
  int64_t src_size[3], src_stride[3];
  const T* weights;
  int64_t group_step, row_step, channel_step;
  const T* bias;  // or null
  T* dst;
  int64_t dst_size[3], dst_start[3], dst_stride[3], count[3];
};

/// T is float or double, here and below.
template <class T> void gather_convolution(const GatherConvolution<T>& g);

/// The same for 3 x 3 neighbours by Winograd's F(4x4, 3x3), with two to three times the direct sum's rounding error; an
/// infinity becomes NaN and reaches its whole tile. False, and nothing done, if the convolution does not suit.
bool winograd_convolution(const GatherConvolution<float>& g);
bool winograd_suits(const GatherConvolution<float>& g);

/// The same for groups of one channel.
template <class T> void depthwise_convolution(const GatherConvolution<T>& g);
/// dw, laid out as the weights, from dy, laid out as dst, of a forward convolution with groups of one channel.
template <class T> void depthwise_weight_gradient(const GatherConvolution<T>& g, const T* dy, T* dw);

}  // namespace twibil::kernels
