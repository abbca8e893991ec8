// SPDX-License-Identifier: Apache-2.0
#include "passes/remove_dead.h"

#include "passes/views.h"

namespace twibil::passes {

void remove_dead(Graph& g) {
  std::vector<bool> keep(g.nodes.size());
  // An update counts when what it writes can be seen afterwards: an array of the caller's.
  std::vector<bool> outside(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const GraphNode& n = g.nodes[i];
    outside[i] = n.kind == GraphNode::Kind::argument;
    for (int k = 0; k < static_cast<int>(n.out.size()); ++k) {
      int u = updated_input(n, k);
      if (u >= 0 && n.in[static_cast<size_t>(u)].present())
        outside[i] = outside[i] || outside[static_cast<size_t>(n.in[static_cast<size_t>(u)].node)];
    }
    keep[i] =
        n.kind == GraphNode::Kind::argument || n.kind == GraphNode::Kind::function || (outside[i] && has_effect(n));
  }
  for (Edge e : g.outputs)
    if (e.present()) keep[static_cast<size_t>(e.node)] = true;
  for (size_t i = g.nodes.size(); i-- > 0;)
    if (keep[i])
      for (Edge e : g.nodes[i].in)
        if (e.present()) keep[static_cast<size_t>(e.node)] = true;
  keep_nodes(g, keep);
}

}  // namespace twibil::passes
