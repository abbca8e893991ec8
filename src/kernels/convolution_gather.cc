// SPDX-License-Identifier: Apache-2.0
// Direct convolution. A band of output rows takes three steps:
//   1. copy the inputs that it reads, with zeros for the padding, into a strip (convolution_strip.h);
//   2. run register tiles of output channels x output columns over it: a tap is an offset into the strip;
//   3. tiles that fit a row write to their place at once, others go through a small buffer.
// Output columns are vector lanes, so the memory stays N C H W and small channel counts waste nothing.
#include "kernels/convolution_gather.h"

#include <algorithm>

#include "base/recycled.h"
#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/convolution_strip.h"
#include "kernels/gemm.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kWeightBytes = 256 << 10;        // strip and weights share the L2 cache
constexpr int64_t kThreadWork = int64_t{1} << 19;  // fewer multiply-adds stay on one thread
constexpr int64_t kFewestTasks = 8;
constexpr int64_t kUnfoldChannels = 4;  // fewer channels than this do not fill a block of depth

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What all bands have in common.
template <class T> struct Plan {
  const GatherConvolution<T>& g;
  const GemmTiles<T>& tiles;
  StripPlan<T> strip;
  int64_t tap_count;   // that tiles step over: 1 if the strip is unfolded
  int64_t depth;       // rows of B that a tap multiplies: channels, or channels x taps
  int64_t full, rest;  // depth in blocks of kGemmDepth, and what is left
  int64_t depth_step;  // from row to row of B
  int64_t row_pieces;  // a band's output channels are so many tasks
  bool flat;           // tiles run across the ends of rows
  int64_t blocks() const { return full * tap_count + (rest ? tap_count : 0); }
  int64_t band_work() const { return strip.images * strip.rows * strip.columns * g.rows * depth * tap_count; }

  explicit Plan(const GatherConvolution<T>& gather)
      : g(gather), tiles(gemm_tiles<T>()), strip(g, g.channels < kUnfoldChannels, 2 * tiles.lanes, kFewestTasks) {
    const int64_t taps = static_cast<int64_t>(g.taps.size());
    tap_count = strip.unfolded ? 1 : taps;
    depth = strip.unfolded ? g.channels * taps : g.channels;
    full = depth / kGemmDepth;
    rest = depth % kGemmDepth;
    depth_step = strip.unfolded ? strip.plane_size : strip.channel_size;
    row_pieces = band_work() < kThreadWork ? 1
                                           : std::clamp<int64_t>(kFewestTasks / strip.band_count(), 1,
                                                                 ceil_div(g.rows, 4 * tiles.max_rows[2]));
    const int64_t in_rows = strip.rows * ceil_div(strip.columns, tiles.lanes) * tiles.lanes;
    flat = strip.rows > 1 && (strip.rows - 1) * strip.column_extent + strip.columns <= in_rows - tiles.lanes;
  }
};

/// Weights of one group as blocks [rows][kGemmDepth]: full blocks of channels (each with all taps) first.
template <class T> void pack_weights(const Plan<T>& p, int64_t group, T* to) {
  const auto& g = p.g;
  const T* from = g.weights + group * g.group_step;
  const int64_t taps = static_cast<int64_t>(g.taps.size());
  parallel_for(
      g.rows, std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(1, p.depth * p.tap_count)),
      [&](int64_t begin, int64_t end) {
        for (int64_t c0 = 0, block = 0; c0 < p.depth; c0 += kGemmDepth) {
          const int64_t n = std::min<int64_t>(kGemmDepth, p.depth - c0);
          for (int64_t t = 0; t < p.tap_count; ++t, ++block) {
            for (int64_t row = begin; row < end; ++row) {
              T* line = to + (block * g.rows + row) * kGemmDepth;
              const T* w = from + row * g.row_step;
              if (p.strip.unfolded) {
                for (int64_t i = 0; i < n; ++i) {
                  line[i] = w[(c0 + i) / taps * g.channel_step + g.taps[static_cast<size_t>((c0 + i) % taps)].weight];
                }
              } else {
                w += c0 * g.channel_step + g.taps[static_cast<size_t>(t)].weight;
                for (int64_t i = 0; i < n; ++i) line[i] = w[i * g.channel_step];
              }
            }
          }
        }
      });
}

