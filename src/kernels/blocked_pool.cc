// SPDX-License-Identifier: Apache-2.0
// A window is reduced in two steps, as in pooling.cc: over its rows, for all columns at once, into a line that stays in
// the first-level cache; then along that line. A window of whole rows is one stretch of memory and needs no line.
//
// A maximum must be NaN where one is, which no instruction of x86 does. So the numbers are also added up, in units that
// would idle; where the sum of a row of windows is NaN, the row is done again with care.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocked_pool.cc"
#include "kernels/blocked_pool.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/parallel.h"
#include "base/recycled.h"
#include "kernels/blocked.h"
#include "kernels/isa.h"
#include "kernels/scratch.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef TWIBIL_BLOCKED_POOL_STRETCH  // once, not per instruction set
#define TWIBIL_BLOCKED_POOL_STRETCH
namespace twibil::kernels {
namespace {

/// The part [begin, end) of an axis that a window covers, and the window's size with its padding.
struct Reach {
  int64_t begin, end, padded;
  Reach(const PoolShape& s, int axis, int64_t o) {
    begin = o * s.stride[axis] - s.pad[axis];
    padded = std::max<int64_t>(0, std::min(begin + s.kernel[axis], s.in[axis] + s.pad[axis]) - begin);
    end = std::min(begin + s.kernel[axis], s.in[axis]);
    begin = std::max<int64_t>(begin, 0);
  }
  int64_t size() const { return std::max<int64_t>(0, end - begin); }
};

/// Windows side by side that cover equally many columns; the first one's begins at `begin`.
struct Stretch {
  int64_t count, begin, size, padded;
};
float of_nothing(PoolKind kind) { return kind == PoolKind::max ? std::numeric_limits<float>::lowest() : 0; }

}  // namespace
}  // namespace twibil::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, kChannelBlock>;
using Vector = hn::Vec<Tag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int64_t kBlock = kChannelBlock;

struct Sum {
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::Add(a, b); }
};
struct Maximum {  // forgets some NaN
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::Max(a, b); }
};
struct CarefulMaximum {
  HWY_INLINE Vector operator()(Vector a, Vector b) const {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, hn::Max(a, b)));
  }
};
template <class Op> constexpr bool kForgets = std::is_same_v<Op, Maximum>;

HWY_INLINE bool any_nan(Vector v) { return !hn::AllFalse(Tag(), hn::IsNaN(v)); }

/// line[i] = x[i] op x[i + step] op ... of `rows` rows, for n floats. Says whether a NaN may have been forgotten.
template <class Op> HWY_INLINE bool reduce_rows(const float* x, int64_t step, int64_t rows, int64_t n, float* line) {
  const Tag d;
  const Op op;
  constexpr int kUnroll = 4 * kLanes <= kBlock ? static_cast<int>(kBlock) / kLanes : 2;
  Vector seen[kUnroll];
  for (Vector& v : seen) v = hn::Zero(d);
  int64_t i = 0;
  const auto some = [&]<int N>(std::integral_constant<int, N>) HWY_ATTR {
    Vector acc[N];
#pragma GCC unroll 4
    for (int u = 0; u < N; ++u) {
      acc[u] = hn::LoadU(d, x + i + u * kLanes);
      if constexpr (kForgets<Op>) seen[u] = hn::Add(seen[u], acc[u]);
    }
    for (int64_t r = 1; r < rows; ++r) {
      const float* row = x + r * step + i;
#pragma GCC unroll 4
      for (int u = 0; u < N; ++u) {
        const Vector v = hn::LoadU(d, row + u * kLanes);
        __builtin_prefetch(row + u * kLanes + rows * step);  // the next windows' rows
        if constexpr (kForgets<Op>) seen[u] = hn::Add(seen[u], v);
        acc[u] = op(acc[u], v);
      }
    }
#pragma GCC unroll 4
    for (int u = 0; u < N; ++u) hn::StoreU(acc[u], d, line + i + u * kLanes);
    i += N * kLanes;
  };
  while (i + kUnroll * kLanes <= n) some(std::integral_constant<int, kUnroll>());
  while (i < n) some(std::integral_constant<int, 1>());
  Vector all = seen[0];
  for (int u = 1; u < kUnroll; ++u) all = hn::Add(all, seen[u]);
  return kForgets<Op> && any_nan(all);
}

/// The pixels [0, n) at x, n > 0, into one.
template <class Op> HWY_INLINE bool reduce_all(const float* x, int64_t n, float scale, float* y) {
  const Tag d;
  const Op op;
  bool forgotten = false;
  for (int64_t c = 0; c < kBlock; c += kLanes) {
    constexpr int kSums = 4;
    Vector acc[kSums], seen = hn::Zero(d);
#pragma GCC unroll 4
    for (int u = 0; u < kSums; ++u) acc[u] = hn::LoadU(d, x + std::min<int64_t>(u, n - 1) * kBlock + c);
    if constexpr (!kForgets<Op> && !std::is_same_v<Op, CarefulMaximum>)
      for (int u = 1; u < kSums; ++u) acc[u] = u < n ? acc[u] : hn::Zero(d);
    if constexpr (kForgets<Op>)
      for (int u = 0; u < kSums; ++u) seen = hn::Add(seen, acc[u]);
    int64_t i = kSums;
    for (; i + kSums <= n; i += kSums) {
#pragma GCC unroll 4
      for (int u = 0; u < kSums; ++u) {
        const Vector v = hn::LoadU(d, x + (i + u) * kBlock + c);
        if constexpr (kForgets<Op>) seen = hn::Add(seen, v);
        acc[u] = op(acc[u], v);
      }
    }
    for (; i < n; ++i) {
      const Vector v = hn::LoadU(d, x + i * kBlock + c);
      if constexpr (kForgets<Op>) seen = hn::Add(seen, v);
      acc[0] = op(acc[0], v);
    }
    const Vector all = op(op(acc[0], acc[1]), op(acc[2], acc[3]));
    hn::StoreU(std::is_same_v<Op, Sum> ? hn::Mul(all, hn::Set(d, scale)) : all, d, y + c);
    forgotten |= kForgets<Op> && any_nan(seen);
  }
  return forgotten;
}

