// SPDX-License-Identifier: Apache-2.0
// Shapes and dtypes of a symbol, forwards from what is known; an operator may complete its parameters from its data.
#include "ir/apply.h"
#include "ir/modes.h"
#include "runtime/eager.h"
#include "runtime/lower.h"
#include "runtime/trace_call.h"

namespace twibil {

namespace {

bool known(const Sig& s) {
  return s.present() && std::ranges::none_of(s.shape.span(), [](int64_t d) { return d < 0; });
}

/// Unknown inputs of a pointwise operator have the shape and dtype of the others.
void complete_pointwise(std::span<Sig> in) {
  const Sig* like = nullptr;
  for (const Sig& s : in)
    if (known(s) && !s.weak && (!like || s.rank() > like->rank())) like = &s;
  if (!like) return;
  for (Sig& s : in)
    if (!s.present()) s = {like->shape, like->dtype};
}

class Inference {
 public:
  Inference(const std::unordered_map<const SymbolNode*, Sig>& given, bool partial) : given_(given), partial_(partial) {}

  void visit(SymbolNode& n) {
    switch (n.kind) {
      case SymbolNode::Kind::variable:
      case SymbolNode::Kind::captured: return variable(n);
      case SymbolNode::Kind::constant:
        found.nodes[&n] = {n.value->sig()};
        values[&n] = {n.value};
        return;
      case SymbolNode::Kind::call: return call(n);
      case SymbolNode::Kind::function: return function(n);
      case SymbolNode::Kind::backward: return backward(n);
    }
  }
  InferredSigs found;
  std::unordered_map<const SymbolNode*, std::vector<Val>> values;  // elements that are known without any data

 private:
  void variable(const SymbolNode& n) {
    auto it = given_.find(&n);
    Sig s;
    if (it != given_.end()) s = it->second;
    else if (n.value) s = n.value->sig();
    else if (n.hint.has_shape) s = {n.hint.shape, n.hint.dtype == kUnknownDType ? DType::float32 : n.hint.dtype};
    found.nodes[&n] = {s};
  }
  std::vector<Sig> inputs(const SymbolNode& n) const {
    std::vector<Sig> in;
    for (const SymbolRef& r : n.in) in.push_back(found.of(r));
    return in;
  }
  /// What an operator found out about a variable is kept, and checked against what was said of it.
  void learn(const SymbolRef& r, const Sig& s) {
    if (!r || !r.node->is_input()) return;
    Sig& place = found.nodes[r.node.get()][0];
    if (known(place) || !s.present()) return;
    if (place.present()) {
      bool fits = place.rank() == s.rank();
      for (int i = 0; fits && i < s.rank(); ++i) fits = place.shape[i] < 0 || place.shape[i] == s.shape[i];
      TW_CHECK(fits, value, "variable ", r.node->name, ": its shape was given as ", place.shape,
               "; the operator that reads it needs ", s.shape);
    }
    DType said = r.node->hint.dtype;
    place = {s.shape, said == kUnknownDType ? s.dtype : said};
  }
  bool all_known(const SymbolNode& n, const std::vector<Sig>& in) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (!n.in[i] || known(in[i])) continue;
      TW_CHECK(partial_, value, "the shape of ", n.in[i].node->name, ", an input of ", n.name, " (", n.op_name(),
               "), is not known; give it");
      return false;
    }
    return true;
  }
  void call(const SymbolNode& n) {
    std::vector<Sig> in = inputs(n);
    const void* attrs = n.attrs.empty() ? nullptr : n.attrs.data();
    // A partly known shape is completed like an unknown one.
    std::vector<Sig> full = in;
    for (Sig& s : full)
      if (!known(s)) s = {};
    if (n.op->complete) n.op->complete(attrs, full);
    else if (n.op->pointwise() && full.size() > 1) complete_pointwise(full);
    for (size_t i = 0; i < in.size(); ++i)
      if (n.in[i] && !known(in[i])) learn(n.in[i], full[i]);
    in = inputs(n);
    auto& out = found.nodes[&n];
    out.resize(static_cast<size_t>(n.outputs));
    if (!all_known(n, in)) return;
    std::vector<Sig> sigs;
    try {
      if (needs_values(n))
        return evaluate(n, [&](std::span<const Val> v) {
          std::vector<Value*> raw;
          for (const Val& x : v) raw.push_back(x.get());
          OutputPointers results(*n.op, attrs);
          invoke(*n.op, attrs, raw, results.data());
          std::vector<Val> y;
          for (int k = 0; k < results.count(); ++k) y.push_back(Val::adopt(results[k]));
          return y;
        });
      sigs = infer_outputs(*n.op, attrs, in);
    } catch (Error& e) {
      e.suffix(n.site.empty() ? text(" (node ", n.name, ")") : text(" (called at ", n.site, ")"));
      throw;
    }
    std::ranges::copy(sigs, out.begin());
  }
  void function(const SymbolNode& n) {
    std::vector<Sig> in = inputs(n), full = in;
    for (Sig& s : full)
      if (!known(s)) s = {};
    n.function->complete(full);
    for (size_t i = 0; i < in.size(); ++i)
      if (n.in[i] && !known(in[i])) learn(n.in[i], full[i]);
    in = inputs(n);
    auto& out = found.nodes[&n];
    out.resize(static_cast<size_t>(n.outputs));
    if (!all_known(n, in)) return;
    if (n.function->unfolds()) evaluate(n, [&](std::span<const Val> v) { return n.function->run(v, modes.training); });
    else out = n.function->infer(in);
  }
  Val known_value(const SymbolRef& r) const {
    auto it = r ? values.find(r.node.get()) : values.end();
    return it == values.end() ? Val() : it->second[static_cast<size_t>(r.output)];
  }
  /// Sizes may follow from elements: a call of such an operator, or of any on elements that are known, is made on them.
  bool needs_values(const SymbolNode& n) const {
    if (n.op->unfolds) return true;
    bool all = !n.in.empty() && !n.op->random && !n.op->writes_inputs();
    for (const SymbolRef& r : n.in) all = all && (!r || known_value(r));
    return all;
  }
  template <class Run> void evaluate(const SymbolNode& n, Run run) {
    ShapeTracer shapes;
    TraceScope scope(&shapes);
    ModeScope quiet(false, modes.training);
    std::vector<Val> in;
    for (const SymbolRef& r : n.in) {
      Val v = known_value(r);
      in.push_back(!r || v ? v : Val::adopt(new_traced(shapes, {0, 0}, found.of(r))));
    }
    std::vector<Val> y;
    try {
      y = run(in);
    } catch (Error&) {
      if (shapes.met_data_dependence) return;  // it is known when it runs
      throw;
    }
    auto& out = found.nodes[&n];
    std::vector<Val>& kept = values[&n];
    kept.resize(out.size());
    for (size_t k = 0; k < y.size() && k < out.size(); ++k) {
      out[k] = y[k].sig();
      if (y[k] && !y[k]->has(kTraced)) kept[k] = y[k];
    }
  }
  void backward(const SymbolNode& n) {  // gradients have the signatures of what they are gradients of
    auto& out = found.nodes[&n];
    for (const SymbolRef& r : n.forward->in) out.push_back(found.of(r));
  }

