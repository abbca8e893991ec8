// SPDX-License-Identifier: Apache-2.0
// Which values follow from constants and parameters alone, so that they change only when a parameter does.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

/// For each node. Arguments that the graph writes are not among them.
std::vector<bool> find_fixed(const Graph& g);

}  // namespace twibil::passes
