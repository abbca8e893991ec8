// SPDX-License-Identifier: Apache-2.0
#include "ir/trace.h"

#include <atomic>

namespace twibil {

constinit thread_local Tracer* tracer = nullptr;

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

Value* new_traced_alias(const Value& v) {
  const TraceLink& link = link_of(v);
  return new_link(link, v.sig(), true);
}

Edge edge_of(Value& v) {
  TW_ASSERT(tracer);
  if (!v.has(kTraced) || v.has(kGhost)) return tracer->add_outside(v);
  TraceLink& link = link_of(v);
  TW_CHECK(link.owner == tracer && link.serial == tracer->serial(), runtime, "an array of shape ", v.shape(),
           " comes from a trace that is over (or from another one); return it from the traced function instead of "
           "keeping it aside");
  return link.edge;
}

void relink(Value& v, Edge edge) { link_of(v).edge = edge; }

bool must_trace(const OpDef& op, std::span<Value* const> in) {
  if (!tracer) {
    for (const Value* v : in)
      if (v && v->has(kTraced)) no_data_error(op.name);
    return false;
  }
  if (op.random) return true;
  for (const Value* v : in)
    if (v && v->has(kTraced)) return true;
  return false;
}

void no_data_error(const char* who) {
  throw_error(ErrorKind::runtime,
              text(who,
                   ": the elements of an array inside a traced function are not known yet, only its shape and "
                   "dtype. Return the array and look at it outside, or call without hybridize() or jit"));
}

}  // namespace twibil
