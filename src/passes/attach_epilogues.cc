// SPDX-License-Identifier: Apache-2.0
#include "passes/attach_epilogues.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/compose_program.h"
#include "passes/rewrite.h"

namespace twibil::passes {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A formula that keeps one array between two numbers.
struct Clamp {
  Edge x;
  double low = -kInfinity, high = kInfinity;
};

/// What an instruction of a clamp can compute: a number, or the array between bounds.
struct Term {
  bool number = false;
  double value = 0;
  Clamp clamp;
};

class ClampReader {
 public:
  ClampReader(const Graph& g, const GraphNode& n) : g_(g), n_(n), p_(*n.op->program), params_(params_of(n)) {}

  std::optional<Clamp> read() {
    std::optional<Term> temps[kMaxTemps];
    std::optional<Term> last;
    for (int i = 0; i < p_.instruction_count; ++i) {
      const Instruction& step = p_.instructions[i];
      auto operand = [&](int k) -> std::optional<Term> {
        const Ref& r = step.operands[k];
        return r.kind == Ref::Kind::temp ? temps[r.index] : term(r);
      };
      last = combine(step.prim, operand(0), info_of(step.prim).arity > 1 ? operand(1) : std::nullopt);
      if (!last) return std::nullopt;
      temps[step.dst] = last;
    }
    return last && !last->number ? std::optional(last->clamp) : std::nullopt;
  }

 private:
  static Term number(double v) { return {true, v, {}}; }
  std::optional<Term> term(const Ref& r) const {
    switch (r.kind) {
      case Ref::Kind::param: return number(params_[r.index].as_double());
      case Ref::Kind::constant:
        if (p_.constants[r.index].kind != ProgramConstant::Kind::number) return std::nullopt;
        return number(p_.constants[r.index].number.as_double());
      case Ref::Kind::input: {
        Edge e = n_.in[p_.sources[r.index]];
        if (const GraphNode& from = g_.at(e.node); is_number(from)) return number(scalar_of(*from.value).as_double());
        return Term{false, 0, {e, -kInfinity, kInfinity}};
      }
      default: return std::nullopt;
    }
  }
  static std::optional<Term> combine(Prim prim, std::optional<Term> a, std::optional<Term> b) {
    if (prim == Prim::identity) return a;
    if ((prim != Prim::max && prim != Prim::min) || !a || !b || a->number == b->number) return std::nullopt;
    if (a->number) std::swap(a, b);
    if (b->value != b->value) return std::nullopt;
    auto bound = [&](double v) { return prim == Prim::max ? std::max(v, b->value) : std::min(v, b->value); };
    a->clamp.low = bound(a->clamp.low);
    a->clamp.high = bound(a->clamp.high);
    return a;
  }

  const Graph& g_;
  const GraphNode& n_;
  const Program& p_;
  std::vector<Scalar> params_;
};

class Attacher {
 public:
  explicit Attacher(Graph& g)
      : r_(g), readers_(count_readers(old())), last_(old().nodes.size(), -1), first_(old().nodes.size(), -1) {}

  Graph run() {
    hosts_.resize(old().nodes.size());
    for (size_t i = 0; i < old().nodes.size(); ++i) find(i);
    for (size_t i = 0; i < old().nodes.size(); ++i) {
      r_.at(i);
      int host = first_[i];
      if (host < 0) r_.keep(i);
      else if (last_[static_cast<size_t>(host)] == static_cast<int>(i)) keep_host(static_cast<size_t>(host), i);
    }
    return r_.finish();
  }

 private:
  const Graph& old() const { return r_.old(); }

