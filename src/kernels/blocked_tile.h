// SPDX-License-Identifier: Apache-2.0
// The register tile of all convolutions on blocked channels: rows of C are pixels, columns are one or two blocks of 16
// output channels, C = sum over a list of blocks A_i (rows x 16) times B_i (16 x 16).
#pragma once
#include <cstdint>
#include <limits>

#include "kernels/blocked.h"

namespace twibil::kernels {

inline constexpr int kTileMaxColumns = 2;  // in blocks of 16

struct BlockedTile {
  const float* a;                      // row r of block i: a + a_offsets[i] + r * a_row_step, 16 floats
  const int64_t* a_offsets;            // so a list of offsets expresses channel blocks, kernel taps and halos
  int64_t a_row_step = kChannelBlock;  // this one is the fastest
  int64_t blocks;
  bool a_far = false;  // A comes from beyond the L2 cache: the rows of the next tile are fetched meanwhile
  const float* b;      // block i of column j: b + j * b_column_step + i * 256, [16][16]
  int64_t b_column_step;
  const float* next_b = nullptr;  // laid out as b: fetched to the L2 cache meanwhile
  int64_t next_b_lines = 0;  // so many cache lines of each column for each block of each tile; 0: as many as it takes
  float* c;                  // row r, column j: c + r * c_row_step + j * c_column_step
  int64_t c_row_step = kChannelBlock, c_column_step;
  int64_t rows, columns;    // any number of rows, which are split into tiles of nearly the same size
  bool accumulate = false;  // C += sum
  // What happens before C is written, after accumulation; `bias` is [columns][16], the residual lies as C does.
  const float* bias = nullptr;
  const float* residual = nullptr;
  float lower = -std::numeric_limits<float>::infinity();
  float upper = std::numeric_limits<float>::infinity();
};

/// The tile of one instruction set.
struct BlockedTiles {
  int max_rows;  // of one pass through B
  void (*run)(const BlockedTile&);
};
const BlockedTiles& blocked_tiles();

}  // namespace twibil::kernels
