// SPDX-License-Identifier: Apache-2.0
// The gradient of the weights of a 3x3 convolution by F(3x3, 4x4): a tile of 4 x 4 output gradients slides over 6 x 6
// inputs, and its 3 x 3 positions are the taps. All tiles of all pictures are added up before the one transform back:
//   dw = A^T [ sum over tiles of (G dy G^T) * (B^T x B) ] A
// B^T depends on the points alone, so x is transformed as in the forward pass. A block of T tiles takes two steps:
//   1. V[point][in_channels / 16][T][16] and D[point][T / 16][out_channels][16 tiles], D transposed on the way;
//   2. a matrix product for each point, D times V with depth T, added to S[point][in_channels / 16][out_channels][16].
// All threads share a block, and S adds the blocks in order: the bits do not depend on the number of threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocked_winograd_gradient.cc"
#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/blocked_convert.h"
#include "kernels/blocked_tile.h"
#include "kernels/blocked_winograd.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"
#include "kernels/scratch.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/winograd_transform.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace winograd;
using namespace winograd_vectors;
namespace {

using Taps = Form<3, 4>;
constexpr int64_t kVectorLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));

}  // namespace

/// G dy G^T of one tile and block of channels: planes of `plane` floats.
void transform_gradient(const float* dy, int64_t row_step, const OutputTile& tile, float* to, int64_t plane) {
  const Tag d;
  for (int64_t lane = 0; lane < kChannelBlock; lane += kVectorLanes) {
    Vector columns[Taps::n][Taps::r];
#pragma GCC unroll 4
    for (int64_t q = 0; q < Taps::r; ++q) {
      Vector in[Taps::r], out[Taps::n];
#pragma GCC unroll 4
      for (int64_t i = 0; i < Taps::r; ++i) {
        const bool exists = i < tile.count[0] && q < tile.count[1];
        in[i] = exists ? hn::LoadU(d, dy + tile.offset + i * row_step + q * kChannelBlock + lane) : hn::Zero(d);
      }
      transform_weight<Taps>(in, out);
#pragma GCC unroll 6
      for (int64_t i = 0; i < Taps::n; ++i) columns[i][q] = out[i];
    }
#pragma GCC unroll 6
    for (int64_t i = 0; i < Taps::n; ++i) {
      Vector out[Taps::n];
      transform_weight<Taps>(columns[i], out);
#pragma GCC unroll 6
      for (int64_t q = 0; q < Taps::n; ++q) hn::StoreU(out[q], d, to + (i * Taps::n + q) * plane + lane);
    }
  }
}

