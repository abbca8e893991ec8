// SPDX-License-Identifier: Apache-2.0
// Winograd's F(4x4, 3x3): a tile of 4 x 4 outputs needs 36 products per pair of channels instead of 144.
//   y = A^T [ (G w G^T) * (B^T d B) ] A   with B^T d B over 6 x 6 inputs d, and * element by element
// The transforms are those of winograd_transform.h. Points 0, +-2/3, +-3/2 and infinity: an error of two to three times
// the direct sum's, where the usual +-1, +-2 give five to seven.
//
// A band of tile rows takes four steps, all in the L2 cache:
//   1. inputs go with their padding into a strip of 6 x 6 planes: plane (i, j) holds element (i, j) of every tile, so
//   vector
//      lanes are tiles, whatever the size of the pictures;
//   2. each channel's tiles are transformed: V[36][channel][tile];
//   3. 36 matrix products with the transformed weights, M[36][output channel][tile], by the register tiles of gemm.h;
//   4. each output channel's tiles are transformed back and written.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution_winograd.cc"
#include <algorithm>
#include <array>
#include <optional>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/convolution_gather.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"
#include "kernels/scratch.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/cache_control.h"
#include "kernels/winograd_transform.h"

#ifndef TWIBIL_KERNELS_WINOGRAD_PLAN
#define TWIBIL_KERNELS_WINOGRAD_PLAN
namespace twibil::kernels::winograd_bands {

constexpr int64_t kOut = 4, kIn = 6, kPoints = 36;  // of a tile
constexpr int64_t kPlaneGap = 16;                   // keeps the 36 planes out of each other's cache sets
constexpr int64_t kMostColumns = 512;               // of a picture; wider ones would need bands cut in columns
constexpr int64_t kVBytes = 512 << 10;              // transformed inputs of a band
constexpr int64_t kMBytes = 256 << 10;              // products of a pass
constexpr int64_t kFewestTiles = 32;                // fewer do not pay for the weights' transform
constexpr int64_t kFewestTasks = 4;
constexpr int64_t kStreamBytes = 16 << 20;  // outputs that no cache keeps go past the caches

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What all bands have in common.
struct Plan {
  const GatherConvolution<float>& g;
  const GemmTiles<float>& tiles;
  std::array<int64_t, 9> weight;    // of tap (i, j), from the weight of (row, channel)
  int64_t row_shift, column_shift;  // where the first tap reads
  int64_t tile_rows, tile_columns;  // of a picture
  int64_t images, band_rows;        // of a band, in tile rows; several pictures only if all rows are in it
  int64_t width;                    // tiles of a band, rounded up to whole vectors
  int64_t plane, v_plane;           // sizes of the planes of the strip and of V
  bool stream;                      // outputs are written past the caches
  int64_t bands() const { return ceil_div(g.images, images) * ceil_div(tile_rows, band_rows); }
};

struct Band {
  int64_t image, images, group, row, rows;  // rows of tiles
};

/// How many tile rows make a band of about `wish` tiles, so that few lanes of few vectors are left empty. A band of an
/// odd number of vectors needs narrow register tiles as well.
inline int64_t best_band_rows(int64_t tile_rows, int64_t tile_columns, int64_t wish, int64_t lanes) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t rows = std::clamp<int64_t>(wish / tile_columns, 1, tile_rows); rows >= 1; --rows) {
    const int64_t vectors = ceil_div(rows * tile_columns, lanes);
    const int64_t cost = ceil_div(tile_rows, rows) * (2 * vectors + vectors % 2);
    if (cost < least) least = cost, best = rows;
  }
  return best;
}

