// SPDX-License-Identifier: Apache-2.0
#include "passes/merge_branches.h"

#include <algorithm>
#include <map>

#include "ir/apply.h"
#include "ir/graph_tracer.h"
#include "ir/modes.h"
#include "passes/fixed_values.h"
#include "passes/rewrite.h"

namespace twibil::passes {

namespace {

constexpr int64_t kBlock = 16;  // of channels; parts of whole blocks are views in every layout

class Merger {
 public:
  explicit Merger(Graph& g)
      : r_(g), fixed_(find_fixed(old())), reader_(old().nodes.size(), -1), done_(old().nodes.size()) {
    // The only reader of each node; -2: there are several, or an output of the graph.
    auto read = [&](Edge e, int by) {
      if (!e.present()) return;
      int& reader = reader_[static_cast<size_t>(e.node)];
      reader = reader == -1 ? by : -2;
    };
    for (size_t i = 0; i < old().nodes.size(); ++i)
      for (Edge e : old().nodes[i].in) read(e, static_cast<int>(i));
    for (Edge e : old().outputs) read(e, -2);
  }

  Graph run() {
    std::map<size_t, std::vector<size_t>> groups = find_groups();
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      r_.at(i);
      if (done_[i]) continue;
      auto group = groups.find(i);
      if (group == groups.end() || !merge(group->second)) emit(i);
    }
    return r_.finish();
  }

 private:
  const Graph& old() const { return r_.old(); }
  const GraphNode& node(size_t i) const { return old().nodes[i]; }

  /// The formula of one array that alone reads node i, or -1.
  int formula_after(size_t i) const {
    int r = reader_[i];
    if (r < 0) return -1;
    const GraphNode& n = node(static_cast<size_t>(r));
    bool unary = n.kind == GraphNode::Kind::call && n.op->pointwise() && n.in.size() == 1 && !n.owned &&
                 n.out[0].shape == node(i).out[0].shape && n.out[0].dtype == node(i).out[0].dtype;
    return unary ? r : -1;
  }
  bool can_merge(size_t i) const {
    const GraphNode& n = node(i);
    if (n.kind != GraphNode::Kind::call || !n.op->merge.add || !n.in[0].present() || fixed_[i]) return false;
    for (size_t k = 1; k < n.in.size(); ++k)
      if (n.in[k].present() && !fixed_[static_cast<size_t>(n.in[k].node)]) return false;
    int formula = formula_after(i), reader = reader_[formula < 0 ? i : static_cast<size_t>(formula)];
    bool joined = reader >= 0 && node(static_cast<size_t>(reader)).kind == GraphNode::Kind::call &&
                  node(static_cast<size_t>(reader)).op->joins;
    return !joined && n.out.size() == 1 && n.out[0].dtype == DType::float32 && n.out[0].rank() == 4 &&
           n.out[0].shape[1] % kBlock == 0;
  }
  bool same_formula(int a, int b) const {
    if (a < 0 || b < 0) return a == b;
    const GraphNode &x = node(static_cast<size_t>(a)), &y = node(static_cast<size_t>(b));
    return x.op == y.op && x.attrs == y.attrs && x.work == y.work;
  }
  bool alike(size_t a, size_t b) const {
    const GraphNode &x = node(a), &y = node(b);
    return x.op == y.op && x.in[0] == y.in[0] && same_formula(formula_after(a), formula_after(b));
  }
  /// Lists of nodes that may become one, by the first of them.
  std::map<size_t, std::vector<size_t>> find_groups() const {
    std::map<size_t, std::vector<size_t>> groups;
    if (std::ranges::any_of(old().nodes, has_effect)) return groups;
    std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> by_input;  // first members
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      if (!can_merge(i)) continue;
      auto& firsts = by_input[{node(i).in[0].node, node(i).in[0].output}];
      auto found = std::ranges::find_if(firsts, [&](size_t f) { return alike(f, i); });
      if (found == firsts.end()) firsts.push_back(i), groups[i] = {i};
      else groups[*found].push_back(i);
    }
    std::erase_if(groups, [](const auto& g) { return g.second.size() < 2; });
    return groups;
  }

  /// Node i, after what it reads and what was not emitted yet.
  void emit(size_t i) {
    if (done_[i]) return;
    done_[i] = true;
    for (Edge e : node(i).in)
      if (e.present()) emit(static_cast<size_t>(e.node));
    r_.keep(i);
  }

  bool merge(const std::vector<size_t>& group) {
    const GraphNode& first = node(group[0]);
    for (size_t i : group)  // weights of later calls stand further behind
      for (Edge e : node(i).in)
        if (e.present()) emit(static_cast<size_t>(e.node));
    GraphTracer made(r_.made());
    made.site = first.site;
    made.name = first.name;
    TraceScope scope(&made);
    ModeScope quiet(false, false);
    size_t begin = r_.made().nodes.size();
    auto values = [&](size_t i) {
      std::vector<Val> in;
      for (Edge e : node(i).in) in.push_back(e.present() ? made.value_of(r_(e)) : Val());
      in.resize(std::max<size_t>(in.size(), static_cast<size_t>(first.op->inputs())));
      return in;
    };
    AttrBytes attrs = first.attrs;
    std::vector<Val> in = values(group[0]);
    std::vector<size_t> members{group[0]};
    for (size_t k = 1; k < group.size(); ++k) {
      std::vector<Val> other = values(group[k]);
      if (first.op->merge.add(attrs.data(), in, node(group[k]).attrs.data(), other)) members.push_back(group[k]);
    }
    if (members.size() < 2) return false;
    Val y = apply_all(*first.op, attrs.data(), in)[0];
    int formula = formula_after(group[0]);
    if (formula >= 0) {
      const GraphNode& f = node(static_cast<size_t>(formula));
      made.site = f.site;
      made.name = f.name;
      y = apply_all(*f.op, f.attrs.data(), {&y, 1})[0];
    }
    int64_t channel = 0;
    for (size_t i : members) {
      int64_t channels = node(i).out[0].shape[1];
      Val part = first.op->merge.part(y, channel, channels);
      channel += channels;
      size_t stands_for = formula < 0 ? i : static_cast<size_t>(formula_after(i));
      done_[i] = done_[stands_for] = true;
      r_.replace(stands_for, {edge_of(*part)});
    }
    for (size_t k = begin; k < r_.made().nodes.size(); ++k)
      for (size_t i : members) {
        auto& parts = r_.made().nodes[k].parts;
        parts.insert(parts.end(), node(i).parts.begin(), node(i).parts.end());
        if (int f = formula_after(i); f >= 0)
          parts.insert(parts.end(), node(static_cast<size_t>(f)).parts.begin(),
                       node(static_cast<size_t>(f)).parts.end());
      }
    return true;
  }

  Rewrite r_;
  std::vector<bool> fixed_;
  std::vector<int> reader_;
  std::vector<bool> done_;  // nodes that stand in the new graph, or in a merged one
};

}  // namespace

void merge_branches(Graph& g) {
  if (g.forward_nodes < 0) g = Merger(g).run();  // with a backward part the weights are differentiated one by one
}

}  // namespace twibil::passes