/// y[o] = op over `width` pixels from line[o * step], times scale, for n pixels.
template <class Op, int kWidth>
HWY_INLINE void reduce_line(const float* line, int64_t step, int64_t width, int64_t n, float scale, float* y) {
  const Tag d;
  const Op op;
  const Vector factor = hn::Set(d, scale);
  for (int64_t o = 0; o < n; ++o, line += step * kBlock, y += kBlock) {
#pragma GCC unroll 4
    for (int c = 0; c < kBlock; c += kLanes) {
      Vector acc = hn::LoadU(d, line + c);
      if constexpr (kWidth > 0) {
#pragma GCC unroll 4
        for (int t = 1; t < kWidth; ++t) acc = op(acc, hn::LoadU(d, line + t * kBlock + c));
      } else {
        for (int64_t t = 1; t < width; ++t) acc = op(acc, hn::LoadU(d, line + t * kBlock + c));
      }
      hn::StoreU(std::is_same_v<Op, Sum> ? hn::Mul(acc, factor) : acc, d, y + c);
    }
  }
}

HWY_INLINE float scale_of(PoolKind kind, const Reach& h, const Stretch& w) {
  if (kind == PoolKind::average) return 1.f / static_cast<float>(h.padded * w.padded);
  if (kind == PoolKind::average_of_elements) return 1.f / static_cast<float>(h.size() * w.size);
  return 1;
}

/// A row of windows. Says whether a NaN may have been forgotten.
template <class Op>
HWY_INLINE bool pool_row(PoolKind kind, const PoolShape& s, const float* x, const Reach& h,
                         std::span<const Stretch> stretches, float* line, float* y) {
  const int64_t width = s.in[2], step = s.stride[2];
  if (s.out[2] == 1 && stretches[0].size == width)
    return reduce_all<Op>(x + h.begin * width * kBlock, h.size() * width, scale_of(kind, h, stretches[0]), y);
  const bool forgotten = reduce_rows<Op>(x + h.begin * width * kBlock, width * kBlock, h.size(), width * kBlock, line);
  for (const Stretch& w : stretches) {
    const float* from = line + w.begin * kBlock;
    const float scale = scale_of(kind, h, w);
    if (w.size == 0) std::fill_n(y, w.count * kBlock, of_nothing(kind));
    else if (w.size == 2) reduce_line<Op, 2>(from, step, 2, w.count, scale, y);
    else if (w.size == 3) reduce_line<Op, 3>(from, step, 3, w.count, scale, y);
    else reduce_line<Op, 0>(from, step, w.size, w.count, scale, y);
    y += w.count * kBlock;
  }
  return forgotten;
}

/// The output rows [begin, end), counted through all planes.
void pool_rows(PoolKind kind, const PoolShape& s, std::span<const Stretch> stretches, int64_t begin, int64_t end,
               const float* x, float* y, float* line) {
  for (int64_t i = begin; i < end; ++i) {
    const float* plane = x + i / s.out[1] * s.in[1] * s.in[2] * kBlock;
    float* to = y + i * s.out[2] * kBlock;
    const Reach h(s, 1, i % s.out[1]);
    if (h.size() == 0) {
      std::fill_n(to, s.out[2] * kBlock, of_nothing(kind));
    } else if (kind != PoolKind::max) {
      pool_row<Sum>(kind, s, plane, h, stretches, line, to);
    } else if (pool_row<Maximum>(kind, s, plane, h, stretches, line, to)) {
      pool_row<CarefulMaximum>(kind, s, plane, h, stretches, line, to);
    }
  }
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {

namespace {

Recycled<Stretch> stretches_of(const PoolShape& s) {
  Recycled<Stretch> all;
  for (int64_t o = 0; o < s.out[2];) {
    const Reach w(s, 2, o);
    int64_t count = 1;
    if (w.size() == s.kernel[2]) count = std::min(s.out[2] - o, (s.in[2] - s.kernel[2] - w.begin) / s.stride[2] + 1);
    all.push_back({count, w.begin, w.size(), w.padded});
    o += count;
  }
  return all;
}

}  // namespace

HWY_EXPORT(pool_rows);

void blocked_pool(PoolKind kind, const PoolShape& s, const float* x, float* y) {
  TW_CHECK(kind != PoolKind::lp && s.in[0] == 1 && s.out[0] == 1 && s.kernel[0] == 1, value,
           "blocked_pool: lp pooling and a depth are for pool_forward");
  if (s.in[1] == 0 || s.in[2] == 0) return;  // `out` is 0 as well, or the caller's check failed
  constexpr int64_t kGrain = 1 << 16;        // floats of input that are worth a thread
  const int64_t row = std::min(s.kernel[1], s.in[1]) * s.in[2] * kChannelBlock;
  const Recycled<Stretch> stretches = stretches_of(s);
  const auto run = TW_DISPATCH(pool_rows);
  parallel_for(s.planes * s.out[1], std::max<int64_t>(1, kGrain / row), [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    run(kind, s, stretches, begin, end, x, y, frame.take<float>(s.in[2] * kChannelBlock));
  });
}

}  // namespace twibil::kernels
#endif
