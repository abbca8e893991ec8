// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

namespace twibil {

const char* GraphNode::op_name() const {
  switch (kind) {
    case Kind::argument: return "argument";
    case Kind::constant: return "constant";
    case Kind::shape: return "shape";
    case Kind::call: return op->name;
    case Kind::function: return function->name();
  }
  return "";
}

bool has_effect(const GraphNode& n) {
  return n.kind == GraphNode::Kind::function || (n.kind == GraphNode::Kind::call && n.op->writes_inputs());
}

int updated_input(const GraphNode& n, int output) {
  if (n.kind != GraphNode::Kind::call || !n.op->writes_inputs()) return -1;
  for (Pair u : n.op->updates)
    if (u.output >= 0 && u.output == output) return u.input;
  return -1;
}

std::vector<std::vector<int>> count_readers(const Graph& g) {
  std::vector<std::vector<int>> readers(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); ++i) readers[i].resize(g.nodes[i].out.size());
  auto count = [&](Edge e) {
    if (e.present()) ++readers[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)];
  };
  for (const GraphNode& n : g.nodes)
    for (Edge e : n.in) count(e);
  for (Edge e : g.outputs) count(e);
  return readers;
}

void keep_nodes(Graph& g, const std::vector<bool>& keep) {
  std::vector<int32_t> place(g.nodes.size(), -1);
  size_t next = 0;
  int forward = g.forward_nodes;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (static_cast<int>(i) == g.forward_nodes) forward = static_cast<int>(next);
    if (!keep[i]) continue;
    place[i] = static_cast<int32_t>(next);
    if (next != i) g.nodes[next] = std::move(g.nodes[i]);
    ++next;
  }
  if (g.forward_nodes == static_cast<int>(g.nodes.size())) forward = static_cast<int>(next);
  g.forward_nodes = forward;
  g.nodes.resize(next);
  auto move = [&](Edge& e) {
    if (e.present()) e.node = place[static_cast<size_t>(e.node)];
  };
  for (GraphNode& n : g.nodes)
    for (Edge& e : n.in) move(e);
  for (Edge& e : g.outputs) move(e);
  for (int32_t& a : g.arguments)
    if (a >= 0) a = place[static_cast<size_t>(a)];
}

std::string print(const Graph& g) {
  std::string s;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const GraphNode& n = g.nodes[i];
    s += text("%", i, " = ", n.op_name());
    if (!n.name.empty()) s += text(" \"", n.name, "\"");
    if (!n.is_input()) {
      s += "(";
      for (size_t k = 0; k < n.in.size(); ++k) {
        s += k ? ", " : "";
        if (!n.in[k].present()) s += "-";
        else s += text("%", n.in[k].node);
        if (n.in[k].output) s += text(".", n.in[k].output);
      }
      if (n.kind == GraphNode::Kind::call)
        for (const Field& f : n.op->attrs.span()) {
          std::string now = print_attr(f, n.attrs.data());
          if (now != print_attr(f, n.op->attrs.defaults)) s += text(", ", f.name, "=", now);
        }
      s += ")";
    }
    for (const Sig& out : n.out) s += text(" ", out);
    s += "\n";
  }
  s += "return";
  for (Edge e : g.outputs) s += e.output ? text(" %", e.node, ".", e.output) : text(" %", e.node);
  return s + "\n";
}

}  // namespace twibil
