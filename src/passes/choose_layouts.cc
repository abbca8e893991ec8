// SPDX-License-Identifier: Apache-2.0
#include "passes/choose_layouts.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ir/compose_program.h"
#include "ir/graph_tracer.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "passes/fixed_values.h"
#include "passes/layout_cut.h"
#include "passes/rewrite.h"

namespace twibil::passes {

namespace {

bool is_picture(const Sig& s) { return s.dtype == DType::float32 && s.rank() == 4 && s.shape.size() > 0; }

/// Whether the primitive gives numbers for all numbers, so that what fills a last block stays finite. (What grows
/// without end does so in the real channels too.)
bool is_total(Prim p) {
  switch (p) {
    case Prim::identity:
    case Prim::add:
    case Prim::sub:
    case Prim::mul:
    case Prim::max:
    case Prim::min:
    case Prim::fmax:
    case Prim::fmin:
    case Prim::neg:
    case Prim::abs:
    case Prim::sign:
    case Prim::floor:
    case Prim::ceil:
    case Prim::trunc:
    case Prim::rint:
    case Prim::round:
    case Prim::sigmoid:
    case Prim::sin:
    case Prim::cos:
    case Prim::atan:
    case Prim::tanh:
    case Prim::erf:
    case Prim::eq:
    case Prim::ne:
    case Prim::lt:
    case Prim::le:
    case Prim::gt:
    case Prim::ge:
    case Prim::logical_and:
    case Prim::logical_or:
    case Prim::logical_xor:
    case Prim::logical_not:
    case Prim::from_mask:
    case Prim::fma:
    case Prim::select: return true;
    default: return false;
  }
}
bool is_total(const Program& p) {
  return std::all_of(p.instructions, p.instructions + p.instruction_count, [](const Instruction& i) {
    return is_total(i.prim) || (i.prim == Prim::div && i.operands[1].is_scalar());
  });
}

class Layouts {
 public:
  explicit Layouts(Graph& g) : r_(g), fixed_(find_fixed(old())), plans_(old().nodes.size()) {}

  Graph run() {
    bool any = false;
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      plans_[i] = plan(i);
      any |= plans_[i].possible && plans_[i].gain > 0;
    }
    if (any) choose();
    else blocks_.assign(old().nodes.size(), false);
    in_blocks_.resize(old().nodes.size());
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      r_.at(i);
      if (blocks_[i]) compute_in_blocks(i);
      else keep_plain(i);
    }
    for (Edge e : old().outputs) need_plain(e);
    return r_.finish();
  }

 private:
  const Graph& old() const { return r_.old(); }
  const GraphNode& node(size_t i) const { return old().nodes[i]; }
  bool is_fixed(Edge e) const { return fixed_[static_cast<size_t>(e.node)]; }

  // ---- what could be in blocks ----

  BlockedPlan plan(size_t i) const {
    const GraphNode& n = node(i);
    bool may = n.kind == GraphNode::Kind::call && !fixed_[i] && !n.training && is_picture(n.out[0]) && !has_effect(n);
    if (!may) return {};
    if (n.op->pointwise()) return formula_plan(n);
    if (!n.op->blocked.plan) return {};
    std::vector<Sig> in = sigs_of(n);
    BlockedPlan plan = n.op->blocked.plan(n.attrs.data(), query(in, n.out));
    for (size_t k = 0; k < n.in.size(); ++k) {
      if (!n.in[k].present()) continue;
      bool must_be_fixed = k < 16 && (plan.fixed >> k & 1);
      plan.possible &= !must_be_fixed || is_fixed(n.in[k]);
      plan.possible &= old().at(n.in[k].node).kind != GraphNode::Kind::shape;
    }
    plan.possible &= only_first_output_is_read(i);
    return plan;
  }
  std::vector<Sig> sigs_of(const GraphNode& n) const {
    std::vector<Sig> in;
    for (Edge e : n.in) in.push_back(e.present() ? old().sig(e) : Sig());
    if (n.op->inputs() > 0 && !n.op->variadic()) in.resize(static_cast<size_t>(n.op->inputs()));
    return in;
  }
  BlockedQuery query(SigsIn in, SigsIn out) const { return {in, out, old().exact, old().autotune}; }
  bool only_first_output_is_read(size_t i) const {
    if (node(i).out.size() == 1) return true;
    auto more = [&](Edge e) { return e.node == static_cast<int32_t>(i) && e.output > 0; };
    return std::ranges::none_of(old().outputs, more) &&
           std::ranges::none_of(old().nodes, [&](const GraphNode& n) { return std::ranges::any_of(n.in, more); });
  }

  /// A formula of pictures of one shape, of numbers, and of what is the same for all pixels.
  BlockedPlan formula_plan(const GraphNode& n) const {
    BlockedPlan plan;
    const Shape& y = n.out[0].shape;
    if (n.work != DType::float32 || n.in.size() > 15) return plan;
    if (y[1] % 16 != 0 && !is_total(*n.op->program)) return plan;
    for (size_t k = 0; k < n.in.size(); ++k) {
      if (!n.in[k].present()) continue;
      const Sig& x = old().sig(n.in[k]);
      if (old().at(n.in[k].node).kind == GraphNode::Kind::shape) return plan;
      if (x.shape.size() == 1) continue;
      if (x.dtype != DType::float32 || x.rank() < 3 || x.rank() > 4 || x.shape[x.rank() - 3] != y[1]) return plan;
      plan.inputs |= X(static_cast<int>(k));
    }
    plan.possible = plan.inputs != 0;
    return plan;
  }

