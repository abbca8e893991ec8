// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace twibil::kernels {

struct LrnShape {
  int64_t batch, channels, pixels;
  int64_t window;  // channels that are added up, odd; those outside count as 0
  double alpha, beta, knorm;
};

/// y[c] = x[c] / (knorm + alpha / window * sum of x[c']^2)^beta on [batch][channels][pixels]; dtypes: all floats.
void lrn(DType t, const LrnShape& s, const void* x, void* y);
/// The same on blocked channels (blocked.h); 0 fills the last block.
void blocked_lrn(const LrnShape& s, const float* x, float* y);

}  // namespace twibil::kernels
