// SPDX-License-Identifier: Apache-2.0
#include "passes/plan_memory.h"

#include <algorithm>

#include "passes/pack_arena.h"
#include "passes/views.h"

namespace twibil::passes {

namespace {

int64_t bytes_of(const Sig& s) { return checked_mul(s.shape.size(), size_of(s.dtype)); }

struct Memory {  // what one or several values share
  Place::Kind kind = Place::Kind::none;
  int32_t index = 0;
  int64_t bytes = 0;
  int first = 0, last = 0;
  bool writable = false;  // the plan may write over it
  int claimed = -1;       // the node that writes over it
  Edge value;
  int part_of = -1;  // the memory of a joined array in which this one lies, at `begin`
  int64_t begin = 0;
};

class Planner {
 public:
  Planner(const Graph& g, const MemoryOptions& o, bool join)
      : g_(g), options_(o), join_(join), views_(find_views(g)), memory_(g.nodes.size()) {
    for (size_t i = 0; i < g.nodes.size(); ++i) memory_[i].assign(g.nodes[i].out.size(), -1);
  }

  MemoryPlan run() {
    find_bases();
    find_last_uses();
    find_positions();
    for (size_t i = 0; i < g_.nodes.size(); ++i) assign(i);
    pack();
    finish();
    return std::move(plan_);
  }
  bool joined() const { return joined_; }

 private:
  template <class T> static T& at(std::vector<std::vector<T>>& table, Edge e) {
    return table[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)];
  }
  template <class T> static const T& at(const std::vector<std::vector<T>>& table, Edge e) {
    return table[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)];
  }
  int memory_of(Edge e) const { return at(memory_, e); }
  Memory& memory(int m) { return all_[static_cast<size_t>(m)]; }
  const Memory& memory(int m) const { return all_[static_cast<size_t>(m)]; }
  /// The memory that holds m: of a part, the joined array's.
  int whole(int m) const {
    while (memory(m).part_of >= 0) m = memory(m).part_of;
    return m;
  }
  int last_of(Edge e) const { return at(last_read_, base_of(e)); }

  // ---- facts about the graph ----

  /// The value in whose memory `e` stands: through views and updates.
  Edge base_of(Edge e) const { return at(bases_, e); }
  void find_bases() {
    bases_.resize(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const GraphNode& n = g_.nodes[i];
      for (int32_t k = 0; k < static_cast<int32_t>(n.out.size()); ++k) {
        Edge e{static_cast<int32_t>(i), k}, root = root_of(views_, e);
        int u = updated_input(n, k);
        if (root != e) e = base_of(root);
        else if (u >= 0 && n.in[static_cast<size_t>(u)].present()) e = base_of(n.in[static_cast<size_t>(u)]);
        bases_[i].push_back(e);
      }
    }
  }

