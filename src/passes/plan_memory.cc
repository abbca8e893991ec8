// SPDX-License-Identifier: Apache-2.0
#include "passes/plan_memory.h"

#include <algorithm>
#include <numeric>

#include "passes/views.h"

namespace twibil::passes {

namespace {

constexpr int64_t kAlign = 64;  // a cache line, the widest vector
int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }
int64_t bytes_of(const Sig& s) { return checked_mul(s.shape.size(), size_of(s.dtype)); }

struct Memory {  // what one or several values share
  Place::Kind kind = Place::Kind::none;
  int32_t index = 0;
  int64_t bytes = 0;
  int first = 0, last = 0;
  bool writable = false;  // the plan may write over it
  int claimed = -1;       // the node that writes over it
  Edge value;
};

class Planner {
 public:
  Planner(const Graph& g, const MemoryOptions& o) : g_(g), options_(o), views_(find_views(g)), memory_(g.nodes.size()) {
    for (size_t i = 0; i < g.nodes.size(); ++i) memory_[i].assign(g.nodes[i].out.size(), -1);
  }

  MemoryPlan run() {
    find_last_reads();
    for (size_t i = 0; i < g_.nodes.size(); ++i) assign(i);
    place_in_arena();
    finish();
    return std::move(plan_);
  }

