// SPDX-License-Identifier: Apache-2.0
// The direct convolution on blocked channels: sums the products as they stand. Every output sums its list of
// (input block, tap) in the same order and pieces, so that its bits do not depend on how the work is cut.
//
// A 1x1 convolution is a matrix product and reads its input where it lies. Otherwise bands of the input are copied with
// their padding, so that neighbours in the output read neighbours in the copy whatever the stride and dilation. The
// copy's lines are a little longer than the output's, and tiles end with a line; or, for narrow pictures, there is a
// copy for each horizontal tap, and tiles go from line to line.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/parallel.h"
#include "base/recycled.h"
#include "kernels/blocked.h"
#include "kernels/blocked_plan.h"
#include "kernels/blocked_tile.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kSquare = kChannelBlock * kChannelBlock;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- Weights --------------------------------------------------------------------------------------------------------

int64_t packed_size(const BlockedShape& s) {
  const BlockedLists lists(s);
  return checked_mul(lists.column_size(), lists.out_blocks);
}

/// packed[output block][vertical tap][input block][horizontal tap][16 inputs][16 outputs]
void pack(const BlockedShape& s, const float* w, float* packed) {
  const BlockedLists lists(s);
  parallel_for(lists.out_blocks, 1, [&](int64_t block, int64_t end) {
    for (; block < end; ++block) {
      float* column = packed + block * lists.column_size();
      std::fill_n(column, lists.column_size(), 0.0F);
      const int64_t first = lists.first(block / lists.width) * kChannelBlock;
      for (int64_t o = block * kChannelBlock; o < std::min((block + 1) * kChannelBlock, s.out_channels); ++o) {
        for (int64_t c = 0; c < lists.in_group; ++c) {
          const int64_t in = o / lists.out_group * lists.in_group + c - first;
          const float* from = w + (o * lists.in_group + c) * lists.taps;
          for (int64_t t = 0; t < lists.taps; ++t) {
            const int64_t y = t / s.kernel[1], x = t % s.kernel[1];
            const int64_t at = (y * lists.count + in / kChannelBlock) * s.kernel[1] + x;
            column[at * kSquare + in % kChannelBlock * kChannelBlock + o % kChannelBlock] = from[t];
          }
        }
      }
    }
  });
}

// ---- Input ----------------------------------------------------------------------------------------------------------

/// to[i] = pixel start + i * stride of the line, zero where it does not reach.
void copy_line(const float* line, int64_t size, int64_t start, int64_t stride, int64_t n, float* to) {
  const int64_t first = std::clamp<int64_t>(ceil_div(std::max<int64_t>(0, -start), stride), 0, n);
  const int64_t last = std::clamp<int64_t>(ceil_div(std::max<int64_t>(0, size - start), stride), first, n);
  constexpr int64_t kPixel = kChannelBlock * sizeof(float), kAhead = 32;
  std::memset(to, 0, static_cast<size_t>(first * kPixel));
  const float* from = line + (start + first * stride) * kChannelBlock;
  float* at = to + first * kChannelBlock;
  if (stride == 1) {
    if (last > first) std::memcpy(at, from, static_cast<size_t>((last - first) * kPixel));
  } else {
    for (int64_t i = first; i < last; ++i, from += stride * kChannelBlock, at += kChannelBlock) {
      __builtin_prefetch(from + kAhead * stride * kChannelBlock);  // which the processor's own guess may not cover
      std::memcpy(at, from, kPixel);
    }
  }
  std::memset(to + last * kChannelBlock, 0, static_cast<size_t>((n - last) * kPixel));
}

/// What a band of the output reads of the input blocks first, first + 1, ...
void copy_band(const BlockedPlan& p, const BlockedBand& band, int64_t first, const float* x, float* copy) {
  const BlockedShape& s = p.s;
  for (int64_t block = 0; block < p.lists.count; ++block) {
    for (int64_t image = 0; image < band.images; ++image) {
      const float* picture = x + ((first + block) * s.batch + band.image + image) * s.in[0] * s.in[1] * kChannelBlock;
      float* to = copy + (block * p.block_size() + image * p.image_size()) * kChannelBlock;
      for (const BlockedPlane& plane : p.planes) {
        float* line = to;
        for (int64_t i = 0; i < band.lines + p.reach[0]; ++i, line += p.pitch() * kChannelBlock) {
          const int64_t y = (band.line + i) * s.stride[0] + plane.start[0];
          const int64_t size = y >= 0 && y < s.in[0] ? s.in[1] : 0;
          copy_line(picture + (size ? y * s.in[1] * kChannelBlock : 0), size,
                    band.column * s.stride[1] + plane.start[1], s.stride[1], band.columns + p.reach[1], line);
        }
        to += p.plane_size() * kChannelBlock;
      }
    }
  }
}

/// Where the blocks of A lie in the copy (or in x), in the order of the weights.
void fill_offsets(const BlockedPlan& p, int64_t* offsets) {
  for (int64_t y = 0; y < p.s.kernel[0]; ++y) {
    for (int64_t block = 0; block < p.lists.count; ++block) {
      for (int64_t x = 0; x < p.s.kernel[1]; ++x) {
        const BlockedTap& tap = p.taps[static_cast<size_t>(y * p.s.kernel[1] + x)];
        const int64_t pixel = p.in_place ? block * p.s.in[1]
                                         : block * p.block_size() + tap.plane * p.plane_size() +
                                               tap.offset[0] * p.pitch() + tap.offset[1];
        *offsets++ = pixel * kChannelBlock;
      }
    }
  }
}

// ---- The loops ------------------------------------------------------------------------------------------------------

