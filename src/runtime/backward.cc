// SPDX-License-Identifier: Apache-2.0
#include "runtime/backward.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/profile.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "runtime/eager.h"

namespace twibil {

namespace {

struct CastLike {  // the attributes of the operator with the cast role begin so
  DType dtype;
};

Val cast_to(const Val& v, DType dtype) {
  const OpDef& op = op_with_role(Role::cast);
  TW_ASSERT(op.attrs.size == sizeof(CastLike));
  return apply(op, CastLike{dtype}, {v});
}
Val role1(Role role, const Val& x) { return apply(op_with_role(role), {x}); }
Val role2(Role role, const Val& x, const Val& y) { return apply(op_with_role(role), {x, y}); }

bool same_shape(const Value& a, const Value& b) { return std::ranges::equal(a.shape(), b.shape()); }

[[noreturn]] void consumed_error(const Node& n) {
  throw_error(
      ErrorKind::runtime,
      text("backward: what ", n.name(),
           " had kept was released by an earlier backward; say retain_graph=True there to go through it twice"));
}
[[noreturn]] void overwritten_error(const Node& n, const char* which) {
  throw_error(
      ErrorKind::runtime,
      text("backward: the gradient of ", n.name(), " reads its ", which,
           ", which was overwritten in place after it was computed. Use a copy, or write before the operation"));
}

/// The view of one node that a gradient rule gets.
class EagerGrad final : public Grad {
 public:
  EagerGrad(Node& n, Val* dy, bool linked) : node_(n), dy_(dy), linked_(linked) {}

  Val x(int i) const override {
    if (i >= node_.inputs) return nullptr;
    NodeInput& in = node_.in()[i];
    if (!in.present) return nullptr;
    if (in.like_output) return Val::adopt(new_ghost(*node_.out()[0].value));
    if (!in.value) consumed_error(node_);
    if (in.overwritten) overwritten_error(node_, node_.op->in[std::min(i, node_.op->inputs() - 1)].name);
    if (in.value->has(kGhost)) return Val::share(in.value);
    if (in.version != in.value->root->version)
      overwritten_error(node_, node_.op->in[std::min(i, node_.op->inputs() - 1)].name);
    // The value may have been given another node since (an in-place operation): the edge is what was recorded.
    if (linked_ && in.node && (in.value->node != in.node || in.value->node_output != in.output)) {
      Val alias = Val::adopt(new_alias(*in.value));
      link(alias.get(), in.node, in.output);
      return alias;
    }
    return Val::share(in.value);
  }
  Val y(int k) const override {
    NodeOutput& out = node_.out()[k];
    if (!out.value) consumed_error(node_);
    bool read = node_.op->needs & Y(k);
    if (!read) return Val::adopt(new_ghost(*out.value));
    if (out.overwritten || out.version != out.value->root->version) overwritten_error(node_, "output");
    if (!out.kept) return Val::share(out.value);
    Val alias = Val::adopt(new_alias(*out.value));
    if (linked_ && k < node_.op->visible_outputs()) link(alias.get(), &node_, static_cast<uint32_t>(k));
    return alias;
  }
  Val dy(int k) const override {
    if (dy_[k]) return dy_[k];
    return role1(Role::zeros_like, Val::adopt(new_ghost(*node_.out()[k].value)));
  }
  bool has_dy(int k) const override { return static_cast<bool>(dy_[k]); }
  bool wants(int i) const override { return i < node_.inputs && node_.in()[i].node != nullptr; }
  int inputs() const override { return node_.inputs; }
  bool training() const override { return node_.training; }
  RandomKey key() const override { return node_.key; }

 private:
  static void link(Value* v, Node* n, uint32_t output) {
    v->node = share(n);
    v->node_output = output;
  }
  Node& node_;
  Val* dy_;
  bool linked_;
};

/// One pass over the reachable part of the tape.
class Pass {
 public:
  Pass(const BackwardOptions& options) : options_(options) {
    static std::atomic<uint64_t> passes{1};
    mark_ = passes.fetch_add(1, std::memory_order_relaxed);
  }
  ~Pass() {
    for (Node* n : nodes_) {
      if (owns(n)) n->mark.store(0, std::memory_order_release);
      release(n);
    }
  }

  void reach(Node* head) {
    std::vector<Node*> stack;
    visit(head, stack);
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (int i = 0; i < n->inputs; ++i)
        if (Node* from = n->in()[i].node) visit(from, stack);
    }
  }
  bool reached(const Node* n) const { return owns(n) || (!lent_.empty() && lent_.contains(n)); }

  void add(Node* n, uint32_t output, Val dx) {
    Val& place = grads_[place_of(n, output)];
    place = place ? role2(Role::accumulate, place, dx) : std::move(dx);
  }

