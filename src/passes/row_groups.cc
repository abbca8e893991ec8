// SPDX-License-Identifier: Apache-2.0
#include "passes/row_groups.h"

#include <algorithm>
#include <unordered_set>

#include "passes/fixed_values.h"

namespace twibil::passes {

namespace {

constexpr int64_t kMostRowBytes =
    256 << 10;                     // of all that is read and made for one row; more would not stay in a cache
constexpr size_t kMostSpan = 400;  // nodes between the first and the last of a group
constexpr size_t kMostMembers = 64;
constexpr size_t kMostVisits = 1000;

bool leads(const Shape& s, const Shape& lead, int axes) {
  if (s.rank() < axes) return false;
  for (int i = 0; i < axes; ++i)
    if (s[i] != lead[i]) return false;
  return true;
}
/// Whether a value is the same along the first axes of a result of that rank, with which it broadcasts.
bool spreads(const Shape& s, int rank, int axes) {
  for (int i = 0; i < axes; ++i)
    if (int own = i - (rank - s.rank()); own >= 0 && s[own] != 1) return false;
  return true;
}
int64_t positions(const Shape& lead, int axes) {
  int64_t n = 1;
  for (int i = 0; i < axes; ++i) n *= lead[i];
  return n;
}
int64_t bytes_of(const Sig& s) { return s.shape.size() * size_of(s.dtype); }

std::vector<Sig> sigs_of(const Graph& g, const GraphNode& n) {
  std::vector<Sig> sigs;
  for (Edge e : n.in) sigs.push_back(e.present() ? g.sig(e) : Sig());
  return sigs;
}

/// Which of the first `axes` axes a reduction folds: none, some or all.
enum class Folded : uint8_t { none, some, all };
Folded folded(const GraphNode& n, int rank, int axes) {
  uint32_t lead = axes >= 32 ? ~0u : (1u << axes) - 1, set = n.op->folds.axes(n.attrs.data(), rank) & lead;
  return set == 0 ? Folded::none : set == lead ? Folded::all : Folded::some;
}

bool could_join(const GraphNode& n) {
  if (n.kind != GraphNode::Kind::call || has_effect(n) || n.op->random || n.op->data_dependent || n.op->heavy)
    return false;
  if (n.out.size() > 1 && !n.op->rows) return false;
  return n.op->pointwise() || n.op->rows || n.op->folds.axes;
}

class Finder {
 public:
  Finder(const Graph& g, const std::vector<View>& views)
      : g_(g), views_(views), group_(g.nodes.size(), -1), readers_(g.nodes.size()) {
    if (g.forward_nodes < 0) fixed_ = find_fixed(g);  // those belong to the prologue
    else fixed_.resize(g.nodes.size());
  }

  std::vector<RowGroup> run() {
    size_t begin = 0;  // nodes before this one are out of reach: something is written, or the backward part begins
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const GraphNode& n = g_.nodes[i];
      if (has_effect(n)) begin = i + 1;
      if (static_cast<int>(i) == g_.forward_nodes) begin = i;
      if (could_join(n) && !fixed_[i] && !join(i, begin)) open(i);
      for (Edge e : n.in)
        if (e.present()) readers_[static_cast<size_t>(e.node)].push_back(i);
    }
    return std::move(groups_);
  }

 private:
  const Sig& sig(Edge e) const { return g_.sig(e); }
  bool inside(Edge e, int group) const { return group_[static_cast<size_t>(e.node)] == group; }
  /// The most axes, up to `axes`, along which node n can run by rows; 0: none.
  int most_axes(const GraphNode& n, const Shape& lead, int axes, int group) const {
    std::vector<Sig> in = sigs_of(g_, n);
    if (!in.empty() && !in[0].present()) return 0;
    if (n.op->pointwise()) axes = std::min(axes, n.out[0].rank());
    else if (n.op->folds.axes) axes = std::min(axes, in[0].rank());
    else axes = std::min(axes, n.op->rows(n.attrs.data(), in).axes);
    while (axes > 0 && !fits(n, lead, axes, group)) --axes;
    return axes;
  }
  bool fits(const GraphNode& n, const Shape& lead, int axes, int group) const {
    if (n.op->pointwise()) {
      if (!leads(n.out[0].shape, lead, axes)) return false;
    } else if (n.op->folds.axes) {
      if (folded(n, sig(n.in[0]).rank(), axes) == Folded::some) return false;
      if (folded(n, sig(n.in[0]).rank(), axes) == Folded::all && is_half(n.out[0].dtype)) return false;
    } else {
      for (const Sig& s : n.out)
        if (!leads(s.shape, lead, axes)) return false;
    }
    for (size_t k = 0; k < n.in.size(); ++k) {
      Edge e = n.in[k];
      if (!e.present()) continue;
      RowKind kind = kind_of_input(g_, n, k, lead, axes);
      const Shape& s = sig(e).shape;
      if (kind == RowKind::rows && !leads(s, lead, axes)) return false;
      if (kind == RowKind::whole && n.op->pointwise() && !spreads(s, n.out[0].rank(), axes)) return false;
      if (inside(e, group)) {
        if (kind != RowKind::rows || kind_of_output(g_, g_.at(e.node), axes) == RowKind::part) return false;
      } else if (e.output == 0 && !views_[static_cast<size_t>(e.node)].row_major) {
        return false;
      }
    }
    return true;
  }

