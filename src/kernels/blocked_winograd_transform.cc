// SPDX-License-Identifier: Apache-2.0
// Steps 1 and 3 of blocked_winograd.h: a vector holds channels, and the code is that of winograd_transform.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocked_winograd_transform.cc"
#include "kernels/blocked_winograd.h"
#include "kernels/isa.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/clamp.h"
#include "hwy/cache_control.h"
#include "kernels/winograd_transform.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace winograd;
using namespace winograd_vectors;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
static_assert(kChannelBlock % kLanes == 0);

alignas(64) constexpr float kZeros[16 * kChannelBlock] = {};  // a row outside of the picture

/// Columns of a tile, then rows. kInside: all of them exist.
template <class F0, class F1, bool kInside>
HWY_INLINE void input_tile(const InputJob& j, const InputTile& tile, int64_t lane, float* v) {
  const Tag d;
  Vector columns[F0::n][F1::n];
  const float* rows[F0::n];
#pragma GCC unroll 16
  for (int64_t i = 0; i < F0::n; ++i) {
    const bool exists = kInside || (i >= tile.first[0] && i < tile.last[0]);
    rows[i] = exists ? j.x + tile.offset + i * j.row_step + lane : kZeros;
  }
#pragma GCC unroll 16
  for (int64_t q = 0; q < F1::n; ++q) {
    if (!kInside && (q < tile.first[1] || q >= tile.last[1])) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < F0::n; ++i) columns[i][q] = hn::Zero(d);
      continue;
    }
    Vector in[F0::n], out[F0::n];
#pragma GCC unroll 16
    for (int64_t i = 0; i < F0::n; ++i) in[i] = hn::LoadU(d, rows[i] + q * kChannelBlock);
    transform_input<F0>(in, out);
#pragma GCC unroll 16
    for (int64_t i = 0; i < F0::n; ++i) columns[i][q] = out[i];
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < F0::n; ++i) {
    Vector out[F1::n];
    transform_input<F1>(columns[i], out);
#pragma GCC unroll 16
    for (int64_t q = 0; q < F1::n; ++q) hn::StoreU(out[q], d, v + (i * F1::n + q) * j.v_plane);
  }
}

/// Asks for what the next block of channels will read: its rows lie far apart, which no hardware foresees.
template <class F0, class F1> HWY_INLINE void prefetch_tile(const InputJob& j, const InputTile& tile) {
  const float* from = j.next + tile.offset + (F1::r - 1) * kChannelBlock;
#pragma GCC unroll 16
  for (int64_t i = 0; i < F0::n; ++i) {
#pragma GCC unroll 16
    for (int64_t q = 0; q < F1::m; ++q) __builtin_prefetch(from + i * j.row_step + q * kChannelBlock);
  }
}

template <class F0, class F1> void input_tiles(const InputJob& j) {
  for (int64_t t = 0; t < j.count; ++t) {
    const InputTile& tile = j.tiles[t];
    if (j.next) prefetch_tile<F0, F1>(j, tile);
    const bool inside = tile.first[0] == 0 && tile.first[1] == 0 && tile.last[0] == F0::n && tile.last[1] == F1::n;
    float* v = j.v + t * kChannelBlock;
    for (int64_t lane = 0; lane < kChannelBlock; lane += kLanes) {
      if (inside) input_tile<F0, F1, true>(j, tile, lane, v + lane);
      else input_tile<F0, F1, false>(j, tile, lane, v + lane);
    }
  }
}

template <class F0, class F1, bool kWhole>
HWY_INLINE void output_tile(const OutputJob& j, const OutputTile& tile, int64_t lane, const float* m) {
  const Tag d;
  Vector columns[F0::m][F1::n];
#pragma GCC unroll 16
  for (int64_t q = 0; q < F1::n; ++q) {
    Vector in[F0::n], out[F0::m];
#pragma GCC unroll 16
    for (int64_t i = 0; i < F0::n; ++i) in[i] = hn::LoadU(d, m + (i * F1::n + q) * j.m_plane);
    transform_output<F0>(in, out);
#pragma GCC unroll 16
    for (int64_t i = 0; i < F0::m; ++i) columns[i][q] = out[i];
  }
  const Vector lower = hn::Set(d, j.lower), upper = hn::Set(d, j.upper);
  const Vector bias = j.bias ? hn::LoadU(d, j.bias + lane) : hn::Zero(d);
  int64_t at = tile.offset + lane;
#pragma GCC unroll 16
  for (int64_t i = 0; i < F0::m; ++i, at += j.row_step) {
    if (!kWhole && i >= tile.count[0]) return;
    Vector out[F1::m];
    transform_output<F1>(columns[i], out);
#pragma GCC unroll 16
    for (int64_t q = 0; q < F1::m; ++q) {
      if (!kWhole && q >= tile.count[1]) break;
      Vector y = hn::Add(out[q], bias);
      if (j.residual) y = hn::Add(y, hn::LoadU(d, j.residual + at + q * kChannelBlock));
      // The sum comes second: x86 then keeps it when it is not a number.
      y = clamped(y, lower, upper);
      if (kLanes == kChannelBlock && j.stream) hn::Stream(y, d, j.y + at + q * kChannelBlock);
      else hn::StoreU(y, d, j.y + at + q * kChannelBlock);
    }
  }
}

template <class F0, class F1> void output_tiles(const OutputJob& j) {
  for (int64_t t = 0; t < j.count; ++t) {
    const OutputTile& tile = j.tiles[t];
    const float* m = j.m + t * kChannelBlock;
    for (int64_t lane = 0; lane < kChannelBlock; lane += kLanes) {
      if (tile.count[0] == F0::m && tile.count[1] == F1::m) output_tile<F0, F1, true>(j, tile, lane, m + lane);
      else output_tile<F0, F1, false>(j, tile, lane, m + lane);
    }
  }
  if (j.stream) hwy::FlushStream();
}

template <class F0, class F1> constexpr FormKernels make_kernels() {
  return {input_tiles<F0, F1>, output_tiles<F0, F1>};
}

const FormKernels* kernels_of_forms() {
  using One = Form<1, 1>;
  static constexpr FormKernels kKernels[] = {
      make_kernels<Form<4, 3>, Form<4, 3>>(), make_kernels<Form<2, 3>, Form<2, 3>>(),
      make_kernels<Form<2, 5>, Form<2, 5>>(), make_kernels<One, Form<4, 3>>(),
      make_kernels<Form<4, 3>, One>(),        make_kernels<One, Form<2, 7>>(),
      make_kernels<Form<2, 7>, One>(),
  };
  static_assert(std::size(kKernels) == static_cast<size_t>(FormId::kCount));
  return kKernels;
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels::winograd {

HWY_EXPORT(kernels_of_forms);

const FormKernels& form_kernels(FormId form) { return TW_DISPATCH(kernels_of_forms)()[static_cast<size_t>(form)]; }

}  // namespace twibil::kernels::winograd
#endif
