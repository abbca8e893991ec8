// SPDX-License-Identifier: Apache-2.0
//   %1 = constant 2
//   %2 = sqrt(%1)            ->      %2 = constant 1.41421
//   %3 = multiply(%0, %2)            %3 = multiply(%0, %2)
//
// Calls whose inputs are all constants (or shapes) run now, once. Results that are large, or larger than what they were
// made from, stay calls: they would make the graph heavy.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void fold_constants(Graph& g);

}  // namespace twibil::passes
