// SPDX-License-Identifier: Apache-2.0
#include "passes/merge_equal.h"

#include <cstring>
#include <unordered_map>

#include "passes/rewrite.h"

namespace twibil::passes {

namespace {

/// Everything that decides what a node computes, as bytes.
std::string key_of(const GraphNode& n) {
  std::string key;
  auto put = [&](const auto& x) { key.append(reinterpret_cast<const char*>(&x), sizeof x); };
  put(n.kind);
  put(n.op);
  put(n.training);
  put(n.again);
  put(n.work);
  put(n.random);
  for (Edge e : n.in) put(e.node), put(e.output);
  if (n.kind == GraphNode::Kind::call)  // printed, as bytes between fields are not defined
    for (const Field& f : n.op->attrs.span()) key += print_attr(f, n.attrs.data()), key += '\0';
  for (const Sig& s : n.out) {
    put(s.dtype);
    for (int64_t d : s.shape) put(d);
    key += '/';
  }
  return key;
}

/// Numbers: one element that stands in the graph.
std::string constant_key(const GraphNode& n) {
  const Value& v = *n.value;
  std::string key(1, static_cast<char>(n.out[0].weak));
  key += text(n.out[0]);
  key.append(reinterpret_cast<const char*>(v.data), static_cast<size_t>(size_of(v.dtype())));
  return key;
}

}  // namespace

void merge_equal(Graph& g) {
  std::vector<bool> updated(g.nodes.size());  // some output is written later
  for (const GraphNode& n : g.nodes)
    for (int k = 0; k < static_cast<int>(n.out.size()); ++k)
      if (int u = updated_input(n, k); u >= 0 && n.in[static_cast<size_t>(u)].present())
        updated[static_cast<size_t>(n.in[static_cast<size_t>(u)].node)] = true;
  Rewrite r(g);
  std::unordered_map<std::string, int32_t> known;
  for (size_t i = 0; i < r.old().nodes.size(); ++i) {
    r.at(i);
    GraphNode n = r.old().nodes[i];
    for (Edge& e : n.in) e = r(e);
    bool number =
        n.kind == GraphNode::Kind::constant && n.value->size() == 1 && n.value->root == n.value.get() && n.out[0].weak;
    bool candidate = !updated[i] && !has_effect(n) && n.kind != GraphNode::Kind::argument &&
                     (n.kind != GraphNode::Kind::constant || number);
    if (!candidate) {
      r.keep(i, std::move(n));
      continue;
    }
    std::string key = number ? constant_key(n) : key_of(n);
    auto [it, fresh] = known.try_emplace(std::move(key), 0);
    if (fresh) {
      it->second = r.keep(i, std::move(n));
      continue;
    }
    std::vector<int32_t>& parts = r.made().at(it->second).parts;
    parts.insert(parts.end(), n.parts.begin(), n.parts.end());
    std::vector<Edge> same;
    for (size_t k = 0; k < n.out.size(); ++k) same.push_back({it->second, static_cast<int32_t>(k)});
    r.replace(i, std::move(same));
  }
  g = r.finish();
}

}  // namespace twibil::passes
