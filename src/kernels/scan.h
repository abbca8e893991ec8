// SPDX-License-Identifier: Apache-2.0
// Running sums and products along one axis.
#pragma once
#include "base/dtype.h"

namespace twibil::kernels {

enum class Scan : uint8_t { sum, prod };

/// y[o, j, i] = x[o, 0, i] (+ or *) ... x[o, j, i] of contiguous [outer, n, inner]; reverse: from the end, which is the
/// gradient of a cumsum. Floats accumulate in their own precision, halves in float32, integers and bool in int64 that
/// wraps; then cast to `out` (convert's rules; int64 is usual for integers). y may be x when the dtypes have the same
/// size.
void scan(Scan op, DType in, DType out, int64_t outer, int64_t n, int64_t inner, bool reverse, const void* x, void* y);

}  // namespace twibil::kernels