/// A^T s A for 16 input channels: taps[3 * 3][16].
void transform_sums(const float* s, int64_t plane, float* taps) {
  const Tag d;
  for (int64_t lane = 0; lane < kChannelBlock; lane += kVectorLanes) {
    Vector columns[Taps::m][Taps::n];
#pragma GCC unroll 6
    for (int64_t q = 0; q < Taps::n; ++q) {
      Vector in[Taps::n], out[Taps::m];
#pragma GCC unroll 6
      for (int64_t i = 0; i < Taps::n; ++i) in[i] = hn::LoadU(d, s + (i * Taps::n + q) * plane + lane);
      transform_output<Taps>(in, out);
#pragma GCC unroll 3
      for (int64_t i = 0; i < Taps::m; ++i) columns[i][q] = out[i];
    }
#pragma GCC unroll 3
    for (int64_t i = 0; i < Taps::m; ++i) {
      Vector out[Taps::m];
      transform_output<Taps>(columns[i], out);
#pragma GCC unroll 3
      for (int64_t q = 0; q < Taps::m; ++q) hn::StoreU(out[q], d, taps + (i * Taps::m + q) * kChannelBlock + lane);
    }
  }
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels::winograd {
namespace {

HWY_EXPORT(transform_gradient);
HWY_EXPORT(transform_sums);

constexpr FormId kForward = FormId::k4x4_3x3;  // whose tiles and inputs these are
constexpr int64_t kFewestTiles = 64;
constexpr int64_t kMostDepth = 128;  // tiles that are added up in one go: the error grows with the root of that number
constexpr int64_t kPoints = 36, kTaps = 9, kPlaneGap = 32;
constexpr int64_t kBlock = kChannelBlock * kChannelBlock;
constexpr int64_t kBlockBytes = 2 << 20;       // of V and D together
constexpr int64_t kConvertedFloats = 2 << 20;  // of pictures that are converted at once

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The sizes of a gradient and its arrays; `count` tiles, a multiple of 16, are in work.
struct Gradient {
  const BlockedShape& s;
  int64_t in_blocks, out_blocks, tiles, most;  // most: tiles of a block
  int64_t v_plane, d_plane, s_plane;
  InputTile* in;
  OutputTile* out;
  float *v, *d, *sums;

  int64_t x_block() const { return s.batch * s.in[0] * s.in[1] * kChannelBlock; }
  int64_t y_block() const { return s.batch * s.out[0] * s.out[1] * kChannelBlock; }

  /// Step 1: `count` tiles, of which the last may be missing.
  void transform(const float* x, const float* dy, int64_t begin, int64_t count) const {
    const int64_t existing = std::min(count, tiles - begin), groups = count / kChannelBlock;
    place_tiles(s, form_sizes(kForward), begin, existing, in, out);
    parallel_for(in_blocks + out_blocks * groups, 1, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        if (i < in_blocks) transform_inputs(x, i, existing, count);
        else transform_gradients(dy, (i - in_blocks) / groups, (i - in_blocks) % groups, existing);
      }
    });
  }

  void transform_inputs(const float* x, int64_t block, int64_t existing, int64_t count) const {
    float* to = v + block * count * kChannelBlock;
    form_kernels(kForward).input({.x = x + block * x_block(),
                                  .next = nullptr,
                                  .row_step = s.in[1] * kChannelBlock,
                                  .tiles = in,
                                  .count = existing,
                                  .v = to,
                                  .v_plane = v_plane});
    for (int64_t p = 0; p < kPoints && existing < count; ++p) {
      std::fill(to + p * v_plane + existing * kChannelBlock, to + p * v_plane + count * kChannelBlock, 0.0F);
    }
  }

  /// Sixteen tiles of a block of channels, transposed.
  void transform_gradients(const float* dy, int64_t block, int64_t group, int64_t existing) const {
    const auto run = TW_DISPATCH(transform_gradient);
    ScratchFrame frame;
    float* planes = frame.take<float>(kPoints * (kBlock + kPlaneGap));
    for (int64_t t = 0; t < kChannelBlock; ++t) {
      OutputTile tile{0, {0, 0}};
      if (group * kChannelBlock + t < existing) tile = out[group * kChannelBlock + t];
      run(dy + block * y_block(), s.out[1] * kChannelBlock, tile, planes + t * kChannelBlock, kBlock + kPlaneGap);
    }
    float* to = d + (group * out_blocks + block) * kBlock;
    for (int64_t p = 0; p < kPoints; ++p) {
      gemm_tiles<float>().transpose(planes + p * (kBlock + kPlaneGap), kChannelBlock, kChannelBlock, kChannelBlock,
                                    to + p * d_plane, kChannelBlock);
    }
  }

  /// Step 2.
  void multiply(int64_t count, bool first) const {
    ScratchFrame frame;
    const int64_t rows = out_blocks * kChannelBlock, pairs = ceil_div(in_blocks, kTileMaxColumns);
    int64_t* offsets = frame.take<int64_t>(count / kChannelBlock);
    for (int64_t i = 0; i < count / kChannelBlock; ++i) offsets[i] = i * rows * kChannelBlock;
    parallel_for(kPoints * pairs, 1, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t point = i / pairs, block = i % pairs * kTileMaxColumns;
        blocked_tiles().run({.a = d + point * d_plane,
                             .a_offsets = offsets,
                             .blocks = count / kChannelBlock,
                             .b = v + point * v_plane + block * count * kChannelBlock,
                             .b_column_step = count * kChannelBlock,
                             .c = sums + point * s_plane + block * rows * kChannelBlock,
                             .c_column_step = rows * kChannelBlock,
                             .rows = rows,
                             .columns = std::min<int64_t>(kTileMaxColumns, in_blocks - block),
                             .accumulate = !first});
      }
    });
  }

  void finish(float* dw) const {
    const int64_t rows = out_blocks * kChannelBlock;
    parallel_for(s.out_channels, ceil_div(64, in_blocks), [&](int64_t o, int64_t end) {
      const auto run = TW_DISPATCH(transform_sums);
      float taps[kTaps * kChannelBlock];
      for (; o < end; ++o) {
        for (int64_t block = 0; block < in_blocks; ++block) {
          run(sums + (block * rows + o) * kChannelBlock, s_plane, taps);
          const int64_t channel = block * kChannelBlock;
          float* to = dw + (o * s.in_channels + channel) * kTaps;
          for (int64_t c = 0; c < std::min(kChannelBlock, s.in_channels - channel); ++c) {
            for (int64_t t = 0; t < kTaps; ++t) *to++ = taps[t * kChannelBlock + c];
          }
        }
      }
    });
  }
};

}  // namespace

