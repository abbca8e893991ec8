// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse_rows.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "base/settings.h"
#include "passes/rewrite.h"
#include "passes/row_groups.h"

namespace twibil::passes {

namespace {

constexpr int64_t kBlockBytes = 192 << 10;  // of a block's values: they share the second-level cache with others
constexpr int64_t kLeastBytes = 1 << 20;    // of a group's: smaller ones stay in the caches anyway
constexpr size_t kMostOperands = 15;        // of a loop, so that a run needs no memory for their addresses

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Which rows a group runs at a time: blocks along `axis`, the axes before it one position at a time.
struct Blocks {
  int axis = 0;
  int64_t outer = 1, rows = 0, block = 0;
};

bool has_equal_parts(const Graph& g, const RowGroup& group) {
  return std::ranges::any_of(group.members, [&](size_t i) {
    return g.nodes[i].op->folds.equal_parts && kind_of_output(g, g.nodes[i], group.axes) == RowKind::part;
  });
}
/// block = 0: there are no blocks of a reasonable size.
Blocks choose_blocks(const Graph& g, const RowGroup& group) {
  Blocks b;
  int64_t bytes = group.bytes;  // of one position of the axis
  for (; b.axis < group.axes; ++b.axis) {
    b.rows = group.lead[b.axis];
    bytes = ceil_div(bytes, b.rows);
    if (bytes <= kBlockBytes || b.axis == group.axes - 1) break;
    b.outer *= b.rows;
  }
  int64_t most = std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(bytes, 1), 1, b.rows);
  b.block = ceil_div(b.rows, ceil_div(b.rows, most));
  if (has_equal_parts(g, group)) {
    while (b.rows % b.block != 0) --b.block;
    if (b.block < most / 4) b.block = 0;
  }
  return b;
}

/// A group as a loop: where the loop's operands come from, and what of the old graph its outputs are.
struct Loop {
  RowLoop rows;
  std::vector<Edge> in;
  std::vector<Edge> out;
  std::string name;
};

class LoopMaker {
 public:
  LoopMaker(const Graph& g, const std::vector<View>& views, const RowGroup& group, std::vector<Edge> outputs)
      : g_(g), views_(views), group_(group), blocks_(choose_blocks(g, group)), outputs_(std::move(outputs)) {}

  /// False where the parts cannot run on fewer rows.
  bool make(Loop& loop) {
    if (blocks_.block == 0) return false;
    if (!slice(blocks_.block, loop.rows.body)) return false;
    if (int64_t left = blocks_.rows % blocks_.block; left && !slice(left, loop.rows.rest)) return false;
    loop.rows.outer = blocks_.outer;
    loop.rows.rows = blocks_.rows;
    loop.rows.block = blocks_.block;
    for (auto& [e, kind] : arguments_) {
      loop.in.push_back(e);
      loop.rows.in_step.push_back(kind == RowKind::rows ? row_bytes(g_.sig(e)) : 0);
    }
    for (Edge e : outputs_) {
      bool part = kind_of_output(g_, g_.at(e.node), group_.axes) == RowKind::part;
      if (part && g_.sig(e).rank() == kMaxRank) return false;  // one dimension more is needed for the blocks
      loop.rows.out_part.push_back(part);
      loop.rows.out_step.push_back(part ? 0 : row_bytes(g_.sig(e)));
    }
    loop.out = outputs_;
    loop.name = "rows";
    for (size_t i : group_.members)
      if (!is_view(views_, i)) loop.name += text(" ", std::string_view(g_.nodes[i].op->name));
    return loop.in.size() + loop.out.size() <= kMostOperands;
  }

 private:
  int64_t row_bytes(const Sig& s) const {
    int64_t bytes = size_of(s.dtype);
    for (int i = blocks_.axis + 1; i < s.rank(); ++i) bytes *= s.shape[i];
    return bytes;
  }
  Sig sliced(Sig s, int64_t rows) const {
    for (int i = 0; i < blocks_.axis; ++i) s.shape[i] = 1;
    s.shape[blocks_.axis] = rows;
    return s;
  }

