// SPDX-License-Identifier: Apache-2.0
#include "passes/views.h"

namespace twibil::passes {

static bool is_row_major(const Layout& l) {
  int64_t step = 1;
  for (int i = l.shape.rank() - 1; i >= 0; --i) {
    if (l.shape[i] > 1 && l.strides[i] != step) return false;
    step *= std::max<int64_t>(l.shape[i], 1);
  }
  return true;
}

static Layout whole(const Sig& s) {
  Layout l;
  l.shape = s.shape;
  contiguous_strides(s.shape, l.strides);
  return l;
}

std::vector<View> find_views(const Graph& g) {
  std::vector<View> views(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const GraphNode& n = g.nodes[i];
    View& v = views[i];
    v.root = {static_cast<int32_t>(i), 0};
    if (n.out.empty()) continue;
    v.layout = whole(n.out[0]);
    if (n.kind != GraphNode::Kind::call || !n.op->view || !n.in[0].present()) continue;
    Edge from = n.in[0];
    if (g.at(from.node).kind == GraphNode::Kind::shape) continue;
    const View base = from.output == 0 ? views[static_cast<size_t>(from.node)] : View{from, whole(g.sig(from)), true};
    Layout layout = n.op->view(n.attrs.empty() ? nullptr : n.attrs.data(), base.layout);
    if (!layout.possible) continue;
    v = {base.root, layout, is_row_major(layout)};
  }
  return views;
}

bool is_view(const std::vector<View>& views, size_t i) {
  return views[i].root.node >= 0 && views[i].root != Edge{static_cast<int32_t>(i), 0};
}

Edge root_of(const std::vector<View>& views, Edge e) {
  return e.output == 0 ? views[static_cast<size_t>(e.node)].root : e;
}

}  // namespace twibil::passes
