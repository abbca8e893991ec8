// SPDX-License-Identifier: Apache-2.0
// Direct convolution. A band of output rows takes three steps:
//   1. copy the inputs that it reads, with zeros for the padding, into a strip [channel][plane][depth][row][column].
//      Stride s makes s planes per axis (every s-th element each), so that neighbours in the output read neighbours;
//   2. run register tiles of output channels x output columns over it: a tap is an offset into the strip;
//   3. tiles that fit a row write to their place at once, others go through a small buffer.
// Output columns are vector lanes, so the memory stays N C H W and small channel counts waste nothing.
#include "kernels/convolution_gather.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/gemm.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kStripBytes = 256 << 10;    // strip and weights share the L2 cache
constexpr int64_t kWeightBytes = 256 << 10;
constexpr int64_t kThreadWork = int64_t{1} << 19;  // fewer multiply-adds stay on one thread
constexpr int64_t kUnfoldChannels = 4;        // fewer channels than this do not fill a block of depth

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

/// Element i of a plane, along an axis, is src[i * src_stride + start].
struct Plane {
  std::array<int64_t, 3> start;
  bool operator==(const Plane&) const = default;
};
/// A tap reads plane `plane` at output position + offset.
struct StripTap {
  int64_t plane;
  int64_t offset[3];
};

/// What all bands have in common.
template <class T>
struct Plan {
  const GatherConvolution<T>& g;
  const GemmTiles<T>& tiles;
  std::vector<Plane> planes;
  std::vector<StripTap> taps;
  int64_t span[3] = {0, 0, 0};  // how far taps reach beyond the output position
  bool unfolded = false;        // one plane per tap: depth runs over channel and tap at once
  int64_t depth;                // rows of B that a tap multiplies: channels, or channels x taps
  int64_t full, rest;           // depth in blocks of kGemmDepth, and what is left
  int64_t rows, columns;        // of the output in one band
  int64_t row_extent, column_extent, plane_size, channel_size;  // of its strip
  bool flat;                    // tiles run across the ends of rows
  int64_t blocks() const { return full * tap_count() + (rest ? tap_count() : 0); }
  int64_t tap_count() const { return unfolded ? 1 : static_cast<int64_t>(taps.size()); }
};

template <class T>
void plan_taps(Plan<T>& p) {
  const auto& g = p.g;
  p.unfolded = g.channels < kUnfoldChannels && !g.taps.empty();
  for (const GatherTap& tap : g.taps) {
    StripTap t{};
    Plane plane;
    for (int axis = 0; axis < 3; ++axis) {
      t.offset[axis] = p.unfolded ? 0 : floor_div(tap.shift[axis], g.src_stride[axis]);
      plane.start[axis] = tap.shift[axis] - t.offset[axis] * g.src_stride[axis];
    }
    t.plane = std::find(p.planes.begin(), p.planes.end(), plane) - p.planes.begin();
    if (p.unfolded) t.plane = static_cast<int64_t>(p.planes.size());
    if (t.plane == static_cast<int64_t>(p.planes.size())) p.planes.push_back(plane);
    p.taps.push_back(t);
  }
  // The smallest offset becomes 0, and the planes start there.
  for (int axis = 0; axis < 3 && !p.taps.empty(); ++axis) {
    int64_t least = p.taps[0].offset[axis], most = least;
    for (const StripTap& t : p.taps) least = std::min(least, t.offset[axis]), most = std::max(most, t.offset[axis]);
    for (StripTap& t : p.taps) t.offset[axis] -= least;
    for (Plane& plane : p.planes) plane.start[axis] += least * g.src_stride[axis];
    p.span[axis] = most - least;
  }
  p.depth = p.unfolded ? g.channels * static_cast<int64_t>(g.taps.size()) : g.channels;
  p.full = p.depth / kGemmDepth;
  p.rest = p.depth % kGemmDepth;
}

