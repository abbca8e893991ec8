// SPDX-License-Identifier: Apache-2.0
// One primitive over contiguous arrays of one dtype: what an eager operation calls when nothing has to be broadcast or
// converted, and what tiles (kernels/tile.h) are made of.
//
//   static const DirectFunction add = direct(Prim::add, DType::float32, Mode::vector_vector);   // resolve once
//   add(out, a, b, n);
#pragma once
#include <cstdint>

#include "base/prim.h"

namespace twibil::kernels {

/// vector_scalar: b points to one element; scalar_vector: a does; unary: b is not read.
enum class Mode : uint8_t { vector_vector, vector_scalar, scalar_vector, unary };
inline constexpr int kModeCount = 4;

/// Comparisons and other masks write bool bytes, everything else the operands' dtype. `out` may be `a` or `b` itself,
/// if its elements have their size; other overlaps are not allowed. Scalars are in the dtype of the arrays, 0 <= n.
using DirectFunction = void (*)(void* out, const void* a, const void* b, int64_t n);
/// For fma and select; all three are arrays.
using TernaryFunction = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n);

/// Null if the primitive has no meaning for the dtype (see prim_has) or has another number of operands. Masks'
/// operators (logical_and, ...) have DType::bool_; from_mask and select have the dtype of the values. Halves are
/// computed in float32 and rounded once. The instruction set is chosen at the call of direct(), so pointers kept across
/// set_isa() stay on the old one.
DirectFunction direct(Prim prim, DType dtype, Mode mode);
TernaryFunction direct_ternary(Prim prim, DType dtype);

}  // namespace twibil::kernels
