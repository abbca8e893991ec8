// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocked_tile.cc"
#include "kernels/blocked_tile.h"

#include "kernels/isa.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/clamp.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Tag = hn::CappedTag<float, kChannelBlock>;
using Vector = hn::Vec<Tag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int kBlockVectors = kChannelBlock / kLanes;
constexpr int kBlockSize = kChannelBlock * kChannelBlock;

// Sums, a row of B and one broadcast must fit the registers: 14 x 2 of 32 (98 % of the multiply-add roof), 6 x 2 of 16.
// With 32 short registers (NEON) the tile is one whole block wide.
#if HWY_TARGET == HWY_AVX3
constexpr int kMaxRows = 14, kMaxVectors = 2;
#elif HWY_ARCH_ARM_A64
constexpr int kMaxRows = 6, kMaxVectors = 4;
#else
constexpr int kMaxRows = 6, kMaxVectors = 2;
#endif

/// A tile of NV vectors: where its vectors lie.
struct Place {
  const float* a;
  const float* b;
  float* c;
  const float* bias;
  const float* residual;
  const float* next_b;  // of all columns, in the first pass through them; or null
  int64_t next_b_lines;
};

/// kDense: rows of A follow each other, so that every element has a constant address within its block.
template <int MR, int NV, bool kDense> HWY_NOINLINE void tile(const BlockedTile& t, const Place& p) {
  const Tag d;
  // Two vectors of one block lie side by side; with vectors as long as a block they belong to two columns.
  const int64_t b_step = kBlockVectors > 1 ? kLanes : t.b_column_step;
  const int64_t c_step = kBlockVectors > 1 ? kLanes : t.c_column_step;
  // C is needed at the end only; fetching it now hides its latency even when its rows share a set of the cache.
  for (int m = 0; m < MR; ++m) {
    for (int v = 0; v < NV; v += kBlockVectors) __builtin_prefetch(p.c + m * t.c_row_step + v * c_step, 1);
  }
  Vector sum[MR][NV];
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) sum[m][v] = hn::Zero(d);
  }

  const float* b = p.b;
  for (int64_t i = 0; i < t.blocks; ++i, b += kBlockSize) {
    const float* a = p.a + t.a_offsets[i];
    if (t.a_far) {
      for (int m = 0; m < MR; ++m) __builtin_prefetch(a + (MR + m) * t.a_row_step);
    }
    if (p.next_b) {
      const float* line = p.next_b + i * p.next_b_lines * kChannelBlock;
      for (int64_t n = 0; n < p.next_b_lines; ++n, line += kChannelBlock) {
        __builtin_prefetch(line, 0, 2);
        if (t.columns > 1) __builtin_prefetch(line + t.b_column_step, 0, 2);
      }
    }
    const float* fives[3] = {a, a + 5 * t.a_row_step, a + 10 * t.a_row_step};  // a step times 0 to 4 is one address
#pragma GCC unroll 16
    for (int k = 0; k < kChannelBlock; ++k) {
      Vector row[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) row[v] = hn::LoadU(d, b + k * kChannelBlock + v * b_step);
#pragma GCC unroll 16
      for (int m = 0; m < MR; ++m) {
        const float* element = kDense ? a + m * kChannelBlock : fives[m / 5] + m % 5 * t.a_row_step;
        const Vector value = hn::Set(d, element[k]);
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) sum[m][v] = hn::MulAdd(value, row[v], sum[m][v]);
      }
    }
  }

  // One pass over the sums for each part, so that the tests stay out of the unrolled loops.
  const auto add = [&](const float* from, int64_t row_step, int64_t vector_step) HWY_ATTR {
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[m][v] = hn::Add(sum[m][v], hn::LoadU(d, from + m * row_step + v * vector_step));
    }
  };
  if (t.accumulate) add(p.c, t.c_row_step, c_step);
  if (p.bias) add(p.bias, 0, kLanes);
  if (p.residual) add(p.residual, t.c_row_step, c_step);
  const Vector lower = hn::Set(d, t.lower), upper = hn::Set(d, t.upper);
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      // The sum comes second: x86 then keeps it when it is not a number.
      hn::StoreU(clamped(sum[m][v], lower, upper), d, p.c + m * t.c_row_step + v * c_step);
    }
  }
}

using TileFunction = void (*)(const BlockedTile&, const Place&);
struct TileTable {
  TileFunction tile[kMaxVectors + 1][2][kMaxRows + 1];  // [vectors][dense][rows]
};

template <int NV, int MR> constexpr void fill_rows(TileTable& table) {
  if constexpr (MR >= 1) {
    table.tile[NV][0][MR] = tile<MR, NV, false>;
    table.tile[NV][1][MR] = tile<MR, NV, true>;
    fill_rows<NV, MR - 1>(table);
  }
}

constexpr TileTable make_table() {
  TileTable table{};
  fill_rows<kMaxVectors, kMaxRows>(table);
  if (kBlockVectors == 1) fill_rows<1, kMaxRows>(table);
  return table;
}
constexpr TileTable kTable = make_table();

void run_blocked_tile(const BlockedTile& t) {
  if (t.rows <= 0) return;
  const bool dense = t.a_row_step == kChannelBlock;
  // Vectors of all columns, at most kMaxVectors at once, through all the rows.
  const int64_t tiles = (t.rows + kMaxRows - 1) / kMaxRows, rows = t.rows / tiles, longer = t.rows % tiles;
  const int64_t vectors = t.columns * kBlockVectors;
  for (int64_t v = 0; v < vectors; v += kMaxVectors) {
    const int64_t column = v / kBlockVectors, in_block = v % kBlockVectors * kLanes;
    const TileFunction* table = kTable.tile[vectors - v < kMaxVectors ? vectors - v : kMaxVectors][dense];
    const int64_t c_start = column * t.c_column_step + in_block;
    Place p = {t.a,
               t.b + column * t.b_column_step + in_block,
               t.c + c_start,
               t.bias ? t.bias + v * kLanes : nullptr,
               t.residual ? t.residual + c_start : nullptr,
               v == 0 ? t.next_b : nullptr,
               t.next_b_lines ? t.next_b_lines : (kChannelBlock + tiles - 1) / tiles};
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t n = rows + (i < longer);
      table[n](t, p);
      p.a += n * t.a_row_step, p.c += n * t.c_row_step;
      if (p.residual) p.residual += n * t.c_row_step;
      if (p.next_b) p.next_b += t.blocks * p.next_b_lines * kChannelBlock;
    }
  }
}

}  // namespace

const BlockedTiles& blocked_tiles() {
  static constexpr BlockedTiles kTiles = {kMaxRows, run_blocked_tile};
  return kTiles;
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(blocked_tiles);
const BlockedTiles& blocked_tiles() { return TW_DISPATCH(blocked_tiles)(); }
}  // namespace twibil::kernels
#endif
