// SPDX-License-Identifier: Apache-2.0
// Casts of contiguous elements, for every pair of dtypes and instruction set. What a cast means stands in
// copy_convert.h.
#pragma once
#include <cstdint>

#include "base/dtype.h"
#include "base/scalar.h"

namespace twibil::kernels {

using CastFunction = void (*)(const void* src, void* dst, int64_t n);

/// Equal dtypes are a copy (bool bytes become 0 or 1). src may be dst if the sizes of the elements are equal.
CastFunction cast_function(DType from, DType to);

inline void cast(const void* src, DType from, void* dst, DType to, int64_t n) { cast_function(from, to)(src, dst, n); }

/// Writes one element.
void store_scalar(const Scalar& value, DType to, void* dst);

}  // namespace twibil::kernels
