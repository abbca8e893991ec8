// SPDX-License-Identifier: Apache-2.0
// The convolution that filters every channel by itself, on blocked channels. Some neighbouring output pixels are summed
// at once: they share each tap's weights, and with the usual kernels and strides each input pixel is loaded once for
// all of them. Rows of taps outside of the input are left out, columns outside of it are read from a line of zeros, so
// nothing is padded.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocked_depthwise.cc"
#include <algorithm>

#include "base/checked.h"
#include "base/parallel.h"
#include "base/recycled.h"
#include "kernels/blocked.h"
#include "kernels/isa.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/clamp.h"

#ifndef TWIBIL_BLOCKED_DEPTHWISE_ROW  // once, not per instruction set
#define TWIBIL_BLOCKED_DEPTHWISE_ROW
namespace twibil::kernels {

inline constexpr int64_t kDepthwisePixels = 8;  // enough sums at once to hide the latency of multiply-adds

/// A row of output pixels of one block.
struct DepthwiseRow {
  const float* x = nullptr;        // the row of input, `width` pixels, that the first row of taps sees
  int64_t x_step, width;           // the next row of taps sees the row x_step further
  const float* weights = nullptr;  // [rows][columns][16], rows outside of the input left out
  int64_t rows = 0, columns;
  int64_t stride, dilation, left;  // column j of pixel p is at p * stride + j * dilation + left
  float* y = nullptr;
  int64_t tiles, least, longer;     // `tiles` tiles of `least` pixels, the first `longer` ones with one more
  const float* next = nullptr;      // the row of input that the next call reads first, to be fetched, or null
  const float* bias = nullptr;      // or null
  const float* residual = nullptr;  // laid out as y, or null
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
constexpr int kMaxPixels = static_cast<int>(kDepthwisePixels);
alignas(64) constexpr float kZeros[kChannelBlock] = {};

/// Keeps v in its register: compilers read it again for every use instead, and then the loads are what takes the time.
HWY_INLINE void keep(Vector& v) {
#if defined(__GNUC__) && defined(__x86_64__)
  asm volatile("" : "+v"(v.raw));
#else
  static_cast<void>(v);
#endif
}

/// `count` tiles of M pixels from pixel `first` on. K columns of taps and stride S are known, or 0: any, and any
/// dilation. kEdge: some columns lie outside of the input.
template <int K, int S, int M, bool kEdge> HWY_NOINLINE void tile(const DepthwiseRow& r, int64_t first, int64_t count) {
  const Tag d;
  const int64_t x_step = r.x_step, rows = r.rows;
  const Vector lower = hn::Set(d, r.lower), upper = hn::Set(d, r.upper);
  for (; count > 0; --count, first += M) {
    const int64_t start = first * r.stride + r.left, at = first * kChannelBlock;
    for (int64_t lane = 0; lane < kChannelBlock; lane += kLanes) {
      const auto input = [&](const float* row, int64_t column) HWY_ATTR {
        const bool outside = kEdge && (start + column < 0 || start + column >= r.width);
        return hn::LoadU(d, outside ? kZeros : row + column * kChannelBlock);
      };
      Vector sum[M];
      const Vector begin = r.bias ? hn::LoadU(d, r.bias + lane) : hn::Zero(d);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) sum[m] = begin;
      const float *row = r.x + start * kChannelBlock + lane, *w = r.weights + lane;
      for (int64_t i = 0; i < rows; ++i, row += x_step) {
        if constexpr (K > 0) {
#pragma GCC unroll 32
          for (int q = 0; q < (M - 1) * S + K; ++q) {
            Vector v = input(row, q);
            keep(v);
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) {
              const int j = q - m * S;
              if (j >= 0 && j < K) sum[m] = hn::MulAdd(v, hn::LoadU(d, w + j * kChannelBlock), sum[m]);
            }
          }
          w += K * kChannelBlock;
        } else {
          for (int64_t j = 0; j < r.columns; ++j, w += kChannelBlock) {
            const Vector weight = hn::LoadU(d, w);
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) sum[m] = hn::MulAdd(input(row, j * r.dilation + m * r.stride), weight, sum[m]);
          }
        }
      }
      if (const float* residual = r.residual) {
        residual += at + lane;
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) sum[m] = hn::Add(sum[m], hn::LoadU(d, residual + m * kChannelBlock));
      }
      float* y = r.y + at + lane;
      // The sum comes second: x86 then keeps it when it is not a number.
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) hn::StoreU(clamped(sum[m], lower, upper), d, y + m * kChannelBlock);
    }
  }
}