  /// The members on a block of that many rows. The arguments are the same for every number of rows.
  bool slice(int64_t rows, Graph& body) {
    std::map<size_t, int32_t> made;
    arguments_.clear();
    std::map<std::pair<int32_t, int32_t>, Edge> given[2];
    auto argument = [&](Edge e, RowKind kind) {
      auto [at, fresh] = given[static_cast<int>(kind)].try_emplace({e.node, e.output});
      if (!fresh) return at->second;
      const GraphNode& from = g_.at(e.node);
      GraphNode n;
      n.kind = from.is_input() ? from.kind : GraphNode::Kind::argument;
      if (n.kind == GraphNode::Kind::constant && kind == RowKind::rows) n.kind = GraphNode::Kind::argument;
      if (n.kind == GraphNode::Kind::constant) n.value = from.value;
      n.name = from.name.empty() ? text("%", e.node) : from.name;
      n.out = {kind == RowKind::rows ? sliced(g_.sig(e), rows) : g_.sig(e)};
      bool is_argument = n.kind == GraphNode::Kind::argument;
      int32_t node = body.add(std::move(n));
      if (is_argument) {
        body.arguments.push_back(node);
        arguments_.push_back({e, kind});
      }
      return at->second = {node, 0};
    };
    for (size_t i : group_.members) {
      const GraphNode& old = g_.nodes[i];
      GraphNode n = old;
      for (size_t k = 0; k < n.in.size(); ++k) {
        if (!old.in[k].present()) continue;
        auto inside = made.find(static_cast<size_t>(old.in[k].node));
        n.in[k] = inside != made.end() ? Edge{inside->second, old.in[k].output}
                                       : argument(old.in[k], kind_of_input(g_, old, k, group_.lead, group_.axes));
      }
      if (!infer(body, n, rows, old)) return false;
      n.parts.clear();
      made[i] = body.add(std::move(n));
    }
    for (Edge e : outputs_) body.outputs.push_back({made.at(static_cast<size_t>(e.node)), e.output});
    body.forward_outputs = static_cast<int>(body.outputs.size());
    return true;
  }
  /// Gives the outputs of `n` their signatures; false where they are not those of a block of rows.
  bool infer(const Graph& body, GraphNode& n, int64_t rows, const GraphNode& old) const {
    if (n.op->pointwise()) {
      n.out[0] = sliced(n.out[0], rows);
      return true;
    }
    std::vector<Sig> in;
    for (Edge e : n.in) in.push_back(e.present() ? body.sig(e) : Sig());
    try {
      if (n.op->view) {
        Layout x;
        x.shape = in[0].shape;
        contiguous_strides(x.shape, x.strides);
        Layout y = n.op->view(n.attrs.data(), x);
        if (!y.possible) return false;
        n.out[0].shape = y.shape;
      } else {
        n.op->infer(n.attrs.data(), in, n.out);
      }
    } catch (const Error&) {  // its attributes name sizes, say
      return false;
    }
    bool part = kind_of_output(g_, old, group_.axes) == RowKind::part;
    for (size_t k = 0; k < n.out.size(); ++k) {
      if (n.out[k].dtype != old.out[k].dtype) return false;
      if (n.out[k].shape != (part ? old.out[k] : sliced(old.out[k], rows)).shape) return false;
    }
    return true;
  }

  const Graph& g_;
  const std::vector<View>& views_;
  const RowGroup& group_;
  Blocks blocks_;
  std::vector<Edge> outputs_;
  std::vector<std::pair<Edge, RowKind>> arguments_;
};

/// The graph with its groups replaced, in an order in which it can run.
class Fuser {
 public:
  explicit Fuser(Graph& g) : r_(g), views_(find_views(old())), in_loop_(old().nodes.size(), -1) {
    for (size_t i = 0; i < old().nodes.size(); ++i)
      for (Edge e : old().nodes[i].in)
        if (e.present()) readers_.insert({e.node, static_cast<int32_t>(i)});
    for (Edge e : old().outputs)
      if (e.present()) readers_.insert({e.node, -1});
  }

  Graph run() {
    for (RowGroup& group : find_row_groups(old(), views_)) add_loop(group);
    if (loops_.empty()) return keep_all();
    size_t begin = 0;
    for (size_t i = 0; i <= old().nodes.size(); ++i) {
      bool barrier =
          i == old().nodes.size() || has_effect(old().nodes[i]) || static_cast<int>(i) == old().forward_nodes;
      if (!barrier) continue;
      write_segment(begin, i);
      begin = i;
    }
    return r_.finish();
  }

 private:
  const Graph& old() const { return r_.old(); }

  Graph keep_all() {
    for (size_t i = 0; i < old().nodes.size(); ++i) r_.at(i), r_.keep(i);
    return r_.finish();
  }

  /// What others than the members read. A view is taken by them of the loop's result.
  std::vector<Edge> outputs_of(const RowGroup& group) const {
    std::set<size_t> members(group.members.begin(), group.members.end());
    std::set<std::pair<int32_t, int32_t>> wanted;
    auto outside = [&](int32_t reader) { return reader < 0 || !members.contains(static_cast<size_t>(reader)); };
    std::vector<Edge> out;
    for (size_t i : group.members) {
      bool read = false;
      for (auto at = readers_.lower_bound({static_cast<int32_t>(i), INT32_MIN});
           at != readers_.end() && at->first == static_cast<int32_t>(i); ++at)
        read |= outside(at->second);
      if (read && is_view(views_, i)) return {};  // rare: it is not worth a way of its own
      if (!read) continue;
      for (size_t k = 0; k < old().nodes[i].out.size(); ++k)
        out.push_back({static_cast<int32_t>(i), static_cast<int32_t>(k)});
    }
    return out;
  }
  /// Whether the group saves going to memory: several kernels, of which not all are one formula anyway.
  bool pays(const RowGroup& group, const std::vector<Edge>& out) const {
    int64_t least = setting_bytes(Setting::fuse_rows_bytes, kLeastBytes);
    size_t kernels = 0;
    for (size_t i : group.members) kernels += !is_view(views_, i);
    return kernels >= 2 && !out.empty() && out.size() < kernels + 1 && group.bytes >= least;
  }
  void add_loop(RowGroup group) {
    while (group.members.size() > 1) {
      std::vector<Edge> out = outputs_of(group);
      if (pays(group, out)) {
        Loop loop;
        if (LoopMaker(old(), views_, group, out).make(loop)) {
          for (size_t i : group.members) in_loop_[i] = static_cast<int>(loops_.size());
          loops_.push_back({group, std::move(loop)});
          return;
        }
      }
      group.members.pop_back();  // perhaps without the last one
    }
  }

