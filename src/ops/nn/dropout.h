// SPDX-License-Identifier: Apache-2.0
// Attributes of dropout, for composed operators.
#pragma once
#include "ops/forms.h"

namespace twibil::ops {

struct DropoutAttrs {
  double p = 0.5;
  Choice mode;
  IntList axes;
  bool cudnn_off = false;
};
extern const OpDef op_dropout;

}  // namespace twibil::ops