/// Bands have so many rows that their strip stays in the L2 cache; a row that is too long is cut as well.
template <class T>
void plan_bands(Plan<T>& p) {
  const auto& g = p.g;
  const int64_t lanes = p.tiles.lanes, width = 2 * lanes;
  const int64_t planes = g.channels * static_cast<int64_t>(p.planes.size()) * (p.span[0] + 1);
  const int64_t budget = std::max<int64_t>(1, kStripBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(1, planes));
  p.columns = g.count[2];
  const int64_t most_columns = std::max(2 * width, budget / (p.span[1] + 1) / width * width);
  if (p.columns > most_columns) {
    p.columns = most_columns;
    p.rows = 1;
  } else {
    p.rows = std::clamp<int64_t>(budget / (p.columns + p.span[2]) - p.span[1], 1, g.count[1]);
    p.rows = EvenSplit(g.count[1], p.rows).size;
  }
  p.row_extent = p.rows + p.span[1];
  p.column_extent = p.columns + p.span[2];
  p.flat = p.rows > 1 && (p.rows - 1) * p.column_extent + p.columns <= p.rows * ceil_div(p.columns, lanes) * lanes - lanes;
  p.plane_size = (p.span[0] + 1) * p.row_extent * p.column_extent;
  p.channel_size = p.plane_size * static_cast<int64_t>(p.planes.size());
  // Channels a multiple of 1 KiB apart would crowd into few sets of the L1 cache.
  if (!p.unfolded && p.channel_size * static_cast<int64_t>(sizeof(T)) % 1024 == 0) p.channel_size += kGemmDepth;
}