  /// Begins a host at node i, or attaches the node to the host before it.
  void find(size_t i) {
    const GraphNode& n = old().nodes[i];
    if (n.kind != GraphNode::Kind::call || n.out.size() != 1) {
      if (n.kind == GraphNode::Kind::function || (n.kind == GraphNode::Kind::call && has_effect(n)))
        barrier_ = static_cast<int>(i);
      return;
    }
    if (has_effect(n)) barrier_ = static_cast<int>(i);
    if (n.op->epilogue.clamp || n.op->epilogue.as) {
      first_[i] = last_[i] = static_cast<int>(i);
      hosts_[i] = n;
      return;
    }
    if (!n.op->pointwise() || n.out[0].dtype != DType::float32 || n.work != DType::float32) return;
    if (n.op->program->is_single() && n.op->program->last().prim == Prim::add && n.op->program->input_count == 2) {
      Edge a = n.in[n.op->program->sources[0]], b = n.in[n.op->program->sources[1]];
      // The later one: its host can wait for the other.
      if (b.node < a.node) std::swap(a, b);
      if (!add(i, b, a)) add(i, a, b);
      return;
    }
    if (std::optional<Clamp> c = ClampReader(old(), n).read(); c && c->x.present()) {
      int host = open_host(i, c->x);
      if (host < 0) return;
      GraphNode& made = hosts_[static_cast<size_t>(host)];
      if (made.op->epilogue.as) convert(made);
      made.op->epilogue.clamp(made.attrs.data(), c->low, c->high);
      attach(i, host);
    }
  }
  /// The same call by the operator that has the epilogue.
  static void convert(GraphNode& n) {
    const Epilogue& e = n.op->epilogue;
    const auto* defaults = static_cast<const std::byte*>(e.as->attrs.defaults);
    AttrBytes attrs(defaults, defaults + e.as->attrs.size);
    NeedsMask dropped = e.convert(n.attrs.data(), attrs.data());
    for (size_t k = 0; k < n.in.size(); ++k)
      if (dropped >> k & 1) n.in[k] = Edge();
    n.op = e.as;
    n.attrs = std::move(attrs);
  }
  /// The host whose result so far is e and nobody else's, or -1.
  int open_host(size_t i, Edge e) const {
    int host = e.output == 0 ? first_[static_cast<size_t>(e.node)] : -1;
    if (host < 0 || last_[static_cast<size_t>(host)] != e.node || barrier_ > host) return -1;
    const Sig &from = old().sig(e), &to = old().nodes[i].out[0];
    bool alone = readers_[static_cast<size_t>(e.node)][0] == 1;
    return alone && from.shape == to.shape && from.dtype == to.dtype ? host : -1;
  }
  bool add(size_t i, Edge e, Edge addend) {
    int host = open_host(i, e);
    if (host < 0 || addend == e) return false;
    GraphNode& n = hosts_[static_cast<size_t>(host)];
    const Epilogue& can = n.op->epilogue;
    const Sig& sig = old().sig(addend);
    if (can.addend < 0 || !can.adds(n.attrs.data()) || sig.dtype != n.out[0].dtype || sig.shape != n.out[0].shape ||
        old().at(addend.node).kind == GraphNode::Kind::shape)
      return false;
    auto slot = static_cast<size_t>(can.addend);
    if (n.in.size() <= slot) n.in.resize(slot + 1);
    if (n.in[slot].present()) return false;
    n.in[slot] = addend;
    attach(i, host);
    return true;
  }
  void attach(size_t i, int host) {
    GraphNode& n = hosts_[static_cast<size_t>(host)];
    const GraphNode& now = old().nodes[i];
    n.parts.insert(n.parts.end(), now.parts.begin(), now.parts.end());
    first_[i] = host;
    last_[static_cast<size_t>(host)] = static_cast<int>(i);
  }

  /// The host in the place of the last node that was attached to it.
  void keep_host(size_t host, size_t at) {
    GraphNode n = hosts_[host];
    for (Edge& e : n.in) e = r_(e);
    int32_t made = r_.keep(host, std::move(n));
    if (at != host) r_.replace(at, {Edge{made, 0}});
  }

  Rewrite r_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> last_;   // of a host: the last node in it
  std::vector<int> first_;  // of each node: its host
  std::vector<GraphNode> hosts_;
  int barrier_ = -1;  // the last node that writes what others read: a host does not move over it
};

}  // namespace

void attach_epilogues(Graph& g) {
  if (g.forward_nodes < 0) g = Attacher(g).run();
}

}  // namespace twibil::passes