  const std::unordered_map<const SymbolNode*, Sig>& given_;
  bool partial_;
};

}  // namespace

Sig InferredSigs::of(const SymbolRef& r) const {
  if (!r) return {};
  auto it = nodes.find(r.node.get());
  if (it == nodes.end() || it->second.size() <= static_cast<size_t>(r.output)) return {};
  return it->second[static_cast<size_t>(r.output)];
}

InferredSigs infer_sigs(std::span<const SymbolRef> heads, const std::unordered_map<const SymbolNode*, Sig>& given,
                        bool training, bool partial) {
  ModeScope mode(false, training);
  Inference inference(given, partial);
  std::vector<SymbolNode*> nodes = reachable(heads);
  // A variable may be read by an operator that cannot complete it before one that can: a few rounds settle that.
  size_t unknown = SIZE_MAX;
  for (int round = 0; round < 8; ++round) {
    Inference next(given, true);
    next.found = inference.found;
    next.values = inference.values;
    for (SymbolNode* n : nodes) {
      if (n->is_input() && next.found.nodes.contains(n)) continue;
      next.visit(*n);
    }
    inference.found = std::move(next.found);
    inference.values = std::move(next.values);
    size_t now = 0;
    for (SymbolNode* n : nodes)
      for (const Sig& s : inference.found.nodes[n]) now += !known(s);
    if (now == 0 || now == unknown) break;
    unknown = now;
  }
  if (!partial)
    for (SymbolNode* n : nodes)
      TW_CHECK(!n->is_input() || known(inference.found.nodes.at(n)[0]), value, "the shape of variable ", n->name,
               " is not known and does not follow from the others; give it");
  return std::move(inference.found);
}

}  // namespace twibil
