// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters. Every indexing operator is two steps: index arrays become validated element offsets
// (index_offsets, mask_offsets), then slices move by offset (gather, scatter, scatter_add).
//
// take(x, i, axis): one term {i, size and stride of axis}; slice = the other axes. x[i, :, j]: one term per indexed
// axis. gather_nd: one term per row of the indices. boolean mask: mask_offsets. embedding: take on axis 0, its gradient
// scatter_add. Strides are in elements, see copy.h.
#pragma once
#include "base/dtype.h"
#include "base/scalar.h"
#include "kernels/copy_dims.h"

namespace twibil::kernels {

/// raise: -size <= i < size, negative counts from the end. clip: to [0, size-1]. wrap: modulo size (negative too).
/// Floating indices are truncated first (NaN is 0, infinities saturate).
enum class IndexMode : uint8_t { raise, clip, wrap };

/// One index array, broadcast to the common shape by its strides, that walks an axis of `size` elements `stride` apart.
struct IndexTerm {
  DType dtype;
  const void* data;
  Dims strides;
  int64_t size, stride;
  IndexMode mode = IndexMode::raise;
};

/// The first index that is out of range (C order, lowest term): which term, its position, its value. term < 0: none.
struct BadIndex {
  int term = -1;
  int64_t position = 0, value = 0;
  explicit operator bool() const { return term >= 0; }
};

/// offsets[p] = sum over terms of index * stride, for every position p of `shape` in C order. Where an index is bad the
/// contents of offsets are unspecified and must not be used. Any index of an axis of size 0 is bad, in every mode.
BadIndex index_offsets(std::span<const IndexTerm> terms, Dims shape, int64_t* offsets);

/// dst[i * dst_step + s] = src[offsets[i] + s] for i < count and every s of the slice (its strides in both arrays).
void gather(DType dtype, int64_t count, const int64_t* offsets, Dims slice, const void* src, Dims src_strides,
            void* dst, int64_t dst_step, Dims dst_strides);

/// dst[offsets[i] + s] = src[i * src_step + s]; with equal offsets the last one stays. Zero steps broadcast src.
void scatter(DType dtype, int64_t count, const int64_t* offsets, Dims slice, const void* src, int64_t src_step,
             Dims src_strides, void* dst, Dims dst_strides);

/// dst[offsets[i] + s] += src[i * src_step + s], added in the order of i (halves: summed in float32, rounded once), so
/// always the same bits. Integers wrap, bool is a logical or. Slices of different offsets must not overlap.
void scatter_add(DType dtype, int64_t count, const int64_t* offsets, Dims slice, const void* src, int64_t src_step,
                 Dims src_strides, void* dst, Dims dst_strides);

/// numpy.take_along_axis and MXNet's pick: offsets[p] = p's place in x, whose strides are given, with p's coordinate on
/// `axis` replaced by index[p]; pick has shape[axis] == 1. Then gather (scatter_add for the gradient) with an empty
/// slice. size: x's on that axis. index_strides broadcast the index to `shape`.
BadIndex along_axis_offsets(Dims shape, Dims x_strides, int axis, int64_t size, DType index_dtype, const void* index,
                            Dims index_strides, IndexMode mode, int64_t* offsets);

int64_t count_nonzero(DType dtype, Dims shape, const void* src, Dims strides);

/// Coordinates of the non-zero elements in C order: coordinate a of the i-th goes to out[i * step + a * axis_step].
/// out has room for count_nonzero of them.
void nonzero(DType dtype, Dims shape, const void* src, Dims strides, int64_t* out, int64_t step, int64_t axis_step);

/// Offsets (by x_strides, one per axis of the mask) of the elements where the mask is non-zero, in C order; offsets has
/// room for count_nonzero. x[mask] is gather with them, x[mask] = v is scatter. A slice holds x's axes beyond the
/// mask's.
void mask_offsets(DType dtype, Dims shape, const void* mask, Dims mask_strides, Dims x_strides, int64_t* offsets);

/// dst[p, d] = d == index[p] ? on : off, C order; indices outside [0, depth) give a row of off.
void one_hot(DType index_dtype, int64_t count, const void* index, int64_t depth, DType out, const Scalar& on,
             const Scalar& off, void* dst);

/// dst = condition != 0 ? a : b, all of one shape by strides.
void where(DType condition_dtype, DType dtype, Dims shape, const void* condition, Dims condition_strides, const void* a,
           Dims a_strides, const void* b, Dims b_strides, void* dst, Dims dst_strides);

}  // namespace twibil::kernels