/// Where the weights of a tile lie, and those that follow.
struct Weights {
  const float* here;
  const float* next;  // null: they need not be fetched
};

/// One or two output blocks of a band; `a` is where the band's first pixel is read. Long lists are summed in pieces
/// whose weights stay in the L2 cache for all rows, while those of the next piece arrive from memory.
void run_band(const BlockedPlan& p, const BlockedBand& band, int64_t tile, const float* a, const int64_t* offsets,
              const Weights& weights, const BlockedEpilogue& e, float* y) {
  const BlockedShape& s = p.s;
  const int64_t block = tile * p.lists.width, out_size = s.out[0] * s.out[1];
  const bool through = p.through_lines();
  BlockedTile t{};
  t.a_far = p.in_place;
  t.b_column_step = p.lists.column_size();
  t.c_column_step = s.batch * out_size * kChannelBlock;
  t.columns = std::min(p.lists.width, p.lists.out_blocks - block);
  t.rows = through ? band.lines * band.columns : band.columns;
  const int64_t calls = band.images * (through ? 1 : band.lines), all = p.lists.count * p.lists.taps;
  const int64_t passes = calls * ceil_div(t.rows, blocked_tiles().max_rows);
  for (int64_t begin = 0; begin == 0 || begin < all; begin += p.piece) {
    t.blocks = std::min(p.piece, all - begin);
    const bool first = begin == 0, last = begin + t.blocks >= all;
    t.a_offsets = offsets + begin;
    t.b = weights.here + begin * kSquare;
    t.next_b = !weights.next ? nullptr : last ? weights.next : t.b + t.blocks * kSquare;
    t.next_b_lines = ceil_div(kChannelBlock, std::max<int64_t>(1, passes));
    t.accumulate = !first;
    t.bias = first && e.bias ? e.bias + block * kChannelBlock : nullptr;
    if (last) t.lower = e.lower, t.upper = e.upper;
    int64_t pass = 0;
    for (int64_t image = 0; image < band.images; ++image) {
      const float* line = a + image * p.image_size() * kChannelBlock;
      int64_t c =
          ((block * s.batch + band.image + image) * out_size + band.line * s.out[1] + band.column) * kChannelBlock;
      for (int64_t i = 0; i < (through ? 1 : band.lines); ++i, ++pass) {
        t.a = line, t.c = y + c;
        // Before the first piece overwrites it: the residual may be y.
        t.residual = first && e.residual ? e.residual + c : nullptr;
        blocked_tiles().run(t);
        line += p.pitch() * kChannelBlock, c += s.out[1] * kChannelBlock;
        if (t.next_b) {
          t.next_b += passes / calls * t.blocks * t.next_b_lines * kChannelBlock;
          if ((pass + 1) * (passes / calls) * t.next_b_lines >= kChannelBlock) t.next_b = nullptr;  // all is on its way
        }
      }
    }
  }
}

void run(const BlockedShape& shape, const float* x, const float* packed, const BlockedEpilogue& e, float* y) {
  const int threads = num_threads();
  const BlockedPlan p(shape, threads);
  Recycled<int64_t> offsets(static_cast<size_t>(p.lists.count * p.lists.taps));
  fill_offsets(p, offsets.data());
  const int64_t tiles = p.lists.tiles(), items = p.bands() * tiles;
  const int64_t grain = threads == 1 ? items : std::max<int64_t>(1, items / (4 * threads));
  // Band by band, so that a copy serves as many output blocks as a chunk holds.
  parallel_for(items, grain, [&](int64_t i, int64_t end) {
    ScratchFrame frame;
    float* copy = p.in_place ? nullptr : frame.take<float>(checked_mul(p.lists.count, p.block_size() * kChannelBlock));
    int64_t copied_band = -1, copied_first = -1;
    for (; i < end; ++i) {
      const BlockedBand band = p.band(i / tiles);
      const int64_t first = p.lists.first(i % tiles);
      const float* a = copy;
      if (p.in_place) {
        a = x + (first * p.s.in[1] + band.column) * kChannelBlock;
      } else if (copied_band != i / tiles || copied_first != first) {
        copy_band(p, band, first, x, copy);
        copied_band = i / tiles, copied_first = first;
      }
      const int64_t tile = i % tiles, next = (tile + 1) % tiles;
      const int64_t pair = p.lists.width * p.lists.column_size();
      run_band(p, band, tile, a, offsets.data(), {packed + tile * pair, p.weights_far ? packed + next * pair : nullptr},
               e, y);
    }
  });
}

const char* refuses(const BlockedShape&) { return nullptr; }

double seconds(const BlockedShape& s, const BlockedMachine& m) {
  const BlockedPlan p(s, 1);
  constexpr double kReached = 0.95, kFlopsPerCycle = 2 * 2 * kChannelBlock;
  const double compute = p.cycles() * kFlopsPerCycle / (kReached * m.flops);
  // Few rows do not hide that their weights come from memory.
  const double rows = static_cast<double>(s.batch * s.out[0] * s.out[1]);
  const double weights = 4.0 * static_cast<double>(p.lists.column_size() * p.lists.out_blocks);
  return std::max(compute, weights / m.bandwidth) + weights / m.bandwidth * std::min(1.0, 14 / std::max(1.0, rows));
}

}  // namespace

constinit const BlockedAlgorithm blocked_direct{
    .name = "direct",
    .exact = true,
    .plain_input = false,
    .refuses = refuses,
    .seconds = seconds,
    .packed_size = packed_size,
    .pack = pack,
    .run = run,
};

}  // namespace twibil::kernels
