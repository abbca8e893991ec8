// SPDX-License-Identifier: Apache-2.0
#include "passes/fold_batch_norm.h"

#include <algorithm>

#include "ir/graph_tracer.h"
#include "ir/modes.h"
#include "passes/fixed_values.h"
#include "passes/rewrite.h"

namespace twibil::passes {

namespace {

class Folder {
 public:
  explicit Folder(Graph& g) : r_(g), fixed_(find_fixed(old())), into_(old().nodes.size(), -1) {}

  Graph run() {
    auto readers = count_readers(old());
    std::vector<bool> gone(old().nodes.size());
    for (size_t i = 0; i < old().nodes.size(); ++i)
      if (can_fold(old().nodes[i], readers, i)) {
        into_[i] = old().nodes[i].in[0].node;
        gone[static_cast<size_t>(into_[i])] = true;
      }
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      r_.at(i);
      if (gone[i]) continue;
      if (into_[i] < 0 || !fold(i)) r_.keep(i);
    }
    return r_.finish();
  }

 private:
  const Graph& old() const { return r_.old(); }
  bool is_fixed(Edge e) const { return !e.present() || fixed_[static_cast<size_t>(e.node)]; }

  bool can_fold(const GraphNode& n, const std::vector<std::vector<int>>& readers, size_t i) const {
    if (n.kind != GraphNode::Kind::call || !n.op->affine || !n.in[0].present()) return false;
    const GraphNode& m = old().at(n.in[0].node);
    if (m.kind != GraphNode::Kind::call || !m.op->absorb || m.out.size() != 1 || m.in.size() < 3) return false;
    bool alone = readers[static_cast<size_t>(n.in[0].node)][0] == 1;
    for (size_t k = 1; k < readers[i].size(); ++k) alone &= readers[i][k] == 0;
    bool known = is_fixed(m.in[1]) && is_fixed(m.in[2]);
    for (size_t k = 1; k < n.in.size(); ++k) known &= is_fixed(n.in[k]);
    if (!alone || !known || is_half(n.out[0].dtype) || n.out[0].dtype != m.out[0].dtype) return false;
    // Its input must not be written in between.
    return std::none_of(old().nodes.begin() + n.in[0].node, old().nodes.begin() + static_cast<std::ptrdiff_t>(i),
                        has_effect);
  }

  /// The matrix operator with the layer's numbers in it, in the layer's place.
  bool fold(size_t i) {
    const GraphNode& layer = old().nodes[i];
    GraphNode n = old().at(into_[i]);
    GraphTracer made(r_.made());
    made.site = layer.site;
    made.name = layer.name;
    TraceScope scope(&made);
    ModeScope quiet(false, false);
    auto value = [&](Edge e) { return e.present() ? made.value_of(r_(e)) : Val(); };
    // The layer sees its input as that stands: the matrix operator's result, of which only the shape is read.
    GraphNode shape;
    shape.kind = GraphNode::Kind::shape;
    shape.out = {n.out[0]};
    std::vector<Val> numbers{made.value_of({r_.made().add(std::move(shape)), 0})}, in;
    for (size_t k = 1; k < layer.in.size(); ++k) numbers.push_back(value(layer.in[k]));
    for (Edge e : n.in) in.push_back(value(e));
    Affine a = layer.op->affine(layer.attrs.data(), numbers);
    if (!n.op->absorb(n.attrs.data(), in, a)) {
      keep_both(i);
      return true;
    }
    for (size_t k = 0; k < n.in.size(); ++k) n.in[k] = in[k] ? edge_of(*in[k]) : Edge();
    n.parts.insert(n.parts.end(), layer.parts.begin(), layer.parts.end());
    int32_t node = r_.keep(static_cast<size_t>(into_[i]), std::move(n));
    r_.replace(i, std::vector<Edge>(layer.out.size(), Edge{node, 0}));
    return true;
  }
  void keep_both(size_t i) {
    r_.keep(static_cast<size_t>(into_[i]));
    r_.keep(i);
  }

  Rewrite r_;
  std::vector<bool> fixed_;
  std::vector<int32_t> into_;  // of a layer: the operator before it
};

}  // namespace

void fold_batch_norm(Graph& g) {
  if (g.forward_nodes < 0) g = Folder(g).run();  // with a backward part it belongs to training
}

}  // namespace twibil::passes
