// SPDX-License-Identifier: Apache-2.0
#include "runtime/symbol_tracer.h"

#include "runtime/launch.h"

namespace twibil {

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
                               DType, bool) {
  return add(make_call(op, attrs, refs(in)));
}

int32_t SymbolTracer::add_function(std::shared_ptr<const GraphFunction> f, std::span<const Edge> in,
                                   std::span<const Sig> out, bool) {
  return add(make_function(std::move(f), refs(in), static_cast<int>(out.size())));
}

Edge SymbolTracer::add_outside(Value& v) {
  auto known = outside_.find(&v);
  if (known != outside_.end()) return known->second;
  TW_CHECK(!v.has(kGhost), runtime, "a gradient cannot be computed inside this trace");
  SymbolNodePtr n;
  if (v.has(kWeak)) {
    n = make_constant(Val::share(&v));
  } else {
    n = make_variable(text("captured", captured_.size()), {true, Shape(v.shape()), v.dtype()});
    n->kind = SymbolNode::Kind::captured;
    n->value = Val::share(&v);
    captured_.push_back(n);
  }
  Edge e{add(std::move(n)), 0};
  if (!v.has(kWeak)) outside_[&v] = e;
  return e;
}

void SymbolTracer::written(Value& v, Edge e) {
  if (!v.has(kTraced)) {
    add_outside(v);  // becomes an input, if it was none
    outside_[&v] = e;
  }
  effects_.push_back(ref(e));
}

Val SymbolTracer::input(std::string name, const Sig& sig) {
  SymbolNodePtr n = make_variable(std::move(name), {true, sig.shape, sig.dtype});
  inputs_.push_back(n);
  return Val::adopt(new_traced(*this, {add(std::move(n)), 0}, sig, {}, true));
}

}  // namespace twibil
