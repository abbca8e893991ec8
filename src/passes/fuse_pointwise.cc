// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse_pointwise.h"

#include <algorithm>
#include <climits>
#include <queue>
#include <unordered_map>

#include "ir/compose_program.h"
#include "passes/rewrite.h"
#include "passes/views.h"

namespace twibil::passes {

namespace {

constexpr int kMostArguments = 14;  // an OpDef has that many slots
constexpr const char* kArgumentNames[kMostArguments] = {"x0", "x1", "x2", "x3",  "x4",  "x5",  "x6",
                                                        "x7", "x8", "x9", "x10", "x11", "x12", "x13"};

bool is_pointwise(const GraphNode& n) {
  return n.kind == GraphNode::Kind::call && n.op->pointwise() && n.out.size() == 1;
}
/// Only truth values inside: it runs in any working dtype.
bool works_on_masks(const Program& p) {
  for (int i = 0; i < p.instruction_count; ++i) {
    const PrimInfo& info = info_of(p.instructions[i].prim);
    if (!info.mask_result || !info.mask_operands) return false;
  }
  return true;
}

struct Group {
  std::vector<size_t> members;  // the last reader first
  DType work = kUnknownDType;
  int instructions = 0, constants = 0;
};

class Fuser {
 public:
  explicit Fuser(Graph& g) : r_(g), readers_(old().nodes.size()), root_(old().nodes.size(), -1) {
    std::vector<View> views = find_views(old());
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      const GraphNode& n = old().nodes[i];
      for (Edge e : n.in)
        if (e.present()) readers_[static_cast<size_t>(e.node)].push_back(static_cast<int>(i));
      for (int k = 0; k < static_cast<int>(n.out.size()); ++k)
        if (int u = updated_input(n, k); u >= 0 && n.in[static_cast<size_t>(u)].present())
          writes_.push_back({root_of(views, n.in[static_cast<size_t>(u)]), i});
    }
    for (Edge e : old().outputs)
      if (e.present()) readers_[static_cast<size_t>(e.node)].push_back(INT_MAX);
    views_ = std::move(views);
  }

  Graph run() {
    for (size_t i = old().nodes.size(); i-- > 0;)
      if (is_pointwise(old().nodes[i]) && root_[i] < 0) grow(i);
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      r_.at(i);
      auto made = fused_.find(i);
      if (made != fused_.end()) keep_fused(i, made->second);
      else if (root_[i] < 0 || root_[i] == static_cast<int>(i)) r_.keep(i);
    }
    return r_.finish();
  }

 private:
  struct Fused {
    std::shared_ptr<const OwnedOp> op;
    std::vector<Edge> in;  // of the old graph
    DType work;
    std::vector<int32_t> parts;  // for people who look at it
  };
  const Graph& old() const { return r_.old(); }
  const Program& program(size_t i) const { return *old().nodes[i].op->program; }
  bool in_forward(size_t i) const { return static_cast<int>(i) < old().forward_nodes; }

  void grow(size_t root) {
    Group group;
    std::priority_queue<size_t> candidates;  // late nodes first, so that all readers of a node come before it
    auto add = [&](size_t i) {
      group.members.push_back(i);
      root_[i] = static_cast<int>(root);
      group.instructions += program(i).instruction_count + 2;  // two for changes between numbers and truth values
      group.constants += program(i).constant_count + program(i).param_count + numbers_of(old().nodes[i]);
      if (!works_on_masks(program(i))) group.work = old().nodes[i].work;
      for (int k = 0; k < program(i).input_count; ++k)
        candidates.push(static_cast<size_t>(old().nodes[i].in[program(i).sources[k]].node));
    };
    add(root);
    while (!candidates.empty()) {
      size_t i = candidates.top();
      candidates.pop();
      if (root_[i] < 0 && may_join(i, group, root)) add(i);
    }
    while (group.members.size() > 1 && !compose(group, root)) {
      root_[group.members.back()] = -1;  // too long: without the earliest
      group.members.pop_back();
    }
  }

