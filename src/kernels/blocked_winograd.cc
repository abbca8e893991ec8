// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocked_winograd.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/blocked_choice.h"
#include "kernels/blocked_tile.h"
#include "kernels/scratch.h"

namespace twibil::kernels::winograd {
namespace {

constexpr int64_t kPlaneGap = 32;  // floats; keeps the planes out of each other's cache sets
constexpr int64_t kColumns = kTileMaxColumns;
constexpr int64_t kBlock = kChannelBlock * kChannelBlock;
constexpr int64_t kStreamedPixels = (16 << 20) / 64;  // outputs that no cache keeps go past the caches
constexpr int64_t kMostDepth = 16;  // blocks that are added up in one go: the error grows with the root of that number

/// One convolution at work.
struct Job {
  const BlockedShape& s;
  const FormSizes& f;
  const FormKernels& kernels;
  const Plan& plan;
  const float* x;
  const float* packed;
  const BlockedEpilogue& e;
  float* y;
  bool stream;
};

/// Tiles of a task after step 1.
struct Transformed {
  int64_t count;
  const float* v;
  int64_t v_plane;
  const int64_t* offsets;  // of the channel blocks in a plane
};

/// Step 2 for output block `o`, even, of a group and the one after it.
void multiply(const Job& job, const Transformed& t, const float* u, int64_t o, float* m, int64_t m_plane) {
  const int64_t in_blocks = job.plan.in_blocks, columns = std::min<int64_t>(kColumns, job.plan.out_blocks - o);
  BlockedTile tile{.a = t.v,
                   .b = u + o * job.f.points() * in_blocks * kBlock,
                   .b_column_step = in_blocks * kBlock,
                   .c = m,
                   .c_column_step = t.count * kChannelBlock,
                   .rows = t.count,
                   .columns = columns};
  const BlockedTiles& tiles = blocked_tiles();
  for (int64_t point = 0; point < job.f.points(); ++point) {
    for (int64_t c = 0; c < in_blocks; c += kMostDepth) {
      tile.a_offsets = t.offsets + c;
      tile.blocks = std::min(kMostDepth, in_blocks - c);
      tile.accumulate = c > 0;
      tile.next_b = tile.b + columns * in_blocks * kBlock;
      tiles.run(tile);
      tile.b += tile.blocks * kBlock;
    }
    tile.a += t.v_plane;
    tile.b += (columns - 1) * in_blocks * kBlock;
    tile.c += m_plane;
  }
}

void run_task(const Job& job, int64_t group, int64_t part, int64_t tile_block) {
  const BlockedShape& s = job.s;
  const Plan& p = job.plan;
  const int64_t first = p.tiles * tile_block / p.tile_blocks,
                count = p.tiles * (tile_block + 1) / p.tile_blocks - first;
  const int64_t pairs = (p.out_blocks + kColumns - 1) / kColumns;
  const int64_t out_begin = pairs * part / p.out_parts * kColumns;
  const int64_t out_end = std::min(p.out_blocks, pairs * (part + 1) / p.out_parts * kColumns);

  ScratchFrame frame;
  InputTile* in = frame.take<InputTile>(count);
  OutputTile* out = frame.take<OutputTile>(count);
  place_tiles(s, job.f, first, count, in, out);
  int64_t* offsets = frame.take<int64_t>(p.in_blocks);
  for (int64_t c = 0; c < p.in_blocks; ++c) offsets[c] = c * count * kChannelBlock;

  const int64_t v_plane = p.in_blocks * count * kChannelBlock + kPlaneGap;
  float* v = frame.take<float>(job.f.points() * v_plane);
  const int64_t x_block = s.batch * s.in[0] * s.in[1] * kChannelBlock;
  for (int64_t c = 0; c < p.in_blocks; ++c) {
    const float* x = job.x + (group * p.in_blocks + c) * x_block;
    job.kernels.input({.x = x,
                       .next = c + 1 < p.in_blocks ? x + x_block : nullptr,
                       .row_step = s.in[1] * kChannelBlock,
                       .tiles = in,
                       .count = count,
                       .v = v + offsets[c],
                       .v_plane = v_plane});
  }

  const Transformed t{count, v, v_plane, offsets};
  const int64_t m_plane = kColumns * count * kChannelBlock + kPlaneGap;
  float* m = frame.take<float>(job.f.points() * m_plane);
  const int64_t y_block = s.batch * s.out[0] * s.out[1] * kChannelBlock;
  const float* u = job.packed + group * p.out_blocks * p.in_blocks * job.f.points() * kBlock;
  for (int64_t o = out_begin; o < out_end; ++o) {
    if (o % kColumns == 0) multiply(job, t, u, o, m, m_plane);
    const int64_t block = group * p.out_blocks + o;
    job.kernels.output({.m = m + o % kColumns * count * kChannelBlock,
                        .m_plane = m_plane,
                        .tiles = out,
                        .count = count,
                        .row_step = s.out[1] * kChannelBlock,
                        .bias = job.e.bias ? job.e.bias + block * kChannelBlock : nullptr,
                        .residual = job.e.residual ? job.e.residual + block * y_block : nullptr,
                        .lower = job.e.lower,
                        .upper = job.e.upper,
                        .y = job.y + block * y_block,
                        .stream = job.stream});
  }
}

}  // namespace

void place_tiles(const BlockedShape& s, const FormSizes& f, int64_t begin, int64_t count, InputTile* in,
                 OutputTile* out) {
  const int64_t rows = (s.out[0] + f.m[0] - 1) / f.m[0], columns = (s.out[1] + f.m[1] - 1) / f.m[1];
  int64_t image = begin / (rows * columns);
  int64_t at[2] = {begin / columns % rows, begin % columns};
  for (int64_t t = 0; t < count; ++t) {
    int64_t from[2], to[2];
    for (int axis = 0; axis < 2; ++axis) {
      to[axis] = at[axis] * f.m[axis];
      from[axis] = to[axis] - s.pad[axis];
      in[t].first[axis] = static_cast<int32_t>(std::clamp<int64_t>(-from[axis], 0, f.n(axis)));
      in[t].last[axis] = static_cast<int32_t>(std::clamp<int64_t>(s.in[axis] - from[axis], 0, f.n(axis)));
      out[t].count[axis] = static_cast<int32_t>(std::min(f.m[axis], s.out[axis] - to[axis]));
    }
    in[t].offset = ((image * s.in[0] + from[0]) * s.in[1] + from[1]) * kChannelBlock;
    out[t].offset = ((image * s.out[0] + to[0]) * s.out[1] + to[1]) * kChannelBlock;
    if (++at[1] < columns) continue;
    at[1] = 0;
    if (++at[0] < rows) continue;
    at[0] = 0;
    ++image;
  }
}

void run(const BlockedShape& s, FormId form, const float* x, const float* packed, const BlockedEpilogue& e, float* y) {
  BlockedMachine machine = blocked_machine();
  machine.flops *= static_cast<double>(num_threads()) / machine.threads;
  machine.threads = num_threads();
  const Plan plan = make_plan(s, form, machine);
  if (plan.tiles == 0) return;
  const Job job{.s = s,
                .f = form_sizes(form),
                .kernels = form_kernels(form),
                .plan = plan,
                .x = x,
                .packed = packed,
                .e = e,
                .y = y,
                .stream = s.batch * s.out[0] * s.out[1] * channel_blocks(s.out_channels) > kStreamedPixels};
  // Neighbours in this order read the same weights.
  const int64_t blocks = plan.tile_blocks, parts = plan.out_parts;
  parallel_for(blocks * parts * s.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run_task(job, i / (blocks * parts), i / blocks % parts, i % blocks);
  });
}

}  // namespace twibil::kernels::winograd