template <class T> Recycled<int64_t> block_offsets(const Plan<T>& p) {
  Recycled<int64_t> offsets;
  for (int64_t c0 = 0; c0 < p.depth; c0 += kGemmDepth) {
    for (int64_t t = 0; t < p.tap_count; ++t) {
      offsets.push_back(c0 * p.depth_step +
                        (p.strip.unfolded ? 0 : p.strip.offset_of(p.strip.taps[static_cast<size_t>(t)])));
    }
  }
  return offsets;
}

/// For a few elements, where a call of memcpy would cost more.
template <class T> void copy_short(const T* from, int64_t n, T* to) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) __builtin_memcpy(to + i, from + i, 4 * sizeof(T));
  for (; i < n; ++i) to[i] = from[i];
}

/// Copies the columns [at, at + n) of a band, counted along the strip, from a tile's buffer to their rows.
template <class T>
void scatter(const Plan<T>& p, const Band& band, const T* buffer, int64_t width, int64_t rows, int64_t at, int64_t n,
             T* dst) {
  const auto& g = p.g;
  const int64_t plane = g.dst_size[0] * g.dst_size[1] * g.dst_size[2], step = g.dst_stride[2];
  for (int64_t i = 0; i < n;) {
    const int64_t row = (at + i) / p.strip.column_extent, column = (at + i) % p.strip.column_extent;
    if (row >= band.rows) return;
    const int64_t length = std::min(n - i, band.columns - column);
    if (length <= 0) {
      i += p.strip.column_extent - column;
      continue;
    }
    T* to = dst + row * g.dst_stride[1] * g.dst_size[2] + column * step;
    for (int64_t m = 0; m < rows; ++m, to += plane) {
      const T* from = buffer + m * width + i;
      if (step == 1) copy_short(from, length, to);
      else
        for (int64_t j = 0; j < length; ++j) to[j * step] = from[j];
    }
    i += length;
  }
}

/// Pieces [begin, end) of a split of the output's rows that starts at row `first`.
struct Tiles {
  EvenSplit split;
  int64_t first, begin, end;
};

/// Those tiles over the columns [at, end) of the strip.
template <class T>
void run_tiles(const Plan<T>& p, const Band& band, const T* weights, const int64_t* offsets, const T* strip,
               const Tiles& tiles, int64_t at, int64_t end, T* dst) {
  const auto& g = p.g;
  const int lanes = p.tiles.lanes;
  const int64_t plane = g.dst_size[0] * g.dst_size[1] * g.dst_size[2];
  alignas(64) T buffer[kGemmMaxRows * 2 * 64 / sizeof(T)];
  for (; at < end; at += 2 * lanes) {
    const int64_t columns = std::min<int64_t>(2 * lanes, end - at);
    const int vectors = columns > lanes ? 2 : 1;
    const bool in_place = !p.flat && g.dst_stride[2] == 1;
    GemmTile<T> tile{.a = nullptr,
                     .a_step = g.rows * kGemmDepth,
                     .b = strip + at,
                     .b_offsets = offsets,
                     .b_step = p.depth_step,
                     .blocks = p.full * p.tap_count,
                     .rest_blocks = p.rest ? p.tap_count : 0,
                     .rest_depth = p.rest,
                     .c = buffer,
                     .c_step = 2 * lanes,
                     .rows = 0,
                     .columns = columns};
    for (int64_t i = tiles.begin; i < tiles.end; ++i) {
      const int64_t m = tiles.first + tiles.split.begin(i);
      tile.rows = tiles.first + tiles.split.begin(i + 1) - m;
      tile.a = weights + m * kGemmDepth;
      tile.row_bias = g.bias ? g.bias + band.group * g.rows + m : nullptr;
      T* to = dst + m * plane;
      if (in_place) {
        tile.c = to + at / p.strip.column_extent * g.dst_stride[1] * g.dst_size[2] + at % p.strip.column_extent;
        tile.c_step = plane;
      }
      p.tiles.tile[vectors][tile.rows](tile);
      if (!in_place) scatter(p, band, buffer, 2 * lanes, tile.rows, at, columns, to);
    }
  }
}

