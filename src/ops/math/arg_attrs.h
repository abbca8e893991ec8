// SPDX-License-Identifier: Apache-2.0
// Attributes of argmax and argmin.
#pragma once
#include "ir/attr.h"

namespace twibil::ops {

struct ArgAttrs {
  Maybe<int64_t> axis;
  bool keepdims = false;
};

}  // namespace twibil::ops
