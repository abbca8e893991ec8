// SPDX-License-Identifier: Apache-2.0
// Attributes of basic indexing, shared with the front ends that make them from keys.
#pragma once
#include "ir/attr.h"
#include "ir/registry.h"

namespace twibil::ops {

/// x[start:...:step, i, None, ...], resolved: one entry per axis of x, negative numbers and open ends gone.
struct BasicIndexAttrs {
  IntList start;     // first index per axis of x
  IntList step;      // may be negative
  IntList size;      // elements taken; -1: the axis is indexed by an integer and goes away
  IntList new_axes;  // positions of new axes of size one in the result, ascending
};
extern const OpDef op_basic_index, op_assign_basic;

/// Where the selected elements lie. Throws an index error when x does not hold them.
Layout index_layout(const BasicIndexAttrs& attrs, const Layout& x);

}  // namespace twibil::ops
