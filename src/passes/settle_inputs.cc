// SPDX-License-Identifier: Apache-2.0
#include "passes/settle_inputs.h"

#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "ir/registry.h"
#include "passes/rewrite.h"
#include "passes/views.h"

namespace twibil::passes {

namespace {

struct CastAttrs {  // the attributes of the operator with the cast role begin so
  DType dtype;
};

GraphNode copy_of(Edge from, const Sig& sig) {
  GraphNode n;
  n.op = &op_with_role(Role::copy);
  n.in = {from};
  n.out = {Sig{sig.shape, sig.dtype}};
  n.work = work_dtype(sig.dtype);
  return n;
}
GraphNode cast_of(Edge from, const Sig& sig, DType to) {
  GraphNode n;
  n.op = &op_with_role(Role::cast);
  TW_ASSERT(n.op->attrs.size == sizeof(CastAttrs));
  n.in = {from};
  n.out = {Sig{sig.shape, to}};
  n.attrs.resize(sizeof(CastAttrs));
  CastAttrs a{to};
  std::memcpy(n.attrs.data(), &a, sizeof a);
  return n;
}

bool is_updated(const GraphNode& n, size_t input) {
  for (int k = 0; k < static_cast<int>(n.out.size()); ++k)
    if (updated_input(n, k) == static_cast<int>(input)) return true;
  return false;
}

/// Another input of the node that lies in what it writes as input `updated`, as in x[1:] = x[:-1].
Edge reads_besides(const GraphNode& n, size_t updated, const std::vector<View>& views) {
  for (size_t j = 0; j < n.in.size(); ++j)
    if (j != updated && n.in[j].present() && root_of(views, n.in[j]) == root_of(views, n.in[updated])) return n.in[j];
  return {};
}

/// An update of a value of which older states are read later, or by the update itself: those readers get a copy made
/// before.
void keep_old_states(Graph& g) {
  std::vector<View> views = find_views(g);
  std::unordered_map<int64_t, size_t> last_read;  // of each value, by readers of it or of its views
  auto key = [](Edge e) { return static_cast<int64_t>(e.node) << 8 | e.output; };
  for (size_t i = 0; i < g.nodes.size(); ++i)
    for (Edge e : g.nodes[i].in)
      if (e.present()) last_read[key(e)] = i, last_read[key(root_of(views, e))] = i;
  for (Edge e : g.outputs)
    if (e.present()) last_read[key(e)] = last_read[key(root_of(views, e))] = g.nodes.size();
  bool any = false;
  std::unordered_map<int64_t, std::vector<Edge>> looks;  // the values that look at a root, itself among them
  for (size_t i = 0; i < g.nodes.size(); ++i)
    for (int k = 0; k < static_cast<int>(g.nodes[i].out.size()); ++k)
      if (int u = updated_input(g.nodes[i], k); u >= 0) {
        Edge e = g.nodes[i].in[static_cast<size_t>(u)];
        any |= e.present() && last_read[key(root_of(views, e))] > i;
        any |= e.present() && reads_besides(g.nodes[i], static_cast<size_t>(u), views).present();
      }
  if (!any) return;
  for (size_t i = 0; i < g.nodes.size(); ++i)
    for (int32_t o = 0; o < static_cast<int32_t>(g.nodes[i].out.size()); ++o) {
      Edge e{static_cast<int32_t>(i), o};
      looks[key(root_of(views, e))].push_back(e);
    }
  Rewrite r(g);
  for (size_t i = 0; i < r.old().nodes.size(); ++i) {
    r.at(i);
    const GraphNode& n = r.old().nodes[i];
    std::vector<std::pair<Edge, Edge>> moves;
    GraphNode now = n;
    for (Edge& e : now.in)
      if (e.present()) e = r(e);
    for (int k = 0; k < static_cast<int>(n.out.size()); ++k) {
      int u = updated_input(n, k);
      if (u < 0 || !n.in[static_cast<size_t>(u)].present()) continue;
      Edge root = root_of(views, n.in[static_cast<size_t>(u)]);
      for (size_t j = 0; j < n.in.size(); ++j)
        if (static_cast<int>(j) != u && n.in[j].present() && root_of(views, n.in[j]) == root &&
            r.old().at(n.in[j].node).kind != GraphNode::Kind::shape)
          now.in[j] = {r.made().add(copy_of(r(n.in[j]), r.old().sig(n.in[j]))), 0};
      // The value itself and its views, each where something reads it later.
      for (Edge e : looks[key(root)]) {
        auto found = last_read.find(key(e));
        if (e.node >= static_cast<int32_t>(i) || found == last_read.end() || found->second <= i) continue;
        moves.push_back({e, {r.made().add(copy_of(r(e), r.old().sig(e))), 0}});
      }
    }
    r.keep(i, std::move(now));
    for (auto& [from, to] : moves) r.redirect(from, to);
  }
  g = r.finish();
}

class Settle {
 public:
  explicit Settle(Graph& g) : r_(g), views_(find_views(r_.old())) {
    for (const GraphNode& n : r_.old().nodes)
      for (int k = 0; k < static_cast<int>(n.out.size()); ++k)
        if (int u = updated_input(n, k); u >= 0 && n.in[static_cast<size_t>(u)].present())
          updated_.insert(key_of(root_of(views_, n.in[static_cast<size_t>(u)])));
  }

