// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocked_plan.h"

#include <unistd.h>

#include <algorithm>

#include "base/checked.h"
#include "kernels/blocked_tile.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kPixelBytes = kChannelBlock * static_cast<int64_t>(sizeof(float));

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }
/// The size of the pieces when n is cut into as many pieces of nearly the same size as pieces of `most` would be.
constexpr int64_t even_size(int64_t n, int64_t most) {
  return n <= 0 ? 1 : ceil_div(n, ceil_div(n, std::max<int64_t>(1, most)));
}

int64_t l2_bytes() {
  static const int64_t bytes = [] {
    const int64_t found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return found > 0 ? found : int64_t{1} << 20;
  }();
  return bytes;
}

}  // namespace

BlockedLists::BlockedLists(const BlockedShape& s)
    : in_blocks(channel_blocks(s.in_channels)),
      out_blocks(channel_blocks(s.out_channels)),
      in_group(s.in_channels / s.groups),
      out_group(s.out_channels / s.groups),
      taps(checked_mul(s.kernel[0], s.kernel[1])) {
  width = 1;
  const int64_t alone = longest();
  width = 2;
  count = longest();
  // A tile of one block keeps the processor an eighth less busy, but a pair may need twice the list.
  if (8 * count > 9 * alone) width = 1, count = alone;
}

int64_t BlockedLists::longest() const {
  int64_t most = 0;
  for (int64_t tile = 0; tile < tiles(); ++tile) {
    const int64_t last_out = std::min((tile + 1) * width * kChannelBlock, out_blocks * kChannelBlock) - 1;
    const int64_t end = std::min(channel_blocks((last_out / out_group + 1) * in_group), in_blocks);
    most = std::max(most, end - first_used(tile));
  }
  return most;
}

int64_t BlockedLists::first(int64_t tile) const { return std::min(first_used(tile), in_blocks - count); }

int64_t BlockedLists::column_size() const {
  return checked_mul(checked_mul(count, taps), kChannelBlock * kChannelBlock);
}

BlockedPlan::BlockedPlan(const BlockedShape& shape, int threads) : s(shape), lists(shape), in_place(true) {
  for (int axis = 0; axis < 2; ++axis) {
    in_place = in_place && s.kernel[axis] == 1 && s.stride[axis] == 1 && s.pad[axis] == 0 && s.in[axis] == s.out[axis];
  }
  if (in_place) {
    s.in[1] = s.out[1] = s.batch * s.in[0] * s.in[1];
    s.batch = s.in[0] = s.out[0] = 1;
  }
  const int64_t blocks = std::max<int64_t>(1, lists.count * lists.taps), block_bytes = kChannelBlock * kPixelBytes;
  piece = even_size(blocks, l2_bytes() / 4 / (lists.width * block_bytes));
  weights_far = lists.tiles() * lists.width * blocks * block_bytes > l2_bytes() / 2;
  lay_taps();
  cut(threads);
  if (reach[1] == 0) return;
  const double with_long_lines = cycles();
  flat = true;
  lay_taps();
  cut(threads);
  if (through_lines() && cycles() < with_long_lines) return;
  flat = false;
  lay_taps();
  cut(threads);
}

/// Finds the planes, and where in them each tap reads.
void BlockedPlan::lay_taps() {
  planes.clear();
  taps.clear();
  int64_t least[2] = {0, 0}, most[2] = {0, 0};
  // Axis by axis, as kernels may have many taps: planes are all pairs of their starts.
  std::vector<int64_t> offsets[2], starts[2], places[2];
  for (int axis = 0; axis < 2; ++axis) {
    for (int64_t k = 0; k < s.kernel[axis]; ++k) {
      const int64_t shift = k * s.dilation[axis] - s.pad[axis];
      const int64_t offset = axis == 1 && flat ? 0 : floor_div(shift, s.stride[axis]);
      const int64_t start = shift - offset * s.stride[axis];
      least[axis] = k == 0 ? offset : std::min(least[axis], offset);
      most[axis] = k == 0 ? offset : std::max(most[axis], offset);
      const auto place = std::find(starts[axis].begin(), starts[axis].end(), start) - starts[axis].begin();
      if (place == static_cast<int64_t>(starts[axis].size())) starts[axis].push_back(start);
      offsets[axis].push_back(offset);
      places[axis].push_back(place);
    }
  }
  for (const int64_t down : starts[0]) {
    for (const int64_t across : starts[1]) {
      BlockedPlane plane{};
      plane.start[0] = down, plane.start[1] = across;
      planes.push_back(plane);
    }
  }
  for (size_t y = 0; y < offsets[0].size(); ++y) {
    for (size_t x = 0; x < offsets[1].size(); ++x) {
      BlockedTap tap{};
      tap.offset[0] = offsets[0][y], tap.offset[1] = offsets[1][x];
      tap.plane = places[0][y] * static_cast<int64_t>(starts[1].size()) + places[1][x];
      taps.push_back(tap);
    }
  }
  // The smallest offset becomes 0, and the planes start there.
  for (int axis = 0; axis < 2; ++axis) {
    for (BlockedTap& tap : taps) tap.offset[axis] -= least[axis];
    for (BlockedPlane& plane : planes) plane.start[axis] += least[axis] * s.stride[axis];
    reach[axis] = most[axis] - least[axis];
  }
}

