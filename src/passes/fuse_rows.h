// SPDX-License-Identifier: Apache-2.0
//   %2 = max(%0, axis=-1)  (n, 1)
//   %3 = fused subtract exp(%0, %2)  (n, 1000)         %2 = rows max subtract exp sum true_divide(%0)  (n, 1000)
//   %4 = sum(%3, axis=-1)  (n, 1)                 ->     for 48 of the n rows at a time: the same four calls
//   %5 = true_divide(%3, %4)  (n, 1000)
//
// Pointwise operators, reductions, softmaxes and normalisations that treat rows alike run together on a block of rows
// at a time, which stays in the second-level cache: what is between them never goes to memory, and their inputs come
// from memory once. A reduction of the rows themselves leaves one result per block, which the same operator then
// reduces. Only where the arrays are too large for the caches; what depends on parameters alone is left to the
// prologue.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void fuse_rows(Graph& g);

}  // namespace twibil::passes
