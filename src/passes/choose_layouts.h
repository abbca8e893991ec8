// SPDX-License-Identifier: Apache-2.0
//   %3 = convolution(%x, w)             %2 = pack_convolution_weight(w)           (once, see split_prologue.h)
//   %4 = relu(%3)                       %3 = to_blocks(%x)
//   %5 = convolution(%4, v)       ->    %4 = blocked_convolution(%3, %2)
//   return %5                           %5 = relu(%4)
//                                       %6 = blocked_convolution(%5, ...)
//                                       %7 = from_blocks(%6);  return %7
//
// Graphs for prediction compute in blocks of 16 channels where that is faster (kernels/blocked.h). Operators say how
// they do it (OpDef::blocked); formulas follow their inputs. Of all assignments the one with the fewest bytes converted
// is taken, and a value that is wanted both ways is converted once.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void choose_layouts(Graph& g);

}  // namespace twibil::passes
