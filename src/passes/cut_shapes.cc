// SPDX-License-Identifier: Apache-2.0
#include "passes/cut_shapes.h"

#include <unordered_map>

#include "passes/rewrite.h"

namespace twibil::passes {

void cut_shapes(Graph& g) {
  Rewrite r(g);
  std::unordered_map<std::string, Edge> known;  // one node for each shape and dtype
  auto shape_node = [&](const Sig& s) {
    auto [place, fresh] = known.try_emplace(text(s));
    if (!fresh) return place->second;
    GraphNode n;
    n.kind = GraphNode::Kind::shape;
    n.out = {Sig{s.shape, s.dtype}};
    return place->second = {r.made().add(std::move(n)), 0};
  };
  for (size_t i = 0; i < r.old().nodes.size(); ++i) {
    r.at(i);
    GraphNode n = r.old().nodes[i];
    for (size_t k = 0; k < n.in.size(); ++k) {
      Edge from = n.in[k];
      bool cut = from.present() && n.kind == GraphNode::Kind::call && n.op->shape_only(static_cast<int>(k)) &&
                 r.old().at(from.node).kind != GraphNode::Kind::shape && !r.old().sig(from).weak;
      n.in[k] = cut ? shape_node(r.old().sig(from)) : r(from);
    }
    r.keep(i, std::move(n));
  }
  g = r.finish();
}

}  // namespace twibil::passes
