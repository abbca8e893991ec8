// SPDX-License-Identifier: Apache-2.0
// What the files of the Winograd convolutions on blocked channels share. The picture is cut into tiles of m0 x m1
// outputs; a tile needs n0 x n1 inputs, n = m + r - 1, and as many products per pair of channels:
//   y = A0^T [ (G0 w G1^T) * (B0^T d B1) ] A1
// A block of T tiles (of any pictures of the batch, in order) takes three steps that stay in the L2 cache:
//   1. transform the inputs: V[point][in_channels / 16][T][16], where a point is one of the n0 * n1 products;
//   2. a matrix product for each point, for two blocks of outputs: M[point][2][T][16];
//   3. transform back, add bias and residual, clamp, write.
// Weights are U[out_channels / 32][point][2][in_channels / 16][16][16], so that a pass of step 2 reads them in order.
#pragma once
#include <cstdint>

#include "kernels/blocked.h"

namespace twibil::kernels::winograd {

enum class FormId { k4x4_3x3, k2x2_3x3, k2x2_5x5, k1x4_1x3, k4x1_3x1, k1x2_1x7, k2x1_7x1, kCount };

struct FormSizes {
  int64_t m[2], r[2];
  constexpr int64_t n(int axis) const { return m[axis] + r[axis] - 1; }
  constexpr int64_t points() const { return n(0) * n(1); }
};
const FormSizes& form_sizes(FormId form);

/// A tile's inputs: where element (0, 0) would lie in its block of channels, and which rows and columns exist.
struct InputTile {
  int64_t offset;
  int32_t first[2], last[2];  // of n
};
struct OutputTile {
  int64_t offset;
  int32_t count[2];  // of m
};

/// Step 1 for one block of channels. Planes of V lie `v_plane` floats apart.
struct InputJob {
  const float* x;
  const float* next;  // x of the next job, or null
  int64_t row_step;
  const InputTile* tiles;
  int64_t count;
  float* v;
  int64_t v_plane;
};
/// Step 3 for one block of channels.
struct OutputJob {
  const float* m;
  int64_t m_plane;
  const OutputTile* tiles;
  int64_t count;
  int64_t row_step;
  const float* bias;      // 16, or null
  const float* residual;  // as y, or null
  float lower, upper;
  float* y;
  bool stream;  // past the caches
};

/// Steps 1 and 3 of a form, for the instruction set in use.
struct FormKernels {
  void (*input)(const InputJob&);
  void (*output)(const OutputJob&);
};
const FormKernels& form_kernels(FormId form);

/// How a convolution is cut up. A task is a block of tiles, one part of the output blocks, one group.
struct Plan {
  int64_t tile_rows, tile_columns, tiles;  // of a picture; of all
  int64_t in_blocks, out_blocks;           // of channels, of a group
  int64_t tile_blocks;                     // of equal size, to one tile
  int64_t out_parts;                       // each does step 1 for itself: more tasks from few tiles
  double seconds;                          // predicted
};
/// The cheapest plan. It says nothing about the order of any sum, so it may depend on the number of threads.
Plan make_plan(const BlockedShape& s, FormId form, const BlockedMachine& m);

/// Places tiles [begin, begin + count) of the batch, row by row.
void place_tiles(const BlockedShape& s, const FormSizes& f, int64_t begin, int64_t count, InputTile* in,
                 OutputTile* out);

const char* refuses(const BlockedShape& s, FormId form);
int64_t packed_size(const BlockedShape& s, FormId form);
void pack(const BlockedShape& s, FormId form, const float* w, float* packed);
void run(const BlockedShape& s, FormId form, const float* x, const float* packed, const BlockedEpilogue& e, float* y);

/// The gradient of the weights of a 3x3 convolution, dw[out_channels][in_channels][3][3], from x and dy, both blocked,
/// by F(3x3, 4x4): a tile of dy takes the part of the weights. It takes one group, without stride and dilation.
void weight_gradient(const BlockedShape& s, const float* x, const float* dy, float* dw);
/// The same for x and dy of [batch][channels][height][width], which are converted a few pictures at a time.
void weight_gradient_of_plain(const BlockedShape& s, const float* x, const float* dy, float* dw);
/// Whether it can, and is faster than the direct sum.
bool weight_gradient_suits(const BlockedShape& s);

}  // namespace twibil::kernels::winograd
