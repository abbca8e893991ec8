// SPDX-License-Identifier: Apache-2.0
//   %2 = exp(%0)                     (gone: nobody reads it)
//   %3 = add(%0, %1)        ->       %2 = add(%0, %1)
//   return %3                        return %2
//
// Removes nodes that no output and no update of an argument needs. Arguments stay.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void remove_dead(Graph& g);

}  // namespace twibil::passes
