// SPDX-License-Identifier: Apache-2.0
// Placing elements at positions of a flattened array.
#pragma once
#include "ops/forms.h"

namespace twibil::ops {

struct ScatterAttrs {
  Choice reduction;
};
enum ScatterReduction { kReplace, kAdd, kMultiply, kMaximum, kMinimum };
/// (data, positions, updates), all of one axis: data with updates placed; of equal positions the last one counts.
extern const OpDef op_scatter_flat;

}  // namespace twibil::ops
