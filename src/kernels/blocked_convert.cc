// SPDX-License-Identifier: Apache-2.0
// A square of as many pixels as channels, one vector each, is transposed in registers; a block takes one or more of
// them side by side. Channels that are missing are read from a row of zeros.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocked_convert.cc"
#include "kernels/blocked_convert.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/blocked.h"
#include "kernels/isa.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, kChannelBlock>;
using Vector = hn::Vec<Tag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int64_t kAhead = 64;  // pixels; processors follow fewer than 16 rows by themselves

/// v[i][j] becomes v[j][i]: first squares of 4 x 4 inside 128 bits, then the squares among themselves.
HWY_INLINE void transpose(Vector (&v)[kLanes]) {
  const Tag d;
  const hn::Repartition<double, Tag> pairs;
#pragma GCC unroll 4
  for (int g = 0; g < kLanes; g += 4) {
    const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, v[g], v[g + 1]));
    const auto cd = hn::BitCast(pairs, hn::InterleaveLower(d, v[g + 2], v[g + 3]));
    const auto ab2 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[g], v[g + 1]));
    const auto cd2 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[g + 2], v[g + 3]));
    v[g] = hn::BitCast(d, hn::InterleaveLower(pairs, ab, cd));
    v[g + 1] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab, cd));
    v[g + 2] = hn::BitCast(d, hn::InterleaveLower(pairs, ab2, cd2));
    v[g + 3] = hn::BitCast(d, hn::InterleaveUpper(pairs, ab2, cd2));
  }
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (kLanes == 8) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vector low = v[i], high = v[i + 4];
      v[i] = hn::ConcatLowerLower(d, high, low);
      v[i + 4] = hn::ConcatUpperUpper(d, high, low);
    }
  } else if constexpr (kLanes == 16) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vector a = v[i], b = v[i + 4], c = v[i + 8], e = v[i + 12];
      const Vector ab = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      const Vector ab2 = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
      const Vector ce = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(e), c);
      const Vector ce2 = hn::OddEvenBlocks(e, hn::SwapAdjacentBlocks(c));
      v[i] = hn::ConcatLowerLower(d, ce, ab);
      v[i + 4] = hn::ConcatLowerLower(d, ce2, ab2);
      v[i + 8] = hn::ConcatUpperUpper(d, ce, ab);
      v[i + 12] = hn::ConcatUpperUpper(d, ce2, ab2);
    }
  }
#else
  static_assert(kLanes == 4);
#endif
}

/// `count` pixels of one block, of which `channels` exist, from x, whose channels lie `plane` apart.
void block_to(const float* x, int64_t plane, int64_t channels, int64_t count, float* y) {
  const Tag d;
  alignas(64) static constexpr float kZeros[kChannelBlock] = {};
  int64_t p = 0;
  const auto squares = [&](int64_t at) HWY_ATTR {
    for (int64_t c = 0; c < kChannelBlock; c += kLanes) {
      Vector v[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const float* from = c + i < channels ? x + (c + i) * plane + at : kZeros;
        __builtin_prefetch(from + kAhead);
        v[i] = hn::LoadU(d, from);
      }
      transpose(v);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) hn::StoreU(v[i], d, y + (at + i) * kChannelBlock + c);
    }
  };
  if (count >= kLanes) {
    for (; p + kLanes <= count; p += kLanes) squares(p);
    if (p < count) squares(count - kLanes);  // some pixels twice
    return;
  }
  for (; p < count; ++p) {
    for (int64_t c = 0; c < kChannelBlock; ++c) y[p * kChannelBlock + c] = c < channels ? x[c * plane + p] : 0.f;
  }
}

void block_from(const float* x, int64_t plane, int64_t channels, int64_t count, float* y) {
  const Tag d;
  int64_t p = 0;
  const auto squares = [&](int64_t at) HWY_ATTR {
    for (int64_t c = 0; c < channels; c += kLanes) {
      Vector v[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) v[i] = hn::LoadU(d, x + (at + i) * kChannelBlock + c);
      transpose(v);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        if (c + i < channels) hn::StoreU(v[i], d, y + (c + i) * plane + at);
    }
  };
  if (count >= kLanes) {
    for (; p + kLanes <= count; p += kLanes) squares(p);
    if (p < count) squares(count - kLanes);
    return;
  }
  for (; p < count; ++p) {
    for (int64_t c = 0; c < channels; ++c) y[c * plane + p] = x[p * kChannelBlock + c];
  }
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
namespace {

constexpr int64_t kPiece = 1024;  // pixels of a block, 64 KiB, that one call converts

/// Calls body(image, block, first pixel, pixels) for all pieces, on all threads.
template <class Body> void for_pieces(int64_t batch, int64_t channels, int64_t pixels, const Body& body) {
  if (batch <= 0 || channels <= 0 || pixels <= 0) return;
  const int64_t pieces = (pixels + kPiece - 1) / kPiece;
  // Small pictures are worth a thread only together.
  const int64_t grain = std::max<int64_t>(1, kPiece / std::min(pixels, kPiece));
  parallel_for(channel_blocks(channels) * batch * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * kPiece, image = i / pieces % batch, block = i / pieces / batch;
      body(image, block, first, std::min(kPiece, pixels - first));
    }
  });
}

}  // namespace

HWY_EXPORT(block_to);
HWY_EXPORT(block_from);

void to_blocked(int64_t batch, int64_t channels, int64_t pixels, const float* x, float* y) {
  const auto run = TW_DISPATCH(block_to);
  for_pieces(batch, channels, pixels, [&](int64_t image, int64_t block, int64_t first, int64_t count) {
    const int64_t channel = block * kChannelBlock;
    run(x + (image * channels + channel) * pixels + first, pixels, std::min(kChannelBlock, channels - channel), count,
        y + ((block * batch + image) * pixels + first) * kChannelBlock);
  });
}

void from_blocked(int64_t batch, int64_t channels, int64_t pixels, const float* x, float* y) {
  const auto run = TW_DISPATCH(block_from);
  for_pieces(batch, channels, pixels, [&](int64_t image, int64_t block, int64_t first, int64_t count) {
    const int64_t channel = block * kChannelBlock;
    run(x + ((block * batch + image) * pixels + first) * kChannelBlock, pixels,
        std::min(kChannelBlock, channels - channel), count, y + (image * channels + channel) * pixels + first);
  });
}

}  // namespace twibil::kernels
#endif
