// SPDX-License-Identifier: Apache-2.0
//   %1 = exp(%0)                     %1 = shape float32[3, 4]
//   %2 = sum_to_like(%9, %1)  ->     %2 = sum_to_like(%9, %1)      (exp is not needed for its shape)
//
// Inputs of which an operator reads shape and dtype alone become shapes: the values die earlier, and what only gave
// them goes.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void cut_shapes(Graph& g);

}  // namespace twibil::passes
