// SPDX-License-Identifier: Apache-2.0
// Joining arrays along an axis, for composed operators.
#pragma once
#include <vector>

#include "ops/forms.h"

namespace twibil::ops {

struct ConcatenateAttrs {
  Maybe<int64_t> axis = 0;
};
extern const OpDef op_concatenate;

inline Val join(const std::vector<Val>& parts, int64_t axis) {
  ConcatenateAttrs a;
  a.axis = axis;
  return apply_all(op_concatenate, &a, parts)[0];
}

}  // namespace twibil::ops
