// SPDX-License-Identifier: Apache-2.0
// The squares of a channel and its neighbours are added up for some pixels at a time; powers are exp(-beta * log(s)).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lrn.cc"
#include "kernels/lrn.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/parallel.h"
#include "kernels/blocked.h"
#include "kernels/isa.h"
#include "kernels/scratch.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/vector_math.h"

#ifndef TWIBIL_LRN_PIXELS  // once, not per instruction set
#define TWIBIL_LRN_PIXELS
namespace twibil::kernels {

inline constexpr int64_t kLrnPixels = 512;        // of a channel at a time: the sums stay in the first-level cache
inline constexpr int64_t kLrnBlockedPixels = 32;  // of a block at a time, for the same reason
/// Blocks on each side of one that its windows reach into.
constexpr int64_t lrn_side(const LrnShape& s) { return channel_blocks(s.window / 2); }

}  // namespace twibil::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace {

using Tag = hn::CappedTag<float, kChannelBlock>;
using Vector = hn::Vec<Tag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));

struct Power {
  Vector scale, shift, exponent;
  explicit Power(const LrnShape& s)
      : scale(hn::Set(Tag(), static_cast<float>(s.alpha / static_cast<double>(s.window)))),
        shift(hn::Set(Tag(), static_cast<float>(s.knorm))),
        exponent(hn::Set(Tag(), static_cast<float>(-s.beta))) {}
  HWY_INLINE Vector operator()(Vector x, Vector squares) const {
    const Tag d;
    return hn::Mul(x, vector_exp(d, hn::Mul(exponent, vector_log(d, hn::MulAdd(squares, scale, shift)))));
  }
};

}  // namespace

/// Pixels [begin, end) of one channel of one picture, at most kLrnPixels.
void lrn_piece(const LrnShape& s, int64_t channel, int64_t begin, int64_t end, const float* x, float* y) {
  const Tag d;
  const Power power(s);
  const int64_t first = std::max<int64_t>(0, channel - s.window / 2);
  const int64_t last = std::min(s.channels - 1, channel + s.window / 2), n = end - begin;
  HWY_ALIGN float sums[kLrnPixels + kChannelBlock], own[kLrnPixels + kChannelBlock];
  const int64_t whole = n / kLanes * kLanes;
  std::fill(sums + whole, sums + n + kLanes, 1.F), std::fill(own + whole, own + n + kLanes, 0.F);
  for (int64_t i = 0; i < whole; i += kLanes) {
    Vector sum = hn::Zero(d);
    for (int64_t c = first; c <= last; ++c) {
      const Vector v = hn::LoadU(d, x + c * s.pixels + begin + i);
      sum = hn::MulAdd(v, v, sum);
    }
    hn::StoreU(power(hn::LoadU(d, x + channel * s.pixels + begin + i), sum), d, y + channel * s.pixels + begin + i);
  }
  if (whole == n) return;
  for (int64_t i = whole; i < n; ++i) {
    float sum = 0;
    for (int64_t c = first; c <= last; ++c) sum += x[c * s.pixels + begin + i] * x[c * s.pixels + begin + i];
    sums[i] = sum, own[i] = x[channel * s.pixels + begin + i];
  }
  hn::StoreU(power(hn::LoadU(d, own + whole), hn::LoadU(d, sums + whole)), d, own + whole);
  std::copy_n(own + whole, n - whole, y + channel * s.pixels + begin + whole);
}

