// SPDX-License-Identifier: Apache-2.0
// Makes a new graph node by node from an old one: what every pass that inserts or replaces nodes does.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

class Rewrite {
 public:
  explicit Rewrite(Graph& g) : old_(std::move(g)), place_(old_.nodes.size()), kept_(old_.nodes.size(), -1) {
    next_.random_keys = old_.random_keys;
    next_.keep = old_.keep;
    next_.exact = old_.exact;
    next_.autotune = old_.autotune;
    next_.forward_outputs = old_.forward_outputs;
    next_.head_grads = old_.head_grads;
    next_.arguments = old_.arguments;
    next_.prologue_arguments = old_.prologue_arguments;
  }
  const Graph& old() const { return old_; }
  Graph& made() { return next_; }

  /// Where a value of the old graph stands in the new one.
  Edge operator()(Edge e) const {
    return e.present() ? place_[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)] : e;
  }
  /// Says where the outputs of old node i stand.
  void replace(size_t i, std::vector<Edge> by) { place_[i] = std::move(by); }
  /// Redirects later readers of one value.
  void redirect(Edge old, Edge to) { place_[static_cast<size_t>(old.node)][static_cast<size_t>(old.output)] = to; }
  /// Copies node i with its inputs where they stand now.
  int32_t keep(size_t i) {
    GraphNode n = old_.nodes[i];
    for (Edge& e : n.in) e = (*this)(e);
    return keep(i, std::move(n));
  }
  int32_t keep(size_t i, GraphNode n) {
    int32_t made = kept_[i] = next_.add(std::move(n));
    place_[i].clear();
    for (size_t k = 0; k < old_.nodes[i].out.size(); ++k) place_[i].push_back({made, static_cast<int32_t>(k)});
    return made;
  }
  /// To be called before old node i is treated, in order.
  void at(size_t i) {
    if (static_cast<int>(i) == old_.forward_nodes) next_.forward_nodes = static_cast<int>(next_.nodes.size());
  }
  /// The new graph; outputs and arguments are those of the old one.
  Graph finish() {
    at(old_.nodes.size());
    for (Edge e : old_.outputs) next_.outputs.push_back((*this)(e));
    for (int32_t& a : next_.arguments)
      if (a >= 0) a = kept_[static_cast<size_t>(a)];  // not where its later readers were redirected to
    return std::move(next_);
  }

 private:
  Graph old_, next_;
  std::vector<std::vector<Edge>> place_;
  std::vector<int32_t> kept_;  // the new number of nodes that were kept
};

}  // namespace twibil::passes
