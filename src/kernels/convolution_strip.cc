// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution_strip.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/gemm.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kStripBytes = 256 << 10;  // strip and weights share the L2 cache

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

/// to[i] = row[start + i * stride] for i < n, zero where the row of `size` elements does not reach.
template <class T> void copy_strided_row(const T* row, int64_t size, int64_t start, int64_t stride, int64_t n, T* to) {
  const int64_t first = std::clamp<int64_t>(ceil_div(std::max<int64_t>(0, -start), stride), 0, n);
  const int64_t last = std::clamp<int64_t>(ceil_div(std::max<int64_t>(0, size - start), stride), first, n);
  std::fill_n(to, first, T{});
  for (int64_t i = first; i < last; ++i) to[i] = row[start + i * stride];
  std::fill(to + last, to + n, T{});
}

/// Finds the planes, and where in them each tap reads.
template <class T> void place_taps(StripPlan<T>& p) {
  for (const GatherTap& tap : p.g.taps) {
    StripTap t{};
    StripPlane plane;
    for (size_t axis = 0; axis < 3; ++axis) {
      t.offset[axis] = p.unfolded ? 0 : floor_div(tap.shift[axis], p.g.src_stride[axis]);
      plane.start[axis] = tap.shift[axis] - t.offset[axis] * p.g.src_stride[axis];
    }
    t.plane = std::find(p.planes.begin(), p.planes.end(), plane) - p.planes.begin();
    if (p.unfolded) t.plane = static_cast<int64_t>(p.planes.size());
    if (t.plane == static_cast<int64_t>(p.planes.size())) p.planes.push_back(plane);
    p.taps.push_back(t);
  }
  // The smallest offset becomes 0, and the planes start there.
  for (size_t axis = 0; axis < 3 && !p.taps.empty(); ++axis) {
    int64_t least = p.taps[0].offset[axis], most = least;
    for (const StripTap& t : p.taps) least = std::min(least, t.offset[axis]), most = std::max(most, t.offset[axis]);
    for (StripTap& t : p.taps) t.offset[axis] -= least;
    for (StripPlane& plane : p.planes) plane.start[axis] += least * p.g.src_stride[axis];
    p.span[axis] = most - least;
  }
}

}  // namespace

template <class T>
StripPlan<T>::StripPlan(const GatherConvolution<T>& gather, bool unfold, int64_t column_unit, int64_t image_groups)
    : g(gather), unfolded(unfold && !gather.taps.empty()) {
  place_taps(*this);
  constexpr int64_t kStrip = kStripBytes / static_cast<int64_t>(sizeof(T));
  const int64_t plane_count = static_cast<int64_t>(planes.size());
  const int64_t budget = std::max<int64_t>(1, kStrip / std::max<int64_t>(1, g.channels * plane_count * (span[0] + 1)));
  columns = g.count[2];
  const int64_t most_columns = std::max(column_unit, budget / (span[1] + 1) / column_unit * column_unit);
  if (columns > most_columns) {
    columns = most_columns;
    rows = 1;
  } else {
    rows = std::clamp<int64_t>(budget / (columns + span[2]) - span[1], 1, g.count[1]);
    rows = EvenSplit(g.count[1], rows).size;
  }
  row_extent = rows + span[1];
  column_extent = columns + span[2];
  plane_size = (span[0] + 1) * row_extent * column_extent;
  channel_size = plane_size * plane_count;
  // Channels a multiple of 1 KiB apart would crowd into few sets of the L1 cache.
  if (!unfolded && channel_size * static_cast<int64_t>(sizeof(T)) % 1024 == 0) channel_size += kGemmDepth;
  image_size = checked_mul(g.channels, channel_size);
  // Small pictures share the way of the weights through the caches.
  images = 1;
  if (rows == g.count[1] && columns == g.count[2] && g.count[0] == 1) {
    images =
        std::clamp<int64_t>(std::min(kStrip / std::max<int64_t>(1, image_size), g.images / image_groups), 1, g.images);
  }
}

template <class T> int64_t StripPlan<T>::band_count() const {
  const int64_t in_image = ceil_div(g.count[1], rows) * ceil_div(g.count[2], columns);
  return checked_mul(ceil_div(g.images, images) * g.groups, checked_mul(g.count[0], in_image));
}

template <class T> Band StripPlan<T>::band(int64_t i) const {
  const auto next = [&i](int64_t count) {
    const int64_t at = i % count;
    i /= count;
    return at;
  };
  Band b;
  b.column = next(ceil_div(g.count[2], columns)) * columns;
  b.row = next(ceil_div(g.count[1], rows)) * rows;
  b.depth = next(g.count[0]);
  b.group = next(g.groups);
  b.image = i * images;
  b.images = std::min(images, g.images - b.image);
  b.rows = std::min(rows, g.count[1] - b.row);
  b.columns = std::min(columns, g.count[2] - b.column);
  return b;
}

template <class T> void StripPlan<T>::fill(const Band& band, int64_t image_in_band, T* strip) const {
  const int64_t src_rows = g.src_size[1], src_columns = g.src_size[2];
  const int64_t src_plane = g.src_size[0] * src_rows * src_columns;
  const auto copy_row = gemm_tiles<T>().copy_row;
  const T* image = g.src + ((band.image + image_in_band) * g.groups + band.group) * g.channels * src_plane;
  for (int64_t c = 0; c < g.channels; ++c) {
    T* to = strip + c * channel_size;
    for (const StripPlane& plane : planes) {
      for (int64_t d = 0; d <= span[0]; ++d) {
        const int64_t z = (band.depth + d) * g.src_stride[0] + plane.start[0];
        for (int64_t r = 0; r < band.rows + span[1]; ++r) {
          const int64_t y = (band.row + r) * g.src_stride[1] + plane.start[1];
          T* line = to + (d * row_extent + r) * column_extent;
          const int64_t n = band.columns + span[2], start = band.column * g.src_stride[2] + plane.start[2];
          if (z < 0 || z >= g.src_size[0] || y < 0 || y >= src_rows) {
            std::fill_n(line, n, T{});
            continue;
          }
          const T* row = image + c * src_plane + (z * src_rows + y) * src_columns;
          if (g.src_stride[2] == 1) copy_row(row, src_columns, start, n, line);
          else copy_strided_row(row, src_columns, start, g.src_stride[2], n, line);
        }
      }
      to += plane_size;
    }
  }
}

template struct StripPlan<float>;
template struct StripPlan<double>;

}  // namespace twibil::kernels
