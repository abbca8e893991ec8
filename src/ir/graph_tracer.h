// SPDX-License-Identifier: Apache-2.0
// Collects the calls of a trace into a typed graph: what lowering does with a whole symbol, and a pass with a rule that
// is written on values.
#pragma once
#include <unordered_map>

#include "ir/trace.h"

namespace twibil {

/// The array, or a row-major copy of a strided one: what constants of graphs are.
Val row_major(Value& v);

class GraphTracer : public Tracer {
 public:
  explicit GraphTracer(Graph& g) : graph_(g) {}

  int32_t add_call(const OpDef& op, const void* attrs, std::span<const Edge> in, std::span<const Sig> out, DType work,
                   bool training) override;
  int32_t add_function(std::shared_ptr<const GraphFunction> f, std::span<const Edge> in, std::span<const Sig> out,
                       bool training) override;
  Edge add_outside(Value& v) override;
  void written(Value& v, Edge e) override;

  /// A traced value that stands for a value of the graph.
  Val value_of(Edge e) { return Val::adopt(new_traced(*this, e, graph_.sig(e))); }
  const Graph& graph() const { return graph_; }
  std::string site, name;  // of the nodes that come next
  bool mirror = false;     // of calls: see GraphNode

 protected:
  /// The number of the next random key.
  virtual int32_t random_key() { return graph_.random_keys++; }
  Graph& made() { return graph_; }

 private:
  Graph& graph_;
  std::unordered_map<const Value*, Edge> constants_;
};

}  // namespace twibil
