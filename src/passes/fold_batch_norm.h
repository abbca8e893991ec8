// SPDX-License-Identifier: Apache-2.0
//   %5 = convolution(%0, %1)                          %5 = scale and shift of gamma, beta, mean, var
//   %6 = batch_norm_predict(%5, gamma, ...)    ->     %6 = multiply(%1, scale)
//                                                     %7 = convolution(%0, %6, shift)
//
// A layer that scales and shifts each channel by fixed numbers goes into the matrix operator before it, whose weight is
// scaled instead. Only where weight and numbers are parameters: then the new weight is computed once, by the prologue.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void fold_batch_norm(Graph& g);

}  // namespace twibil::passes
