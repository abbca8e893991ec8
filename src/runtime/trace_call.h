// SPDX-License-Identifier: Apache-2.0
// A call with traced inputs: it is checked and gets its shapes like any other, and becomes a node instead of running.
#pragma once
#include "ir/trace.h"

namespace twibil {

/// What invoke() does inside a trace. `in` with absent optional inputs filled in.
void trace_call(const OpDef& op, const void* attrs, std::span<Value* const> in, SigsIn sigs, Value** out,
                Value* const* given);
/// A call of a function on arrays inside a trace.
std::vector<Val> trace_function(std::shared_ptr<const GraphFunction> f, std::span<const Val> in);

/// A call of a function on arrays: traced inside a trace, else run now and put on the tape where recording is on.
std::vector<Val> call_function(std::shared_ptr<const GraphFunction> f, std::span<const Val> in);

/// Traces for shapes alone: nothing is kept.
class ShapeTracer final : public Tracer {
 public:
  int32_t add_call(const OpDef&, const void*, std::span<const Edge>, std::span<const Sig>, DType, bool) override {
    return 0;
  }
  int32_t add_function(std::shared_ptr<const GraphFunction>, std::span<const Edge>, std::span<const Sig>,
                       bool) override {
    return 0;
  }
  Edge add_outside(Value&) override { return {0, 0}; }
  void written(Value&, Edge) override {}
};

/// Signatures of the visible outputs of a call, also of composed operators.
std::vector<Sig> infer_outputs(const OpDef& op, const void* attrs, SigsIn in);

}  // namespace twibil
