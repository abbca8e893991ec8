// SPDX-License-Identifier: Apache-2.0
// From arrays (batch, channels, height, width) to blocks of channels and back, and joining along the channels in
// blocks.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "base/recycled.h"
#include "kernels/blocked_convert.h"
#include "ops/nn/blocked.h"

namespace twibil::ops {

extern const OpDef op_to_blocks, op_from_blocks, op_join_blocks;

void check_blocked(const Sig& x, int64_t channels, const char* who) {
  const Shape& s = x.shape;
  TW_CHECK(s.rank() == 5 && s[4] == kChannelBlock && channels > 0 && s[0] == channel_blocks(channels), value, who,
           ": x must have shape (blocks, batch, height, width, 16) with blocks for ", channels, " channels; got ", s);
}

Val to_blocks(const Val& x) { return apply(op_to_blocks, {x}); }
Val channels_to_blocks(const Val& x) { return to_blocks(reshape(x, {1, x->size(), 1, 1})); }

namespace {

struct FromBlocksAttrs {
  int64_t channels = 0;
};
struct JoinBlocksAttrs {
  IntList channels;
};

/// A run of channels that lies in one block of a part and in one block of the result.
struct Run {
  const float* from;
  int64_t from_lane, to_lane, lanes;
};

/// What lies in one block of the joined array, in order.
Recycled<Run> runs_of(const JoinBlocksAttrs& a, const Call& c, int64_t block, int64_t pixels) {
  Recycled<Run> runs;
  int64_t begin = block * kChannelBlock, end = begin + kChannelBlock, first = 0;
  for (int k = 0; k < a.channels.size(); first += a.channels[k++]) {
    int64_t at = std::max(begin, first), until = std::min(end, first + a.channels[k]);
    while (at < until) {
      int64_t channel = at - first, lane = channel % kChannelBlock, lanes = std::min(until - at, kChannelBlock - lane);
      const float* from = c.in[static_cast<size_t>(k)].as<float>() + channel / kChannelBlock * pixels * kChannelBlock;
      runs.push_back({from, lane, at - begin, lanes});
      at += lanes;
    }
  }
  return runs;
}

void join_block(std::span<const Run> runs, int64_t begin, int64_t end, float* y) {
  const Run& last = runs.back();
  if (runs.size() == 1 && last.from_lane == 0) {  // whole, or the last one with what fills it
    if (last.from != y)
      std::memcpy(y + begin * kChannelBlock, last.from + begin * kChannelBlock,
                  static_cast<size_t>((end - begin) * kChannelBlock) * sizeof(float));
    return;
  }
  for (int64_t p = begin; p < end; ++p) {
    float lanes[kChannelBlock] = {};
    for (const Run& r : runs)
      std::memcpy(lanes + r.to_lane, r.from + p * kChannelBlock + r.from_lane,
                  static_cast<size_t>(r.lanes) * sizeof(float));
    std::memcpy(y + p * kChannelBlock, lanes, sizeof lanes);
  }
}

int64_t sum_of(const IntList& channels) {
  int64_t all = 0;
  for (int64_t n : channels) all = checked_add(all, n);
  return all;
}

}  // namespace

Val join_blocks(std::span<const Val> in, const IntList& channels) {
  JoinBlocksAttrs a{channels};
  return apply_all(op_join_blocks, &a, in)[0];
}

inline constexpr Field kFromBlocksFields[] = {
    TW_ATTR(FromBlocksAttrs, channels, "How many channels there are; the last block may have room for more."),
};
inline constexpr Field kJoinBlocksFields[] = {
    TW_ATTR(JoinBlocksAttrs, channels, "How many channels each array has."),
};

TW_OP(to_blocks) = whole({
    .name = "to_blocks",
    .doc = "x in blocks of 16 channels, (blocks, batch, height, width, 16); zeros fill the last block.",
    .in = {{{.name = "x", .doc = "(batch, channels, height, width), or without batch."}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      Shape x = in[0].shape;
      if (x.rank() == 3) x.insert(0, 1);
      TW_CHECK(x.rank() == 4, value, "to_blocks: x must have shape (batch, channels, height, width); got ",
               in[0].shape);
      out[0] = {blocked_shape(x), in[0].dtype};
    }),
    .types = bit_of(DType::float32),
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) {
      const Buffer &x = c.in[0], &y = c.out[0];
      if (y.size > 0)
        kernels::to_blocked(y.dim(1), x.dim(x.rank - 3), y.dim(2) * y.dim(3), x.as<float>(), y.template as<float>());
    }),
    .no_grad = "belongs to prediction",
    .role = Role::to_blocks,
    .samples = {{{.in = {{{2, 5, 3, 4}}}}, {.in = {{{33, 2, 7}}}}}},
});

