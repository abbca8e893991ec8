// SPDX-License-Identifier: Apache-2.0
// What must hold of a graph after every pass. An offence is a bug of the pass, which the message names.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

void verify(const Graph& g, const char* after);

}  // namespace twibil::passes
