// SPDX-License-Identifier: Apache-2.0
#include "passes/fixed_values.h"

#include <algorithm>

namespace twibil::passes {

std::vector<bool> find_fixed(const Graph& g) {
  std::vector<bool> written(g.nodes.size()), fixed(g.nodes.size());
  for (const GraphNode& n : g.nodes)
    for (int k = 0; k < static_cast<int>(n.out.size()); ++k)
      if (int u = updated_input(n, k); u >= 0 && n.in[static_cast<size_t>(u)].present())
        written[static_cast<size_t>(n.in[static_cast<size_t>(u)].node)] = true;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const GraphNode& n = g.nodes[i];
    switch (n.kind) {
      case GraphNode::Kind::argument: fixed[i] = n.fixed && !written[i]; break;
      case GraphNode::Kind::constant:
      case GraphNode::Kind::shape: fixed[i] = true; break;
      case GraphNode::Kind::function: break;
      case GraphNode::Kind::call:
        fixed[i] = !has_effect(n) && !n.op->random && !written[i] && std::ranges::all_of(n.in, [&](Edge e) {
          return !e.present() || fixed[static_cast<size_t>(e.node)];
        });
        break;
    }
  }
  return fixed;
}

}  // namespace twibil::passes