/// Nothing if the convolution is not one of 3 x 3 neighbours, or too small.
inline std::optional<Plan> make_plan(const GatherConvolution<float>& g) {
  if (g.taps.size() != 9 || g.src_size[0] != 1 || g.dst_size[0] != 1 || g.count[2] > kMostColumns) return {};
  if (g.channels < 8 || g.rows < 8 || g.count[1] < kOut || g.count[2] < kOut) return {};
  for (int axis = 0; axis < 3; ++axis) {
    if (g.src_stride[axis] != 1 || g.dst_stride[axis] != 1) return {};
  }
  Plan p{.g = g, .tiles = gemm_tiles<float>()};
  p.row_shift = p.column_shift = INT64_MAX;
  for (const GatherTap& tap : g.taps) {
    if (tap.shift[0] != 0) return {};
    p.row_shift = std::min(p.row_shift, tap.shift[1]);
    p.column_shift = std::min(p.column_shift, tap.shift[2]);
  }
  p.weight.fill(-1);
  for (const GatherTap& tap : g.taps) {
    const int64_t i = tap.shift[1] - p.row_shift, j = tap.shift[2] - p.column_shift;
    if (i > 2 || j > 2) return {};
    p.weight[static_cast<size_t>(3 * i + j)] = tap.weight;
  }
  if (std::find(p.weight.begin(), p.weight.end(), -1) != p.weight.end()) return {};

  p.tile_rows = ceil_div(g.count[1], kOut);
  p.tile_columns = ceil_div(g.count[2], kOut);
  if (g.images * p.tile_rows * p.tile_columns < kFewestTiles) return {};
  const int64_t lanes = p.tiles.lanes;
  const int64_t wish = std::clamp<int64_t>(kVBytes / (kPoints * g.channels * 4), 32, 64);
  p.band_rows = best_band_rows(p.tile_rows, p.tile_columns, wish, lanes);
  p.images = 1;
  if (p.tile_rows * p.tile_columns < wish) {
    p.band_rows = p.tile_rows;
    p.images =
        std::clamp<int64_t>(std::min(wish / (p.tile_rows * p.tile_columns), g.images / kFewestTasks), 1, g.images);
  }
  const int64_t tiles = p.images * p.band_rows * p.tile_columns;
  p.width = ceil_div(tiles, lanes) * lanes;
  p.plane = p.width + 2 * lanes;
  p.v_plane = g.channels * p.width + kPlaneGap;
  p.stream = g.images * g.groups * g.rows * g.dst_size[1] * g.dst_size[2] * 4 > kStreamBytes;
  if (p.bands() * g.groups < 2) return {};
  return p;
}

}  // namespace twibil::kernels::winograd_bands
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace winograd_bands;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));

using Form43 = winograd::Form<4, 3>;

HWY_INLINE Vector constant(float x) { return hn::Set(Tag(), x); }

/// Weights of rows [begin, end) as U[36][channel / 16][row][16], the layout of a tile's A.
void transform_weights(const Plan& p, int64_t group, int64_t begin, int64_t end, float* u, int64_t u_plane) {
  const Tag d;
  const auto& g = p.g;
  for (int64_t row = begin; row < end; ++row) {
    const float* from = g.weights + group * g.group_step + row * g.row_step;
    for (int64_t c0 = 0; c0 < g.channels; c0 += kGemmDepth) {
      HWY_ALIGN float w[9][kGemmDepth] = {};
      const int64_t n = std::min<int64_t>(kGemmDepth, g.channels - c0);
      for (size_t t = 0; t < 9; ++t) {
        for (int64_t i = 0; i < n; ++i) w[t][i] = from[(c0 + i) * g.channel_step + p.weight[t]];
      }
      float* to = u + (c0 * g.rows + row * kGemmDepth);
      for (int64_t lane = 0; lane < kGemmDepth; lane += kLanes) {
        Vector columns[6][3];
        for (int j = 0; j < 3; ++j) {
          const Vector in[3] = {hn::Load(d, w[j] + lane), hn::Load(d, w[3 + j] + lane), hn::Load(d, w[6 + j] + lane)};
          Vector out[6];
          winograd_vectors::transform_weight<Form43>(in, out);
          for (int i = 0; i < 6; ++i) columns[i][j] = out[i];
        }
        for (int i = 0; i < 6; ++i) {
          Vector out[6];
          winograd_vectors::transform_weight<Form43>(columns[i], out);
          for (int j = 0; j < 6; ++j) hn::StoreU(out[j], d, to + (6 * i + j) * u_plane + lane);
        }
      }
    }
  }
}

