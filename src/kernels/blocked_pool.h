// SPDX-License-Identifier: Apache-2.0
// Pooling in two dimensions on blocked channels (blocked.h), for inference.
#pragma once
#include "kernels/pooling.h"

namespace twibil::kernels {

/// y from x, both [planes][height][width][16]; planes = blocks of channels x batch, and the depth of `s` is 1. Every
/// kind but lp; the conventions are those of pool_forward, so any rule for the output's size and padding can be had.
void blocked_pool(PoolKind kind, const PoolShape& s, const float* x, float* y);

}  // namespace twibil::kernels