  Graph run() {
    const Graph& old = r_.old();
    for (size_t i = 0; i < old.nodes.size(); ++i) {
      if (static_cast<int>(i) == old.forward_nodes) settle_outputs(0, old.forward_outputs);
      r_.at(i);
      node(i);
    }
    if (old.forward_nodes == static_cast<int>(old.nodes.size())) settle_outputs(0, old.forward_outputs);
    if (old.forward_nodes < 0) settle_outputs(0, static_cast<int>(old.outputs.size()));
    else settle_outputs(old.forward_outputs, static_cast<int>(old.outputs.size()));
    Graph g = r_.finish();
    for (auto& [k, e] : outputs_) g.outputs[static_cast<size_t>(k)] = e;
    return g;
  }

 private:
  void node(size_t i) {
    GraphNode n = r_.old().nodes[i];
    bool plain = n.kind == GraphNode::Kind::call && !n.op->pointwise() && !is_view(views_, i);
    for (size_t k = 0; k < n.in.size(); ++k) {
      Edge from = n.in[k];
      if (!from.present()) continue;
      n.in[k] = r_(from);
      const Sig& sig = r_.old().sig(from);
      bool shape_only = r_.old().at(from.node).kind == GraphNode::Kind::shape;
      if (!plain || shape_only || is_updated(n, k)) continue;
      if (n.op->same_dtype && sig.dtype != n.out[0].dtype) {
        n.in[k] = {r_.made().add(cast_of(n.in[k], sig, n.out[0].dtype)), 0};
      } else if (!n.op->strided && from.output == 0 && !views_[static_cast<size_t>(from.node)].row_major) {
        n.in[k] = rows_of(from, sig);
      }
    }
    r_.keep(i, std::move(n));
  }
  /// One row-major copy serves all readers.
  Edge rows_of(Edge from, const Sig& sig) {
    auto [it, fresh] = copies_.try_emplace(from.node);
    if (fresh) it->second = {r_.made().add(copy_of(r_(from), sig)), 0};
    return it->second;
  }
  /// Outputs first to last - 1 get memory of their own. The backward part may read those of the forward part: the
  /// caller gets a view of them, and the runtime notices when it writes there.
  void settle_outputs(int first, int last) {
    const Graph& old = r_.old();
    for (int k = first; k < last; ++k) {
      Edge e = old.outputs[static_cast<size_t>(k)];
      if (!e.present()) continue;
      const GraphNode& n = old.at(e.node);
      bool in_time = k < old.forward_outputs || e.node >= old.forward_nodes;  // there is memory when it is computed
      bool own = in_time && !n.is_input() && updated_input(n, e.output) < 0 &&
                 !is_view(views_, static_cast<size_t>(e.node)) && !updated_.contains(key_of(e)) &&
                 given_.insert(key_of(e)).second;
      if (!own) outputs_.push_back({k, {r_.made().add(copy_of(r_(e), old.sig(e))), 0}});
    }
  }
  static int64_t key_of(Edge e) { return static_cast<int64_t>(e.node) << 8 | e.output; }

  Rewrite r_;
  std::vector<View> views_;
  std::unordered_map<int32_t, Edge> copies_;
  std::unordered_set<int64_t> updated_, given_;  // values that are written later; that are outputs already
  std::vector<std::pair<int, Edge>> outputs_;
};

}  // namespace

void settle_inputs(Graph& g) {
  keep_old_states(g);
  g = Settle(g).run();
}

}  // namespace twibil::passes
