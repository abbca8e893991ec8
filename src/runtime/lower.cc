// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/apply.h"
#include "ir/graph_tracer.h"
#include "ir/modes.h"
#include "ir/node.h"
#include "ir/registry.h"
#include "runtime/backward.h"
#include "runtime/eager.h"
#include "runtime/trace_call.h"

namespace twibil {

namespace {

/// Collects the typed graph of a symbol.
class SymbolLowering final : public GraphTracer {
 public:
  using GraphTracer::GraphTracer;
  Val argument(const std::string& argument_name, const Sig& sig, bool fixed = false) {
    GraphNode n;
    n.kind = GraphNode::Kind::argument;
    n.name = argument_name;
    n.fixed = fixed;
    n.out = {sig};
    int32_t i = made().add(std::move(n));
    made().arguments.push_back(i);
    return Val::adopt(new_traced(*this, {i, 0}, sig, {}, true));
  }
  /// Random numbers belong to a node of the symbol: its gradient, which computes it again, draws the same ones.
  void enter(const SymbolNode* n) { owner_ = n, drawn_ = 0; }

 private:
  int32_t random_key() override {
    auto [place, fresh] = random_keys_.try_emplace({owner_, drawn_++}, made().random_keys);
    made().random_keys += fresh;
    return place->second;
  }
  const SymbolNode* owner_ = nullptr;
  int drawn_ = 0;
  std::map<std::pair<const SymbolNode*, int>, int32_t> random_keys_;
};

bool is_recorded_float(const Val& v) { return v && v->node && is_floating(v->dtype()); }

/// A leaf of the tape without a gradient array.
void mark(Value& v) { set_node(&v, new_node(nullptr, nullptr, 0, 0), 0); }

/// MXNet's mark of nodes that are computed again in the backward part rather than kept.
bool is_marked_mirror(const SymbolNode& n) {
  for (const char* mark : {"__force_mirroring__", "force_mirroring"})
    if (auto found = n.marks.find(mark); found != n.marks.end())
      return found->second == "True" || found->second == "true" || found->second == "1";
  return false;
}

SymbolLowering* collector() { return dynamic_cast<SymbolLowering*>(tracer); }

/// The gradient rule's view of a node that cannot be computed again, as it updates arrays: its values stand in the
/// symbol (dy..., x..., y...).
class GivenGrad final : public Grad {
 public:
  GivenGrad(const SymbolNode& forward, std::span<const Val> in) : f_(forward), in_(in) {}
  Val x(int i) const override {
    if (i >= inputs()) return nullptr;
    const Val& v = in_[static_cast<size_t>(f_.outputs + i)];
    return v && !(f_.op->needs & X(i)) ? Val::adopt(new_ghost(*v)) : v;
  }
  Val y(int k) const override {
    const Val& v = in_[static_cast<size_t>(f_.outputs + inputs() + k)];
    return v && !(f_.op->needs & Y(k)) ? Val::adopt(new_ghost(*v)) : v;
  }
  Val dy(int k) const override {
    const Val& d = in_[static_cast<size_t>(k)];
    return d ? d : apply(op_with_role(Role::zeros_like), {Val::adopt(new_ghost(*y(k)))});
  }
  bool has_dy(int k) const override { return static_cast<bool>(in_[static_cast<size_t>(k)]); }
  bool wants(int i) const override { return i < inputs() && in_[static_cast<size_t>(f_.outputs + i)]; }
  int inputs() const override { return static_cast<int>(f_.in.size()); }
  bool training() const override { return modes.training; }
  RandomKey key() const override { return {}; }

 private:
  const SymbolNode& f_;
  std::span<const Val> in_;
};

/// What a call writes, where others hold views of it: the call gets a handle of its own, and the views keep the state
/// that they had (the passes see to that). Returns the handles that have to follow.
std::vector<std::pair<size_t, Val>> own_handles(const OpDef& op, std::vector<Val>& in) {
  std::vector<std::pair<size_t, Val>> written;
  if (!collector() || !op.writes_inputs()) return written;
  for (Pair u : op.updates) {
    if (u.output < 0 || static_cast<size_t>(u.input) >= in.size()) continue;
    Val& x = in[static_cast<size_t>(u.input)];
    if (!x || !x->has(kTraced) || x->has(kView) || link_of(*x).storage.use_count() <= 1) continue;
    Val own = Val::adopt(new_traced(*tracer, link_of(*x).edge, x->sig(), {}, *link_of(*x).storage));
    written.emplace_back(u.input, std::exchange(x, own));
  }
  return written;
}

/// Outputs that users do not see, of a traced call that stayed one node.
void add_hidden(const SymbolNode& n, std::vector<Val>& out) {
  SymbolLowering* c = collector();
  if (!c || n.op->count || n.outputs <= n.op->visible_outputs() || !out[0] || !out[0]->has(kTraced)) return;
  int32_t node = link_of(*out[0]).edge.node;
  const GraphNode& made = c->graph().at(node);
  if (made.op != n.op) return;  // it was replaced by its form for prediction
  for (int k = n.op->visible_outputs(); k < n.outputs; ++k)
    out[static_cast<size_t>(k)] = Val::adopt(new_traced(*c, {node, k}, made.out[static_cast<size_t>(k)]));
}

}  // namespace

// ---- the interpreter ----------------------------------------------------------------------------------------------

Val Interpreter::value_of(const SymbolRef& r) {
  if (!r) return {};
  auto found = values_.find(r.node.get());
  TW_ASSERT(found != values_.end());
  return found->second[static_cast<size_t>(r.output)];
}

std::vector<Val> Interpreter::inputs_of(const SymbolNode& n) {
  std::vector<Val> in;
  for (const SymbolRef& r : n.in) in.push_back(value_of(r));
  return in;
}

/// Whether a call in a trace can run at once: its inputs are constants, or follow from constants and shapes.
static bool is_known(const SymbolNode& n, std::span<const Val> in) {
  if (!tracer || n.in.empty() || n.op->random || n.op->writes_inputs()) return false;
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] && (in[i]->has(kTraced) || n.in[i].node->is_input())) return false;
  return true;
}

