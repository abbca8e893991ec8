// SPDX-License-Identifier: Apache-2.0
// Parts of arrays along one axis, for composed operators.
#pragma once
#include "ops/forms.h"
#include "ops/index/basic_index.h"

namespace twibil::ops {

/// All of x, to be narrowed.
inline BasicIndexAttrs whole_of(const Val& x) {
  BasicIndexAttrs a;
  for (int i = 0; i < x->rank(); ++i) {
    a.start.push_back(0);
    a.step.push_back(1);
    a.size.push_back(x->dims[i]);
  }
  return a;
}
/// x[..., begin:begin + size, ...] along an axis.
inline Val part(const Val& x, int axis, int64_t begin, int64_t size) {
  BasicIndexAttrs a = whole_of(x);
  a.start[axis] = begin;
  a.size[axis] = size;
  return apply(op_basic_index, a, {x});
}
/// x[..., i, ...] without the axis.
inline Val at_index(const Val& x, int axis, int64_t i) { return part(x, axis, i, -1); }
/// x backwards along an axis.
inline Val backwards(const Val& x, int axis) {
  BasicIndexAttrs a = whole_of(x);
  if (x->dims[axis] > 0) a.start[axis] = x->dims[axis] - 1, a.step[axis] = -1;
  return apply(op_basic_index, a, {x});
}

}  // namespace twibil::ops