/// Weights of one group as blocks [rows][kGemmDepth]: full blocks of channels (each with all taps) first.
template <class T>
void pack_weights(const Plan<T>& p, int64_t group, T* to) {
  const auto& g = p.g;
  const T* from = g.weights + group * g.group_step;
  const int64_t taps = static_cast<int64_t>(g.taps.size());
  parallel_for(g.rows, std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(1, p.depth * p.tap_count())),
               [&](int64_t begin, int64_t end) {
    for (int64_t c0 = 0, block = 0; c0 < p.depth; c0 += kGemmDepth) {
      const int64_t n = std::min<int64_t>(kGemmDepth, p.depth - c0);
      for (int64_t t = 0; t < p.tap_count(); ++t, ++block) {
        for (int64_t row = begin; row < end; ++row) {
          T* line = to + (block * g.rows + row) * kGemmDepth;
          const T* w = from + row * g.row_step;
          if (p.unfolded) {
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

template <class T>
std::vector<int64_t> block_offsets(const Plan<T>& p) {
  std::vector<int64_t> offsets;
  if (p.taps.empty()) return offsets;
  for (int64_t c0 = 0; c0 < p.depth; c0 += kGemmDepth) {
    for (int64_t t = 0; t < p.tap_count(); ++t) {
      const StripTap& tap = p.taps[static_cast<size_t>(t)];
      const int64_t step = p.unfolded ? p.plane_size : p.channel_size;
      const int64_t in_plane = (tap.offset[0] * p.row_extent + tap.offset[1]) * p.column_extent + tap.offset[2];
      offsets.push_back(c0 * step + (p.unfolded ? 0 : tap.plane * p.plane_size) + in_plane);
    }
  }
  return offsets;
}

/// to[i] = row[start + i * stride] for i < n, zero where the row of `size` elements does not reach.
template <class T>
void copy_row(const T* row, int64_t size, int64_t start, int64_t stride, int64_t n, T* to) {
  const int64_t first = std::clamp<int64_t>(ceil_div(std::max<int64_t>(0, -start), stride), 0, n);
  const int64_t last = std::clamp<int64_t>(ceil_div(std::max<int64_t>(0, size - start), stride), first, n);
  std::fill_n(to, first, T{});
  if (stride == 1) {
    std::copy_n(row + start + first, last - first, to + first);
  } else {
    for (int64_t i = first; i < last; ++i) to[i] = row[start + i * stride];
  }
  std::fill(to + last, to + n, T{});
}

/// Where a band begins in the output.
struct Band {
  int64_t image, group, depth, row, column;
  int64_t rows, columns;
};

template <class T>
void fill_strip(const Plan<T>& p, const Band& band, T* strip) {
  const auto& g = p.g;
  const int64_t src_rows = g.src_size[1], src_columns = g.src_size[2];
  const int64_t src_plane = g.src_size[0] * src_rows * src_columns;
  const T* image = g.src + (band.image * g.groups + band.group) * g.channels * src_plane;
  for (int64_t c = 0; c < g.channels; ++c) {
    T* to = strip + c * p.channel_size;
    for (const Plane& plane : p.planes) {
      for (int64_t d = 0; d <= p.span[0]; ++d) {
        const int64_t z = (band.depth + d) * g.src_stride[0] + plane.start[0];
        for (int64_t r = 0; r < band.rows + p.span[1]; ++r) {
          const int64_t y = (band.row + r) * g.src_stride[1] + plane.start[1];
          T* line = to + (d * p.row_extent + r) * p.column_extent;
          if (z < 0 || z >= g.src_size[0] || y < 0 || y >= src_rows) {
            std::fill_n(line, band.columns + p.span[2], T{});
          } else {
            copy_row(image + c * src_plane + (z * src_rows + y) * src_columns, src_columns,
                     band.column * g.src_stride[2] + plane.start[2], g.src_stride[2], band.columns + p.span[2], line);
          }
        }
      }
      to += p.plane_size;
    }
  }
}

/// Copies the columns [at, at + n) of a band, counted along the strip, from a tile's buffer to their rows.
template <class T>
void scatter(const Plan<T>& p, const Band& band, const T* buffer, int64_t width, int64_t rows, int64_t at, int64_t n,
             T* dst) {
  const auto& g = p.g;
  const int64_t plane = g.dst_size[0] * g.dst_size[1] * g.dst_size[2], step = g.dst_stride[2];
  for (int64_t i = 0; i < n;) {
    const int64_t row = (at + i) / p.column_extent, column = (at + i) % p.column_extent;
    if (row >= band.rows) return;
    const int64_t length = std::min(n - i, band.columns - column);
    if (length <= 0) {
      i += p.column_extent - column;
      continue;
    }
    T* to = dst + row * g.dst_stride[1] * g.dst_size[2] + column * step;
    for (int64_t m = 0; m < rows; ++m, to += plane) {
      const T* from = buffer + m * width + i;
      if (step == 1) std::copy_n(from, length, to);
      else for (int64_t j = 0; j < length; ++j) to[j * step] = from[j];
    }
    i += length;
  }
}

/// All tiles of output rows [m0, m1) over the columns [at, end) of the strip.
template <class T>
void run_tiles(const Plan<T>& p, const Band& band, const T* weights, const int64_t* offsets, const T* strip,
               int64_t tile_begin, int64_t tile_end, const EvenSplit& split, int64_t at, int64_t end, T* dst) {
  const auto& g = p.g;
  const int lanes = p.tiles.lanes;
  const int64_t plane = g.dst_size[0] * g.dst_size[1] * g.dst_size[2];
  alignas(64) T buffer[kGemmMaxRows * 2 * 64 / sizeof(T)];
  for (; at < end; at += 2 * lanes) {
    const int64_t columns = std::min<int64_t>(2 * lanes, end - at);
    const int vectors = columns > lanes ? 2 : 1;
    const bool in_place = !p.flat && g.dst_stride[2] == 1;
    GemmTile<T> tile{.a = nullptr, .a_step = g.rows * kGemmDepth, .b = strip + at, .b_offsets = offsets,
                     .b_step = p.unfolded ? p.plane_size : p.channel_size, .blocks = p.full * p.tap_count(),
                     .rest_blocks = p.rest ? p.tap_count() : 0, .rest_depth = p.rest,
                     .c = buffer, .c_step = 2 * lanes, .rows = 0, .columns = columns};
    for (int64_t i = tile_begin; i < tile_end; ++i) {
      const int64_t m = split.begin(i);
      tile.rows = split.begin(i + 1) - m;
      tile.a = weights + m * kGemmDepth;
      tile.row_bias = g.bias ? g.bias + band.group * g.rows + m : nullptr;
      T* to = dst + m * plane;
      if (in_place) {
        tile.c = to + at / p.column_extent * g.dst_stride[1] * g.dst_size[2] + at % p.column_extent;
        tile.c_step = plane;
      }
      p.tiles.tile[vectors][tile.rows](tile);
      if (!in_place) scatter(p, band, buffer, 2 * lanes, tile.rows, at, columns, to);
    }
  }
}

template <class T>
void run_band(const Plan<T>& p, const Band& band, const T* weights, const std::vector<int64_t>& offsets) {
  const auto& g = p.g;
  ScratchFrame frame;
  T* strip = frame.take<T>(g.channels * p.channel_size);
  fill_strip(p, band, strip);
  const int64_t plane = g.dst_size[0] * g.dst_size[1] * g.dst_size[2];
  T* dst = g.dst + (band.image * g.groups + band.group) * g.rows * plane +
           ((g.dst_start[0] + band.depth * g.dst_stride[0]) * g.dst_size[1] + g.dst_start[1] +
            band.row * g.dst_stride[1]) * g.dst_size[2] + g.dst_start[2] + band.column * g.dst_stride[2];
  // Weights that do not fit beside the strip are taken in turns, each for the whole band.
  const EvenSplit split(g.rows, p.tiles.max_rows[2]);
  const int64_t tile_bytes = split.size * p.blocks() * kGemmDepth * static_cast<int64_t>(sizeof(T));
  const int64_t turn = std::max<int64_t>(1, kWeightBytes / std::max<int64_t>(1, tile_bytes));
  for (int64_t i = 0; i < split.pieces; i += turn) {
    const int64_t end = std::min(split.pieces, i + turn);
    if (p.flat) {
      run_tiles(p, band, weights, offsets.data(), strip, i, end, split, 0,
                (band.rows - 1) * p.column_extent + band.columns, dst);
    } else {
      for (int64_t r = 0; r < band.rows; ++r) {
        run_tiles(p, band, weights, offsets.data(), strip, i, end, split, r * p.column_extent,
                  r * p.column_extent + band.columns, dst);
      }
    }
  }
}

}  // namespace

template <class T>
void gather_convolution(const GatherConvolution<T>& g) {
  const int64_t points = checked_product(g.count);
  if (g.images == 0 || g.rows == 0 || points == 0) return;
  Plan<T> p{g, gemm_tiles<T>()};
  plan_taps(p);
  plan_bands(p);
  const std::vector<int64_t> offsets = block_offsets(p);
  const int64_t row_bands = ceil_div(g.count[1], p.rows), column_bands = ceil_div(g.count[2], p.columns);
  const int64_t bands = checked_mul(g.images * g.count[0], row_bands * column_bands);
  const int64_t group_weights = checked_mul(p.blocks() * kGemmDepth, g.rows);

  ScratchFrame frame;
  T* weights = frame.take<T>(checked_mul(group_weights, g.groups) + kGemmMaxRows * kGemmDepth);
  for (int64_t group = 0; group < g.groups; ++group) pack_weights(p, group, weights + group * group_weights);
  const int64_t band_work = std::max<int64_t>(1, p.rows * p.columns * g.rows * p.depth * p.tap_count());
  parallel_for(bands * g.groups, std::max<int64_t>(1, kThreadWork / band_work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Band band;
      band.column = i % column_bands * p.columns;
      band.row = i / column_bands % row_bands * p.rows;
      band.depth = i / (column_bands * row_bands) % g.count[0];
      band.group = i / (column_bands * row_bands * g.count[0]) % g.groups;
      band.image = i / (column_bands * row_bands * g.count[0] * g.groups);
      band.rows = std::min(p.rows, g.count[1] - band.row);
      band.columns = std::min(p.columns, g.count[2] - band.column);
      run_band(p, band, weights + band.group * group_weights, offsets);
    }
  });
}
template void gather_convolution(const GatherConvolution<float>&);
template void gather_convolution(const GatherConvolution<double>&);

}  // namespace twibil::kernels