/// Chooses the bands. The input of a band stays in the L2 cache while all weights pass by; small pictures share a pass.
void BlockedPlan::cut(int threads) {
  const int64_t most = l2_bytes() / 2, max_rows = blocked_tiles().max_rows;
  const int64_t pixel = std::max<int64_t>(1, lists.count) * kPixelBytes;
  images = 1, lines = std::max<int64_t>(1, s.out[0]), columns = std::max<int64_t>(1, s.out[1]);
  const auto too_large = [&] { return image_size() * pixel > most; };
  if (in_place) {
    // Unless that reads more weights than it saves input.
    const int64_t weights = lists.column_size() * lists.out_blocks * static_cast<int64_t>(sizeof(float));
    const int64_t fitting = std::max(4 * max_rows, most / 2 / pixel), pieces = ceil_div(columns, fitting);
    if (weights <= most || (pieces - 1) * weights < (lists.tiles() - 1) * columns * pixel) {
      columns = even_size(columns, fitting);
    }
  } else {
    while (lines > 1 && too_large()) lines = even_size(lines, lines - 1);
    while (columns > 4 * max_rows && too_large()) columns = even_size(columns, columns - 1);
    if (lines == s.out[0] && columns == s.out[1]) images = even_size(s.batch, most / (image_size() * pixel + 1));
  }
  // Enough for every thread to do.
  while (threads > 1 && bands() * lists.tiles() < 3 * threads) {
    if (images > 1) images = even_size(images, images - 1);
    else if (in_place && columns > max_rows) columns = even_size(columns, columns - 1);
    else if (!in_place && lines > 1) lines = even_size(lines, lines - 1);
    else break;
  }
  // Full tiles in all bands but the last.
  if (in_place && columns < s.out[1]) columns = ceil_div(columns, max_rows) * max_rows;
}

int64_t BlockedPlan::bands() const {
  return ceil_div(s.batch, images) * ceil_div(s.out[0], lines) * ceil_div(s.out[1], columns);
}

BlockedBand BlockedPlan::band(int64_t i) const {
  const int64_t across = ceil_div(s.out[1], columns), down = ceil_div(s.out[0], lines);
  BlockedBand b{};
  b.column = i % across * columns;
  b.line = i / across % down * lines;
  b.image = i / across / down * images;
  b.images = std::min(images, s.batch - b.image);
  b.lines = std::min(lines, s.out[0] - b.line);
  b.columns = std::min(columns, s.out[1] - b.column);
  return b;
}

double BlockedPlan::cycles() const {
  // Measured with bench_blocked: a row of B comes from the L2 cache in 4.5 cycles; a tile starts and ends in 40, and a
  // row of it is written in 4; a pixel of 16 channels is copied in 4.
  constexpr double kRowOfWeights = 4.5, kTile = 40, kWrite = 4, kCopy = 4;
  const double pixels = static_cast<double>(s.batch) * static_cast<double>(s.out[0]) * static_cast<double>(s.out[1]);
  const int64_t in_call = through_lines() ? lines * columns : columns;
  const double rows = static_cast<double>(in_call) /
                      static_cast<double>(std::max<int64_t>(1, ceil_div(in_call, blocked_tiles().max_rows)));
  const double depth = static_cast<double>(lists.count * lists.taps * kChannelBlock);
  const double per_row = depth * std::max(rows, kRowOfWeights) / rows + kTile / rows + kWrite;
  const double copied = in_place ? 0
                                 : static_cast<double>(lists.count * image_size()) /
                                       static_cast<double>(std::max<int64_t>(1, lines * columns));
  return pixels * (per_row * static_cast<double>(lists.out_blocks) / 2 + kCopy * copied);
}

}  // namespace twibil::kernels
