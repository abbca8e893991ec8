// SPDX-License-Identifier: Apache-2.0
// Convolutions whose groups have one channel: too little for a matrix product, so each output row is a sum of shifted,
// weighted input rows, and each weight's gradient the product of an output plane with a shifted input plane.
#include <algorithm>

#include "base/checked.h"
#include "base/recycled.h"
#include "base/parallel.h"
#include "kernels/convolution_gather.h"
#include "kernels/convolution_strip.h"
#include "kernels/gemm.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kThreadWork = int64_t{1} << 18;  // fewer multiply-adds stay on one thread

template <class T> Recycled<int64_t> tap_offsets(const StripPlan<T>& strip) {
  Recycled<int64_t> offsets;
  for (const StripTap& tap : strip.taps) offsets.push_back(strip.offset_of(tap));
  return offsets;
}

template <class T> int64_t grain_of(const StripPlan<T>& strip) {
  const auto& g = strip.g;
  const int64_t work = strip.rows * strip.columns * g.rows * static_cast<int64_t>(g.taps.size());
  return std::max<int64_t>(1, kThreadWork / std::max<int64_t>(1, work));
}

/// The first element of output row `row` of a band, in the plane of (image, group, output row).
template <class T>
int64_t place(const GatherConvolution<T>& g, const Band& band, int64_t image, int64_t m, int64_t row) {
  const int64_t plane = ((band.image + image) * g.groups + band.group) * g.rows + m;
  const int64_t depth = g.dst_start[0] + band.depth * g.dst_stride[0];
  const int64_t line = g.dst_start[1] + (band.row + row) * g.dst_stride[1];
  return ((plane * g.dst_size[0] + depth) * g.dst_size[1] + line) * g.dst_size[2] + g.dst_start[2] +
         band.column * g.dst_stride[2];
}

}  // namespace

template <class T> void depthwise_convolution(const GatherConvolution<T>& g) {
  if (g.images == 0 || g.rows == 0 || checked_product(g.count) == 0) return;
  const GemmTiles<T>& tiles = gemm_tiles<T>();
  const StripPlan<T> strip(g, false, 2 * tiles.lanes, 1);
  const Recycled<int64_t> offsets = tap_offsets(strip);
  const int64_t taps = static_cast<int64_t>(g.taps.size()), step = g.dst_stride[2];
  parallel_for(strip.band_count(), grain_of(strip), [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    T* inputs = frame.take<T>(strip.image_size);
    T* weights = frame.take<T>(taps);
    T* buffer = frame.take<T>(strip.columns);
    for (int64_t i = begin; i < end; ++i) {
      const Band band = strip.band(i);
      for (int64_t image = 0; image < band.images; ++image) {
        strip.fill(band, image, inputs);
        for (int64_t m = 0; m < g.rows; ++m) {
          const T* from = g.weights + band.group * g.group_step + m * g.row_step;
          for (int64_t t = 0; t < taps; ++t) weights[t] = from[g.taps[static_cast<size_t>(t)].weight];
          const T bias = g.bias ? g.bias[band.group * g.rows + m] : T{};
          for (int64_t row = 0; row < band.rows; ++row) {
            T* to = g.dst + place(g, band, image, m, row);
            T* line = step == 1 ? to : buffer;
            tiles.stencil(inputs + row * strip.column_extent, offsets.data(), weights, taps, bias, band.columns, line);
            if (step != 1)
              for (int64_t j = 0; j < band.columns; ++j) to[j * step] = line[j];
          }
        }
      }
    }
  });
}

template <class T> void depthwise_weight_gradient(const GatherConvolution<T>& g, const T* dy, T* dw) {
  const int64_t taps = static_cast<int64_t>(g.taps.size());
  std::fill_n(dw, g.groups * g.group_step, T{});
  if (g.images == 0 || g.rows == 0 || checked_product(g.count) == 0) return;
  const GemmTiles<T>& tiles = gemm_tiles<T>();
  const StripPlan<T> strip(g, false, 2 * tiles.lanes, 1);
  const Recycled<int64_t> offsets = tap_offsets(strip);
  // Bands are ordered by picture, group, place: each group adds its own in that order, on one thread.
  const int64_t image_blocks = (g.images + strip.images - 1) / strip.images;
  const int64_t places = strip.band_count() / (image_blocks * g.groups), group_bands = image_blocks * places;
  parallel_for(g.groups, std::max<int64_t>(1, grain_of(strip) / group_bands), [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    T* inputs = frame.take<T>(strip.image_size);
    for (int64_t i = begin * group_bands; i < end * group_bands; ++i) {
      const int64_t group = i / group_bands, block = i % group_bands / places;
      const Band band = strip.band((block * g.groups + group) * places + i % places);
      for (int64_t image = 0; image < band.images; ++image) {
        strip.fill(band, image, inputs);
        for (int64_t m = 0; m < g.rows; ++m) {
          tiles.correlate(dy + place(g, band, image, m, 0), g.dst_size[2], inputs, strip.column_extent, offsets.data(),
                          taps, band.rows, band.columns, dw + band.group * g.group_step + m * g.row_step);
        }
      }
    }
  });
}

template void depthwise_convolution(const GatherConvolution<float>&);
template void depthwise_convolution(const GatherConvolution<double>&);
template void depthwise_weight_gradient(const GatherConvolution<float>&, const float*, float*);
template void depthwise_weight_gradient(const GatherConvolution<double>&, const double*, double*);

}  // namespace twibil::kernels
