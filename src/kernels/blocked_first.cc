// SPDX-License-Identifier: Apache-2.0
// The convolution of a network's first layer: few input channels (colours), read as they are. A register tile holds
// neighbouring output pixels times 16 or 32 output channels; each tap multiplies a vector of weights with single input
// numbers. Bands of input rows are copied with their padding, so that no tap asks where it is.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocked_first.cc"
#include <algorithm>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/blocked.h"
#include "kernels/isa.h"
#include "kernels/scratch.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/clamp.h"

#ifndef TWIBIL_BLOCKED_FIRST_TILE  // once, not per instruction set
#define TWIBIL_BLOCKED_FIRST_TILE
namespace twibil::kernels {

/// A row of output pixels of one or two blocks.
struct FirstTile {
  const float* x;  // pixel p, channel c, tap (i, j): x + p * stride + c * channel_step + i * row_step + j * dilation
  int64_t stride, channel_step, row_step, dilation;
  int64_t channels, kernel[2];
  const float* weights;  // of the block: [c][i][j][16]; the second block's lie weight_step further
  int64_t weight_step;
  float* y;  // the second block's pixels lie block_step further
  int64_t block_step;
  int64_t pixels, blocks;
  const float* bias;      // or null
  const float* residual;  // laid out as y, or null
  float lower, upper;
};

}  // namespace twibil::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Tag = hn::CappedTag<float, kChannelBlock>;
using Vector = hn::Vec<Tag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int kBlockVectors = kChannelBlock / kLanes;
#if HWY_TARGET == HWY_AVX3
constexpr int kMaxPixels = 14, kMaxVectors = 2;
#elif HWY_ARCH_ARM_A64
constexpr int kMaxPixels = 6, kMaxVectors = 4;
#else
constexpr int kMaxPixels = 6, kMaxVectors = 2;
#endif

/// M pixels from pixel `first` on, NV vectors from vector `vector` on.
template <int M, int NV> HWY_NOINLINE void tile(const FirstTile& t, int64_t first, int64_t vector) {
  const Tag d;
  const int64_t w_step = kBlockVectors > 1 ? kLanes : t.weight_step;
  const int64_t y_step = kBlockVectors > 1 ? kLanes : t.block_step;
  const int64_t block = vector / kBlockVectors, lane = vector % kBlockVectors * kLanes;
  const int64_t at = block * t.block_step + first * kChannelBlock + lane;
  Vector sum[M][NV];
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) sum[m][v] = hn::Zero(d);
  }

  const float* w = t.weights + block * t.weight_step + lane;
  const int64_t stride = t.stride;
  for (int64_t c = 0; c < t.channels; ++c) {
    for (int64_t i = 0; i < t.kernel[0]; ++i) {
      const float* x = t.x + first * stride + c * t.channel_step + i * t.row_step;
      for (int64_t j = 0; j < t.kernel[1]; ++j, x += t.dilation, w += kChannelBlock) {
        const float* fives[3] = {x, x + 5 * stride, x + 10 * stride};  // a step times 0 to 4 is one address
        Vector row[NV];
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) row[v] = hn::LoadU(d, w + v * w_step);
#pragma GCC unroll 16
        for (int m = 0; m < M; ++m) {
          const Vector value = hn::Set(d, fives[m / 5][m % 5 * stride]);
#pragma GCC unroll 4
          for (int v = 0; v < NV; ++v) sum[m][v] = hn::MulAdd(value, row[v], sum[m][v]);
        }
      }
    }
  }

  const auto add = [&](const float* from, int64_t pixel_step, int64_t vector_step) HWY_ATTR {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        sum[m][v] = hn::Add(sum[m][v], hn::LoadU(d, from + m * pixel_step + v * vector_step));
    }
  };
  if (t.bias) add(t.bias + vector * kLanes, 0, kLanes);
  if (t.residual) add(t.residual + at, kChannelBlock, y_step);
  const Vector lower = hn::Set(d, t.lower), upper = hn::Set(d, t.upper);
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      // The sum comes second: x86 then keeps it when it is not a number.
      hn::StoreU(clamped(sum[m][v], lower, upper), d, t.y + at + m * kChannelBlock + v * y_step);
    }
  }
}

using TileFunction = void (*)(const FirstTile&, int64_t first, int64_t vector);
struct TileTable {
  TileFunction tile[kMaxVectors + 1][kMaxPixels + 1];
};
template <int NV, int M> constexpr void fill(TileTable& table) {
  if constexpr (M >= 1) {
    table.tile[NV][M] = tile<M, NV>;
    fill<NV, M - 1>(table);
  }
}
constexpr TileTable make_table() {
  TileTable table{};
  fill<kMaxVectors, kMaxPixels>(table);
  if (kBlockVectors == 1) fill<1, kMaxPixels>(table);
  return table;
}
constexpr TileTable kTable = make_table();

}  // namespace

