// SPDX-License-Identifier: Apache-2.0
// Replays a memory plan against its graph: every element carries the name of the value that was written there last, and
// every reader must find the values that it reads.
#pragma once
#include <map>

#include "ir/graph.h"
#include "passes/plan_memory.h"
#include "passes/views.h"

namespace twibil::passes {

class PlanChecker {
 public:
  PlanChecker(const Graph& g, const MemoryPlan& plan, std::vector<bool> donated)
      : g_(g), plan_(plan), donated_(std::move(donated)), views_(find_views(g)) {}

  /// The first offence, or "".
  std::string run() {
    for (size_t i = 0; i < g_.nodes.size() && fault_.empty(); ++i) {
      const GraphNode& n = g_.nodes[i];
      auto node = static_cast<int32_t>(i);
      if (n.kind == GraphNode::Kind::argument || n.kind == GraphNode::Kind::constant) write({node, 0}, {node, 0});
      if (n.is_input() || is_view(views_, i)) continue;
      for (Edge e : n.in)
        if (e.present() && g_.at(e.node).kind != GraphNode::Kind::shape) expect(e, node);
      for (int32_t k = 0; k < static_cast<int32_t>(n.out.size()); ++k) {
        check_overlap(n, {node, k});
        if (int u = updated_input(n, k); u >= 0) merge(n.in[static_cast<size_t>(u)], {node, k});
        else write({node, k}, {node, k});
      }
    }
    for (Edge e : g_.outputs)
      if (e.present()) expect(e, static_cast<int32_t>(g_.nodes.size()));
    for (size_t i = 0; i < g_.arguments.size(); ++i) {
      Edge e{g_.arguments[i], 0};
      if (!donated_.empty() && donated_[i]) continue;
      if (e.node >= 0 && fault_.empty()) expect(e, -1);
    }
    return fault_;
  }

 private:
  using Space = std::pair<int, int>;  // kind and index of a memory
  struct Region {
    Space space;
    int64_t begin, bytes;
  };
  Region region(Edge e) const {
    const Place& p = plan_.places[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)];
    int index = p.kind == Place::Kind::arena ? 0 : p.index;
    return {{static_cast<int>(p.kind), index}, p.offset, g_.sig(e).shape.size() * size_of(g_.sig(e).dtype)};
  }
  Edge base(Edge e) const { return root_of(views_, e); }
  bool joined(Edge part, Edge whole) const {  // whether `part` stands inside `whole`, an input of its join
    const GraphNode& n = g_.at(whole.node);
    if (n.kind != GraphNode::Kind::call || !n.op->joins) return false;
    Region p = region(part), w = region(whole);
    bool input = false;
    for (Edge e : n.in) input |= e.present() && (base(e) == part || joined(part, base(e)));
    return input && p.space == w.space && p.begin >= w.begin && p.begin + p.bytes <= w.begin + w.bytes;
  }
  void write(Edge e, Edge tag) {
    Region r = region(e);
    auto& bytes = memory_[r.space];
    if (static_cast<int64_t>(bytes.size()) < r.begin + r.bytes) bytes.resize(static_cast<size_t>(r.begin + r.bytes));
    for (int64_t i = r.begin; i < r.begin + r.bytes; ++i) bytes[static_cast<size_t>(i)] = tag;
  }
  void merge(Edge updated, Edge now) {  // from now on the memory holds the new state
    write(base(updated), now);
    states_[key(now)] = base(updated);
  }
  static int64_t key(Edge e) { return static_cast<int64_t>(e.node) << 8 | e.output; }
  bool holds(Edge tag, Edge e) const {
    if (tag == e) return true;
    // A join leaves what was computed in its place; what is read of a part later lies in the whole.
    if (tag.present() && joined(tag, e)) return true;
    if (tag.present() && joined(e, tag)) return true;
    const GraphNode& n = g_.at(e.node);
    if (n.kind == GraphNode::Kind::call && n.op->joins)
      for (Edge part : n.in)
        if (part.present() && joined(base(part), e) && holds(tag, base(part))) return true;
    return false;
  }
  void expect(Edge value, int32_t reader) {
    Edge e = base(value);
    Region r = region(e);
    auto found = memory_.find(r.space);
    for (int64_t i = r.begin; i < r.begin + r.bytes && fault_.empty(); ++i) {
      bool there = found != memory_.end() && i < static_cast<int64_t>(found->second.size());
      Edge tag = there ? found->second[static_cast<size_t>(i)] : Edge();
      if (reader < 0 && there && states_.contains(key(tag)) && final_base(tag) == e) continue;
      if (!holds(tag, e))
        fault_ = text("node ", reader, " reads value ", e.node, ".", e.output, " but finds ", tag.node, ".", tag.output,
                      " in byte ", i, "\n", print(g_));
    }
  }
  Edge final_base(Edge e) const {
    for (auto it = states_.find(key(e)); it != states_.end(); it = states_.find(key(e))) e = it->second;
    return e;
  }
  /// A kernel that writes where it reads must say that it may.
  void check_overlap(const GraphNode& n, Edge out) {
    Region to = region(out);
    for (size_t i = 0; i < n.in.size(); ++i) {
      Edge e = n.in[i];
      if (!e.present() || g_.at(e.node).kind == GraphNode::Kind::shape || to.bytes == 0) continue;
      Region from = region(base(e));
      bool apart = from.space != to.space || from.begin + from.bytes <= to.begin || to.begin + to.bytes <= from.begin;
      if (apart || updated_input(n, out.output) == static_cast<int>(i)) continue;
      bool same = from.begin == to.begin && from.bytes == to.bytes;
      bool allowed = n.kind == GraphNode::Kind::call && n.op->pointwise() && same;
      if (n.kind == GraphNode::Kind::call)
        for (Pair p : n.op->inplace) allowed |= same && p.output == out.output && p.input == static_cast<int>(i);
      if (!allowed && !joined(base(e), out))
        fault_ = text("node ", out.node, " writes output ", out.output, " over its input ", i, "\n", print(g_));
    }
  }

  const Graph& g_;
  const MemoryPlan& plan_;
  std::vector<bool> donated_;
  std::vector<View> views_;
  std::map<Space, std::vector<Edge>> memory_;
  std::map<int64_t, Edge> states_;  // states that updates made, and whose memory they have
  std::string fault_;
};

}  // namespace twibil::passes
