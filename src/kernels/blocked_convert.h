// SPDX-License-Identifier: Apache-2.0
// Between (batch, channels, height, width) and blocked channels: transposes of 16 channels by pixels, at memory speed.
#pragma once
#include <cstdint>

namespace twibil::kernels {

/// y [channel_blocks(channels)][batch][pixels][16] from x [batch][channels][pixels]; zeros fill the last block.
void to_blocked(int64_t batch, int64_t channels, int64_t pixels, const float* x, float* y);
/// The way back; what fills the last block is left out.
void from_blocked(int64_t batch, int64_t channels, int64_t pixels, const float* x, float* y);

}  // namespace twibil::kernels
