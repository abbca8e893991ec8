// SPDX-License-Identifier: Apache-2.0
// Attributes of indexing by integer arrays, shared with the front ends that make them from keys.
#pragma once
#include "ir/attr.h"
#include "ir/registry.h"

namespace twibil::ops {

/// Which axes of x the index arrays walk. Their broadcast shape stands in the result where the first of them was, or in
/// front when they are not neighbours (NumPy's rule).
struct AdvancedIndexAttrs {
  IntList axes;        // ascending, one per index array
  bool front = false;  // an ellipsis of no axes stood between them: not neighbours all the same
};
extern const OpDef op_advanced_index, op_advanced_put;

}  // namespace twibil::ops
