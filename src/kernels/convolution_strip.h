// SPDX-License-Identifier: Apache-2.0
// The padded copy of the inputs that a band of output rows reads, laid out so that neighbours in the output read
// neighbours in the strip, whatever padding, stride and dilation. Used by the direct and the depthwise convolution.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "base/recycled.h"
#include "kernels/convolution_gather.h"

namespace twibil::kernels {

/// Element i of a plane, along an axis, is src[i * src_stride + start]. Stride s needs up to s planes per axis.
struct StripPlane {
  std::array<int64_t, 3> start;
  bool operator==(const StripPlane&) const = default;
};
/// A tap reads plane `plane` at output position + offset.
struct StripTap {
  int64_t plane;
  int64_t offset[3];
};
/// A part of the output: where it begins, and its size. Its depth is one plane.
struct Band {
  int64_t image, group, depth, row, column;
  int64_t images, rows, columns;
};

/// strip[image][channel][plane][depth][row][column]: what all bands have in common.
template <class T> struct StripPlan {
  const GatherConvolution<T>& g;
  bool unfolded;  // one plane per tap, all offsets 0: tap and channel are one index
  Recycled<StripPlane> planes;
  Recycled<StripTap> taps;
  int64_t span[3] = {0, 0, 0};    // how far taps reach beyond the output position
  int64_t images, rows, columns;  // of the output in one band; several pictures only where all rows are one band
  int64_t row_extent, column_extent, plane_size, channel_size, image_size;

  /// Bands have so many rows that their strip stays in the L2 cache; a row that is too long is cut at a multiple of
  /// `column_unit`. `image_groups`: into how many bands the pictures are dealt at least.
  StripPlan(const GatherConvolution<T>& g, bool unfold, int64_t column_unit, int64_t image_groups);

  int64_t offset_of(const StripTap& tap) const {
    return tap.plane * plane_size + (tap.offset[0] * row_extent + tap.offset[1]) * column_extent + tap.offset[2];
  }
  int64_t band_count() const;  // of all groups
  Band band(int64_t i) const;
  /// Copies the inputs of picture `image` of the band.
  void fill(const Band& band, int64_t image, T* strip) const;
};

}  // namespace twibil::kernels
