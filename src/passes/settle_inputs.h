// SPDX-License-Identifier: Apache-2.0
//   %1 = transpose(%0)               %1 = transpose(%0)
//   %2 = softmax(%1)        ->       %2 = copy(%1)          (softmax knows no strides)
//   return %0                        %3 = softmax(%2)
//                                    %4 = copy(%0)          (an argument is no result)
//                                    return %4
//
// Makes explicit what the runtime does for each call of an operator: inputs of another dtype are cast, strided ones are
// copied where the kernel needs rows, an old value that is read after an update is copied before it, and each output of
// the graph gets memory of its own. After this pass every node runs on its inputs as they stand.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void settle_inputs(Graph& g);

}  // namespace twibil::passes
