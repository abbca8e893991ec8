// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify.h"

#include <map>

#include "ir/apply.h"
#include "ir/compose_program.h"
#include "ir/modes.h"
#include "ir/trace.h"
#include "passes/rewrite.h"
#include "passes/views.h"

namespace twibil::passes {

namespace {

bool same(const Sig& a, const Sig& b) { return a.dtype == b.dtype && a.shape == b.shape && !a.weak && !b.weak; }

class Simplify {
 public:
  explicit Simplify(Graph& g) : r_(g), views_(find_views(r_.old())) {}

  Graph run() {
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      r_.at(i);
      Edge by = replacement(i);
      if (by.present()) {
        r_.replace(i, {by});
        continue;
      }
      GraphNode n = old().nodes[i];
      bool pointwise = n.kind == GraphNode::Kind::call && n.op->pointwise();
      for (Edge& e : n.in)
        if (e.present()) e = pointwise ? r_(unspread(e)) : r_(e);
      if (pointwise)
        for (Edge& e : n.in)
          if (e.present()) e = as_number(e);
      r_.keep(i, std::move(n));
    }
    return r_.finish();
  }

 private:
  const Graph& old() const { return r_.old(); }
  const Graph& made() { return r_.made(); }

  /// What stands for output 0 of node i in the new graph, or no edge.
  Edge replacement(size_t i) {
    const GraphNode& n = old().nodes[i];
    if (n.kind != GraphNode::Kind::call || n.out.size() != 1) return {};
    const Sig& out = n.out[0];
    if (is_view(views_, i)) {
      const View& v = views_[i];
      return same(old().sig(v.root), out) && v.row_major && v.layout.offset == 0 ? r_(v.root) : Edge();
    }
    if (n.op->keeps && same(old().sig(n.in[0]), out) && is_plain(n.in[0])) return r_(n.in[0]);
    if (n.op->pointwise()) {
      int argument = argument_kept(n);
      if (argument >= 0) {
        Edge x = n.in[n.op->program->sources[argument]];
        if (same(old().sig(x), out) && is_plain(x)) return r_(x);
      }
      Edge x = undone(n);
      if (x.present() && same(old().sig(x), out) && is_plain(x)) return r_(x);
    }
    return {};
  }
  /// Not a shape, and in row-major order: readers may add up in the order of memory.
  bool is_plain(Edge e) const {
    return old().at(e.node).kind != GraphNode::Kind::shape &&
           (e.output != 0 || views_[static_cast<size_t>(e.node)].row_major);
  }

  /// The argument that the formula comes out as once numbers are put in, or -1.
  int argument_kept(const GraphNode& n) const {
    Composer c(Composer::Rules::simplify);
    return c.is_argument(applied(c, n, [&](int k) { return c.argument(k, n.op->program->reads_mask(k)); }));
  }
  /// What a unary formula of a unary formula comes out as: -(-x) is x.
  Edge undone(const GraphNode& n) const {
    const Program& p = *n.op->program;
    if (p.input_count != 1 || p.instruction_count != 1 || p.reads_mask(0) != false) return {};
    const GraphNode& from = old().at(n.in[p.sources[0]].node);
    if (from.kind != GraphNode::Kind::call || !from.op->pointwise() || from.op->program->input_count != 1 ||
        from.op->program->instruction_count != 1 || from.work != n.work || from.out[0].dtype != n.out[0].dtype ||
        from.op->program->reads_mask(0) || from.op->program->mask_output() || n.out[0].dtype != n.work)
      return {};
    Composer c(Composer::Rules::simplify);
    formula::Id inner = applied(c, from, [&](int k) { return c.argument(k, false); });
    formula::Id outer = applied(c, n, [&](int) { return inner; });
    return c.is_argument(outer) == 0 ? from.in[from.op->program->sources[0]] : Edge();
  }
  template <class F> formula::Id applied(Composer& c, const GraphNode& n, F&& other_inputs) const {
    const Program& p = *n.op->program;
    formula::Id in[kMaxInputs];
    for (int k = 0; k < p.input_count; ++k) {
      const GraphNode& from = old().at(n.in[p.sources[k]].node);
      in[k] = !p.reads_mask(k) && is_number(from) ? c.number(scalar_of(*from.value)) : other_inputs(k);
    }
    std::vector<Scalar> params = params_of(n);
    return c.apply(p, {in, p.input_count}, params);
  }

  /// The value that a pointwise reader can broadcast by itself.
  Edge unspread(Edge e) const {
    while (true) {
      const GraphNode& n = old().at(e.node);
      bool spreads = n.kind == GraphNode::Kind::call && n.op->role == Role::broadcast_like && n.in[0].present() &&
                     old().sig(n.in[0]).dtype == n.out[0].dtype && !old().sig(n.in[0]).weak;
      if (!spreads || old().at(n.in[0].node).kind == GraphNode::Kind::shape) return e;
      e = n.in[0];
    }
  }
  /// A number in place of an array of zeros or ones.
  Edge as_number(Edge e) {
    const GraphNode& n = made().at(e.node);
    if (n.kind != GraphNode::Kind::call || (n.op->role != Role::zeros_like && n.op->role != Role::ones_like) ||
        n.out[0].shape.size() <= 1)
      return e;
    auto [place, fresh] = numbers_.try_emplace({n.op->role, n.out[0].dtype});
    if (fresh) {
      TraceScope runs(nullptr);
      ModeScope quiet(false, false);
      Val like = Val::adopt(new_value(n.out[0].dtype, {}));
      GraphNode c;
      c.kind = GraphNode::Kind::constant;
      c.out = {Sig{Shape(), n.out[0].dtype}};
      c.value = apply(*n.op, n.op->attrs.defaults, {like});
      place->second = {r_.made().add(std::move(c)), 0};
    }
    return place->second;
  }

  Rewrite r_;
  std::vector<View> views_;
  std::map<std::pair<Role, DType>, Edge> numbers_;
};

}  // namespace

void simplify(Graph& g) { g = Simplify(g).run(); }

}  // namespace twibil::passes
