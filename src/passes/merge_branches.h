// SPDX-License-Identifier: Apache-2.0
//   %3 = convolution(%1, v)  [64]              %3 = convolution(%1, concatenate(v, w))  [160]
//   %4 = relu(%3)                              %4 = relu(%3)
//   %5 = convolution(%1, w)  [96]      ->      %5 = basic_index(%4)  [64]               (a view)
//   %6 = relu(%5)                              %6 = basic_index(%4)  [96]               (a view)
//
// Calls on one input whose results differ only in their channels become one call, as the 1 x 1 convolutions at the
// beginning of an inception block. Not those that would be computed in their part of a concatenation.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void merge_branches(Graph& g);

}  // namespace twibil::passes