  /// Whether a value depends on a member of the group by a way that leaves the group: then a call that reads it cannot
  /// run together with that member. Other groups count as one call each. Says yes where the answer would take long.
  bool depends_outside(const std::vector<Edge>& in, int group, size_t begin) const {
    std::unordered_set<size_t> seen;
    std::vector<size_t> open;
    auto look = [&](size_t node) {
      if (node >= begin && seen.insert(node).second) open.push_back(node);
    };
    for (Edge e : in)
      if (e.present() && !inside(e, group)) look(static_cast<size_t>(e.node));
    while (!open.empty()) {
      size_t node = open.back();
      open.pop_back();
      if (group_[node] == group || seen.size() > kMostVisits) return true;
      auto inputs = [&](size_t i) {
        for (Edge e : g_.nodes[i].in)
          if (e.present()) look(static_cast<size_t>(e.node));
      };
      if (group_[node] < 0) inputs(node);
      else
        for (size_t m : groups_[static_cast<size_t>(group_[node])].members) inputs(m);
    }
    return false;
  }

  bool join(size_t i, size_t begin) {
    const GraphNode& n = g_.nodes[i];
    std::vector<int> tried;
    auto attempt = [&](int group) {
      if (group < 0 || std::ranges::find(tried, group) != tried.end()) return false;
      tried.push_back(group);
      return join(i, begin, group);
    };
    for (Edge e : n.in)
      if (e.present() && attempt(group_[static_cast<size_t>(e.node)])) return true;
    for (Edge e : n.in) {  // or others read the same large array
      if (!e.present() || sig(e).shape.size() <= 1) continue;
      for (size_t r : readers_[static_cast<size_t>(e.node)])
        if (attempt(group_[r])) return true;
    }
    return false;
  }
  bool join(size_t i, size_t begin, int group) {
    RowGroup& made = groups_[static_cast<size_t>(group)];
    const GraphNode& n = g_.nodes[i];
    size_t first = made.members[0];
    if (first < begin || i - first > kMostSpan || made.members.size() >= kMostMembers) return false;
    int axes = most_axes(n, made.lead, made.axes, group);
    if (axes == 0) return false;
    int64_t bytes = made.bytes + bytes_by_rows(n, made.lead, axes, group);
    if (bytes / positions(made.lead, axes) > kMostRowBytes || depends_outside(n.in, group, begin)) return false;
    made.members.push_back(i);
    made.axes = axes;
    made.bytes = bytes;
    group_[i] = group;
    return true;
  }
  void open(size_t i) {
    const GraphNode& n = g_.nodes[i];
    if (is_view(views_, i) || n.in.empty() || !n.in[0].present()) return;
    RowGroup made;
    made.lead = n.op->pointwise() ? n.out[0].shape : sig(n.in[0]).shape;
    int rank = made.lead.rank();
    made.axes = most_axes(n, made.lead, rank, -2);
    if (made.axes == 0 || made.lead.size() == 0 || kind_of_output(g_, n, made.axes) == RowKind::part) return;
    made.members = {i};
    made.bytes = bytes_by_rows(n, made.lead, made.axes, -2);
    if (made.bytes / positions(made.lead, made.axes) > kMostRowBytes) return;
    group_[i] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(made));
  }
  /// What node n adds to what a group reads and makes by rows.
  int64_t bytes_by_rows(const GraphNode& n, const Shape& lead, int axes, int group) const {
    int64_t bytes = 0;
    for (size_t k = 0; k < n.in.size(); ++k)
      if (n.in[k].present() && !inside(n.in[k], group) && kind_of_input(g_, n, k, lead, axes) == RowKind::rows)
        bytes += bytes_of(sig(n.in[k]));
    for (const Sig& s : n.out) bytes += bytes_of(s);
    return bytes;
  }

  const Graph& g_;
  const std::vector<View>& views_;
  std::vector<RowGroup> groups_;
  std::vector<int> group_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> fixed_;
};

}  // namespace

RowKind kind_of_input(const Graph& g, const GraphNode& n, size_t k, const Shape& lead, int axes) {
  const Shape& s = g.sig(n.in[k]).shape;
  if (n.op->pointwise()) return s.rank() == n.out[0].rank() && leads(s, lead, axes) ? RowKind::rows : RowKind::whole;
  if (!n.op->rows) return RowKind::rows;
  return n.op->rows(n.attrs.data(), sigs_of(g, n)).whole >> k & 1 ? RowKind::whole : RowKind::rows;
}

RowKind kind_of_output(const Graph& g, const GraphNode& n, int axes) {
  if (n.op->pointwise() || !n.op->folds.axes) return RowKind::rows;
  return folded(n, g.sig(n.in[0]).rank(), axes) == Folded::none ? RowKind::rows : RowKind::part;
}

std::vector<RowGroup> find_row_groups(const Graph& g, const std::vector<View>& views) { return Finder(g, views).run(); }

}  // namespace twibil::passes