TW_OP(from_blocks) = whole({
    .name = "from_blocks",
    .doc = "(batch, channels, height, width) from blocks of 16 channels.",
    .attrs = schema<FromBlocksAttrs>(kFromBlocksFields),
    .in = {{{.name = "x", .doc = "(blocks, batch, height, width, 16)."}}},
    .infer = infer_rule<FromBlocksAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_blocked(in[0], a.channels, "from_blocks");
      const Shape& x = in[0].shape;
      out[0] = {Shape{x[1], a.channels, x[2], x[3]}, in[0].dtype};
    }),
    .types = bit_of(DType::float32),
    .kernel = cpu_rule<FromBlocksAttrs>([](auto& a, Call& c) {
      const Buffer &x = c.in[0], &y = c.out[0];
      if (y.size > 0)
        kernels::from_blocked(y.dim(0), a.channels, y.dim(2) * y.dim(3), x.as<float>(), y.template as<float>());
    }),
    .no_grad = "belongs to prediction",
    .role = Role::from_blocks,
    .samples = {{{.in = {{{2, 3, 2, 5, 16}}}, .attrs = "channels=24"}}},
});

TW_OP(join_blocks) = whole({
    .name = "join_blocks",
    .doc = "Joins arrays in blocks along their channels: laid end to end where those before fill whole blocks.",
    .attrs = schema<JoinBlocksAttrs>(kJoinBlocksFields),
    .in = {{{.name = "seq", .kind = SlotKind::variadic}}},
    .infer = infer_rule<JoinBlocksAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(!in.empty() && a.channels.size() == static_cast<int>(in.size()), value,
               "join_blocks: channels must say one number for each array; got ", a.channels.span());
      for (size_t k = 0; k < in.size(); ++k) {
        check_blocked(in[k], a.channels[static_cast<int>(k)], "join_blocks");
        for (int i = 1; i < 4; ++i)
          TW_CHECK(in[k].shape[i] == in[0].shape[i], value, "join_blocks: array ", k, " of shape ", in[k].shape,
                   " does not fit array 0 of shape ", in[0].shape);
      }
      Shape y = in[0].shape;
      y[0] = channel_blocks(sum_of(a.channels));
      out[0] = {y, in[0].dtype};
    }),
    .types = bit_of(DType::float32),
    .kernel = cpu_rule<JoinBlocksAttrs>([](auto& a, Call& c) {
      const Buffer& y = c.out[0];
      int64_t pixels = y.dim(1) * y.dim(2) * y.dim(3);
      for (int64_t b = 0; pixels > 0 && b < y.dim(0); ++b) {
        Recycled<Run> runs = runs_of(a, c, b, pixels);
        float* to = y.template as<float>() + b * pixels * kChannelBlock;
        parallel_for(pixels, 4096, [&](int64_t begin, int64_t end) { join_block(runs, begin, end, to); });
      }
    }),
    .no_grad = "belongs to prediction",
    .joins = join_rule<JoinBlocksAttrs>([](auto& a, SigsIn in, int i) -> int64_t {
      int64_t before = 0;
      for (int k = 0; k < i; ++k) before += a.channels[k];
      bool last = i + 1 == a.channels.size();
      if (before % kChannelBlock != 0 || (!last && a.channels[i] % kChannelBlock != 0)) return -1;
      const Shape& x = in[static_cast<size_t>(i)].shape;
      return before * x[1] * x[2] * x[3];
    }),
    .samples = {{{.in = {{{1, 2, 2, 3, 16}, {2, 2, 2, 3, 16}, {1, 2, 2, 3, 16}}}, .attrs = "channels=(16, 24, 9)"}}},
});

}  // namespace twibil::ops