/// `count` pixels of one block, at most kLrnBlockedPixels, in the block's rows from `row` on. Their squares with those
/// of the blocks around go into `squares`, one line of channels for each pixel, so that a window is a run of it.
void lrn_block(const LrnShape& s, int64_t block, int64_t row, int64_t count, const float* x, float* y, float* squares) {
  const Tag d;
  const Power power(s);
  const int64_t side = lrn_side(s), blocks = channel_blocks(s.channels), width = (2 * side + 1) * kChannelBlock;
  const int64_t block_size = s.batch * s.pixels * kChannelBlock, at = row * kChannelBlock;
  for (int64_t b = block - side; b <= block + side; ++b) {
    float* to = squares + (b - block + side) * kChannelBlock;
    const int64_t lanes = b < 0 || b >= blocks ? 0 : std::min(kChannelBlock, s.channels - b * kChannelBlock);
    for (int64_t lane = 0; lane < kChannelBlock; lane += kLanes) {
      const auto there = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(lanes - lane, 0, kLanes)));
      for (int64_t p = 0; p < count; ++p) {
        const Vector v = lanes > lane ? hn::LoadU(d, x + b * block_size + at + p * kChannelBlock + lane) : hn::Zero(d);
        hn::StoreU(hn::IfThenElseZero(there, hn::Mul(v, v)), d, to + p * width + lane);
      }
    }
  }
  const int64_t lanes = std::min(kChannelBlock, s.channels - block * kChannelBlock);
  for (int64_t lane = 0; lane < kChannelBlock; lane += kLanes) {
    const auto there = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(lanes - lane, 0, kLanes)));
    const int64_t first = side * kChannelBlock - s.window / 2 + lane, to = block * block_size + at + lane;
    for (int64_t p = 0; p < count; ++p) {
      Vector sum = hn::Zero(d);
      for (int64_t k = 0; k < s.window; ++k) sum = hn::Add(sum, hn::LoadU(d, squares + p * width + first + k));
      const Vector v = power(hn::LoadU(d, x + to + p * kChannelBlock), sum);
      hn::StoreU(hn::IfThenElseZero(there, v), d, y + to + p * kChannelBlock);
    }
  }
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
namespace {

/// As lrn_piece, with the C library's pow.
template <class T> void plain_piece(const LrnShape& s, int64_t channel, int64_t begin, int64_t end, const T* x, T* y) {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Sum sums[kLrnPixels] = {};
  const int64_t n = end - begin, first = std::max<int64_t>(0, channel - s.window / 2);
  const int64_t last = std::min(s.channels - 1, channel + s.window / 2);
  for (int64_t c = first; c <= last; ++c) {
    const T* from = x + c * s.pixels + begin;
    for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<Sum>(from[i]) * static_cast<Sum>(from[i]);
  }
  const auto scale = static_cast<Sum>(s.alpha / static_cast<double>(s.window)), shift = static_cast<Sum>(s.knorm);
  const auto exponent = static_cast<Sum>(-s.beta);
  const T* from = x + channel * s.pixels + begin;
  T* to = y + channel * s.pixels + begin;
  for (int64_t i = 0; i < n; ++i) to[i] = T(static_cast<Sum>(from[i]) * std::pow(sums[i] * scale + shift, exponent));
}

/// Sums that may be negative have powers that logarithms do not give.
bool positive(const LrnShape& s) { return s.alpha >= 0 && s.knorm >= 0; }

template <class T, class Piece> void each_piece(const LrnShape& s, const T* x, T* y, const Piece& piece) {
  const int64_t pieces = (s.pixels + kLrnPixels - 1) / kLrnPixels;
  const int64_t grain = std::max<int64_t>(1, 16 * kLrnPixels / std::clamp<int64_t>(s.pixels, 1, kLrnPixels));
  parallel_for(s.batch * s.channels * pieces, grain, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t picture = i / (s.channels * pieces) * s.channels * s.pixels, begin = i % pieces * kLrnPixels;
      piece(s, i / pieces % s.channels, begin, std::min(begin + kLrnPixels, s.pixels), x + picture, y + picture);
    }
  });
}

}  // namespace

HWY_EXPORT(lrn_piece);
HWY_EXPORT(lrn_block);

void lrn(DType t, const LrnShape& s, const void* x, void* y) {
  dispatch(t, [&]<class T>() {
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    if constexpr (std::is_same_v<T, float>) {
      if (positive(s)) return each_piece(s, from, to, TW_DISPATCH(lrn_piece));
    }
    if constexpr (!std::is_integral_v<T>) each_piece(s, from, to, plain_piece<T>);
  });
}

void blocked_lrn(const LrnShape& s, const float* x, float* y) {
  const int64_t rows = s.batch * s.pixels, pieces = (rows + kLrnBlockedPixels - 1) / kLrnBlockedPixels;
  const auto run = TW_DISPATCH(lrn_block);
  parallel_for(channel_blocks(s.channels) * pieces, 16, [&](int64_t i, int64_t end) {
    ScratchFrame frame;
    float* squares = frame.take<float>(kLrnBlockedPixels * (2 * lrn_side(s) + 1) * kChannelBlock);
    for (; i < end; ++i) {
      const int64_t row = i % pieces * kLrnBlockedPixels;
      run(s, i / pieces, row, std::min(kLrnBlockedPixels, rows - row), x, y, squares);
    }
  });
}

}  // namespace twibil::kernels
#endif
