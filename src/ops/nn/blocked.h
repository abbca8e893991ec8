// SPDX-License-Identifier: Apache-2.0
// What operators share that compute on channels in blocks: arrays [channels / 16][batch][height][width][16], see
// kernels/blocked.h. Graphs for prediction get them from passes/choose_layouts.h; users never see one.
#pragma once
#include "kernels/blocked.h"
#include "ops/forms.h"

namespace twibil::ops {

using kernels::channel_blocks;
using kernels::kChannelBlock;

/// The shape in blocks of (batch, channels, height, width).
inline Shape blocked_shape(std::span<const int64_t> x) {
  return {channel_blocks(x[1]), x[0], x[2], x[3], kChannelBlock};
}
/// Whether an array of this kind can lie in blocks.
inline bool can_block(const Sig& s) { return s.dtype == DType::float32 && s.rank() == 4 && s.shape.size() > 0; }
/// An error unless it is an array in blocks that holds `channels`.
void check_blocked(const Sig& x, int64_t channels, const char* who);

/// (batch, channels, height, width), or (channels, height, width) of one, in blocks.
Val to_blocks(const Val& x);
/// One number for each channel as [blocks][1][1][1][16], so that it broadcasts over arrays in blocks.
Val channels_to_blocks(const Val& x);

/// Arrays in blocks joined along their channels, of which each has so many.
Val join_blocks(std::span<const Val> in, const IntList& channels);

}  // namespace twibil::ops
