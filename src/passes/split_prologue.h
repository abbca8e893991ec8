// SPDX-License-Identifier: Apache-2.0
//   %4 = multiply(weight, scale)                 prologue:  %0 = multiply(weight, scale); return %0
//   %5 = convolution(%0, %4)             ->      %4 = argument
//                                                %5 = convolution(%0, %4)
//
// What depends on parameters alone becomes a graph of its own, which runs again only after a parameter was written or
// replaced. Its results are the last arguments of the graph. Values much larger than what they come from stay,
// unless they are laid out for a kernel.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

/// The prologue: a graph with the arguments of `g`, whose outputs are the last Graph::prologue_arguments of `g`.
/// Without nodes where there is nothing to split off. The inputs are settled.
Graph split_prologue(Graph& g);
/// Removes what no output needs, and updates; all arguments stay.
void keep_needed(Graph& g);

}  // namespace twibil::passes
