// SPDX-License-Identifier: Apache-2.0
// A typed graph: what passes rewrite, plan and hand to the executable. Nodes stand in an order in which they can run,
// every value has a shape and a dtype. runtime/lower.h makes it from a symbol or a trace.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/op.h"

namespace twibil {

struct GraphFunction;
struct RowLoop;

/// Output `output` of node `node`; no value for an absent optional input.
struct Edge {
  int32_t node = -1, output = 0;
  bool present() const { return node >= 0; }
  bool operator==(const Edge&) const = default;
};

/// Attributes of a call, owned; aligned as the operator's own struct.
using AttrBytes = std::vector<std::byte>;

/// An operator made by a pass (a fused formula), which the nodes that use it share.
struct OwnedOp {
  OpDef def;
  Program program;
  std::string name;
};

struct GraphNode {
  enum class Kind : uint8_t {
    argument,  // given at each run
    constant,  // an array that never changes
    shape,     // only shape and dtype matter: nobody reads data
    call,      // an operator
    function   // a host callback, or a graph run by an operator of control flow
  };
  Kind kind = Kind::call;
  bool training = false;
  bool fixed = false;          // an argument that seldom changes from run to run (a parameter)
  bool again = false;          // computes a value of the forward part a second time, so it is not merged with the first
  bool mirror = false;         // the user would rather compute its outputs again than keep them
  DType work = kUnknownDType;  // of pointwise operators: the dtype to compute in
  int32_t random = -1;         // which of the run's random keys, in the order of the calls
  const OpDef* op = nullptr;   // of a call
  std::shared_ptr<const OwnedOp> owned;           // keeps `op` where a pass made it
  std::shared_ptr<const RowLoop> loop;            // of a call: its parts, which run a few rows at a time
  std::shared_ptr<const GraphFunction> function;  // of a function
  AttrBytes attrs;
  std::vector<Edge> in;
  std::vector<Sig> out;
  Val value;                   // of a constant
  std::string name;            // of an argument; of a call where the user gave one
  std::string site;            // where the user's program called it ("train.py:12")
  std::vector<int32_t> parts;  // nodes of the graph before the passes that it computes; kept when one explains

  bool is_input() const { return kind < Kind::call; }
  const char* op_name() const;
};

/// A Python or C++ function on arrays inside a graph, or a graph inside a graph.
struct GraphFunction {
  virtual ~GraphFunction() = default;
  virtual const char* name() const = 0;
  /// Signatures of the outputs; an error of the right class where the inputs do not fit.
  virtual std::vector<Sig> infer(SigsIn in) const = 0;
  /// Whether it is replaced by its parts wherever it stands: run() is then called on traced arrays too, and infer() not
  /// at all.
  virtual bool unfolds() const { return false; }
  /// Fills in signatures of inputs that follow from those that are there.
  virtual void complete(std::span<Sig>) const {}
  /// Runs on arrays that are ready. May be called by many threads.
  virtual std::vector<Val> run(std::span<const Val> in, bool training) const = 0;
  /// Gradients of the inputs, from the inputs, the outputs and the gradients of the outputs (null: nothing arrived), in
  /// this order; null where there is none.
  virtual bool has_gradient() const { return true; }
  virtual std::vector<Val> gradient(std::span<const Val> in, std::span<const Val> out, std::span<const Val> dy,
                                    bool training) const = 0;
};

/// The gradient of an output, which only the backward part reads.
struct HeadGradient {
  int output, argument;  // positions in Graph::outputs and Graph::arguments
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<int32_t> arguments;  // nodes, in the order of the caller's arguments; -1: not used by the graph
  std::vector<Edge> outputs;
  int forward_outputs = 0;  // of `outputs`: those of the forward part; the rest are gradients
  int forward_nodes = -1;   // nodes before this one belong to the forward part; -1: there is no other
  int random_keys = 0;      // keys that a run takes from the stream
  double keep = 1;          // the share of what the backward part reads that may be kept; the rest is computed again
  bool exact = false;       // kernels that sum products as they stand, see passes/choose_layouts.h
  bool autotune = false;    // algorithms are measured
  std::vector<HeadGradient> head_grads;
  int prologue_arguments = 0;  // the last ones of `arguments`: values that a graph of their own computes, see passes

  const Sig& sig(Edge e) const { return nodes[static_cast<size_t>(e.node)].out[static_cast<size_t>(e.output)]; }
  GraphNode& at(int32_t i) { return nodes[static_cast<size_t>(i)]; }
  const GraphNode& at(int32_t i) const { return nodes[static_cast<size_t>(i)]; }
  int32_t add(GraphNode n) {
    nodes.push_back(std::move(n));
    return static_cast<int32_t>(nodes.size()) - 1;
  }
};

/// Calls that run together on a block of rows at a time (passes/fuse_rows.h), so that what is between them stays in the
/// caches. Rows are the positions along one axis; the axes before it are walked one by one.
struct RowLoop {
  Graph body, rest;                        // on `block` rows, and on those that are left (no nodes where none are)
  int64_t outer = 1, rows = 0, block = 0;  // positions of the axes before; sizes along the axis
  std::vector<int64_t> in_step, out_step;  // bytes from row to row of each argument and output; 0: given whole
  std::vector<bool> out_part;              // an output that has one result for each block
  int64_t blocks() const { return (rows + block - 1) / block; }
};

/// Whether running the node changes something besides its outputs.
bool has_effect(const GraphNode& n);
/// The input that output `k` of the node is written over, or -1.
int updated_input(const GraphNode& n, int output);
/// For each node, how many inputs of others and outputs of the graph read each of its outputs.
std::vector<std::vector<int>> count_readers(const Graph& g);
/// Keeps the nodes for which keep[i] holds, in order; edges are renumbered. Kept nodes must read kept ones only.
void keep_nodes(Graph& g, const std::vector<bool>& keep);
/// One line per node: "%3 = add(%1, %2) float32 [2, 3]".
std::string print(const Graph& g);

}  // namespace twibil