  /// `deliver(leaf, gradient)` is called for each leaf.
  template <class Deliver> void run(Deliver&& deliver) {
    std::sort(nodes_.begin(), nodes_.end(), [](Node* a, Node* b) { return a->sequence > b->sequence; });
    for (Node* n : nodes_) {
      Val* dy = &grads_[place_of(n, 0)];
      bool any = false;
      for (int k = 0; k < width(n); ++k) any |= static_cast<bool>(dy[k]);
      if (!any) continue;
      if (n->is_leaf()) {
        deliver(n, dy[0]);
      } else {
        step(n, dy);
        if (!options_.retain_graph) n->consumed = true, forget_saved(n);
      }
      if (!keep_) std::fill(dy, dy + width(n), Val());
    }
  }
  /// The gradient that arrived at output k of n, for grad() with respect to values inside the tape.
  void keep_gradients() { keep_ = true; }
  Val gradient_of(const Node* n, uint32_t output) { return grads_[place_of(n, output)]; }

 private:
  static int width(const Node* n) { return std::max<int>(n->outputs, 1); }

  // Two passes may meet in a node, as in a parameter that several threads use: a thread may lose the interpreter's lock
  // in the middle of its pass. The first has the node, the second notes its own place elsewhere.
  bool owns(const Node* n) const { return n->mark.load(std::memory_order_relaxed) == mark_; }
  bool claim(Node* n) {
    uint64_t none = 0;
    if (!counts_are_plain) return n->mark.compare_exchange_strong(none, mark_, std::memory_order_acquire);
    if (n->mark.load(std::memory_order_relaxed) != 0) return false;
    n->mark.store(mark_, std::memory_order_relaxed);
    return true;
  }
  size_t place_of(const Node* n, uint32_t output) const {
    return static_cast<size_t>(owns(n) ? n->slot : lent_.at(n)) + output;
  }

  void visit(Node* n, std::vector<Node*>& stack) {
    if (reached(n)) return;
    if (n->consumed) consumed_error(*n);
    const auto place = static_cast<int64_t>(grads_.size());
    if (claim(n)) n->slot = place;
    else lent_.emplace(n, place);
    grads_.resize(grads_.size() + static_cast<size_t>(width(n)));
    nodes_.push_back(share(n));
    stack.push_back(n);
  }

  void step(Node* n, Val* dy) {
    Vals dx;
    if (n->custom) {
      std::vector<Val> heads;
      for (int k = 0; k < n->outputs; ++k)
        heads.push_back(dy[k] ? dy[k] : role1(Role::zeros_like, Val::share(n->out()[k].value)));
      dx = n->custom->backward(heads, options_.retain_graph);
    } else {
      EagerGrad g(*n, dy, options_.create_graph);
      dx = n->op->auto_grad ? derive(*n, g) : n->op->grad(n->attrs(), g);
    }
    for (int i = 0; i < n->inputs && i < dx.size(); ++i) {
      NodeInput& in = n->in()[i];
      if (!in.node || !dx[i]) continue;
      add(in.node, in.output, fit(*n, in, std::move(dx[i])));
    }
  }

  Vals derive(Node& n, const EagerGrad& g) {
    Vals dx;
    for (int i = 0; i < n.inputs; ++i) {
      if (!g.wants(i)) {
        dx.push_back({});
        continue;
      }
      Value* in[kMaxInputs];
      Val held[kMaxInputs];
      for (int j = 0; j < n.inputs; ++j) held[j] = g.x(j), in[j] = held[j].get();
      Val head = g.dy(0);
      in[n.inputs] = head.get();
      Value* out[6];
      const OpDef& op = derivative_of(*n.op, i);
      invoke(op, n.attrs(), {in, static_cast<size_t>(n.inputs + 1)}, out);
      dx.push_back(Val::adopt(out[0]));
    }
    return dx;
  }

  /// A gradient has its input's shape and dtype: what was broadcast is summed, what was promoted is cast back.
  static Val fit(Node& n, NodeInput& in, Val dx) {
    Value* like = in.like_output ? n.out()[0].value : in.value;
    if (!like || n.custom) return dx;
    if (n.op->pointwise() && !same_shape(*like, *dx)) {
      Val ghost = Val::adopt(new_ghost(*like));
      bool wider = !broadcasts_to(Shape(like->shape()), Shape(dx->shape()));  // sizes do not tell: one may be 0
      dx = role2(wider ? Role::broadcast_like : Role::sum_to_like, dx, ghost);
    }
    TW_CHECK(same_shape(*like, *dx), runtime, "this is a bug in twibil: the gradient of ", n.name(), " has shape ",
             dx->shape(), " for an input of shape ", like->shape());
    return dx->dtype() == like->dtype() ? dx : cast_to(dx, like->dtype());
  }