void first_row(const FirstTile& t) {
  const int64_t tiles = (t.pixels + kMaxPixels - 1) / kMaxPixels, least = t.pixels / tiles, longer = t.pixels % tiles;
  const int64_t vectors = t.blocks * kBlockVectors;
  for (int64_t v = 0; v < vectors; v += kMaxVectors) {
    const TileFunction* table = kTable.tile[std::min<int64_t>(kMaxVectors, vectors - v)];
    for (int64_t i = 0, p = 0; i < tiles; ++i) {
      const int64_t n = least + (i < longer);
      table[n](t, p, v);
      p += n;
    }
  }
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
namespace {

constexpr int64_t kMostChannels = 8;      // above, blocks of 16 with zeros are less waste
constexpr int64_t kBandFloats = 6 << 10;  // of input, so that it stays in the first-level cache with the weights

int64_t taps_of(const BlockedShape& s) { return checked_mul(s.in_channels, checked_product(s.kernel)); }

const char* refuses(const BlockedShape& s) {
  if (s.groups != 1) return "it takes no groups";
  if (s.in_channels > kMostChannels) return "more than 8 input channels come as blocks";
  return nullptr;
}

double seconds(const BlockedShape& s, const BlockedMachine& m) {
  const double pixels = static_cast<double>(s.batch * s.out[0] * s.out[1]);
  const double lanes = static_cast<double>(channel_blocks(s.out_channels) * kChannelBlock);
  const double sums = 2 * pixels * lanes * static_cast<double>(taps_of(s)) / (0.85 * m.flops);
  const double bytes = 4 * (pixels * lanes + static_cast<double>(s.batch * s.in_channels * s.in[0] * s.in[1]));
  return sums + bytes / m.bandwidth / 4;  // most of it flows beside the sums
}

int64_t packed_size(const BlockedShape& s) {
  return checked_mul(channel_blocks(s.out_channels) * kChannelBlock, taps_of(s));
}

/// [output block][channel][tap][16]
void pack(const BlockedShape& s, const float* w, float* packed) {
  const int64_t taps = taps_of(s);
  std::fill_n(packed, packed_size(s), 0.F);
  for (int64_t o = 0; o < s.out_channels; ++o)
    for (int64_t t = 0; t < taps; ++t)
      packed[(o / kChannelBlock * taps + t) * kChannelBlock + o % kChannelBlock] = w[o * taps + t];
}

/// Output rows [first, first + rows) of one image.
struct Band {
  int64_t image, first, rows;
};

/// The input columns [0, width) of the padded rows that a band reads: [channel][row][width].
void copy_band(const BlockedShape& s, const Band& band, int64_t in_rows, int64_t width, const float* x, float* to) {
  const int64_t left = std::min(s.pad[1], width);
  const int64_t n = std::max<int64_t>(0, std::min(s.in[1], width - left));
  for (int64_t c = 0; c < s.in_channels; ++c) {
    for (int64_t r = 0; r < in_rows; ++r, to += width) {
      const int64_t row = band.first * s.stride[0] - s.pad[0] + r;
      if (row < 0 || row >= s.in[0]) {
        std::fill_n(to, width, 0.F);
        continue;
      }
      std::fill_n(to, left, 0.F);
      std::copy_n(x + ((band.image * s.in_channels + c) * s.in[0] + row) * s.in[1], n, to + left);
      std::fill_n(to + left + n, width - left - n, 0.F);
    }
  }
}

HWY_EXPORT(first_row);

void run(const BlockedShape& s, const float* x, const float* packed, const BlockedEpilogue& e, float* y) {
  if (s.batch == 0 || s.out[0] == 0 || s.out[1] == 0) return;
  const int64_t width = (s.out[1] - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  const int64_t halo = (s.kernel[0] - 1) * s.dilation[0] + 1 - s.stride[0];
  const int64_t fit = kBandFloats / (s.in_channels * width) - halo;
  const int64_t most = std::clamp<int64_t>(fit / s.stride[0], 1, s.out[0]), bands = (s.out[0] + most - 1) / most;
  const int64_t plane = s.out[0] * s.out[1] * kChannelBlock, taps = taps_of(s);
  const int64_t blocks = channel_blocks(s.out_channels);
  const auto row = TW_DISPATCH(first_row);
  parallel_for(s.batch * bands, 1, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    float* padded = frame.take<float>(s.in_channels * (most * s.stride[0] + std::max<int64_t>(0, halo)) * width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % bands * most;
      const Band band{i / bands, first, std::min(most, s.out[0] - first)};
      const int64_t in_rows = (band.rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
      copy_band(s, band, in_rows, width, x, padded);
      for (int64_t b = 0; b < blocks; b += 2) {
        for (int64_t r = 0; r < band.rows; ++r) {
          const int64_t at = (b * s.batch + band.image) * plane + (first + r) * s.out[1] * kChannelBlock;
          row({.x = padded + r * s.stride[0] * width,
               .stride = s.stride[1],
               .channel_step = in_rows * width,
               .row_step = s.dilation[0] * width,
               .dilation = s.dilation[1],
               .channels = s.in_channels,
               .kernel = {s.kernel[0], s.kernel[1]},
               .weights = packed + b * taps * kChannelBlock,
               .weight_step = taps * kChannelBlock,
               .y = y + at,
               .block_step = s.batch * plane,
               .pixels = s.out[1],
               .blocks = std::min<int64_t>(2, blocks - b),
               .bias = e.bias ? e.bias + b * kChannelBlock : nullptr,
               .residual = e.residual ? e.residual + at : nullptr,
               .lower = e.lower,
               .upper = e.upper});
        }
      }
    }
  });
}

}  // namespace

constinit const BlockedAlgorithm blocked_first{
    .name = "first layer",
    .exact = true,
    .plain_input = true,
    .refuses = refuses,
    .seconds = seconds,
    .packed_size = packed_size,
    .pack = pack,
    .run = run,
};

}  // namespace twibil::kernels
#endif
