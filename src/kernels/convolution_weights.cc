// SPDX-License-Identifier: Apache-2.0
// dw[o, c, t] = sum over pixels p of dy[o, p] * x[c, p * stride + t * dilation - pad]: a product of output channels x
// (tap, channel), with depth running over the pixels of all pictures. A band of pixels takes three steps:
//   1. dy is packed into blocks [output channel][16 pixels];
//   2. x goes with its padding into a strip [depth][row][column][channel]: its row for one pixel holds all channels of
//      the kernel's row of taps side by side (dilation 1), so the next pixel's row begins a few channels further;
//   3. register tiles of output channels x (tap, channel) add the band to partial sums.
// The bands are dealt to a fixed number of partial sums, which are added in order at the end.
#include "kernels/convolution_weights.h"

#include <algorithm>
#include <vector>

#include "base/recycled.h"
#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/gemm.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kPanelBytes = 96 << 10;  // what a tile reads of the strip comes from near caches
constexpr int64_t kMostParts = 8;
constexpr int64_t kPartBytes = int64_t{64} << 20;  // of all partial sums together
constexpr int64_t kThreadWork = int64_t{1} << 19;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T> struct Plan {
  const ConvolutionShape& s;
  const GemmTiles<T>& tiles;
  int64_t rows, channels;                   // output and input channels of one group
  bool row_of_taps;                         // the taps of a kernel row lie side by side in the strip
  int64_t width;                            // columns of one product: channels, times the kernel's width if they do
  int64_t vectors;                          // width of its tiles
  int64_t images, band_rows, band_columns;  // one band
  int64_t row_extent, column_extent;        // of its strip
  int64_t products() const { return s.kernel[0] * s.kernel[1] * (row_of_taps ? 1 : s.kernel[2]); }
  int64_t size() const { return products() * rows * width; }  // of one group's sums, [product][row][width]
};

/// Cycles of a tile's step in depth: two multiply-adds or two loads per cycle, four cycles until a sum is ready again.
double step_cycles(int64_t rows, int64_t vectors) {
  const double multiply = static_cast<double>(rows * vectors) / 2;
  const double load = static_cast<double>(rows + 2 * vectors) / 2;
  return std::max({multiply, load, 4.0});
}

template <class T> int64_t best_vectors(const GemmTiles<T>& tiles, int64_t rows, int64_t width) {
  const int64_t total = ceil_div(width, tiles.lanes);
  int64_t best = 1;
  double least = 1e300;
  for (int64_t v = 1; v <= tiles.max_vectors; ++v) {
    const EvenSplit split(rows, tiles.max_rows[v]);
    const double cycles = static_cast<double>(split.pieces * (total / v)) * step_cycles(split.size, v) +
                          (total % v ? static_cast<double>(split.pieces) * step_cycles(split.size, total % v) : 0.0);
    if (cycles < least) least = cycles, best = v;
  }
  return best;
}

