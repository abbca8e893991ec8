// SPDX-License-Identifier: Apache-2.0
#include "passes/fold_constants.h"

#include <algorithm>

#include "ir/apply.h"
#include "ir/graph_tracer.h"
#include "ir/modes.h"
#include "ir/trace.h"
#include "passes/rewrite.h"

namespace twibil::passes {

namespace {

constexpr int64_t kSmall = 1 << 16;  // bytes that a constant may have in any case
constexpr int64_t kLarge = 1 << 24;  // and at most

int64_t bytes_of(const Sig& s) { return checked_mul(s.shape.size(), size_of(s.dtype)); }

bool is_known(const GraphNode& n) { return n.kind == GraphNode::Kind::constant || n.kind == GraphNode::Kind::shape; }

bool can_fold(const Graph& g, const GraphNode& n) {
  if (n.kind != GraphNode::Kind::call || n.owned || n.op->random || n.op->data_dependent || has_effect(n)) return false;
  if (n.op->outputs() != n.op->visible_outputs()) return false;
  int64_t from = 0, to = 0;
  for (Edge e : n.in) {
    if (!e.present()) continue;
    if (!is_known(g.at(e.node))) return false;
    from += bytes_of(g.sig(e));
  }
  for (const Sig& s : n.out) to += bytes_of(s);
  return to <= kSmall || (to <= from && to <= kLarge);
}

Val shape_of(const Sig& s) {
  Val v = Val::adopt(new_value(s.dtype, s.shape));
  become_ghost(v.get());
  return v;
}

}  // namespace

void fold_constants(Graph& g) {
  Rewrite r(g);
  TraceScope runs(nullptr);
  for (size_t i = 0; i < r.old().nodes.size(); ++i) {
    r.at(i);
    GraphNode n = r.old().nodes[i];
    for (Edge& e : n.in) e = r(e);
    if (!can_fold(r.made(), n)) {
      r.keep(i, std::move(n));
      continue;
    }
    ModeScope quiet(false, n.training);
    std::vector<Val> in;
    for (Edge e : n.in) {
      const GraphNode* from = e.present() ? &r.made().at(e.node) : nullptr;
      in.push_back(!from ? Val() : from->kind == GraphNode::Kind::constant ? from->value : shape_of(from->out[0]));
    }
    Vals out = apply_all(*n.op, n.attrs.empty() ? nullptr : n.attrs.data(), in);
    std::vector<Edge> places;
    for (int k = 0; k < out.size(); ++k) {
      GraphNode c;
      c.kind = GraphNode::Kind::constant;
      c.out = {n.out[static_cast<size_t>(k)]};
      TW_ASSERT(out[k]->dtype() == c.out[0].dtype && std::ranges::equal(out[k]->shape(), c.out[0].shape));
      c.value = row_major(*out[k]);  // a view of a constant, as broadcasting makes it, is none
      places.push_back({r.made().add(std::move(c)), 0});
    }
    r.replace(i, std::move(places));
  }
  g = r.finish();
}

}  // namespace twibil::passes
