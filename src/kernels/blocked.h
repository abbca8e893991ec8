// SPDX-License-Identifier: Apache-2.0
// Convolutions on blocked channels, for inference: float32 arrays [channels / 16][batch][height][width][16], so that a
// pixel of 16 channels is one cache line, a block of channels is a matrix of batch * height * width rows, and joining
// along the channels is laying end to end. Channels are rounded up to whole blocks; what fills the last block is finite
// and meets only zero weights.
//
// A convolution is a menu of algorithms. Each says which shapes it refuses and why, what it would cost, and lays the
// weights out for itself; runtime choice stands in blocked_choice.h.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "base/export.h"

namespace twibil::kernels {

inline constexpr int64_t kChannelBlock = 16;
constexpr int64_t channel_blocks(int64_t channels) { return (channels + kChannelBlock - 1) / kChannelBlock; }

/// Sizes of a convolution in two dimensions; axes are height, width.
///   y[o, n, p] = bias[o] + sum over c, t of w[o, c, t] * x[c, n, p * stride + t * dilation - pad]; 0 outside of x
struct BlockedShape {
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  int64_t in[2] = {1, 1}, out[2] = {1, 1}, kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[2] = {0, 0};  // pad: in front; `out` says what is behind
};

/// What happens to a sum before it is written: y = min(max(sum + bias + residual, lower), upper).
struct BlockedEpilogue {
  const float* bias = nullptr;      // [blocks of out_channels][16]
  const float* residual = nullptr;  // laid out as y, which it may be
  float lower = -std::numeric_limits<float>::infinity();
  float upper = std::numeric_limits<float>::infinity();
};

/// What a cost is reckoned with; measured once per process.
struct BlockedMachine {
  double flops;      // float32 operations per second of all threads, multiply-add counted as two
  double bandwidth;  // bytes per second from memory
  int threads;
  int64_t l2_bytes;  // of one core
};

struct BlockedAlgorithm {
  const char* name;  // for people: "direct", "winograd 4x4"
  bool exact;        // sums the products as they stand
  bool plain_input;  // x is [batch][channels][height][width]
  /// Why it cannot take this shape, as a sentence; null: it can.
  const char* (*refuses)(const BlockedShape& s);
  /// Seconds that a run would take.
  double (*seconds)(const BlockedShape& s, const BlockedMachine& m);
  // Of these two, the shape's batch, `in`, `out` and `pad` are unknown: laid out weights serve every batch and size.
  /// Floats of the laid out weights.
  int64_t (*packed_size)(const BlockedShape& s);
  /// From w[out_channels][in_channels / groups][kernel...].
  void (*pack)(const BlockedShape& s, const float* w, float* packed);
  void (*run)(const BlockedShape& s, const float* x, const float* packed, const BlockedEpilogue& e, float* y);
};

/// The menu, in the order of preference among equals.
std::span<const BlockedAlgorithm* const> blocked_algorithms();

// Each in a file of its own, and in the list of blocked_choice.cc.
extern const BlockedAlgorithm blocked_reference;     // blocked_reference.cc: every shape, slowly
extern const BlockedAlgorithm blocked_direct;        // blocked_direct.cc: every shape, at the multiply-add roof
extern const BlockedAlgorithm blocked_first;         // blocked_first.cc: few input channels, read as they are
extern const BlockedAlgorithm blocked_depthwise;     // blocked_depthwise.cc: every channel by itself
extern const BlockedAlgorithm blocked_winograd_4x4;  // blocked_winograd_plan.cc: F(4x4, 3x3) and its relatives
extern const BlockedAlgorithm blocked_winograd_2x2;
extern const BlockedAlgorithm blocked_winograd_5x5;   // F(2x2, 5x5)
extern const BlockedAlgorithm blocked_winograd_line;  // kernels of one row or column: F(4, 3), F(2, 7)

}  // namespace twibil::kernels
