// SPDX-License-Identifier: Apache-2.0
#include "passes/commute_pooling.h"

#include "ir/apply.h"
#include "ir/graph_tracer.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "passes/fixed_values.h"
#include "passes/rewrite.h"

namespace twibil::passes {

namespace {

class Commuter {
 public:
  explicit Commuter(Graph& g) : r_(g), fixed_(find_fixed(old())), readers_(count_readers(old())) {}

  Graph run() {
    std::vector<bool> moved(old().nodes.size());  // averages that are computed later
    for (size_t i = 0; i < old().nodes.size(); ++i)
      if (may_commute(i)) moved[static_cast<size_t>(old().nodes[i].in[0].node)] = true;
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      r_.at(i);
      if (moved[i]) continue;
      Edge from = old().nodes[i].in.empty() ? Edge() : old().nodes[i].in[0];
      if (!from.present() || !moved[static_cast<size_t>(from.node)]) {
        r_.keep(i);
      } else if (!commute(i, static_cast<size_t>(from.node))) {
        r_.keep(static_cast<size_t>(from.node));
        r_.keep(i);
      }
    }
    return r_.finish();
  }

 private:
  const Graph& old() const { return r_.old(); }

  bool may_commute(size_t i) const {
    const GraphNode& n = old().nodes[i];
    if (n.kind != GraphNode::Kind::call || !n.op->split_bias || n.out[0].rank() < 3) return false;
    for (size_t k = 1; k < n.in.size(); ++k)
      if (n.in[k].present() && !fixed_[static_cast<size_t>(n.in[k].node)]) return false;
    const GraphNode& p = old().at(n.in[0].node);
    if (p.kind != GraphNode::Kind::call || !p.op->averages || !p.op->averages(p.attrs.data())) return false;
    const Shape &from = old().sig(p.in[0]).shape, &pooled = p.out[0].shape, &y = n.out[0].shape;
    // A window that steps makes fewer pixels, which are then cheaper to mix.
    bool cheaper = from == pooled && y.size() == from.size() / from[1] * y[1] && y[1] * 5 < from[1] * 4;
    return cheaper && readers_[static_cast<size_t>(n.in[0].node)][0] == 1 && n.out[0].dtype == p.out[0].dtype &&
           is_floating(n.out[0].dtype) && !is_half(n.out[0].dtype) && !has_effect(n) && !has_effect(p);
  }

  /// False, with nothing but unread nodes added, where the operator is no such call.
  bool commute(size_t i, size_t pool) {
    const GraphNode &n = old().nodes[i], &p = old().nodes[pool];
    size_t first = r_.made().nodes.size();
    GraphTracer made(r_.made());
    made.site = n.site;
    made.name = n.name;
    TraceScope scope(&made);
    ModeScope quiet(false, false);
    auto value = [&](Edge e) { return e.present() ? made.value_of(r_(e)) : Val(); };
    std::vector<Val> in{value(p.in[0])};
    for (size_t k = 1; k < n.in.size(); ++k) in.push_back(value(n.in[k]));
    in.resize(std::max<size_t>(in.size(), static_cast<size_t>(n.op->inputs())));
    AttrBytes attrs = n.attrs;
    Val bias;
    if (!n.op->split_bias(attrs.data(), in, bias)) return false;
    Val mixed = apply_all(*n.op, attrs.data(), in)[0];
    made.site = p.site;
    made.name = p.name;
    Val y = apply_all(*p.op, p.attrs.data(), {&mixed, 1})[0];
    if (bias) y = apply(op_with_role(Role::accumulate), {y, bias});
    for (size_t k = first; k < r_.made().nodes.size(); ++k) {
      r_.made().nodes[k].parts = n.parts;
      r_.made().nodes[k].parts.insert(r_.made().nodes[k].parts.end(), p.parts.begin(), p.parts.end());
    }
    r_.replace(i, {edge_of(*y)});
    return true;
  }

  Rewrite r_;
  std::vector<bool> fixed_;
  std::vector<std::vector<int>> readers_;
};

}  // namespace

void commute_pooling(Graph& g) {
  if (g.forward_nodes < 0) g = Commuter(g).run();  // with a backward part the average is kept for it
}

}  // namespace twibil::passes
