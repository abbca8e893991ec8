// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes of a strided array: sums, products, extrema, truth, arg-extrema, variance.
// The tree of combinations depends on shape and strides only: same bits for every number of threads and, but for
// fused multiply-adds in sum_squares and variance, for every instruction set.
#pragma once
#include "base/dtype.h"
#include "kernels/copy_dims.h"

namespace twibil::kernels {

enum class Reduction : uint8_t { sum, mean, prod, max, min, any, all, sum_abs, sum_squares };

/// Bit i set: axis i is reduced. No axis set: every element is its own group (mapped by sum_abs, any, ...).
using AxisSet = uint32_t;

/// dst[kept...] = reduction of src over `axes`. dst is C-ordered over the kept axes in their order (keepdims or not is
/// the same memory); it has one element when all axes are reduced.
///  - Arithmetic: floats in their own precision by a pairwise tree (better than NumPy's, also along leading axes),
///  halves
///    in float32, integers and bool in int64 that wraps; mean of integers in float64. Then cast to `out` (convert's
///    rules). Usual outs: the same float; int64 for sums of integers; float32 or float64 for their mean; bool for any
///    and all.
///  - max, min: NaN wins. any, all: non-zero (NaN too) is true.
///  - Nothing to reduce (a reduced axis of size 0): sums 0, prod 1, any false, all true, mean NaN. max and min then
///  give
///    the lowest or highest value; the caller raises instead.
void reduce(Reduction op, DType in, DType out, Dims shape, const void* src, Dims strides, AxisSet axes, void* dst);

/// dst[kept...] = C-order index, counted over the reduced axes, of the first maximum (or minimum): with one axis it is
/// the position along it, with all axes that of the flattened array. The first NaN wins. Empty is the caller's error
/// (gives 0).
void arg_reduce(bool maximum, DType in, Dims shape, const void* src, Dims strides, AxisSet axes, int64_t* dst);

/// mean and variance (sum of squared distances to the mean / (n - ddof), two passes) over `axes`, both in dtype `out`,
/// which is floating; either pointer may be null. Halves compute in float32, integers in float64. n <= ddof gives NaN
/// or inf.
void variance(DType in, DType out, Dims shape, const void* src, Dims strides, AxisSet axes, double ddof, void* mean,
              void* var);

}  // namespace twibil::kernels
