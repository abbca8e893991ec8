// SPDX-License-Identifier: Apache-2.0
// Sizes and places of the direct convolution on blocked channels (blocked_direct.cc): which input blocks an output
// block sums, how bands of the input are copied, and how the output is cut into them.
#pragma once
#include <cstdint>

#include "base/recycled.h"
#include "kernels/blocked.h"

namespace twibil::kernels {

/// What the laid out weights depend on. Output blocks are worked on in pairs or alone (`width`), and the tiles of one
/// pair read the same list of input blocks: those of all groups that their channels belong to. Where groups are no
/// whole blocks the weights of foreign channels are zero.
struct BlockedLists {
  int64_t in_blocks, out_blocks;
  int64_t in_group, out_group;  // channels of a group
  int64_t taps;
  int64_t width;  // output blocks in a tile: 1 or 2
  int64_t count;  // input blocks in a list

  explicit BlockedLists(const BlockedShape& s);
  int64_t tiles() const { return (out_blocks + width - 1) / width; }
  int64_t first(int64_t tile) const;  // input block
  int64_t column_size() const;        // floats of an output block's weights

 private:
  int64_t first_used(int64_t tile) const { return tile * width * kChannelBlock / out_group * in_group / kChannelBlock; }
  int64_t longest() const;
};

/// Pixel (y, x) of a plane is pixel (y * stride + start[0], x * stride + start[1]) of the picture.
struct BlockedPlane {
  int64_t start[2];
  bool operator==(const BlockedPlane& p) const { return start[0] == p.start[0] && start[1] == p.start[1]; }
};
/// What a tap multiplies, at the output's position plus `offset`.
struct BlockedTap {
  int64_t plane, offset[2];
};
/// A part of the output, or of a copy.
struct BlockedBand {
  int64_t image, images, line, lines, column, columns;
};

struct BlockedPlan {
  BlockedShape s;
  BlockedLists lists;
  bool in_place;      // 1x1: the pixels of all pictures are one line, and nothing is copied
  bool flat = false;  // a plane for each horizontal tap, so that its lines are as long as the output's
  Recycled<BlockedPlane> planes;
  Recycled<BlockedTap> taps;                   // [vertical][horizontal]
  int64_t reach[2] = {0, 0};                   // how far taps go beyond the position of the output
  int64_t images = 1, lines = 1, columns = 1;  // of the output in a band
  int64_t piece;                               // blocks of a list that are summed at once
  bool weights_far;                            // they do not stay in the L2 cache from one band to the next

  BlockedPlan(const BlockedShape& shape, int threads);

  // Of a copy, in pixels: copy[input block][image][plane][line][column].
  int64_t pitch() const { return columns + reach[1]; }
  int64_t plane_size() const { return (lines + reach[0]) * pitch(); }
  int64_t image_size() const { return static_cast<int64_t>(planes.size()) * plane_size(); }
  int64_t block_size() const { return images * image_size(); }

  /// Tiles go from line to line.
  bool through_lines() const { return reach[1] == 0 && columns == s.out[1]; }
  int64_t bands() const;
  BlockedBand band(int64_t i) const;
  /// Cycles of a core whose multiply-adders take a row and a channel of two blocks a cycle.
  double cycles() const;

 private:
  void lay_taps();
  void cut(int threads);
};

}  // namespace twibil::kernels
