// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits with a zero point, for products of them.
#pragma once
#include "ops/forms.h"

namespace twibil::ops {

/// x minus its zero point, in double, in which products of 8-bit numbers are exact. A zero point of several numbers
/// belongs to the axis: it must broadcast.
Val centred(const Val& x, const Val& zero);
/// x / scale, rounded to even, plus zero, in a dtype of 8 bits.
Val quantize(const Val& x, const Val& scale, const Val& zero, DType t);

}  // namespace twibil::ops