/// Asks for the inputs of a channel while the one before is at work: each lies in pages of its own, which no hardware
/// prefetcher foresees.
void prefetch_channel(const Plan& p, const Band& band, int64_t channel) {
  const auto& g = p.g;
  const float* from =
      g.src + ((band.image * g.groups + band.group) * g.channels + channel) * g.src_size[1] * g.src_size[2];
  const int64_t first = std::max<int64_t>(0, kOut * band.row + p.row_shift);
  const int64_t last = std::min(g.src_size[1], kOut * (band.row + band.rows) + 2 + p.row_shift);
  for (int64_t i = first * g.src_size[2]; i < last * g.src_size[2]; i += 16) __builtin_prefetch(from + i);
}

/// Step 1 for one channel: strip[i][j][tile]. Row r of the inputs is row r % 4 of a tile, and row 4 or 5 of the tile
/// above.
void fill_strip(const Plan& p, const Band& band, int64_t channel, float* line, float* strip) {
  const Tag d;
  const auto& g = p.g;
  const int64_t columns = kOut * p.tile_columns + 2, part = p.tile_columns + 1 + 2 * kLanes;
  float* parts = line + kOut * part;  // the line's columns by their remainder modulo 4
  for (int64_t image = 0; image < band.images; ++image) {
    const float* from =
        g.src + (((band.image + image) * g.groups + band.group) * g.channels + channel) * g.src_size[1] * g.src_size[2];
    float* tiles = strip + image * p.band_rows * p.tile_columns;
    for (int64_t r = 0; r < kOut * band.rows + 2; ++r) {
      const int64_t y = kOut * band.row + r + p.row_shift;
      if (y < 0 || y >= g.src_size[1]) std::fill_n(line, columns, 0.0f);
      else p.tiles.copy_row(from + y * g.src_size[2], g.src_size[2], p.column_shift, columns, line);
      for (int64_t q = 0; q <= p.tile_columns; q += kLanes) {
        Vector v0, v1, v2, v3;
        hn::LoadInterleaved4(d, line + kOut * q, v0, v1, v2, v3);
        hn::StoreU(v0, d, parts + q);
        hn::StoreU(v1, d, parts + part + q);
        hn::StoreU(v2, d, parts + 2 * part + q);
        hn::StoreU(v3, d, parts + 3 * part + q);
      }
      // Whole vectors may run into the next row of tiles, which is filled later.
      const auto put = [&](int64_t i, int64_t tile_row) {
        float* to = tiles + i * kIn * p.plane + tile_row * p.tile_columns;
        for (int64_t q = 0; q < p.tile_columns; q += kLanes) {
#pragma GCC unroll 6
          for (int64_t j = 0; j < kIn; ++j) {
            hn::StoreU(hn::LoadU(d, parts + j % kOut * part + j / kOut + q), d, to + j * p.plane + q);
          }
        }
      };
      if (r < kOut * band.rows) put(r % kOut, r / kOut);
      if (r >= kOut && r % kOut < 2) put(kOut + r % kOut, r / kOut - 1);
    }
  }
}

/// Step 2 for one channel and all vectors of tiles.
void transform_tiles(const Plan& p, const float* strip, float* v) {
  const Tag d;
  for (int64_t n = 0; n < p.width; n += kLanes) {
    Vector columns[6][6];
#pragma GCC unroll 6
    for (int64_t j = 0; j < kIn; ++j) {
      Vector in[6], out[6];
#pragma GCC unroll 6
      for (int64_t i = 0; i < kIn; ++i) in[i] = hn::LoadU(d, strip + (kIn * i + j) * p.plane + n);
      winograd_vectors::transform_input<Form43>(in, out);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) columns[i][j] = out[i];
    }
#pragma GCC unroll 6
    for (int64_t i = 0; i < kIn; ++i) {
      Vector out[6];
      winograd_vectors::transform_input<Form43>(columns[i], out);
#pragma GCC unroll 6
      for (int64_t j = 0; j < kIn; ++j) hn::StoreU(out[j], d, v + (kIn * i + j) * p.v_plane + n);
    }
  }
}