  void find_last_uses() {
    last_read_.resize(g_.nodes.size());
    last_update_.resize(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      last_read_[i].assign(g_.nodes[i].out.size(), static_cast<int>(i));
      last_update_[i].assign(g_.nodes[i].out.size(), -1);
    }
    auto read = [&](Edge e, int by) {
      if (!e.present() || g_.at(e.node).kind == GraphNode::Kind::shape) return;
      int& last = at(last_read_, base_of(e));
      last = std::max(last, by);
    };
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (is_view(views_, i)) continue;
      for (Edge e : g_.nodes[i].in) read(e, static_cast<int>(i));
      for (int32_t k = 0; k < static_cast<int32_t>(g_.nodes[i].out.size()); ++k) {
        Edge e{static_cast<int32_t>(i), k};
        if (base_of(e) != e) at(last_update_, base_of(e)) = static_cast<int>(i);
      }
    }
    for (Edge e : g_.outputs) read(e, static_cast<int>(g_.nodes.size()));
  }

  void find_positions() {
    outputs_.resize(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) outputs_[i].assign(g_.nodes[i].out.size(), -1);
    for (size_t k = g_.outputs.size(); k-- > 0;)
      if (g_.outputs[k].present()) at(outputs_, g_.outputs[k]) = static_cast<int>(k);
    arguments_.assign(g_.nodes.size(), -1);
    for (size_t i = 0; i < g_.arguments.size(); ++i)
      if (g_.arguments[i] >= 0) arguments_[static_cast<size_t>(g_.arguments[i])] = static_cast<int>(i);
  }

  // ---- which values share memory ----

  void assign(size_t i) {
    const GraphNode& n = g_.nodes[i];
    auto node = static_cast<int32_t>(i);
    switch (n.kind) {
      case GraphNode::Kind::shape: return;
      case GraphNode::Kind::argument: return assign_argument(node);
      case GraphNode::Kind::constant:
        memory_[i][0] = add({Place::Kind::constant, node, bytes_of(n.out[0]), -1, 0, false, -1, {node, 0}});
        return;
      default: break;
    }
    for (int32_t k = 0; k < static_cast<int32_t>(n.out.size()); ++k) {
      Edge e{node, k};
      if (base_of(e) != e) {
        at(memory_, e) = memory_of(base_of(e));
        continue;
      }
      int output = at(outputs_, e);
      int over = options_.in_place ? in_place(n, e, output) : -1;
      if (over < 0 && output >= 0) over = free_argument(e);
      if (over >= 0) {
        take_over(over, e, output);
        continue;
      }
      Memory m{Place::Kind::arena, 0, bytes_of(n.out[static_cast<size_t>(k)]), node, last_of(e), true, -1, e};
      if (output >= 0) m.kind = Place::Kind::output, m.index = output;
      at(memory_, e) = add(m);
      if (k == 0 && join_ && options_.in_place && n.kind == GraphNode::Kind::call && n.op->joins) join_inputs(n, e);
    }
  }

  void assign_argument(int32_t node) {
    int position = arguments_[static_cast<size_t>(node)];
    auto place = static_cast<size_t>(position);
    bool donated = position >= 0 && place < options_.donate.size() && options_.donate[place];
    Edge e{node, 0};
    int m = add({Place::Kind::argument, position, bytes_of(g_.sig(e)), -1, last_of(e), donated, -1, e});
    at(memory_, e) = m;
    if (donated) donated_.push_back(m);
  }

  int add(Memory m) {
    all_.push_back(m);
    return static_cast<int>(all_.size()) - 1;
  }

  bool row_major(Edge e) const { return e.output != 0 || views_[static_cast<size_t>(e.node)].row_major; }
  /// What the forward part computes cannot stand in an output that only the backward part is given.
  bool in_time(const Memory& m, int output) const { return output < g_.forward_outputs || m.first >= g_.forward_nodes; }

  /// The memory of an input over which the node may write output e, or -1.
  int in_place(const GraphNode& n, Edge e, int output) const {
    if (n.kind != GraphNode::Kind::call) return -1;
    auto candidate = [&](size_t i) -> int {
      if (i >= n.in.size() || !n.in[i].present()) return -1;
      Edge x = n.in[i];
      if (g_.at(x.node).kind == GraphNode::Kind::shape || memory_of(x) < 0) return -1;
      const Memory& m = memory(memory_of(x));
      const Sig &from = g_.sig(x), &to = g_.sig(e);
      bool dies = m.last == e.node && m.writable && m.claimed != e.node;
      bool fits = m.bytes == bytes_of(to) && from.shape == to.shape && from.dtype == to.dtype && row_major(x);
      if (!dies || !fits || !in_time(m, output)) return -1;
      // Nothing else of the node may look at these bytes in another arrangement.
      for (size_t j = 0; j < n.in.size(); ++j) {
        if (j == i || !n.in[j].present() || n.in[j] == x || memory_of(n.in[j]) < 0) continue;
        if (whole(memory_of(n.in[j])) == whole(memory_of(x))) return -1;
      }
      return memory_of(x);
    };
    if (n.op->pointwise()) {
      for (size_t i = 0; i < n.in.size(); ++i)
        if (int m = candidate(i); m >= 0) return m;
      return -1;
    }
    for (Pair p : n.op->inplace)
      if (p.output == e.output && p.input >= 0)
        if (int m = candidate(static_cast<size_t>(p.input)); m >= 0 && read_once(n, n.in[static_cast<size_t>(p.input)]))
          return m;
    return -1;
  }
  static bool read_once(const GraphNode& n, Edge e) { return std::ranges::count(n.in, e) == 1; }

  /// A donated argument of the right size that nobody reads any more: the output is written there.
  int free_argument(Edge e) const {
    for (int i : donated_) {
      const Memory& m = memory(i);
      const Sig& from = g_.sig(m.value);
      if (m.writable && m.last < e.node && from.dtype == g_.sig(e).dtype && from.shape == g_.sig(e).shape) return i;
    }
    return -1;
  }

  /// Value e stands from now on in memory m.
  void take_over(int m, Edge e, int output) {
    Memory& over = memory(m);
    over.claimed = e.node;
    at(memory_, e) = m;
    extend(m, over.first, last_of(e));
    if (output < 0) return;
    if (over.kind == Place::Kind::argument) {
      plan_.output_is_argument.resize(g_.outputs.size(), -1);
      plan_.output_is_argument[static_cast<size_t>(output)] = over.index;
    } else {
      over.kind = Place::Kind::output;  // the earlier values were computed there too
      over.index = output;
    }
    over.writable = false;
  }

  void extend(int m, int first, int last) {
    for (; m >= 0; m = memory(m).part_of) {
      memory(m).first = std::min(memory(m).first, first);
      memory(m).last = std::max(memory(m).last, last);
    }
  }

  /// Inputs of a join that lie in one piece of its result are computed there.
  void join_inputs(const GraphNode& n, Edge e) {
    int joined = memory_of(e);
    if (at(last_update_, e) >= 0) return;
    // The caller may write over an output of the forward part before the backward part runs.
    bool to_caller = at(outputs_, e) >= 0 && at(outputs_, e) < g_.forward_outputs && g_.forward_nodes >= 0;
    std::vector<Sig> sigs;
    for (Edge x : n.in) sigs.push_back(x.present() ? g_.sig(x) : Sig());
    for (size_t i = 0; i < n.in.size(); ++i) {
      Edge x = n.in[i];
      int m = x.present() ? memory_of(x) : -1;
      if (m < 0) continue;
      Memory& part = memory(m);
      bool own = part.kind == Place::Kind::arena && part.part_of < 0 && at(last_update_, base_of(x)) <= e.node;
      bool fits = part.bytes == bytes_of(sigs[i]) && sigs[i].dtype == g_.sig(e).dtype && row_major(x) &&
                  in_time(part, at(outputs_, e)) && !(to_caller && part.last >= g_.forward_nodes);
      int64_t begin = own && fits ? n.op->joins(n.attrs.data(), sigs, static_cast<int>(i)) : -1;
      if (begin < 0) continue;
      part.part_of = joined;
      part.begin = begin * size_of(sigs[i].dtype);
      part.writable = false;
      extend(joined, part.first, part.last);
      joined_ = true;
    }
  }

  // ---- places ----

  void pack() {
    std::vector<Lifetime> lives;
    std::vector<size_t> owner;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].kind != Place::Kind::arena || all_[i].part_of >= 0) continue;
      lives.push_back({all_[i].bytes, all_[i].first, all_[i].last});
      owner.push_back(i);
    }
    Packing packing = pack_arena(lives, options_.share);
    plan_.arena_bytes = packing.bytes;
    plan_.lower_bound = packing.lower_bound;
    offset_.assign(all_.size(), 0);
    for (size_t i = 0; i < owner.size(); ++i) offset_[owner[i]] = packing.offsets[i];
  }

  void finish() {
    plan_.output_is_argument.resize(g_.outputs.size(), -1);
    plan_.places.resize(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      plan_.places[i].resize(g_.nodes[i].out.size());
      for (size_t k = 0; k < g_.nodes[i].out.size(); ++k)
        if (int m = memory_[i][k]; m >= 0) plan_.places[i][k] = place_of(i, k, m);
    }
    for (size_t m = 0; m < all_.size(); ++m) {
      const Memory& x = all_[m];
      if (x.part_of >= 0) continue;
      if (x.kind == Place::Kind::arena) plan_.buffers.push_back({x.bytes, offset_[m], x.first, x.last, x.value});
      if (x.kind == Place::Kind::argument) plan_.argument_bytes += x.bytes;
      if (x.kind == Place::Kind::output) plan_.output_bytes += x.bytes;
    }
  }

  Place place_of(size_t i, size_t k, int m) const {
    Place p;
    p.kind = memory(whole(m)).kind;
    p.index = memory(whole(m)).index;
    p.offset = offset_[static_cast<size_t>(whole(m))];
    for (; memory(m).part_of >= 0; m = memory(m).part_of) p.offset += memory(m).begin;
    if (k == 0 && is_view(views_, i)) {
      p.offset += views_[i].layout.offset * size_of(g_.nodes[i].out[0].dtype);
      p.strided = !views_[i].row_major;
      p.layout = views_[i].layout;
    }
    return p;
  }

  const Graph& g_;
  const MemoryOptions& options_;
  bool join_, joined_ = false;
  std::vector<View> views_;
  std::vector<std::vector<Edge>> bases_;                   // of each value: see base_of
  std::vector<std::vector<int>> last_read_, last_update_;  // of each base: the node that does it
  std::vector<std::vector<int>> outputs_;                  // of each value: its position among the graph's outputs
  std::vector<int> arguments_;                             // of each node: its position among the arguments
  std::vector<std::vector<int>> memory_;                   // of each value: its place in all_
  std::vector<Memory> all_;
  std::vector<int> donated_;
  std::vector<int64_t> offset_;
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan plan_memory(const Graph& g, const MemoryOptions& options) {
  Planner planner(g, options, true);
  MemoryPlan plan = planner.run();
  if (!planner.joined()) return plan;
  // A joined array lives from its first part on, which now and then costs more than its copies.
  MemoryPlan apart = Planner(g, options, false).run();
  return apart.arena_bytes < plan.arena_bytes ? apart : plan;
}

}  // namespace twibil::passes