std::vector<Val> Interpreter::call(const SymbolNode& n) {
  std::vector<Val> in = inputs_of(n), out;
  std::vector<std::pair<size_t, Val>> written = own_handles(*n.op, in);
  std::vector<Value*> raw;
  for (const Val& v : in) raw.push_back(v.get());
  const void* attrs = n.attrs.empty() ? nullptr : n.attrs.data();
  OutputPointers results(*n.op, attrs);
  {
    TraceScope known(is_known(n, in) ? nullptr : tracer);
    invoke(*n.op, attrs, raw, results.data());
  }
  for (auto& [i, handle] : written) {
    relink(*handle, link_of(*in[i]).edge);
    bump_version(handle.get());
  }
  for (int k = 0; k < results.count(); ++k) out.push_back(Val::adopt(results[k]));
  out.resize(static_cast<size_t>(n.outputs));
  add_hidden(n, out);
  // A state that this form of the operator leaves alone (running statistics outside training) is what it was.
  for (Pair u : n.op->updates)
    if (u.output >= 0 && u.output < n.outputs && !out[static_cast<size_t>(u.output)])
      out[static_cast<size_t>(u.output)] = in[static_cast<size_t>(u.input)];
  return out;
}

/// The gradients of a node's inputs: its forward computation is recorded (equal nodes become one later), then the tape
/// is asked, which knows composed operators, functions and gradients of gradients alike.
std::vector<Val> Interpreter::backward(const SymbolNode& n) {
  const SymbolNode& f = *n.forward;
  std::vector<Val> in = inputs_of(n);
  auto outputs = static_cast<size_t>(f.outputs), inputs = f.in.size();
  bool once = f.kind == SymbolNode::Kind::call && f.op->writes_inputs();
  if (once && in[outputs + inputs + outputs - 1]) {
    Vals dx = f.op->grad(f.attrs.empty() ? nullptr : f.attrs.data(), GivenGrad(f, in));
    std::vector<Val> list(inputs);
    for (int i = 0; i < dx.size(); ++i) list[static_cast<size_t>(i)] = dx[i];
    return list;
  }
  if (SymbolLowering* c = collector()) c->enter(&f);
  std::unordered_map<const SymbolNode*, Val> none;
  Interpreter inner(none);
  std::vector<Val> variables;
  std::vector<size_t> place;
  // Each input of the forward node becomes a variable of its own, linked to what it was where that is recorded too.
  ModeScope scope(true, modes.training);
  std::vector<Val> again;
  for (size_t i = 0; i < inputs; ++i) {
    Val x = in[outputs + i];
    if (x && is_floating(x->dtype()) && !x->has(kWeak)) {
      x = Val::adopt(x->has(kGhost) ? new_ghost(*x) : new_alias(*x));
      if (in[outputs + i]->node) set_node(x.get(), share(in[outputs + i]->node), in[outputs + i]->node_output);
      // Two inputs with one place on the tape would each get the gradient of both.
      auto same_place = [&](const Val& v) { return v && v->node == x->node && v->node_output == x->node_output; };
      auto given = std::span(in).subspan(outputs, inputs);
      if (x->node && !x->has(kGhost) && std::ranges::count_if(given, same_place) > 1)
        x = apply(op_with_role(Role::copy), {x});
      if (!x->node) mark(*x);
      variables.push_back(x);
      place.push_back(i);
    }
    again.push_back(std::move(x));
  }
  SymbolNode copy(f);
  copy.in.clear();
  for (size_t i = 0; i < inputs; ++i) {
    if (!again[i]) {
      copy.in.push_back({});
      continue;
    }
    SymbolNodePtr stand_in = make_variable("x");
    inner.values_[stand_in.get()] = {again[i]};
    copy.in.push_back({stand_in, 0});
  }
  std::vector<Val> y = copy.kind == SymbolNode::Kind::call       ? inner.call(copy)
                       : copy.kind == SymbolNode::Kind::backward ? inner.backward(copy)
                                                                 : inner.function(copy);
  std::vector<Val> heads, dys;
  for (size_t k = 0; k < outputs; ++k) {
    if (!in[k] || !y[k] || !y[k]->node) continue;
    heads.push_back(y[k]);
    dys.push_back(in[k]);
  }
  std::vector<Val> dx(inputs);
  Vals found;
  if (!heads.empty())
    found = grad(heads, variables, dys,
                 {.retain_graph = true, .create_graph = true, .training = modes.training, .allow_unused = true});
  // Whoever reads a gradient in the symbol expects a value; nobody reads most of them.
  for (size_t i = 0; i < place.size(); ++i) {
    bool any = found.size() > 0 && found[static_cast<int>(i)];
    dx[place[i]] = any ? found[static_cast<int>(i)]
                       : apply(op_with_role(Role::zeros_like), {Val::adopt(new_ghost(*variables[i]))});
  }
  return dx;
}

