// SPDX-License-Identifier: Apache-2.0
// How long each kernel of a compiled graph takes. Runs on copies: nothing of the caller changes.
#pragma once
#include "runtime/compiled_graph.h"

namespace twibil {

/// Seconds of each step: the least over as many runs as fit into `seconds`, three at least and 200 at most. `arguments`
/// in the order of the graph's inputs; the gradients of its outputs are ones. Host callbacks are called, too.
std::vector<double> measure_steps(const CompiledGraph::Compiled& compiled, std::span<const Val> arguments,
                                  double seconds);

}  // namespace twibil
