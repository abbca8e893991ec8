// SPDX-License-Identifier: Apache-2.0
// Attributes of arange, for composed operators.
#pragma once
#include "ir/attr.h"

namespace twibil::ops {

struct ArangeAttrs {
  Scalar start;
  Maybe<Scalar> stop;
  Scalar step = Scalar(1);
  Maybe<DType> dtype;
};

}  // namespace twibil::ops