/// Writes a vector of finished tiles, 4 rows of 4 * lanes outputs, to the rows of the pictures that they cover.
void write_tiles(const Plan& p, const Band& band, int64_t position, const float* rows, int64_t channel) {
  const auto& g = p.g;
  const Tag d;
  const int64_t out_rows = g.dst_size[1], out_columns = g.dst_size[2];
  for (int64_t i = 0; i < kLanes;) {
    const int64_t strip_row = (position + i) / p.tile_columns, column = (position + i) % p.tile_columns;
    const int64_t image = strip_row / p.band_rows, row = strip_row % p.band_rows;
    if (image >= band.images) return;
    const int64_t n = std::min(kLanes - i, p.tile_columns - column);
    const int64_t y = kOut * (band.row + row), length = std::min(kOut * n, g.count[2] - kOut * column);
    float* to = g.dst +
                ((((band.image + image) * g.groups + band.group) * g.rows + channel) * out_rows + y) * out_columns +
                kOut * column;
    const bool aligned = reinterpret_cast<uintptr_t>(to) % (kLanes * 4) == 0 && out_columns % kLanes == 0;
    for (int64_t r = 0; row < band.rows && r < std::min(kOut, g.count[1] - y); ++r, to += out_columns) {
      const float* from = rows + r * kOut * kLanes + kOut * i;
      int64_t j = 0;
      if (p.stream && aligned)
        for (; j + kLanes <= length; j += kLanes) hn::Stream(hn::LoadU(d, from + j), d, to + j);
      for (; j + kLanes <= length; j += kLanes) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
      for (; j + 4 <= length; j += 4) __builtin_memcpy(to + j, from + j, 4 * sizeof(float));
      for (; j < length; ++j) to[j] = from[j];
    }
    i += n;
  }
}

/// Step 4 for one output channel.
void transform_back(const Plan& p, const Band& band, const float* m, int64_t m_plane, int64_t channel) {
  const Tag d;
  const Vector bias = constant(p.g.bias ? p.g.bias[band.group * p.g.rows + channel] : 0.0f);
  for (int64_t n = 0; n < p.width; n += kLanes) {
    Vector columns[4][6];
#pragma GCC unroll 6
    for (int64_t j = 0; j < kIn; ++j) {
      Vector in[6], out[4];
#pragma GCC unroll 6
      for (int64_t i = 0; i < kIn; ++i) in[i] = hn::LoadU(d, m + (kIn * i + j) * m_plane + n);
      winograd_vectors::transform_output<Form43>(in, out);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) columns[i][j] = out[i];
    }
    HWY_ALIGN float rows[kOut * kOut * kLanes];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      Vector out[4];
      winograd_vectors::transform_output<Form43>(columns[i], out);
      hn::StoreInterleaved4(hn::Add(out[0], bias), hn::Add(out[1], bias), hn::Add(out[2], bias), hn::Add(out[3], bias),
                            d, rows + i * kOut * kLanes);
    }
    write_tiles(p, band, n, rows, channel);
  }
}

/// Step 3: M[36][row][tile] for the output rows [m0, m1).
void multiply(const Plan& p, const float* u, int64_t u_plane, const float* v, const int64_t* offsets, int64_t m0,
              int64_t m1, float* m, int64_t m_plane) {
  const auto& g = p.g;
  const EvenSplit split(m1 - m0, p.tiles.max_rows[2]);
  GemmTile<float> tile{.a = nullptr,
                       .a_step = g.rows * kGemmDepth,
                       .b = nullptr,
                       .b_offsets = offsets,
                       .b_step = p.width,
                       .blocks = g.channels / kGemmDepth,
                       .rest_blocks = g.channels % kGemmDepth ? 1 : 0,
                       .rest_depth = g.channels % kGemmDepth,
                       .c = nullptr,
                       .c_step = p.width,
                       .rows = 0,
                       .columns = 0};
  for (int64_t point = 0; point < kPoints; ++point) {
    for (int64_t n = 0; n < p.width; n += 2 * kLanes) {
      tile.columns = std::min(2 * kLanes, p.width - n);
      tile.b = v + point * p.v_plane + n;
      for (int64_t i = 0; i < split.pieces; ++i) {
        tile.rows = split.begin(i + 1) - split.begin(i);
        tile.a = u + point * u_plane + (m0 + split.begin(i)) * kGemmDepth;
        tile.c = m + point * m_plane + split.begin(i) * p.width + n;
        p.tiles.tile[tile.columns / kLanes][tile.rows](tile);
      }
    }
  }
}

