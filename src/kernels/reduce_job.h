// SPDX-License-Identifier: Apache-2.0
// What reduce.cc plans and reduce_loops.cc runs: one reduction in accumulator type, its loop nests split into kept and
// reduced dimensions. Internal to the reductions.
#pragma once
#include "base/dtype.h"
#include "kernels/copy_dims.h"

namespace twibil::kernels {

enum class Fold : uint8_t { sum, prod, max, min, sum_abs, sum_squares, sum_centered_squares };
enum class Accumulate : uint8_t { int64, float32, float64 };
/// Casts n strided elements to the accumulator type.
using LoadFunction = void (*)(const void* src, int64_t stride, int64_t n, void* to);

struct ReduceJob {
  Fold fold;
  Accumulate type;
  DType dtype;
  LoadFunction load = nullptr;  // null: elements are in the accumulator type already
  LoopNest<1> kept, reduced;
  const char* src;
  void* dst;                       // accumulator type, C order over kept
  const void* center = nullptr;    // sum_centered_squares: one value per output
  int64_t outputs = 1, count = 1;  // kept elements; elements per group
};

/// A contiguous [outer, n, inner] in accumulator type that is folded over n.
struct SmallReduce {
  Fold fold;
  Accumulate type;
  const void* src;
  void* dst;
  int64_t outer, n, inner;
};

inline constexpr int64_t kBlock = 1024;   // elements folded lane by lane; blocks are combined pairwise
inline constexpr int64_t kColumns = 512;  // outputs of one tile when the kept axis is the contiguous one

/// Splits the axes and picks the accumulator; `order` is how the reduced axes are walked.
ReduceJob plan_reduce(Fold fold, DType dtype, Accumulate type, Dims shape, const void* src, Dims strides, uint32_t axes,
                      Order order);
void run_reduce(const ReduceJob& job);  // all outputs, in parallel
void run_small_reduce(const SmallReduce& job);
/// Sees a contiguous array whose reduced axes are neighbours as [outer, n, inner]; false when it is not one.
bool split_contiguous(Dims shape, Dims strides, uint32_t axes, SmallReduce& r);

}  // namespace twibil::kernels