template <class T> Plan<T> make_plan(const ConvolutionShape& s) {
  Plan<T> p{.s = s, .tiles = gemm_tiles<T>(), .rows = s.out_channels / s.groups, .channels = s.in_channels / s.groups};
  p.row_of_taps = s.dilation[2] == 1;
  p.width = p.channels * (p.row_of_taps ? s.kernel[2] : 1);
  p.vectors = best_vectors(p.tiles, p.rows, p.width);
  // A pixel brings so many new bytes to a tile; as many pixels as the L1 cache holds are one band.
  const int64_t pixel = std::min<int64_t>(p.vectors * p.tiles.lanes, s.stride[2] * p.channels);
  const int64_t pixels = std::max<int64_t>(4 * kGemmDepth, kPanelBytes / static_cast<int64_t>(sizeof(T)) / pixel);
  p.band_columns = std::min(s.out[2], pixels);
  p.band_rows = std::clamp<int64_t>(pixels / p.band_columns, 1, s.out[1]);
  p.images = p.band_rows == s.out[1] && s.out[0] == 1
                 ? std::clamp<int64_t>(pixels / (p.band_columns * p.band_rows), 1, s.batch)
                 : 1;
  p.images = ceil_div(s.batch, ceil_div(s.batch, p.images));  // bands of equal size, for threads to share
  p.row_extent = (p.band_rows - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  p.column_extent = (p.band_columns - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
  return p;
}

/// One band of pixels: `images` pictures from `image` on, one depth, some rows and columns.
struct Band {
  int64_t image, images, depth, row, rows, column, columns;
};

/// strip[image][kernel depth][row][column][channel] of one group.
template <class T> void fill_strip(const Plan<T>& p, const Band& band, int64_t group, const T* x, T* strip) {
  const ConvolutionShape& s = p.s;
  const int64_t plane = s.in[0] * s.in[1] * s.in[2];
  const int64_t rows = (band.rows - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  const int64_t columns = (band.columns - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
  const int64_t column0 = band.column * s.stride[2] - s.pad[2];
  const int64_t first = std::clamp<int64_t>(-column0, 0, columns);
  const int64_t last = std::clamp<int64_t>(s.in[2] - column0, first, columns);
  for (int64_t image = 0; image < band.images; ++image) {
    const T* from = x + ((band.image + image) * s.in_channels + group * p.channels) * plane;
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
      const int64_t z = band.depth * s.stride[0] + kd * s.dilation[0] - s.pad[0];
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t y = band.row * s.stride[1] + r - s.pad[1];
        T* to = strip + ((image * s.kernel[0] + kd) * p.row_extent + r) * p.column_extent * p.channels;
        if (z < 0 || z >= s.in[0] || y < 0 || y >= s.in[1]) {
          std::fill_n(to, columns * p.channels, T{});
          continue;
        }
        std::fill_n(to, first * p.channels, T{});
        p.tiles.transpose(from + (z * s.in[1] + y) * s.in[2] + column0 + first, plane, p.channels, last - first,
                          to + first * p.channels, p.channels);
        std::fill(to + last * p.channels, to + columns * p.channels, T{});
      }
    }
  }
}

/// dy of a band as blocks [row of the product][16 pixels], whole ones of all rows first; and where their x begins.
template <class T>
void pack_dy(const Plan<T>& p, const Band& band, int64_t group, const T* dy, T* to, Recycled<int64_t>& offsets) {
  const ConvolutionShape& s = p.s;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2];
  const int64_t whole = band.columns / kGemmDepth, rest = band.columns % kGemmDepth;
  offsets.clear();
  const auto pack = [&](int64_t image, int64_t row, int64_t column, int64_t n) {
    const T* from = dy + ((band.image + image) * s.out_channels + group * p.rows) * plane +
                    (band.depth * s.out[1] + band.row + row) * s.out[2] + band.column + column;
    if (n == kGemmDepth) {  // a copy of fixed size is a few instructions
      for (int64_t m = 0; m < p.rows; ++m, to += kGemmDepth) std::copy_n(from + m * plane, kGemmDepth, to);
    } else {
      for (int64_t m = 0; m < p.rows; ++m, to += kGemmDepth) {
        for (int64_t j = 0; j < n; ++j) to[j] = from[m * plane + j];
      }
    }
    offsets.push_back(
        ((image * s.kernel[0] * p.row_extent + row * s.stride[1]) * p.column_extent + column * s.stride[2]) *
        p.channels);
  };
  for (int64_t image = 0; image < band.images; ++image) {
    for (int64_t row = 0; row < band.rows; ++row) {
      for (int64_t i = 0; i < whole; ++i) pack(image, row, i * kGemmDepth, kGemmDepth);
    }
  }
  for (int64_t image = 0; rest && image < band.images; ++image) {
    for (int64_t row = 0; row < band.rows; ++row) pack(image, row, whole * kGemmDepth, rest);
  }
}

template <class T>
void add_band(const Plan<T>& p, const Band& band, const T* strip, const T* dy, const Recycled<int64_t>& offsets,
              bool first, bool alone, T* sums) {
  const ConvolutionShape& s = p.s;
  const int64_t strips = band.images * band.rows;
  const int64_t tile_width = p.vectors * p.tiles.lanes;
  GemmTile<T> shared{.a = nullptr,
                     .a_step = p.rows * kGemmDepth,
                     .b = nullptr,
                     .b_offsets = offsets.data(),
                     .b_step = s.stride[2] * p.channels,
                     .blocks = strips * (band.columns / kGemmDepth),
                     .rest_blocks = band.columns % kGemmDepth ? strips : 0,
                     .rest_depth = band.columns % kGemmDepth,
                     .c = nullptr,
                     .c_step = p.width,
                     .rows = 0,
                     .columns = 0,
                     .accumulate = !first};
  // A band that is the only one is shared by its tiles, of which each has sums of its own.
  const int64_t across = ceil_div(p.width, tile_width);
  const int64_t work = p.rows * tile_width * strips * band.columns;
  const int64_t grain = alone ? std::max<int64_t>(1, kThreadWork / std::max<int64_t>(1, work)) : p.products() * across;
  parallel_for(p.products() * across, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t product = t / across, n = t % across * tile_width;
      GemmTile<T> tile = shared;
      const int64_t kw = p.row_of_taps ? 0 : product % s.kernel[2];
      const int64_t kh = product / (p.row_of_taps ? 1 : s.kernel[2]) % s.kernel[1];
      const int64_t kd = product / (p.row_of_taps ? 1 : s.kernel[2]) / s.kernel[1];
      const T* b =
          strip + ((kd * p.row_extent + kh * s.dilation[1]) * p.column_extent + kw * s.dilation[2]) * p.channels;
      tile.columns = std::min(tile_width, p.width - n);
      const int64_t vectors = ceil_div(tile.columns, p.tiles.lanes);
      const EvenSplit split(p.rows, p.tiles.max_rows[vectors]);
      tile.b = b + n;
      for (int64_t i = 0; i < split.pieces; ++i) {
        const int64_t m = split.begin(i);
        tile.rows = split.begin(i + 1) - m;
        tile.a = dy + m * kGemmDepth;
        tile.c = sums + (product * p.rows + m) * p.width + n;
        p.tiles.tile[vectors][tile.rows](tile);
      }
    }
  });
}