 private:
  int& of(Edge e) { return memory_[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)]; }
  int at(Edge e) const { return memory_[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)]; }

  /// The value in whose memory `e` stands: through views and updates.
  Edge base_of(Edge e) const {
    while (true) {
      Edge root = root_of(views_, e);
      const GraphNode& n = g_.at(root.node);
      int u = updated_input(n, root.output);
      if (u < 0 || !n.in[static_cast<size_t>(u)].present()) return root;
      e = n.in[static_cast<size_t>(u)];
    }
  }

  void find_last_reads() {
    last_.resize(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) last_[i].assign(g_.nodes[i].out.size(), static_cast<int>(i));
    auto read = [&](Edge e, int by) {
      if (!e.present() || g_.at(e.node).kind == GraphNode::Kind::shape) return;
      Edge base = base_of(e);
      int& last = last_[static_cast<size_t>(base.node)][static_cast<size_t>(base.output)];
      last = std::max(last, by);
    };
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      if (!is_view(views_, i))
        for (Edge e : g_.nodes[i].in) read(e, static_cast<int>(i));
    for (size_t k = 0; k < g_.outputs.size(); ++k) read(g_.outputs[k], static_cast<int>(g_.nodes.size()));
  }
  int last_of(Edge e) const {
    Edge base = base_of(e);
    return last_[static_cast<size_t>(base.node)][static_cast<size_t>(base.output)];
  }

  int output_index(Edge e) const {
    for (size_t k = 0; k < g_.outputs.size(); ++k)
      if (g_.outputs[k] == e) return static_cast<int>(k);
    return -1;
  }

  void assign(size_t i) {
    const GraphNode& n = g_.nodes[i];
    auto node = static_cast<int32_t>(i);
    switch (n.kind) {
      case GraphNode::Kind::shape: return;
      case GraphNode::Kind::argument: {
        auto position = std::ranges::find(g_.arguments, node) - g_.arguments.begin();
        bool donated =
            static_cast<size_t>(position) < options_.donate.size() && options_.donate[static_cast<size_t>(position)];
        of({node, 0}) = add({Place::Kind::argument,
                             static_cast<int32_t>(position),
                             bytes_of(n.out[0]),
                             -1,
                             last_of({node, 0}),
                             donated,
                             -1,
                             {node, 0}});
        return;
      }
      case GraphNode::Kind::constant:
        of({node, 0}) = add({Place::Kind::constant, node, bytes_of(n.out[0]), -1, 0, false, -1, {node, 0}});
        return;
      default: break;
    }
    for (int32_t k = 0; k < static_cast<int32_t>(n.out.size()); ++k) {
      Edge e{node, k};
      Edge base = base_of(e);
      if (base != e) {
        of(e) = at(base);
        continue;
      }
      int output = output_index(e);
      int over = options_.in_place ? in_place(n, e, output) : -1;
      if (over >= 0) {
        take_over(over, e, output);
        continue;
      }
      if (output >= 0)
        if (int donated = free_argument(e); donated >= 0) {
          take_over(donated, e, output);
          continue;
        }
      Memory m{Place::Kind::arena, 0, bytes_of(n.out[static_cast<size_t>(k)]), node, last_of(e), true, -1, e};
      if (output >= 0) m.kind = Place::Kind::output, m.index = output;
      of(e) = add(m);
    }
  }

  int add(Memory m) {
    all_.push_back(m);
    return static_cast<int>(all_.size()) - 1;
  }

  /// The memory of an input over which the node may write output e, or -1.
  int in_place(const GraphNode& n, Edge e, int output) const {
    if (n.kind != GraphNode::Kind::call) return -1;
    auto candidate = [&](size_t i) -> int {
      if (i >= n.in.size() || !n.in[i].present()) return -1;
      Edge x = n.in[i];
      if (g_.at(x.node).kind == GraphNode::Kind::shape || at(x) < 0) return -1;
      const Memory& m = all_[static_cast<size_t>(at(x))];
      const Sig &from = g_.sig(x), &to = g_.sig(e);
      bool dies = m.last == e.node && m.writable && m.claimed != e.node;
      bool whole = m.bytes == bytes_of(to) && from.shape == to.shape && from.dtype == to.dtype &&
                   (x.output != 0 || views_[static_cast<size_t>(x.node)].row_major);
      // What the forward part computes cannot stand in an output that only the backward part is given.
      bool in_time = output < g_.forward_outputs || m.first >= g_.forward_nodes;
      if (!dies || !whole || !in_time) return -1;
      // Nothing else of the node may look at these bytes in another arrangement.
      for (size_t j = 0; j < n.in.size(); ++j)
        if (j != i && n.in[j].present() && at(n.in[j]) == at(x) && n.in[j] != x) return -1;
      return at(x);
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
    for (size_t i = 0; i < all_.size(); ++i) {
      const Memory& m = all_[i];
      const Sig& from = g_.sig(m.value);
      if (m.kind == Place::Kind::argument && m.writable && m.last < e.node && from.dtype == g_.sig(e).dtype &&
          from.shape == g_.sig(e).shape)
        return static_cast<int>(i);
    }
    return -1;
  }

  /// Value e stands from now on in memory m.
  void take_over(int m, Edge e, int output) {
    Memory& memory = all_[static_cast<size_t>(m)];
    memory.last = std::max(memory.last, last_of(e));
    memory.claimed = e.node;
    of(e) = m;
    if (output < 0) return;
    if (memory.kind == Place::Kind::argument) {
      plan_.output_is_argument.resize(g_.outputs.size(), -1);
      plan_.output_is_argument[static_cast<size_t>(output)] = memory.index;
      memory.writable = false;
    } else {
      memory.kind = Place::Kind::output;  // the earlier values were computed there too
      memory.index = output;
      memory.writable = false;
    }
  }

  // ---- offsets ----

  bool live_together(const Memory& a, const Memory& b) const { return a.first <= b.last && b.first <= a.last; }

  /// Offsets for memories in the given order, each at the lowest place that is free for its whole life.
  int64_t offsets(const std::vector<int>& order, std::vector<int64_t>& at) const {
    int64_t high = 0;
    std::vector<int> placed;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (int m : order) {
      taken.clear();
      for (int other : placed)
        if (live_together(all_[static_cast<size_t>(m)], all_[static_cast<size_t>(other)]))
          taken.push_back({at[static_cast<size_t>(other)], aligned(all_[static_cast<size_t>(other)].bytes)});
      std::ranges::sort(taken);
      int64_t offset = 0, size = aligned(all_[static_cast<size_t>(m)].bytes);
      for (auto [begin, bytes] : taken) {
        if (begin - offset >= size) break;
        offset = std::max(offset, begin + bytes);
      }
      at[static_cast<size_t>(m)] = offset;
      high = std::max(high, checked_add(offset, size));
      placed.push_back(m);
    }
    return high;
  }

  void place_in_arena() {
    std::vector<int> order;
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i].kind == Place::Kind::arena) order.push_back(static_cast<int>(i));
    std::vector<int64_t> change(g_.nodes.size() + 2);
    for (int m : order) {
      const Memory& x = all_[static_cast<size_t>(m)];
      change[static_cast<size_t>(x.first)] += aligned(x.bytes);
      change[static_cast<size_t>(x.last) + 1] -= aligned(x.bytes);
    }
    int64_t live = 0;
    for (int64_t c : change) live += c, plan_.lower_bound = std::max(plan_.lower_bound, live);
    offset_.assign(all_.size(), 0);
    if (!options_.share) {
      for (int m : order)
        offset_[static_cast<size_t>(m)] = plan_.arena_bytes,
        plan_.arena_bytes += aligned(all_[static_cast<size_t>(m)].bytes);
      return;
    }
    auto bytes = [&](int m) { return all_[static_cast<size_t>(m)].bytes; };
    auto life = [&](int m) { return all_[static_cast<size_t>(m)].last - all_[static_cast<size_t>(m)].first; };
    auto first = [&](int m) { return all_[static_cast<size_t>(m)].first; };
    auto area = [&](int m) { return static_cast<double>(bytes(m)) * (life(m) + 1); };
    plan_.arena_bytes = INT64_MAX;
    auto attempt = [&](auto less) {
      if (plan_.arena_bytes == plan_.lower_bound) return;  // proven: nothing is better
      std::vector<int> sorted = order;
      std::ranges::stable_sort(sorted, less);
      std::vector<int64_t> at(all_.size());
      int64_t high = offsets(sorted, at);
      if (high < plan_.arena_bytes) plan_.arena_bytes = high, offset_ = std::move(at);
    };
    attempt([&](int a, int b) { return bytes(a) > bytes(b); });
    attempt([&](int a, int b) { return life(a) != life(b) ? life(a) > life(b) : bytes(a) > bytes(b); });
    attempt([&](int a, int b) { return area(a) > area(b); });
    attempt([&](int a, int b) { return first(a) < first(b); });
    attempt([&](int a, int b) { return all_[static_cast<size_t>(a)].last > all_[static_cast<size_t>(b)].last; });
    if (order.empty()) plan_.arena_bytes = 0;
  }

  void finish() {
    plan_.output_is_argument.resize(g_.outputs.size(), -1);
    plan_.places.resize(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      plan_.places[i].resize(g_.nodes[i].out.size());
      for (size_t k = 0; k < g_.nodes[i].out.size(); ++k) {
        int m = memory_[i][k];
        if (m < 0) continue;
        const Memory& memory = all_[static_cast<size_t>(m)];
        Place& p = plan_.places[i][k];
        p.kind = memory.kind;
        p.index = memory.index;
        p.offset = offset_[static_cast<size_t>(m)];
        if (k == 0 && is_view(views_, i)) {
          p.offset += views_[i].layout.offset * size_of(g_.nodes[i].out[0].dtype);
          p.strided = !views_[i].row_major;
          p.layout = views_[i].layout;
        }
      }
    }
    for (size_t m = 0; m < all_.size(); ++m) {
      const Memory& x = all_[m];
      if (x.kind == Place::Kind::arena) plan_.buffers.push_back({x.bytes, offset_[m], x.first, x.last, x.value});
      if (x.kind == Place::Kind::argument) plan_.argument_bytes += x.bytes;
      if (x.kind == Place::Kind::output) plan_.output_bytes += x.bytes;
    }
  }

  const Graph& g_;
  const MemoryOptions& options_;
  std::vector<View> views_;
  std::vector<std::vector<int>> memory_;  // of each value: its place in all_
  std::vector<std::vector<int>> last_;
  std::vector<Memory> all_;
  std::vector<int64_t> offset_;
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan plan_memory(const Graph& g, const MemoryOptions& options) { return Planner(g, options).run(); }

}  // namespace twibil::passes
