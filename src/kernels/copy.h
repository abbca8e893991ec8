// SPDX-License-Identifier: Apache-2.0
// Moves elements: strided copies, casts, fills, tiles and pads. Concatenate, split, flip, transpose and contiguous()
// are `copy` with the right pointers and strides.
//
// Everywhere in kernels/: strides are in elements, may be negative or zero, and pointers point at element [0, 0, ...];
// sizes may be zero; shape and strides have the same length (at most 16); operands must not overlap unless said.
#pragma once
#include "base/dtype.h"
#include "base/scalar.h"
#include "kernels/copy_dims.h"

namespace twibil::kernels {

/// dst[i...] = src[i...]. A zero source stride broadcasts; a zero destination stride is a bug of the caller.
void copy(DType dtype, Dims shape, const void* src, Dims src_strides, void* dst, Dims dst_strides);

/// The same with a cast (rules: convert_value in copy_convert.h). Equal dtypes are a copy.
/// In place (src == dst, same strides) is allowed when the element sizes are equal.
void convert(DType from, DType to, Dims shape, const void* src, Dims src_strides, void* dst, Dims dst_strides);

/// n contiguous elements, cast, on the calling thread.
void convert_row(DType from, DType to, const void* src, void* dst, int64_t n);

/// dst[i...] = value, cast to dtype by the rules of convert.
void fill(DType dtype, Dims shape, void* dst, Dims dst_strides, const Scalar& value);

enum class PadMode { constant, edge, reflect, symmetric, wrap };  // as in numpy.pad

/// dst has shape[i] + before[i] + after[i] elements on axis i; src has `shape`. All modes but constant need
/// shape[i] > 0 where the axis is padded; pads may be longer than the axis (the pattern repeats, as in NumPy >= 1.25).
void pad(DType dtype, Dims shape, const void* src, Dims src_strides, Dims before, Dims after, PadMode mode,
         const Scalar& value, void* dst, Dims dst_strides);

/// The source index in [0, size) of each of before + size + after positions along one axis; -1 outside for constant.
/// Gradients of pad are scatter-adds along these maps.
void pad_map(PadMode mode, int64_t size, int64_t before, int64_t after, int64_t* map);

/// numpy.tile with one repetition count per axis: dst has shape[i] * reps[i] elements on axis i. At most 8 axes.
void tile(DType dtype, Dims shape, const void* src, Dims src_strides, Dims reps, void* dst, Dims dst_strides);

/// numpy.repeat with one count: each element (plane) along `axis` comes `times` times in a row. At most 15 axes.
void repeat(DType dtype, Dims shape, const void* src, Dims src_strides, int axis, int64_t times, void* dst,
            Dims dst_strides);

}  // namespace twibil::kernels