  /// Writes nodes [begin, end), each loop as one node, as soon as what they read stands there.
  void write_segment(size_t begin, size_t end) {
    r_.at(begin);
    std::map<size_t, int> waits;                 // of a node, or the first member of a loop
    std::map<size_t, std::vector<size_t>> then;  // who waits for it
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    auto unit = [&](size_t i) {
      return in_loop_[i] < 0 ? i : loops_[static_cast<size_t>(in_loop_[i])].first.members[0];
    };
    std::set<std::pair<size_t, size_t>> edges;
    for (size_t i = begin; i < end; ++i) {
      waits.try_emplace(unit(i), 0);
      for (Edge e : old().nodes[i].in) {
        if (!e.present() || static_cast<size_t>(e.node) < begin) continue;
        size_t from = unit(static_cast<size_t>(e.node)), to = unit(i);
        if (from != to && edges.insert({from, to}).second) ++waits[to], then[from].push_back(to);
      }
    }
    for (auto& [i, count] : waits)
      if (count == 0) ready.push(i);
    while (!ready.empty()) {
      size_t i = ready.top();
      ready.pop();
      if (in_loop_[i] < 0) r_.keep(i);
      else write_loop(loops_[static_cast<size_t>(in_loop_[i])]);
      for (size_t next : then[i])
        if (--waits[next] == 0) ready.push(next);
    }
  }
  void write_loop(std::pair<RowGroup, Loop>& made) {
    auto& [group, loop] = made;
    const GraphNode& last = old().nodes[group.members.back()];
    GraphNode n;
    auto op = std::make_shared<OwnedOp>();
    op->name = loop.name;
    op->def.name = op->name.c_str();
    op->def.doc = "Several operators on a few rows at a time.";
    op->def.types = kAll;
    op->def.no_grad = "made after gradients";
    op->def.input_count = static_cast<int8_t>(loop.in.size());
    op->def.output_count = static_cast<int8_t>(loop.out.size());
    n.op = &op->def;
    n.owned = op;
    n.site = last.site;
    n.name = last.name;
    for (Edge e : loop.in) n.in.push_back(r_(e));
    for (size_t i : group.members)
      n.parts.insert(n.parts.end(), old().nodes[i].parts.begin(), old().nodes[i].parts.end());
    int64_t blocks = checked_mul(loop.rows.outer, loop.rows.blocks());
    for (size_t k = 0; k < loop.out.size(); ++k) {
      Sig s = old().sig(loop.out[k]);
      if (loop.rows.out_part[k]) s.shape.insert(0, blocks);
      n.out.push_back(s);
    }
    std::vector<Sig> made_out = n.out;
    std::vector<bool> part = loop.rows.out_part;
    n.loop = std::make_shared<RowLoop>(std::move(loop.rows));
    int32_t node = r_.made().add(std::move(n));
    for (size_t i : group.members) r_.replace(i, std::vector<Edge>(old().nodes[i].out.size()));
    for (size_t k = 0; k < loop.out.size(); ++k) {
      Edge at{node, static_cast<int32_t>(k)};
      if (part[k]) at = fold_parts(old().at(loop.out[k].node), at);
      r_.redirect(loop.out[k], at);
    }
  }
  /// The reduction of the results of all blocks.
  Edge fold_parts(const GraphNode& reduction, Edge parts) {
    GraphNode n = reduction;
    n.op->folds.over_first(n.attrs.data());
    n.in = {parts};
    return {r_.made().add(std::move(n)), 0};
  }

  Rewrite r_;
  std::vector<View> views_;
  std::set<std::pair<int32_t, int32_t>> readers_;  // (node, reader); -1: an output of the graph
  std::vector<int> in_loop_;
  std::vector<std::pair<RowGroup, Loop>> loops_;
};

}  // namespace

void fuse_rows(Graph& g) {
  if (g.keep < 1) return;  // memory counts more than time there, and a loop does not compute over its inputs
  g = Fuser(g).run();
}

}  // namespace twibil::passes
