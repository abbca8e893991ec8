// SPDX-License-Identifier: Apache-2.0
#include "runtime/symbol_tracer.h"

#include "runtime/launch.h"

namespace twibil {

static constexpr const char* kAliased =
    "inside a traced function an array of the outside is written of which it also reads a view or an alias made "
    "outside; "
    "make the view inside the function";

int32_t SymbolTracer::add(SymbolNodePtr n) {
  if (call_site_hook && n->kind != SymbolNode::Kind::variable) n->site = call_site_hook();
  nodes_.push_back(std::move(n));
  return static_cast<int32_t>(nodes_.size()) - 1;
}

std::vector<SymbolRef> SymbolTracer::refs(std::span<const Edge> in) const {
  std::vector<SymbolRef> list;
  for (Edge e : in) list.push_back(e.present() ? ref(e) : SymbolRef());
  return list;
}

int32_t SymbolTracer::add_call(const OpDef& op, const void* attrs, std::span<const Edge> in, std::span<const Sig>,
                               DType, bool training) {
  SymbolNodePtr n = make_call(op, attrs, refs(in));
  if (training != base_.training) n->training = training;
  n->no_gradient = base_.recording && !modes.recording;
  return add(std::move(n));
}

int32_t SymbolTracer::add_function(std::shared_ptr<const GraphFunction> f, std::span<const Edge> in,
                                   std::span<const Sig> out, bool training) {
  SymbolNodePtr n = make_function(std::move(f), refs(in), static_cast<int>(out.size()));
  if (training != base_.training) n->training = training;
  n->no_gradient = base_.recording && !modes.recording;
  return add(std::move(n));
}

Edge SymbolTracer::add_outside(Value& v) {
  auto known = outside_.find(&v);
  if (known != outside_.end()) return known->second;
  TW_CHECK(!v.has(kGhost), runtime, "a gradient cannot be computed inside this trace");
  SymbolNodePtr n;
  if (v.has(kWeak)) {
    n = make_constant(Val::share(&v));
  } else {
    TW_CHECK(std::ranges::find(written_, v.root) == written_.end(), runtime, kAliased);
    n = make_variable(text("captured", captured_.size()), {true, Shape(v.shape()), v.dtype()});
    n->kind = SymbolNode::Kind::captured;
    n->value = Val::share(&v);
    captured_.push_back(n);
  }
  Edge e{add(std::move(n)), 0};
  if (!v.has(kWeak)) outside_[&v] = e;
  return e;
}

Edge SymbolTracer::add_constant(Value& v) { return {add(make_constant(Val::share(&v))), 0}; }

void SymbolTracer::written(Value& v, Edge e) {
  if (!v.has(kTraced)) {
    add_outside(v);  // becomes an input, if it was none
    outside_[&v] = e;
    for (const SymbolNodePtr& n : captured_)
      TW_CHECK(n->value.get() == &v || n->value->root != v.root, runtime, kAliased);
    written_.push_back(v.root);
  }
  effects_.push_back(ref(e));
}

Val SymbolTracer::input(std::string name, const Sig& sig) {
  SymbolNodePtr n = make_variable(std::move(name), {true, sig.shape, sig.dtype});
  inputs_.push_back(n);
  return Val::adopt(new_traced(*this, {add(std::move(n)), 0}, sig, {}, true));
}

}  // namespace twibil
