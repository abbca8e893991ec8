// SPDX-License-Identifier: Apache-2.0
// The convolution on blocked channels that takes every shape: plain loops over whole blocks, with zero weights where
// groups do not see each other. The measure of the other algorithms, and what is left where they all refuse.
#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/blocked.h"

namespace twibil::kernels {

namespace {

constexpr int64_t kSquare = kChannelBlock * kChannelBlock;

/// The input blocks that the groups of one output block see. `count` is the same for all output blocks.
struct Seen {
  int64_t count = 1;
  explicit Seen(const BlockedShape& s)
      : s_(s), in_group_(s.in_channels / s.groups), out_group_(s.out_channels / s.groups) {
    if (s.groups == 1) {
      count = channel_blocks(s.in_channels);
      return;
    }
    // As many groups as a block of outputs can touch, and as many blocks as their inputs can.
    int64_t touched = out_group_ % kChannelBlock == 0 ? 1 : (kChannelBlock + out_group_ - 2) / out_group_ + 1;
    int64_t channels = checked_mul(std::min(touched, s.groups), in_group_);
    count = std::min(channel_blocks(s.in_channels), (channels + kChannelBlock - 2) / kChannelBlock + 1);
  }
  int64_t first(int64_t block) const { return std::min(first_of(block), channel_blocks(s_.in_channels) - count); }
  int64_t in_group(int64_t out_channel) const { return out_channel / out_group_ * in_group_; }

 private:
  int64_t first_of(int64_t block) const { return block * kChannelBlock / out_group_ * in_group_ / kChannelBlock; }
  const BlockedShape& s_;
  int64_t in_group_, out_group_;
};

int64_t taps_of(const BlockedShape& s) { return s.kernel[0] * s.kernel[1]; }

const char* refuses(const BlockedShape&) { return nullptr; }

double multiplications(const BlockedShape& s) {
  return static_cast<double>(s.batch * channel_blocks(s.out_channels)) * static_cast<double>(s.out[0] * s.out[1]) *
         static_cast<double>(Seen(s).count * taps_of(s)) * kSquare;
}
int64_t packed_size(const BlockedShape& s) {
  return checked_mul(checked_mul(channel_blocks(s.out_channels), Seen(s).count), checked_mul(taps_of(s), kSquare));
}

// Compiled for the lowest instruction set and without a register tile: a twentieth of what the others reach.
double seconds(const BlockedShape& s, const BlockedMachine& m) {
  return 40 * multiplications(s) / m.flops + 8.0 * static_cast<double>(packed_size(s)) / m.bandwidth;
}

/// [output block][seen input block][tap][16 in][16 out]
void pack(const BlockedShape& s, const float* w, float* packed) {
  Seen seen(s);
  int64_t taps = taps_of(s), in_group = s.in_channels / s.groups;
  std::fill_n(packed, packed_size(s), 0.0F);
  for (int64_t o = 0; o < s.out_channels; ++o) {
    int64_t block = o / kChannelBlock;
    for (int64_t c = 0; c < in_group; ++c) {
      int64_t from = seen.in_group(o) + c - seen.first(block) * kChannelBlock;
      for (int64_t t = 0; t < taps; ++t)
        packed[((block * seen.count + from / kChannelBlock) * taps + t) * kSquare +
               from % kChannelBlock * kChannelBlock + o % kChannelBlock] = w[(o * in_group + c) * taps + t];
    }
  }
}

/// One row of output pixels of one block.
void run_row(const BlockedShape& s, const Seen& seen, int64_t block, int64_t image, int64_t row, const float* x,
             const float* packed, const BlockedEpilogue& e, float* y) {
  int64_t taps = taps_of(s), pixels = s.in[0] * s.in[1];
  const float* weights = packed + block * seen.count * taps * kSquare;
  int64_t at = ((block * s.batch + image) * s.out[0] + row) * s.out[1] * kChannelBlock;
  for (int64_t column = 0; column < s.out[1]; ++column, at += kChannelBlock) {
    float sum[kChannelBlock] = {};
    for (int64_t b = 0; b < seen.count; ++b)
      for (int64_t t = 0; t < taps; ++t) {
        int64_t h = row * s.stride[0] + t / s.kernel[1] * s.dilation[0] - s.pad[0];
        int64_t v = column * s.stride[1] + t % s.kernel[1] * s.dilation[1] - s.pad[1];
        if (h < 0 || h >= s.in[0] || v < 0 || v >= s.in[1]) continue;
        const float* from =
            x + (((seen.first(block) + b) * s.batch + image) * pixels + h * s.in[1] + v) * kChannelBlock;
        const float* w = weights + (b * taps + t) * kSquare;
        for (int64_t c = 0; c < kChannelBlock; ++c)
          for (int64_t o = 0; o < kChannelBlock; ++o) sum[o] += from[c] * w[c * kChannelBlock + o];
      }
    for (int64_t o = 0; o < kChannelBlock; ++o) {
      if (e.bias) sum[o] += e.bias[block * kChannelBlock + o];
      if (e.residual) sum[o] += e.residual[at + o];
      y[at + o] = std::min(std::max(sum[o], e.lower), e.upper);
    }
  }
}

void run(const BlockedShape& s, const float* x, const float* packed, const BlockedEpilogue& e, float* y) {
  Seen seen(s);
  int64_t rows = s.batch * s.out[0];
  parallel_for(channel_blocks(s.out_channels) * rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      run_row(s, seen, i / rows, i % rows / s.out[0], i % s.out[0], x, packed, e, y);
  });
}

}  // namespace

constinit const BlockedAlgorithm blocked_reference{
    .name = "plain loops",
    .exact = true,
    .plain_input = false,
    .refuses = refuses,
    .seconds = seconds,
    .packed_size = packed_size,
    .pack = pack,
    .run = run,
};

}  // namespace twibil::kernels
