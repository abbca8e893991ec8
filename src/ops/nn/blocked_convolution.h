// SPDX-License-Identifier: Apache-2.0
// Convolutions in blocks of channels, for the declarations of what can become one.
#pragma once
#include "ops/nn/blocked.h"

namespace twibil::ops {

/// What computing a convolution of this shape in blocks would mean; x, weight and bias are inputs 0 to 2.
BlockedPlan plan_blocked_convolution(const kernels::BlockedShape& s, const BlockedQuery& q);
/// The convolution in blocks of `data`, which comes as the plan says; weight and bias (or null) as they stand.
Val blocked_convolution(const kernels::BlockedShape& s, const BlockedQuery& q, const Val& data, const Val& weight,
                        const Val& bias);

}  // namespace twibil::ops
