// SPDX-License-Identifier: Apache-2.0
//   %2 = multiply(%0, %1)
//   %3 = add(%2, 1)           ->     %2 = fused multiply add relu(%0, %1)
//   %4 = relu(%3)
//
// Chains and trees of pointwise operators become one program, which runs tile by tile in the first-level cache: what is
// between them never goes to memory. A value joins its readers when nobody else reads it, when it has their shape, and
// when no rounding to a half stands between, so that the bits stay the same. The forward and the backward part stay
// apart: what the backward part reads has to be kept anyway.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void fuse_pointwise(Graph& g);

}  // namespace twibil::passes