using TileFunction = void (*)(const DepthwiseRow&, int64_t first, int64_t count);
struct Tiles {
  TileFunction tile[2][kMaxPixels + 1];  // [edge][pixels]
};
template <int K, int S, int M> constexpr void fill(Tiles& tiles) {
  if constexpr (M >= 1) {
    // Fewer than four pixels are all that a tiny picture has.
    tiles.tile[0][M] = tile < M < 4 ? 0 : K, S, M, false > ;
    tiles.tile[1][M] = tile < M < 4 ? 0 : K, S, M, true > ;
    fill<K, S, M - 1>(tiles);
  }
}
template <int K, int S> constexpr Tiles make_tiles() {
  Tiles tiles{};
  fill<K, S, kMaxPixels>(tiles);
  return tiles;
}
constexpr Tiles kAny = make_tiles<0, 0>();
constexpr Tiles k3x1 = make_tiles<3, 1>(), k5x1 = make_tiles<5, 1>(), k7x1 = make_tiles<7, 1>();
constexpr Tiles k3x2 = make_tiles<3, 2>(), k5x2 = make_tiles<5, 2>(), k7x2 = make_tiles<7, 2>();

const Tiles& tiles_for(const DepthwiseRow& r) {
  if (r.dilation != 1 || r.stride > 2) return kAny;
  switch (r.columns) {
    case 3: return r.stride == 1 ? k3x1 : k3x2;
    case 5: return r.stride == 1 ? k5x1 : k5x2;
    case 7: return r.stride == 1 ? k7x1 : k7x2;
    default: return kAny;
  }
}

}  // namespace