  // ---- the choice ----

  void choose() {
    int n = static_cast<int>(old().nodes.size());
    LayoutCut cut(n + 1);  // the last one stands for what is plain in any case: results, and readers of plain inputs
    cut.cost_of_blocks(n, LayoutCut::kForbidden);
    std::vector<std::vector<int>> readers(old().nodes.size());  // of output 0
    for (int i = 0; i < n; ++i) {
      const BlockedPlan& p = plans_[static_cast<size_t>(i)];
      if (!p.possible) cut.cost_of_blocks(i, LayoutCut::kForbidden);
      else cut.cost_of_plain(i, std::max(p.gain, 1.0));  // at equal costs in blocks, beside a convolution
      const GraphNode& reader = old().at(i);
      for (size_t k = 0; k < reader.in.size(); ++k) {
        if (Edge e = reader.in[k]; e.present() && e.output == 0 && is_picture(old().sig(e)) && !is_fixed(e))
          readers[static_cast<size_t>(e.node)].push_back(p.possible && p.reads(static_cast<int>(k)) ? i : n);
      }
    }
    for (Edge e : old().outputs)
      if (e.present() && e.output == 0) readers[static_cast<size_t>(e.node)].push_back(n);
    for (int i = 0; i < n; ++i) {
      auto& list = readers[static_cast<size_t>(i)];
      std::ranges::sort(list);
      list.erase(std::unique(list.begin(), list.end()), list.end());
      if (!list.empty())
        cut.value(i, list, 8.0 * static_cast<double>(old().nodes[static_cast<size_t>(i)].out[0].shape.size()));
    }
    blocks_ = cut.solve();
  }

  // ---- the new graph ----

  /// Where a value of the old graph stands in blocks.
  Edge in_blocks(Edge e) {
    Edge& place = in_blocks_[static_cast<size_t>(e.node)].emplace(e.output, Edge()).first->second;
    if (!place.present()) place = convert(Role::to_blocks, r_(e), {});
    return place;
  }
  /// Sees to it that readers of plain arrays find the value.
  void need_plain(Edge e) {
    if (!e.present() || r_(e).present()) return;
    struct {
      int64_t channels;
    } attrs{old().sig(e).shape[1]};
    AttrBytes bytes(sizeof attrs);
    std::memcpy(bytes.data(), &attrs, sizeof attrs);
    r_.redirect(e, convert(Role::from_blocks, in_blocks_[static_cast<size_t>(e.node)].at(e.output), std::move(bytes)));
  }
  Edge convert(Role role, Edge from, AttrBytes attrs) {
    GraphNode n;
    n.op = &op_with_role(role);
    n.attrs = std::move(attrs);
    TW_ASSERT(n.attrs.size() == n.op->attrs.size);
    n.in = {from};
    n.out.resize(1);
    std::vector<Sig> in{r_.made().sig(from)};
    n.op->infer(n.attrs.data(), in, n.out);
    return {r_.made().add(std::move(n)), 0};
  }

  void keep_plain(size_t i) {
    for (Edge e : node(i).in) need_plain(e);
    r_.keep(i);
  }

  void compute_in_blocks(size_t i) {
    const GraphNode& n = node(i);
    std::vector<Edge> in;
    for (size_t k = 0; k < n.in.size(); ++k) {
      Edge e = n.in[k];
      if (e.present() && plans_[i].reads(static_cast<int>(k))) {
        in.push_back(in_blocks(e));
      } else {
        need_plain(e);
        in.push_back(r_(e));
      }
    }
    Edge made = n.op->pointwise() ? add_formula(i, std::move(in)) : add_blocked(i, in);
    r_.replace(i, std::vector<Edge>(n.out.size()));
    in_blocks_[i][0] = made;
  }

  Edge add_formula(size_t i, std::vector<Edge> in) {
    GraphNode n = node(i);
    const Shape& x = n.out[0].shape;
    n.in = std::move(in);
    n.out[0].shape = Shape{(x[1] + 15) / 16, x[0], x[2], x[3], 16};
    return {r_.made().add(std::move(n)), 0};
  }
  Edge add_blocked(size_t i, const std::vector<Edge>& in) {
    const GraphNode& n = node(i);
    size_t first = r_.made().nodes.size();
    GraphTracer made(r_.made());
    made.site = n.site;
    made.name = n.name;
    TraceScope scope(&made);
    ModeScope quiet(false, false);
    std::vector<Val> values;
    for (Edge e : in) values.push_back(e.present() ? made.value_of(e) : Val());
    std::vector<Sig> sigs = sigs_of(n);
    values.resize(sigs.size());
    Val y = n.op->blocked.compute(n.attrs.data(), query(sigs, n.out), values);
    Edge result = edge_of(*y);
    for (size_t k = first; k < r_.made().nodes.size(); ++k) r_.made().nodes[k].parts = n.parts;
    return result;
  }

  Rewrite r_;
  std::vector<bool> fixed_;
  std::vector<BlockedPlan> plans_;
  std::vector<bool> blocks_;                                  // of each node: the choice
  std::vector<std::unordered_map<int32_t, Edge>> in_blocks_;  // of each node's outputs: where they stand in blocks
};

}  // namespace

void choose_layouts(Graph& g) {
  if (g.forward_nodes < 0) g = Layouts(g).run();  // with a backward part it belongs to training
}

}  // namespace twibil::passes