  bool may_join(size_t i, const Group& group, size_t root) const {
    const GraphNode &n = old().nodes[i], &last = old().nodes[root];
    if (!is_pointwise(n) || n.out[0].shape != last.out[0].shape || in_forward(i) != in_forward(root)) return false;
    bool all_inside = std::ranges::all_of(readers_[i], [&](int reader) {
      return reader != INT_MAX && root_[static_cast<size_t>(reader)] == static_cast<int>(root);
    });
    if (!all_inside) return false;
    // What it hands over must be what its readers would load: the working dtype itself, or a truth value.
    bool free_of_dtype = works_on_masks(program(i));
    bool truth = program(i).mask_output() && n.out[0].dtype == DType::bool_;
    if (!truth && (program(i).mask_output() || n.out[0].dtype != n.work)) return false;
    if (!free_of_dtype && group.work != kUnknownDType && n.work != group.work) return false;
    if (group.instructions + program(i).instruction_count + 2 > kMaxInstructions) return false;
    if (group.constants + program(i).constant_count + program(i).param_count + numbers_of(n) > kMaxConstants)
      return false;
    return !written_between(n, i, root);
  }
  int numbers_of(const GraphNode& n) const {
    int count = 0;
    for (Edge e : n.in) count += e.present() && is_number(old().at(e.node));
    return count;
  }
  /// Whether an input of node i gets another state before node `root` runs.
  bool written_between(const GraphNode& n, size_t i, size_t root) const {
    return std::ranges::any_of(writes_, [&](const auto& w) {
      return w.second > i && w.second < root &&
             std::ranges::any_of(n.in, [&](Edge e) { return e.present() && root_of(views_, e) == w.first; });
    });
  }

  /// Makes the program of a group; false when it is too long.
  bool compose(const Group& group, size_t root) {
    std::vector<size_t> members = group.members;
    std::ranges::sort(members);
    Fused f;
    f.work = group.work == kUnknownDType ? old().nodes[root].work : group.work;
    auto op = std::make_shared<OwnedOp>();
    op->name = "fused";
    std::unordered_map<size_t, formula::Id> values;
    std::vector<std::pair<Edge, bool>> arguments;
    try {
      Composer c;
      auto value_of = [&](Edge e, bool as_mask) {
        auto inside = values.find(static_cast<size_t>(e.node));
        if (inside != values.end()) return as_mask ? c.as_mask(inside->second) : c.as_value(inside->second);
        if (const GraphNode& from = old().at(e.node); !as_mask && is_number(from))
          return c.number(scalar_of(*from.value));
        auto known = std::ranges::find(arguments, std::pair(e, as_mask));
        auto index = static_cast<int>(known - arguments.begin());
        if (known == arguments.end()) arguments.push_back({e, as_mask});
        return c.argument(index, as_mask);
      };
      for (size_t i : members) {
        const GraphNode& n = old().nodes[i];
        const Program& p = *n.op->program;
        formula::Id in[kMaxInputs];
        for (int k = 0; k < p.input_count; ++k) in[k] = value_of(n.in[p.sources[k]], p.reads_mask(k));
        std::vector<Scalar> params = params_of(n);
        values[i] = c.apply(p, {in, p.input_count}, params);
        op->name += text(" ", std::string_view(n.op->name));
        f.parts.insert(f.parts.end(), n.parts.begin(), n.parts.end());
      }
      if (static_cast<int>(arguments.size()) > kMostArguments) return false;
      op->program = c.finish(values[root]);
    } catch (const Error&) {
      return false;
    }
    if (!op->program.runs_in(f.work)) return false;
    for (auto& [e, mask] : arguments) f.in.push_back(e);
    describe(*op, static_cast<int>(arguments.size()));
    f.op = std::move(op);
    fused_[root] = std::move(f);
    return true;
  }
  static void describe(OwnedOp& op, int arguments) {
    OpDef& d = op.def;
    d.name = op.name.c_str();
    d.doc = "Several pointwise operators in one.";
    d.program = &op.program;
    d.types = kAll;
    d.no_grad = "made after gradients";
    for (int i = 0; i < arguments; ++i) d.in[static_cast<size_t>(i)].name = kArgumentNames[i];
    d.input_count = static_cast<int8_t>(arguments);
  }

  void keep_fused(size_t root, const Fused& f) {
    GraphNode n = old().nodes[root];
    n.owned = f.op;
    n.op = &f.op->def;
    n.work = f.work;
    n.parts = f.parts;
    n.attrs.clear();
    n.in.clear();
    for (Edge e : f.in) n.in.push_back(r_(e));
    r_.keep(root, std::move(n));
  }

  Rewrite r_;
  std::vector<std::vector<int>> readers_;  // nodes; INT_MAX: an output of the graph
  std::vector<int> root_;                  // of each node: the last node of its group
  std::vector<View> views_;
  std::vector<std::pair<Edge, size_t>> writes_;  // what is written by which node
  std::unordered_map<size_t, Fused> fused_;
};

}  // namespace

void fuse_pointwise(Graph& g) { g = Fuser(g).run(); }

}  // namespace twibil::passes
