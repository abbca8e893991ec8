// SPDX-License-Identifier: Apache-2.0
//   %3 = blocked_convolution(%1, w, b)
//   %4 = add(%3, %2)                      ->    %5 = blocked_convolution(%1, w, b, %2, lower=0)
//   %5 = relu(%4)
//
// Sums and clamps of a value that nobody else reads go into the operator that makes it, where it can do them before it
// writes (OpDef::epilogue). Clamps are found by their formulas: relu, relu6, clip, maximum with a number.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void attach_epilogues(Graph& g);

}  // namespace twibil::passes
