// SPDX-License-Identifier: Apache-2.0
//   %1 = conv(%0)     kept to the        %1 = conv(%0)    kept: a cut
//   %2 = relu(%1)     backward part      %2 = relu(%1)    gone after %3
//   %3 = conv(%2)     like all three     %3 = conv(%2)    gone when its readers have run
//   ---- backward ----              ->   ---- backward ----
//                                        %4 = relu(%1)    again
//                                        %5 = conv(%4)    again
//   %4 = grad(dy, %2, %3)                %6 = grad(dy, %4, %5)
//
// Trades time for memory (arXiv 1604.06174): the forward part is cut into segments at places where few bytes live. What
// lives there is kept; the rest is computed again from it when the backward part comes to the segment. Of what room is
// left, the values that are dearest to compute for their bytes are kept too, so cheap ones are computed again first.
// Random numbers keep their keys, updates are not repeated. Off unless Graph::keep is below one, or users marked nodes.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void recompute(Graph& g);

}  // namespace twibil::passes