void depthwise_row(const DepthwiseRow& r) {
  const Tiles& tiles = tiles_for(r);
  const int64_t reach = (r.columns - 1) * r.dilation;
  if (r.next)
    for (int64_t i = 0; i < r.width; ++i) __builtin_prefetch(r.next + i * kChannelBlock);
  const auto size = [&](int64_t tile) { return r.least + (tile < r.longer); };
  const auto is_edge = [&](int64_t first, int64_t n) {
    const int64_t start = first * r.stride + r.left;
    return start < 0 || start + (n - 1) * r.stride + reach >= r.width;
  };
  for (int64_t i = 0, p = 0; i < r.tiles;) {
    const int64_t n = size(i);
    const bool edge = is_edge(p, n);
    int64_t count = 1;
    while (i + count < r.tiles && size(i + count) == n && is_edge(p + count * n, n) == edge) ++count;
    tiles.tile[edge][n](r, p, count);
    i += count, p += count * n;
  }
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
namespace {

const char* refuses(const BlockedShape& s) {
  if (s.groups == 1 && s.in_channels == 1 && s.out_channels == 1) return "one channel is no block of them";
  if (s.groups != s.in_channels || s.groups != s.out_channels)
    return "its groups must have one input and one output channel";
  return nullptr;
}

double seconds(const BlockedShape& s, const BlockedMachine& m) {
  const double blocks = static_cast<double>(s.batch * channel_blocks(s.out_channels) * kChannelBlock);
  const double in = blocks * static_cast<double>(s.in[0] * s.in[1]);
  const double out = blocks * static_cast<double>(s.out[0] * s.out[1]);
  const double sums = 2 * out * static_cast<double>(checked_product(s.kernel)) / (0.5 * m.flops);
  return std::max(sums, 4 * (in + out) / m.bandwidth / 4);  // mostly from the caches
}

int64_t packed_size(const BlockedShape& s) {
  return checked_mul(channel_blocks(s.out_channels) * kChannelBlock, checked_product(s.kernel));
}

/// [block][tap][16]
void pack(const BlockedShape& s, const float* w, float* packed) {
  const int64_t taps = checked_product(s.kernel);
  std::fill_n(packed, packed_size(s), 0.F);
  for (int64_t c = 0; c < s.out_channels; ++c)
    for (int64_t t = 0; t < taps; ++t)
      packed[(c / kChannelBlock * taps + t) * kChannelBlock + c % kChannelBlock] = w[c * taps + t];
}

/// For each output row the first row of input that it sees and the rows of taps [first, last) that lie inside.
struct RowTaps {
  int64_t row, first, last;
};
Recycled<RowTaps> row_taps(const BlockedShape& s) {
  Recycled<RowTaps> all;
  const int64_t step = s.dilation[0], taps = s.kernel[0];
  for (int64_t r = 0; r < s.out[0]; ++r) {
    const int64_t top = r * s.stride[0] - s.pad[0];
    const int64_t first = top < 0 ? std::min((-top + step - 1) / step, taps) : 0;
    const int64_t last = std::clamp(top < s.in[0] ? (s.in[0] - top + step - 1) / step : 0, first, taps);
    all.push_back({first < last ? top + first * step : 0, first, last});
  }
  return all;
}

HWY_EXPORT(depthwise_row);

void run(const BlockedShape& s, const float* x, const float* packed, const BlockedEpilogue& e, float* y) {
  constexpr int64_t kGrain = 16'000;          // multiply-adds of a block that are worth a thread
  constexpr int64_t kFar = int64_t{4} << 20;  // floats of input that do not come from a cache
  if (s.batch == 0 || s.out[0] == 0 || s.out[1] == 0) return;
  const int64_t in_row = s.in[1] * kChannelBlock, out_row = s.out[1] * kChannelBlock;
  const int64_t tap_row = s.kernel[1] * kChannelBlock, tiles = (s.out[1] + kDepthwisePixels - 1) / kDepthwisePixels;
  const Recycled<RowTaps> taps = row_taps(s);
  const auto run_row = TW_DISPATCH(depthwise_row);
  const bool far = channel_blocks(s.in_channels) * s.batch * s.in[0] * in_row > kFar;
  const int64_t rows = channel_blocks(s.out_channels) * s.batch * s.out[0];
  parallel_for(
      rows, std::max<int64_t>(1, kGrain / (s.out[1] * checked_product(s.kernel))), [&](int64_t i, int64_t end) {
        DepthwiseRow r{.x_step = s.dilation[0] * in_row,
                       .width = s.in[1],
                       .columns = s.kernel[1],
                       .stride = s.stride[1],
                       .dilation = s.dilation[1],
                       .left = -s.pad[1],
                       .tiles = tiles,
                       .least = s.out[1] / tiles,
                       .longer = s.out[1] % tiles,
                       .lower = e.lower,
                       .upper = e.upper};
        while (i < end) {  // the rows of a plane; divisions would show among the rows
          const int64_t plane = i / s.out[0], block = plane / s.batch, stop = std::min(end, (plane + 1) * s.out[0]);
          r.bias = e.bias ? e.bias + block * kChannelBlock : nullptr;
          for (; i < stop; ++i) {
            const RowTaps& t = taps[static_cast<size_t>(i - plane * s.out[0])];
            r.x = x + (plane * s.in[0] + t.row) * in_row;
            r.weights = packed + (block * s.kernel[0] + t.first) * tap_row;
            r.rows = t.last - t.first;
            r.y = y + i * out_row;
            r.residual = e.residual ? e.residual + i * out_row : nullptr;
            r.next = far ? r.x + r.rows * r.x_step : nullptr;
            run_row(r);
          }
        }
      });
}

}  // namespace

constinit const BlockedAlgorithm blocked_depthwise{
    .name = "depthwise",
    .exact = true,
    .plain_input = false,
    .refuses = refuses,
    .seconds = seconds,
    .packed_size = packed_size,
    .pack = pack,
    .run = run,
};

}  // namespace twibil::kernels
#endif
