// SPDX-License-Identifier: Apache-2.0
//   %1 = transpose(%0)
//   %2 = transpose(%1)
//   %3 = multiply(%2, 1)
//   %4 = broadcast_like(%9, %0)
//   %5 = add(%3, %4)         ->      %1 = add(%0, %9)
//
// Removes what changes nothing: formulas that come out as one of their arguments, views that undo each other, casts to
// the dtype that is there, sums and broadcasts to the shape that is there, copies. Pointwise operators broadcast
// themselves, so they read what was spread, and a number where an array of zeros or ones was. Bits stay the same.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void simplify(Graph& g);

}  // namespace twibil::passes
