// SPDX-License-Identifier: Apache-2.0
#include "passes/recompute.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/rewrite.h"
#include "passes/views.h"

namespace twibil::passes {

namespace {

int64_t bytes_of(const Sig& s) { return checked_mul(s.shape.size(), size_of(s.dtype)); }

/// About what running the node costs, in elements that are read and written.
double work_of(const Graph& g, const GraphNode& n) {
  std::vector<Sig> in;
  double elements = 0;
  for (Edge e : n.in) {
    in.push_back(e.present() ? g.sig(e) : Sig());
    if (e.present() && g.at(e.node).kind != GraphNode::Kind::shape)
      elements += static_cast<double>(in.back().shape.size());
  }
  for (const Sig& s : n.out) elements += static_cast<double>(s.shape.size());
  return n.op->cost ? n.op->cost(n.attrs.data(), in, n.out) / 16 : elements;
}

/// What the forward part computes and what becomes of it.
struct ForwardValue {
  Edge edge;
  int64_t bytes = 0;
  int last_forward = -1;  // the last forward node that reads it or a view of it
  bool needed = false;    // the backward part reads it
  bool fixed = false;     // cannot be computed again, or need not, as it is an output anyway
  bool kept = false;
  bool output = false;  // of the graph: it has memory anyway
  bool mirror = false;  // marked by the user
  double work = 0;
};

/// Decides which values of the forward part are kept.
class Selection {
 public:
  Selection(const Graph& g, const std::vector<View>& views)
      : g_(g), views_(views), forward_(static_cast<size_t>(g.forward_nodes)), number_(forward_) {
    find_values();
    find_readers();
    find_fixed();
  }

  bool keeps(Edge e) const {
    const ForwardValue& v = value(root_of(views_, e));
    return v.kept || v.fixed;
  }

  /// At least `share` of the bytes that the backward part needs may be kept; as few as it can do with, if that is less.
  void cut(double share) {
    int64_t total = 0;
    for (const ForwardValue& v : values_)
      if (v.needed) total += v.bytes;
    auto target = static_cast<int64_t>(share * static_cast<double>(total));
    Choice best;
    for (double part = 0.7; part > 0.002; part *= 0.85) {
      Choice c = choose(static_cast<int64_t>(part * static_cast<double>(total)), target);
      bool fits = c.peak <= target, best_fits = best.peak <= target;
      bool better = fits && best_fits ? c.work < best.work : c.peak < best.peak;
      if (best.kept.empty() || better) best = std::move(c);
    }
    for (size_t i = 0; i < values_.size(); ++i) values_[i].kept = best.kept[i];
  }
  /// Only what users marked is computed again.
  void keep_unmarked() {
    for (ForwardValue& v : values_) v.kept = !v.mirror;
  }

 private:
  struct Choice {
    std::vector<bool> kept;
    int64_t peak = INT64_MAX;
    double work = 0;
  };
  const ForwardValue& value(Edge e) const {
    return values_[static_cast<size_t>(number_[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)])];
  }
  ForwardValue* find(Edge e) {
    if (!e.present() || e.node >= g_.forward_nodes || g_.at(e.node).is_input()) return nullptr;
    e = root_of(views_, e);
    if (g_.at(e.node).is_input()) return nullptr;
    return &values_[static_cast<size_t>(number_[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)])];
  }

