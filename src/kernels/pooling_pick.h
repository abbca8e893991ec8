// SPDX-License-Identifier: Apache-2.0
// Reads one array where the maxima of another one lie: the second gradient of max pooling.
#pragma once
#include "kernels/pooling.h"

namespace twibil::kernels {

/// y[o] = h[first maximum of x in window o], 0 for windows without elements; h has x's shape. dtypes: all floats.
void pool_pick(DType t, const PoolShape& shape, const void* x, const void* h, void* y);

}  // namespace twibil::kernels
