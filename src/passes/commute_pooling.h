// SPDX-License-Identifier: Apache-2.0
//   %3 = pooling(%2)  [576 channels]               %3 = convolution(%2, w, 1 x 1)  [128 channels]
//   %4 = convolution(%3, w, b, 1 x 1)      ->      %4 = pooling(%3)
//                                                  %5 = add(%4, b)
//
// An average and a mixing of channels may change places, as both are linear and the weights are the same everywhere.
// The average goes last where that leaves it fewer channels. The bias comes after it: at the edge an average that
// counts padding would shrink it.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void commute_pooling(Graph& g);

}  // namespace twibil::passes