  void find_values() {
    for (size_t i = 0; i < forward_; ++i) {
      const GraphNode& n = g_.nodes[i];
      number_[i].assign(n.out.size(), -1);
      if (n.is_input() || is_view(views_, i)) continue;
      for (int32_t k = 0; k < static_cast<int32_t>(n.out.size()); ++k) {
        number_[i][static_cast<size_t>(k)] = static_cast<int>(values_.size());
        ForwardValue v{{static_cast<int32_t>(i), k}, bytes_of(n.out[static_cast<size_t>(k)])};
        if (n.kind == GraphNode::Kind::call) v.work = work_of(g_, n), v.mirror = n.mirror;
        values_.push_back(v);
      }
    }
  }
  void find_readers() {
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (is_view(views_, i)) continue;
      for (Edge e : g_.nodes[i].in)
        if (ForwardValue* v = find(e)) {
          if (i < forward_) v->last_forward = static_cast<int>(i);
          else v->needed = true;
        }
    }
  }
  void find_fixed() {
    // The last update of each array: who read it before cannot be run again.
    std::unordered_map<int64_t, int> updated;
    auto key = [](Edge e) { return static_cast<int64_t>(e.node) << 8 | e.output; };
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      for (int k = 0; k < static_cast<int>(g_.nodes[i].out.size()); ++k)
        if (int u = updated_input(g_.nodes[i], k); u >= 0 && g_.nodes[i].in[static_cast<size_t>(u)].present())
          updated[key(root_of(views_, g_.nodes[i].in[static_cast<size_t>(u)]))] = static_cast<int>(i);
    auto fixed = [&](const ForwardValue& v) {
      const GraphNode& n = g_.at(v.edge.node);
      if (n.kind != GraphNode::Kind::call || updated.contains(key(v.edge))) return true;
      const Again& again = n.op->again;
      if (has_effect(n) && (!again.op || v.edge.output != 0)) return true;
      for (size_t i = 0; i < n.in.size(); ++i) {
        bool replaced =
            again.op && std::ranges::any_of(again.from, [&](Pair p) { return p.input == static_cast<int>(i); });
        if (n.in[i].present() && !replaced && updated.contains(key(root_of(views_, n.in[i])))) return true;
      }
      return false;
    };
    for (ForwardValue& v : values_) v.fixed = fixed(v);
    for (Edge e : g_.outputs)
      if (ForwardValue* v = find(e)) v->fixed = v->output = true;
  }

  /// Segments of about `segment` bytes, and what else may be kept below `target`.
  Choice choose(int64_t segment, int64_t target) const {
    Choice c;
    c.kept.assign(values_.size(), false);
    // Bytes that live between node i and the next: a cut there has to keep them.
    std::vector<int64_t> alive(forward_ + 1), need(forward_ + 1);
    for (const ForwardValue& v : values_) {
      auto made = static_cast<size_t>(v.edge.node);
      if (v.needed && !v.fixed) need[made] += v.bytes;
      if (v.fixed || v.last_forward <= v.edge.node) continue;
      alive[made] += v.bytes;
      alive[static_cast<size_t>(v.last_forward)] -= v.bytes;
    }
    for (size_t i = 1; i <= forward_; ++i) alive[i] += alive[i - 1];
    std::vector<int> cuts = find_cuts(alive, need, segment);
    std::vector<int> segment_of(forward_, static_cast<int>(cuts.size()));
    for (size_t s = cuts.size(); s-- > 0;)
      for (int i = s ? cuts[s - 1] + 1 : 0; i <= cuts[s]; ++i) segment_of[static_cast<size_t>(i)] = static_cast<int>(s);

    std::vector<int64_t> inside(cuts.size() + 1);
    int64_t kept = 0;
    auto keep = [&](size_t i) {
      c.kept[i] = true;
      kept += values_[i].bytes;
    };
    for (size_t i = 0; i < values_.size(); ++i) {
      const ForwardValue& v = values_[i];
      auto s = static_cast<size_t>(segment_of[static_cast<size_t>(v.edge.node)]);
      bool crosses = s < cuts.size() && v.last_forward > cuts[s];
      if (v.fixed) kept += v.needed && !v.output ? v.bytes : 0;
      else if (crosses) keep(i);
      else if (v.needed) inside[s] += v.bytes;
    }
    auto peak = [&] { return kept + *std::ranges::max_element(inside); };
    // The last segment is still there when the backward part begins.
    std::vector<size_t> rest;
    for (size_t i = 0; i < values_.size(); ++i) {
      const ForwardValue& v = values_[i];
      if (!v.needed || v.fixed || c.kept[i]) continue;
      if (segment_of[static_cast<size_t>(v.edge.node)] == static_cast<int>(cuts.size())) c.kept[i] = true;
      else rest.push_back(i);
    }
    std::ranges::stable_sort(rest, [&](size_t a, size_t b) {
      return values_[a].work * static_cast<double>(values_[b].bytes) >
             values_[b].work * static_cast<double>(values_[a].bytes);
    });
    for (size_t i : rest) {
      auto s = static_cast<size_t>(segment_of[static_cast<size_t>(values_[i].edge.node)]);
      inside[s] -= values_[i].bytes;
      kept += values_[i].bytes;
      if (peak() <= target) {
        c.kept[i] = true;
        continue;
      }
      inside[s] += values_[i].bytes;
      kept -= values_[i].bytes;
      c.work += values_[i].work;
    }
    c.peak = peak();
    return c;
  }

  /// Nodes after which to cut: where a segment has grown to about `segment` bytes, at the place with the least alive.
  std::vector<int> find_cuts(const std::vector<int64_t>& alive, const std::vector<int64_t>& need,
                             int64_t segment) const {
    std::vector<int> cuts;
    int64_t grown = 0;
    int best = -1;
    for (int i = 0; i < static_cast<int>(forward_); ++i) {
      auto at = static_cast<size_t>(i);
      if (best >= 0 && grown + need[at] > segment) {
        cuts.push_back(best);
        grown = 0;
        for (int k = best + 1; k < i; ++k) grown += need[static_cast<size_t>(k)];
        best = -1;
      }
      grown += need[at];
      bool long_enough = grown * 2 >= segment && alive[at] > 0;
      if (long_enough && (best < 0 || alive[at] <= alive[static_cast<size_t>(best)])) best = i;
    }
    return cuts;
  }

  const Graph& g_;
  const std::vector<View>& views_;
  size_t forward_;
  std::vector<std::vector<int>> number_;  // of each output of each forward node: its place in values_
  std::vector<ForwardValue> values_;
};

