// SPDX-License-Identifier: Apache-2.0
#include "ir/trace.h"

#include <atomic>

namespace twibil {

constinit thread_local Tracer* tracer = nullptr;

Tracer* install_tracer(Tracer* t) {
  modes.tracing = t && t->keeps_calls();
  return std::exchange(tracer, t);
}

uint64_t Tracer::next_serial() {
  static std::atomic<uint64_t> serials{1};
  return serials.fetch_add(1, std::memory_order_relaxed);
}

static Value* new_link(TraceLink given, const Sig& sig, bool view) {
  auto link = std::make_unique<TraceLink>(std::move(given));
  Value* v = new_borrowed(
      sig.dtype, sig.shape, nullptr, nullptr, false, [](void* context) { delete static_cast<TraceLink*>(context); },
      link.get());
  link.release();
  v->word |= kTraced | (view ? kView : 0);
  return v;
}

Value* new_traced(Tracer& owner, Edge edge, const Sig& sig, std::shared_ptr<bool> storage, bool outside) {
  bool view = storage != nullptr;
  if (!storage) storage = std::make_shared<bool>(outside);
  return new_link({&owner, owner.serial(), edge, std::move(storage)}, sig, view);
}

Val traced_constant(Val v) { return Val::adopt(new_traced(*tracer, tracer->add_constant(*v), v.sig())); }

Value* new_traced_alias(const Value& v) {
  const TraceLink& link = link_of(v);
  return new_link(link, v.sig(), true);
}

Value* new_traced_ghost(const Value& like) {
  Value* v = new_traced(*tracer, edge_of(const_cast<Value&>(like)), like.sig());
  v->word |= kGhost;
  return v;
}

Edge edge_of(Value& v) {
  TW_ASSERT(tracer);
  bool linked = v.has(kTraced) && (!v.has(kGhost) || v.release_data);
  if (!linked) return tracer->add_outside(v);
  const TraceLink& link = link_of(v);
  TW_CHECK(link.edge != kStale, runtime,
           "inside a traced function a view cannot be read after its array was written; make "
           "it anew");
  if (link.owner == tracer && link.serial == tracer->serial()) return link.edge;
  for (Tracer* t = tracer->outer; t; t = t->outer)
    if (link.owner == t && link.serial == t->serial()) return tracer->add_outside(v);
  throw_error(ErrorKind::runtime,
              text("an array of shape ", v.shape(),
                   " comes from a trace that is over (or from another one); return it from the traced function instead "
                   "of keeping it aside"));
}

void relink(Value& v, Edge edge) { link_of(v).edge = edge; }

void no_data_error(const char* who) {
  throw_error(ErrorKind::runtime,
              text(who,
                   ": the elements of an array inside a traced function are not known yet, only its shape and "
                   "dtype. Return the array and look at it outside, or call without hybridize() or jit"));
}

void data_dependent_error(const char* who) {
  for (Tracer* t = tracer; t; t = t->outer) t->met_data_dependence = true;
  throw DataDependence(
      ErrorKind::runtime,
      text(who,
           ": the shape of the result depends on the values, which are not known inside a traced function. Call "
           "it outside, or without hybridize() or jit"));
}

void no_truth_error() {
  throw_error(ErrorKind::runtime,
              "an array inside a traced function is neither true nor false yet: its elements are known only when the "
              "graph runs. Use npx.cond(pred, then, else) or np.where, or call without hybridize() or jit");
}

}  // namespace twibil
