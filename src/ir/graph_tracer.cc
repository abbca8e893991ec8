// SPDX-License-Identifier: Apache-2.0
#include "ir/graph_tracer.h"

#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"

namespace twibil {

Val row_major(Value& v) {
  if (!v.has(kStrided)) return Val::share(&v);
  TraceScope runs(nullptr);
  ModeScope quiet(false, false);
  return apply(op_with_role(Role::copy), {Val::share(&v)});
}

int32_t GraphTracer::add_call(const OpDef& op, const void* attrs, std::span<const Edge> in, std::span<const Sig> out,
                              DType work, bool training) {
  GraphNode n;
  n.op = &op;
  n.training = training;
  n.work = work;
  n.in.assign(in.begin(), in.end());
  n.out.assign(out.begin(), out.end());
  n.site = site;
  n.name = name;
  n.mirror = mirror;
  if (op.attrs.size) {
    const auto* from = static_cast<const std::byte*>(attrs ? attrs : op.attrs.defaults);
    n.attrs.assign(from, from + op.attrs.size);
  }
  if (op.random) n.random = random_key();
  return graph_.add(std::move(n));
}

int32_t GraphTracer::add_function(std::shared_ptr<const GraphFunction> f, std::span<const Edge> in,
                                  std::span<const Sig> out, bool training) {
  GraphNode n;
  n.kind = GraphNode::Kind::function;
  n.function = std::move(f);
  n.training = training;
  n.in.assign(in.begin(), in.end());
  n.out.assign(out.begin(), out.end());
  n.site = site;
  n.name = name;
  return graph_.add(std::move(n));
}

Edge GraphTracer::add_outside(Value& v) {
  GraphNode n;
  n.kind = v.has(kGhost) ? GraphNode::Kind::shape : GraphNode::Kind::constant;
  n.out = {v.sig()};
  if (n.kind == GraphNode::Kind::constant) {
    auto known = constants_.find(&v);
    if (known != constants_.end()) return known->second;
    n.value = row_major(v);
  }
  Edge e{graph_.add(std::move(n)), 0};
  if (!v.has(kGhost)) constants_[&v] = e;
  return e;
}

void GraphTracer::written(Value& v, Edge e) {
  if (!v.has(kTraced)) constants_[&v] = e;
}

}  // namespace twibil