/// Adds the partial sums in order and puts them in the weights' place: dw[row][channel][kernel].
template <class T> void finish(const Plan<T>& p, const T* sums, int64_t parts, int64_t part_step, T* dw) {
  const ConvolutionShape& s = p.s;
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t row_taps = p.row_of_taps ? s.kernel[2] : 1;
  parallel_for(p.rows, std::max<int64_t>(1, kThreadWork / 4 / std::max<int64_t>(1, p.channels * taps)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t m = begin; m < end; ++m) {
                   for (int64_t product = 0; product < p.products(); ++product) {
                     const T* from = sums + (product * p.rows + m) * p.width;
                     for (int64_t tap = 0; tap < row_taps; ++tap, from += p.channels) {
                       T* to = dw + m * p.channels * taps + product * row_taps + tap;
                       for (int64_t c = 0; c < p.channels; ++c) {
                         T sum = from[c];
                         for (int64_t part = 1; part < parts; ++part) sum += from[part * part_step + c];
                         to[c * taps] = sum;
                       }
                     }
                   }
                 }
               });
}

}  // namespace

template <class T> void convolution_weight_gradient(const ConvolutionShape& s, const T* x, const T* dy, T* dw) {
  const int64_t taps = checked_product(s.kernel), pixels = checked_product(s.out);
  const int64_t all = checked_mul(checked_mul(s.out_channels, s.in_channels / s.groups), taps);
  if (all == 0) return;
  if (s.batch == 0 || pixels == 0) {
    std::fill_n(dw, all, T{});
    return;
  }
  const Plan<T> p = make_plan<T>(s);
  const int64_t image_bands = ceil_div(s.batch, p.images), row_bands = ceil_div(s.out[1], p.band_rows);
  const int64_t column_bands = ceil_div(s.out[2], p.band_columns);
  const int64_t bands = image_bands * s.out[0] * row_bands * column_bands;
  const int64_t bytes = checked_mul(p.size(), static_cast<int64_t>(sizeof(T)));
  int64_t parts = std::clamp<int64_t>(kPartBytes / bytes / s.groups, 1, std::min(kMostParts, bands));
  if (s.groups >= kMostParts) parts = 1;  // groups are work enough for all threads
  const int64_t work = checked_mul(checked_mul(s.batch, pixels), p.rows * p.channels * taps);

  ScratchFrame frame;
  T* sums = frame.take<T>(checked_mul(parts * s.groups, p.size()));
  const int64_t jobs = parts * s.groups;
  const int64_t grain = std::max<int64_t>(1, kThreadWork / std::max<int64_t>(1, work / parts));
  parallel_for(jobs, grain, [&](int64_t begin, int64_t end) {
    ScratchFrame own;
    T* strip = own.take<T>(p.images * s.kernel[0] * p.row_extent * p.column_extent * p.channels);
    T* packed = own.take<T>(p.images * p.band_rows * (ceil_div(p.band_columns, kGemmDepth) * p.rows * kGemmDepth) +
                            kGemmMaxRows * kGemmDepth);
    Recycled<int64_t> offsets;
    for (int64_t job = begin; job < end; ++job) {
      const int64_t group = job / parts, part = job % parts;
      const int64_t from = bands * part / parts, to = bands * (part + 1) / parts;
      for (int64_t i = from; i < to; ++i) {
        Band band;
        band.column = i % column_bands * p.band_columns;
        band.row = i / column_bands % row_bands * p.band_rows;
        band.depth = i / (column_bands * row_bands) % s.out[0];
        band.image = i / (column_bands * row_bands * s.out[0]) * p.images;
        band.columns = std::min(p.band_columns, s.out[2] - band.column);
        band.rows = std::min(p.band_rows, s.out[1] - band.row);
        band.images = std::min(p.images, s.batch - band.image);
        fill_strip(p, band, group, x, strip);
        pack_dy(p, band, group, dy, packed, offsets);
        add_band(p, band, strip, packed, offsets, i == from, jobs == 1, sums + job * p.size());
      }
    }
  });
  for (int64_t group = 0; group < s.groups; ++group) {
    finish(p, sums + group * parts * p.size(), parts, p.size(), dw + group * p.rows * p.channels * taps);
  }
}
template void convolution_weight_gradient(const ConvolutionShape&, const float*, const float*, float*);
template void convolution_weight_gradient(const ConvolutionShape&, const double*, const double*, double*);

}  // namespace twibil::kernels