  BackwardOptions options_;
  uint64_t mark_;
  bool keep_ = false;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, int64_t> lent_;  // nodes that another pass has, and our places for them
  std::vector<Val> grads_;
};

Val head_gradient(const Val& head, std::span<const Val> given, size_t i) {
  if (i >= given.size() || !given[i]) return role1(Role::ones_like, Val::adopt(new_alias(*head)));
  TW_CHECK(same_shape(*given[i], *head), value, "backward: the gradient of head ", i, " must have its shape ",
           head->shape(), "; got ", given[i]->shape());
  return given[i]->dtype() == head->dtype() ? given[i] : cast_to(given[i], head->dtype());
}

void start(Pass& pass, std::span<const Val> heads, std::span<const Val> head_grads) {
  for (const Val& h : heads)
    TW_CHECK(h->node, value, "backward: the head of shape ", h->shape(),
             " was not computed while recording from a variable with a gradient. "
             "Call attach_grad() on the variables and compute inside autograd.record()");
  for (const Val& h : heads) pass.reach(h->node);
  for (size_t i = 0; i < heads.size(); ++i)
    pass.add(heads[i]->node, heads[i]->node_output, head_gradient(heads[i], head_grads, i));
}

void deliver_to_variable(Node* leaf, const Val& dx, bool linked) {
  if (leaf->grad_req == GradReq::null || !leaf->grad) return;
  Val total = leaf->grad_req == GradReq::add ? role2(Role::accumulate, Val::share(leaf->grad), dx) : dx;
  assign(*leaf->grad, *total);
  if (linked && total->node) set_node(leaf->grad, share(total->node), total->node_output);
  else if (leaf->grad->node) set_node(leaf->grad, nullptr, 0);
}

}  // namespace

void backward(std::span<const Val> heads, std::span<const Val> head_grads, const BackwardOptions& options) {
  profile::Timer timer(profile::kApi, profile::Kind::call, "backward");
  ModeScope scope(options.create_graph, options.training);
  Pass pass(options);
  start(pass, heads, head_grads);
  pass.run([&](Node* leaf, const Val& dx) { deliver_to_variable(leaf, dx, options.create_graph); });
}

Vals grad(std::span<const Val> heads, std::span<const Val> variables, std::span<const Val> head_grads,
          const BackwardOptions& options) {
  profile::Timer timer(profile::kApi, profile::Kind::call, "grad");
  ModeScope scope(options.create_graph, options.training);
  BackwardOptions keep = options;
  Pass pass(keep);
  start(pass, heads, head_grads);
  for (size_t i = 0; i < variables.size(); ++i)
    TW_CHECK(options.allow_unused || (variables[i]->node && pass.reached(variables[i]->node)), value,
             "grad: the heads do not depend on variable ", i, " of shape ", variables[i]->shape());
  pass.keep_gradients();
  pass.run([](Node*, const Val&) {});
  Vals result;
  for (const Val& v : variables) {
    Val dx = v->node && pass.reached(v->node) ? pass.gradient_of(v->node, v->node_output) : Val();
    result.push_back(dx || options.allow_unused ? dx : role1(Role::zeros_like, v));
  }
  return result;
}

void attach_grad(Value& v, GradReq req, Val into) {
  TW_CHECK(is_floating(v.dtype()), type, "attach_grad: only floating-point arrays have gradients; got dtype ",
           v.dtype());
  if (into) {
    TW_CHECK(same_shape(*into, v), value, "mark_variables: the gradient must have the variable's shape ", v.shape(),
             "; got ", into->shape());
  }
  NodeHolder holder(new_node(nullptr, nullptr, 0, 0));
  Node* leaf = holder.get();
  leaf->grad_req = req;
  if (req != GradReq::null) {
    if (!into) {
      ModeScope quiet(false, false);
      into = role1(Role::zeros_like, Val::adopt(new_ghost(v)));
    }
    leaf->grad = into.leak();
  }
  set_node(&v, share(leaf), 0);
  if (v.leaf) release(v.leaf);
  v.leaf = holder.leak();
}

void record_custom(std::span<Value* const> in, std::span<Value* const> out, std::unique_ptr<CustomGradient> gradient) {
  bool any = false;
  for (Value* v : in) any |= v && v->node;
  if (!any) return;
  NodeHolder holder(new_node(nullptr, nullptr, static_cast<int>(in.size()), static_cast<int>(out.size())));
  Node* node = holder.get();
  node->custom = std::move(gradient);
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) continue;
    node->in()[i].present = true;
    if (in[i]->node) node->in()[i].node = share(in[i]->node), node->in()[i].output = in[i]->node_output;
    node->in()[i].value = new_ghost(*in[i]);
  }
  for (size_t k = 0; k < out.size(); ++k) set_node(out[k], share(node), static_cast<uint32_t>(k));
}

}  // namespace twibil