std::vector<Val> Interpreter::function(const SymbolNode& n) {
  std::vector<Val> in = inputs_of(n);
  if (n.function->unfolds()) return n.function->run(in, modes.training);
  return call_function(n.function, in);
}

std::vector<Val> Interpreter::run(std::span<const SymbolRef> heads) {
  for (SymbolNode* n : reachable(heads)) {
    if (SymbolLowering* c = collector()) {
      c->site = n->site;
      c->name = n->name;
      c->mirror = is_marked_mirror(*n);
      c->enter(n);
    }
    std::vector<Val> out;
    ModeScope mode(modes.recording && !n->no_gradient, n->training < 0 ? modes.training : n->training != 0);
    try {
      switch (n->kind) {
        case SymbolNode::Kind::variable:
        case SymbolNode::Kind::captured: {
          auto found = given_.find(n);
          if (found != given_.end()) out = {found->second};
          else if (n->kind == SymbolNode::Kind::captured) out = {n->value};
          else throw_error(ErrorKind::value, text("variable ", n->name, " is given no array"));
          break;
        }
        case SymbolNode::Kind::constant: out = {n->value}; break;
        case SymbolNode::Kind::call: out = call(*n); break;
        case SymbolNode::Kind::function: out = function(*n); break;
        case SymbolNode::Kind::backward: out = backward(*n); break;
      }
    } catch (Error& e) {
      if (!n->site.empty() && e.message().find(n->site) == std::string::npos)
        e.suffix(text(" (called at ", n->site, ")"));
      else if (n->site.empty() && !n->is_input()) e.suffix(text(" (node ", n->name, ")"));
      throw;
    }
    if (watch && !n->is_input() && n->kind != SymbolNode::Kind::constant) watch(*n, inputs_of(*n), out);
    values_[n] = std::move(out);
  }
  std::vector<Val> results;
  for (const SymbolRef& h : heads) results.push_back(value_of(h));
  return results;
}

// ---- lowering -----------------------------------------------------------------------------------------------------

Graph lower(std::span<const SymbolRef> heads, std::span<const SymbolRef> effects, std::span<const Argument> arguments,
            const LowerOptions& options) {
  Graph g;
  SymbolLowering made(g);
  TraceScope scope(&made);
  ModeScope mode(options.gradients, options.training);
  std::unordered_map<const SymbolNode*, Val> given;
  std::vector<Val> variables;
  std::vector<size_t> wanted;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Val v = made.argument(arguments[i].node->name, arguments[i].sig, arguments[i].fixed);
    if (options.gradients && arguments[i].wants_gradient && is_floating(v->dtype())) {
      mark(*v);
      variables.push_back(v);
      wanted.push_back(i);
    }
    given[arguments[i].node] = v;
  }
  std::vector<SymbolRef> all(heads.begin(), heads.end());
  all.insert(all.end(), effects.begin(), effects.end());
  std::vector<Val> y = Interpreter(std::move(given)).run(all);
  y.resize(heads.size());
  for (const Val& v : y) {
    TW_CHECK(v, value, "an output of the graph does not exist in this mode (it is there in training only)");
    g.outputs.push_back(edge_of(*v));
  }
  g.forward_outputs = static_cast<int>(g.outputs.size());
  if (!options.gradients) return g;
  g.forward_nodes = static_cast<int>(g.nodes.size());
  std::vector<Val> roots, head_grads;
  for (size_t k = 0; k < y.size(); ++k) {
    if (!is_recorded_float(y[k])) continue;
    roots.push_back(y[k]);
    g.head_grads.push_back({static_cast<int>(k), static_cast<int>(g.arguments.size())});
    head_grads.push_back(made.argument(text("head_grad", k), y[k]->sig()));
  }
  made.mirror = false;
  made.site.clear();
  made.name.clear();
  Vals dx;
  if (!roots.empty())
    dx = grad(roots, variables, head_grads,
              {.retain_graph = false, .create_graph = false, .training = options.training, .allow_unused = true});
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto at = std::ranges::find(wanted, i);
    int k = static_cast<int>(at - wanted.begin());
    g.outputs.push_back(at != wanted.end() && k < dx.size() && dx[k] ? edge_of(*dx[k]) : Edge());
  }
  return g;
}

}  // namespace twibil
