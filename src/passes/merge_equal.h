// SPDX-License-Identifier: Apache-2.0
//   %2 = exp(%0)                     %2 = exp(%0)
//   %3 = exp(%0)            ->
//   %4 = add(%2, %3)                 %3 = add(%2, %2)
//
// Common subexpressions: nodes with the same operator, attributes, inputs and random key are one. What is updated, or
// updates, stays apart.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void merge_equal(Graph& g);

}  // namespace twibil::passes