bool weight_gradient_suits(const BlockedShape& s) {
  const FormSizes& f = form_sizes(kForward);
  if (s.groups != 1 || refuses(s, kForward)) return false;
  const int64_t per_image = ceil_div(s.out[0], f.m[0]) * ceil_div(s.out[1], f.m[1]);
  const int64_t in = channel_blocks(s.in_channels) * kChannelBlock,
                out = channel_blocks(s.out_channels) * kChannelBlock;
  // The sums are written and transformed once, whatever the number of tiles; what fills blocks and tiles is lost.
  return s.batch * per_image >= kFewestTiles && 2 * s.out[0] * s.out[1] >= 16 * per_image &&
         2 * s.in_channels * s.out_channels >= in * out;
}

namespace {

/// Adds the gradient over all pictures, `images` at a time; source(first, shape) gives their x and dy, blocked.
template <class Source> void add_pictures(const BlockedShape& all, int64_t images, const Source& source, float* dw) {
  const FormSizes& f = form_sizes(kForward);
  BlockedShape s = all;
  Gradient g{.s = s, .in_blocks = channel_blocks(s.in_channels), .out_blocks = channel_blocks(s.out_channels)};
  const int64_t per_image = ceil_div(s.out[0], f.m[0]) * ceil_div(s.out[1], f.m[1]);
  if (all.batch * per_image == 0) {
    std::fill_n(dw, s.out_channels * s.in_channels * kTaps, 0.0F);
    return;
  }
  const int64_t channels = (g.in_blocks + g.out_blocks) * kChannelBlock, most = images * per_image;
  const int64_t wish = std::clamp<int64_t>(kBlockBytes / (kPoints * channels * 4) / 16 * 16, 64, kMostDepth);
  g.most = ceil_div(ceil_div(most, ceil_div(most, wish)), 16) * 16;
  g.v_plane = g.in_blocks * g.most * kChannelBlock + kPlaneGap;
  g.d_plane = g.out_blocks * g.most * kChannelBlock + kPlaneGap;
  g.s_plane = checked_mul(g.in_blocks, g.out_blocks * kBlock) + kPlaneGap;
  ScratchFrame frame;
  g.in = frame.take<InputTile>(g.most);
  g.out = frame.take<OutputTile>(g.most);
  g.v = frame.take<float>(kPoints * g.v_plane);
  g.d = frame.take<float>(kPoints * g.d_plane);
  g.sums = frame.take<float>(checked_mul(kPoints, g.s_plane));
  for (int64_t image = 0; image < all.batch; image += images) {
    s.batch = std::min(images, all.batch - image);
    g.tiles = s.batch * per_image;
    const auto [x, dy] = source(image, s);
    for (int64_t begin = 0; begin < g.tiles; begin += g.most) {
      const int64_t count = std::min(g.most, ceil_div(g.tiles - begin, 16) * 16);
      g.transform(x, dy, begin, count);
      g.multiply(count, image == 0 && begin == 0);
    }
  }
  g.finish(dw);
}

}  // namespace

void weight_gradient(const BlockedShape& s, const float* x, const float* dy, float* dw) {
  add_pictures(
      s, s.batch, [&](int64_t, const BlockedShape&) { return std::pair(x, dy); }, dw);
}

void weight_gradient_of_plain(const BlockedShape& s, const float* x, const float* dy, float* dw) {
  const int64_t in = s.in[0] * s.in[1], out = s.out[0] * s.out[1];
  const int64_t x_size = channel_blocks(s.in_channels) * kChannelBlock * in;
  const int64_t y_size = channel_blocks(s.out_channels) * kChannelBlock * out;
  const int64_t images =
      std::clamp<int64_t>(kConvertedFloats / std::max<int64_t>(1, x_size + y_size), 1, std::max<int64_t>(1, s.batch));
  ScratchFrame frame;
  float* blocked_x = frame.take<float>(checked_mul(images, x_size));
  float* blocked_dy = frame.take<float>(checked_mul(images, y_size));
  const auto source = [&](int64_t image, const BlockedShape& part) {
    to_blocked(part.batch, s.in_channels, in, x + image * s.in_channels * in, blocked_x);
    to_blocked(part.batch, s.out_channels, out, dy + image * s.out_channels * out, blocked_dy);
    return std::pair<const float*, const float*>(blocked_x, blocked_dy);
  };
  add_pictures(s, images, source, dw);
}

}  // namespace twibil::kernels::winograd
#endif