/// Writes the graph with what is not kept computed again.
class Repeat {
 public:
  Repeat(Graph& g, std::vector<View> views, const Selection& selection)
      : r_(g), views_(std::move(views)), selection_(selection) {}

  Graph run() {
    for (size_t i = 0; i < r_.old().nodes.size(); ++i) {
      r_.at(i);
      GraphNode n = r_.old().nodes[i];
      bool backward = static_cast<int>(i) >= r_.old().forward_nodes;
      if (backward)
        for (Edge e : n.in) repeat(e);
      for (Edge& e : n.in) e = backward ? again(e) : r_(e);
      r_.keep(i, std::move(n));
    }
    return r_.finish();
  }

 private:
  static int64_t key(Edge e) { return static_cast<int64_t>(e.node) << 8 | e.output; }
  bool stays(Edge e) const {
    return !e.present() || e.node >= r_.old().forward_nodes || made_.contains(key(e)) || kept_edge(e);
  }
  bool kept_edge(Edge e) const {
    const Graph& old = r_.old();
    return old.at(e.node).is_input() || old.at(root_of(views_, e).node).is_input() || selection_.keeps(e);
  }
  /// Where a reader in the backward part finds the value.
  Edge again(Edge e) const {
    auto found = e.present() ? made_.find(key(e)) : made_.end();
    return found == made_.end() ? r_(e) : found->second;
  }

  /// Computes e again, and before it what it needs.
  void repeat(Edge e) {
    if (stays(e)) return;
    std::vector<Edge> stack{e};
    std::vector<int32_t> nodes;
    std::unordered_set<int32_t> seen;
    while (!stack.empty()) {
      Edge next = stack.back();
      stack.pop_back();
      if (stays(next) || !seen.insert(next.node).second) continue;
      nodes.push_back(next.node);
      const GraphNode& n = r_.old().at(next.node);
      for (size_t i = 0; i < n.in.size(); ++i)
        if (replacement(n, i) < 0) stack.push_back(n.in[i]);
    }
    std::ranges::sort(nodes);
    for (int32_t i : nodes) copy(i);
  }
  /// The output of the first run that stands in place of input i of a second one, or -1.
  static int replacement(const GraphNode& n, size_t i) {
    if (n.kind == GraphNode::Kind::call && has_effect(n) && n.op->again.op)
      for (Pair p : n.op->again.from)
        if (p.input == static_cast<int>(i)) return p.output;
    return -1;
  }
  void copy(int32_t i) {
    const GraphNode& first = r_.old().at(i);
    GraphNode n = first;
    n.again = true;
    for (size_t k = 0; k < n.in.size(); ++k) {
      int output = replacement(first, k);
      n.in[k] = output >= 0 ? r_({i, output}) : again(n.in[k]);
    }
    int results = static_cast<int>(n.out.size());
    if (has_effect(first)) {
      n.op = first.op->again.op;
      n.out.resize(static_cast<size_t>(n.op->outputs()));
      results = 1;
    }
    int32_t made = r_.made().add(std::move(n));
    for (int32_t k = 0; k < results; ++k)
      if (!kept_edge({i, k})) made_[key({i, k})] = {made, k};
  }

  Rewrite r_;
  std::vector<View> views_;
  const Selection& selection_;
  std::unordered_map<int64_t, Edge> made_;  // values that exist a second time
};

}  // namespace

void recompute(Graph& g) {
  bool marked = std::ranges::any_of(g.nodes, [](const GraphNode& n) { return n.mirror; });
  if (g.forward_nodes <= 0 || (g.keep >= 1 && !marked)) return;
  std::vector<View> views = find_views(g);
  Graph original = g;  // what the selection looks at while the graph is rewritten
  Selection selection(original, views);
  if (g.keep < 1) selection.cut(g.keep);
  else selection.keep_unmarked();
  g = Repeat(g, views, selection).run();
}

}  // namespace twibil::passes