void winograd_band(const Plan& p, const Band& band, const float* u, int64_t u_plane) {
  const auto& g = p.g;
  ScratchFrame frame;
  const int64_t line_size = 2 * kOut * (p.tile_columns + 1 + 2 * kLanes);
  float* line = frame.take<float>(line_size);
  float* strip = frame.take<float>(kPoints * p.plane);
  float* v = frame.take<float>(kPoints * p.v_plane);
  std::fill_n(line, line_size, 0.0f);
  for (int64_t c = 0; c < g.channels; ++c) {
    if (c + 1 < g.channels) prefetch_channel(p, band, c + 1);
    fill_strip(p, band, c, line, strip);
    transform_tiles(p, strip, v + c * p.width);
  }
  const int64_t blocks = ceil_div(g.channels, kGemmDepth);
  int64_t* offsets = frame.take<int64_t>(blocks);
  for (int64_t i = 0; i < blocks; ++i) offsets[i] = i * kGemmDepth * p.width;

  const EvenSplit split(g.rows, p.tiles.max_rows[2]);
  const int64_t turn = std::clamp<int64_t>(kMBytes / (kPoints * p.width * split.size * 4), 1, split.pieces);
  const int64_t m_plane = turn * split.size * p.width + kPlaneGap;
  float* m = frame.take<float>(kPoints * m_plane);
  for (int64_t i = 0; i < split.pieces; i += turn) {
    const int64_t m0 = split.begin(i), m1 = split.begin(std::min(split.pieces, i + turn));
    multiply(p, u, u_plane, v, offsets, m0, m1, m, m_plane);
    for (int64_t row = m0; row < m1; ++row) transform_back(p, band, m + (row - m0) * p.width, m_plane, row);
  }
  if (p.stream) hwy::FlushStream();
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {

HWY_EXPORT(transform_weights);
HWY_EXPORT(winograd_band);

bool winograd_suits(const GatherConvolution<float>& g) { return winograd_bands::make_plan(g).has_value(); }

bool winograd_convolution(const GatherConvolution<float>& g) {
  const std::optional<winograd_bands::Plan> plan = winograd_bands::make_plan(g);
  if (!plan) return false;
  const winograd_bands::Plan& p = *plan;
  const auto transform = TW_DISPATCH(transform_weights);
  const auto run = TW_DISPATCH(winograd_band);
  const int64_t depth = winograd_bands::ceil_div(g.channels, kGemmDepth) * kGemmDepth;
  const int64_t u_plane = checked_mul(depth, g.rows) + winograd_bands::kPlaneGap;
  const int64_t group_size = checked_mul(winograd_bands::kPoints, u_plane);
  ScratchFrame frame;
  float* u = frame.take<float>(checked_mul(group_size, g.groups) + kGemmMaxRows * kGemmDepth);
  for (int64_t group = 0; group < g.groups; ++group) {
    parallel_for(g.rows, std::max<int64_t>(1, 4096 / g.channels),
                 [&](int64_t begin, int64_t end) { transform(p, group, begin, end, u + group * group_size, u_plane); });
  }
  const int64_t row_bands = winograd_bands::ceil_div(p.tile_rows, p.band_rows);
  parallel_for(p.bands() * g.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      winograd_bands::Band band;
      band.row = i % row_bands * p.band_rows;
      band.rows = std::min(p.band_rows, p.tile_rows - band.row);
      band.group = i / row_bands % g.groups;
      band.image = i / (row_bands * g.groups) * p.images;
      band.images = std::min(p.images, g.images - band.image);
      run(p, band, u + band.group * group_size, u_plane);
    }
  });
  return true;
}

}  // namespace twibil::kernels
#endif
