// SPDX-License-Identifier: Apache-2.0
#include "passes/split_prologue.h"

#include <algorithm>

#include "passes/fixed_values.h"
#include "passes/rewrite.h"
#include "passes/views.h"

namespace twibil::passes {

namespace {

constexpr int64_t kSmall = 1 << 16;  // bytes that are kept whatever they come from

int64_t bytes_of(const Sig& s) { return checked_mul(s.shape.size(), size_of(s.dtype)); }

/// The calls that run once. A view costs nothing, so it stays where it is read.
std::vector<bool> find_once(const Graph& g) {
  std::vector<bool> once = find_fixed(g);
  std::vector<View> views = find_views(g);
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const GraphNode& n = g.nodes[i];
    int64_t from = 0, to = 0;
    for (Edge e : n.in)
      if (e.present()) from += bytes_of(g.sig(e));
    for (const Sig& s : n.out) to += bytes_of(s);
    once[i] = once[i] && n.kind == GraphNode::Kind::call && !is_view(views, i) &&
              (n.op->prepares || to <= kSmall || to <= 2 * from);
  }
  for (Edge e : g.outputs)  // an output has to be made at each run
    if (e.present()) once[static_cast<size_t>(e.node)] = false;
  // What reads a value that is made at each run is made at each run.
  for (size_t i = 0; i < g.nodes.size(); ++i)
    for (Edge e : g.nodes[i].in) {
      if (!e.present() || !once[i]) continue;
      const GraphNode& from = g.at(root_of(views, e).node);
      once[i] = from.is_input() || once[static_cast<size_t>(root_of(views, e).node)];
    }
  return once;
}

}  // namespace

void keep_needed(Graph& g) {
  std::vector<bool> keep(g.nodes.size());
  for (Edge e : g.outputs) keep[static_cast<size_t>(e.node)] = true;
  for (size_t i = g.nodes.size(); i-- > 0;) {
    if (keep[i])
      for (Edge e : g.nodes[i].in)
        if (e.present()) keep[static_cast<size_t>(e.node)] = true;
    if (g.nodes[i].kind == GraphNode::Kind::argument) keep[i] = true;
  }
  keep_nodes(g, keep);
}

Graph split_prologue(Graph& g) {
  Graph first;
  if (g.forward_nodes >= 0) return first;
  std::vector<bool> once = find_once(g);
  std::vector<std::vector<bool>> needed(g.nodes.size());  // what of the once computed is read at each run
  std::vector<bool> live(g.nodes.size());
  bool any = false;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    needed[i].resize(g.nodes[i].out.size());
    live[i] = has_effect(g.nodes[i]);
  }
  for (Edge e : g.outputs)
    if (e.present()) live[static_cast<size_t>(e.node)] = true;
  for (size_t i = g.nodes.size(); i-- > 0;)
    for (Edge e : g.nodes[i].in) {
      if (!e.present() || !live[i]) continue;
      auto from = static_cast<size_t>(e.node);
      if (once[from]) needed[from][static_cast<size_t>(e.output)] = any = true;
      else live[from] = true;
    }
  if (!any) return first;
  first = g;
  first.outputs.clear();
  Rewrite r(g);
  std::vector<int32_t> added;
  for (size_t i = 0; i < r.old().nodes.size(); ++i) {
    r.at(i);
    if (!once[i]) {
      if (live[i] || r.old().nodes[i].is_input()) r.keep(i);
      else r.replace(i, std::vector<Edge>(r.old().nodes[i].out.size()));
      continue;
    }
    std::vector<Edge> places(needed[i].size());
    for (size_t k = 0; k < needed[i].size(); ++k) {
      if (!needed[i][k]) continue;
      GraphNode n;
      n.kind = GraphNode::Kind::argument;
      n.fixed = true;
      n.name = text("prologue", added.size());
      n.out = {r.old().nodes[i].out[k]};
      n.parts = r.old().nodes[i].parts;
      added.push_back(r.made().add(std::move(n)));
      places[k] = {added.back(), 0};
      first.outputs.push_back({static_cast<int32_t>(i), static_cast<int32_t>(k)});
    }
    r.replace(i, std::move(places));
  }
  first.forward_outputs = static_cast<int>(first.outputs.size());
  keep_needed(first);
  g = r.finish();
  g.arguments.insert(g.arguments.end(), added.begin(), added.end());
  g.prologue_arguments = static_cast<int>(added.size());
  return first;
}

}  // namespace twibil::passes