/// Output rows [row_begin, row_end) of one band.
template <class T>
void run_band(const Plan<T>& p, const Band& band, int64_t row_begin, int64_t row_end, const T* weights,
              const Recycled<int64_t>& offsets) {
  const auto& g = p.g;
  ScratchFrame frame;
  T* strips = frame.take<T>(band.images * p.strip.image_size);
  for (int64_t image = 0; image < band.images; ++image) p.strip.fill(band, image, strips + image * p.strip.image_size);
  const int64_t plane = g.dst_size[0] * g.dst_size[1] * g.dst_size[2];
  const int64_t place =
      ((g.dst_start[0] + band.depth * g.dst_stride[0]) * g.dst_size[1] + g.dst_start[1] + band.row * g.dst_stride[1]) *
          g.dst_size[2] +
      g.dst_start[2] + band.column * g.dst_stride[2];
  // Weights that do not fit beside the strip are taken in turns, each for the whole band.
  const EvenSplit split(row_end - row_begin, p.tiles.max_rows[2]);
  const int64_t tile_bytes = split.size * p.blocks() * kGemmDepth * static_cast<int64_t>(sizeof(T));
  const int64_t turn = std::max<int64_t>(1, kWeightBytes / std::max<int64_t>(1, tile_bytes));
  for (int64_t i = 0; i < split.pieces; i += turn) {
    const Tiles tiles{split, row_begin, i, std::min(split.pieces, i + turn)};
    for (int64_t image = 0; image < band.images; ++image) {
      const T* strip = strips + image * p.strip.image_size;
      T* dst = g.dst + ((band.image + image) * g.groups + band.group) * g.rows * plane + place;
      if (p.flat) {
        run_tiles(p, band, weights, offsets.data(), strip, tiles, 0,
                  (band.rows - 1) * p.strip.column_extent + band.columns, dst);
        continue;
      }
      for (int64_t r = 0; r < band.rows; ++r) {
        run_tiles(p, band, weights, offsets.data(), strip, tiles, r * p.strip.column_extent,
                  r * p.strip.column_extent + band.columns, dst);
      }
    }
  }
}

}  // namespace

template <class T> void gather_convolution(const GatherConvolution<T>& g) {
  const int64_t points = checked_product(g.count);
  if (g.images == 0 || g.rows == 0 || points == 0) return;
  const Plan<T> p(g);
  const Recycled<int64_t> offsets = block_offsets(p);
  const int64_t group_weights = checked_mul(p.blocks() * kGemmDepth, g.rows);
  ScratchFrame frame;
  T* weights = frame.take<T>(checked_mul(group_weights, g.groups) + kGemmMaxRows * kGemmDepth);
  for (int64_t group = 0; group < g.groups; ++group) pack_weights(p, group, weights + group * group_weights);
  const EvenSplit row_split(g.rows, ceil_div(g.rows, p.row_pieces));
  const int64_t tasks = checked_mul(p.strip.band_count(), row_split.pieces);
  const int64_t grain = std::max<int64_t>(1, kThreadWork / std::max<int64_t>(1, p.band_work()));
  parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Band band = p.strip.band(task / row_split.pieces);
      const int64_t piece = task % row_split.pieces;
      run_band(p, band, row_split.begin(piece), row_split.begin(piece + 1), weights + band.group * group_weights,
               offsets);
    }
  });
}
template void gather_convolution(const GatherConvolution<float>&);
template void gather_convolution(const GatherConvolution<double>&);

}  // namespace twibil::kernels
