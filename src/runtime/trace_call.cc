// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace_call.h"

#include <algorithm>
#include <cstring>

#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "runtime/backward.h"
#include "runtime/eager.h"
#include "runtime/launch.h"
#include "runtime/record.h"

namespace twibil {

namespace {

/// Outputs of a composed operator, which has no rule for shapes: its parts have.
std::vector<Sig> expand_shapes(const OpDef& op, const void* attrs, std::span<Value* const> in) {
  ShapeTracer shapes;
  TraceScope scope(&shapes);
  ModeScope quiet(false, modes.training);
  std::vector<Val> stand_ins;
  for (Value* v : in) {
    bool number = v && (v->has(kWeak) || (op.unfolds && !v->has(kTraced)));
    stand_ins.push_back(!v ? Val() : number ? Val::share(v) : Val::adopt(new_traced(shapes, {0, 0}, v->sig())));
  }
  Vals y = op.expand(attrs, stand_ins);
  std::vector<Sig> out;
  for (int k = 0; k < y.size(); ++k) out.push_back(y[k]->sig());
  return out;
}

struct Inferred {
  std::vector<Sig> out;
  DType work = kUnknownDType;
  bool view = false;
};

Inferred infer(const OpDef& op, const void* attrs, std::span<Value* const> in, SigsIn sigs) {
  Inferred r;
  if (op.expand) {
    r.out = expand_shapes(op, attrs, in);
    return r;
  }
  r.out.resize(static_cast<size_t>(op.outputs()));
  if (op.view) {
    Layout layout;
    layout.shape = sigs[0].shape;
    contiguous_strides(layout.shape, layout.strides);
    layout = op.view(attrs, layout);
    r.view = layout.possible;
    if (r.view) r.out[0] = {layout.shape, sigs[0].dtype};
  }
  if (!r.view) r.work = infer_call(op, attrs, sigs, r.out);
  return r;
}

int updated(const OpDef& op, int output) {
  if (op.writes_inputs())
    for (Pair u : op.updates)
      if (u.output == output) return u.input;
  return -1;
}

/// A write moves a traced array to a new edge. Views of it would not notice.
/// `spent`: how many views of it are operands of the write itself, which read them before.
void move_to(const OpDef& op, Value& v, Edge e, long spent = 0) {
  TW_CHECK(!v.has(kView), runtime, op.name,
           ": inside a traced function a view cannot be written; write through the array itself (x[key] = value)");
  bool outside = !v.has(kTraced);
  TW_CHECK(outside || link_of(v).owner == tracer, runtime, op.name,
           ": a branch or a loop's body cannot write an array of the outside; return the new one instead");
  long readers = outside ? tracer->storage_of(v).use_count() - 1 : link_of(v).storage.use_count();
  // While a symbol is lowered its nodes hold their views; they were checked when it was traced.
  TW_CHECK(!tracer->keeps_calls() || readers <= 1 + spent, runtime, op.name,
           ": inside a traced function an array of which views are in use cannot be written; copy() it first");
  if (outside) {
    tracer->written(v, e);
    return;
  }
  if (*link_of(v).storage) tracer->written(v, e);
  relink(v, e);
  bump_version(&v);
}

const bool* storage_of(const Value& v) {
  return v.has(kTraced) ? link_of(v).storage.get() : tracer->storage_of(const_cast<Value&>(v)).get();
}

/// Operands that overlap what the operator writes are copied first, as NumPy does; they cannot be read afterwards.
/// Returns how many.
long separate_overlaps(const OpDef& op, std::span<Value*> in, std::vector<Val>& copies) {
  if (!op.writes_inputs() || op.view) return 0;
  std::vector<Value*> spent;
  for (Pair u : op.updates) {
    if (u.output < 0) break;
    Value* written = in[static_cast<size_t>(u.input)];
    if (!written || written->has(kGhost)) continue;
    for (size_t i = 0; i < in.size(); ++i) {
      Value* x = in[i];
      if (static_cast<int>(i) == u.input || !x || x->has(kGhost | kWeak) || storage_of(*x) != storage_of(*written))
        continue;
      copies.push_back(apply(op_with_role(Role::copy), {Val::share(x)}));
      in[i] = copies.back().get();
      if (x->has(kTraced) && x != written && x->has(kView)) spent.push_back(x);
    }
  }
  for (Value* x : spent) relink(*x, kStale);
  return static_cast<long>(spent.size());
}

/// NumPy's out=: the array stands for the result from now on.
void store(const OpDef& op, Value& to, Val result) {
  bool same = to.dtype() == result->dtype() && std::ranges::equal(to.shape(), result->shape());
  if (same && to.has(kTraced) && !*link_of(to).storage) {
    move_to(op, to, edge_of(*result));
  } else {
    assign(to, *result);
    if (same && to.has(kTraced)) relink(to, edge_of(*result));  // readers go by the gradient's way
    else if (same) tracer->written(to, edge_of(*result));
  }
  if (result->node) set_node(&to, share(result->node), result->node_output);
  else if (modes.recording && to.node && !to.leaf) set_node(&to, nullptr, 0);
}

}  // namespace

std::vector<Sig> infer_outputs(const OpDef& op, const void* attrs, SigsIn given) {
  std::vector<Sig> in(given.begin(), given.end());  // with the optional inputs that are absent: rules look at them
  if (!op.variadic()) in.resize(std::max(in.size(), static_cast<size_t>(op.inputs())));
  ShapeTracer shapes;
  TraceScope scope(&shapes);
  std::vector<Val> held;
  std::vector<Value*> values;
  for (const Sig& s : in) {
    if (s.weak) held.push_back(is_floating(s.dtype) ? Val(0.5) : Val(s.number));
    else held.push_back(s.present() ? Val::adopt(new_traced(shapes, {0, 0}, s)) : Val());
    values.push_back(held.back().get());
  }
  std::vector<Sig> out = infer(op, attrs, values, in).out;
  out.resize(static_cast<size_t>(op.visible_outputs(attrs)));
  return out;
}

void trace_call(const OpDef& op, const void* attrs, std::span<Value* const> operands, SigsIn sigs, Value** out,
                Value* const* given) {
  if (!tracer) no_data_error(op.name);
  if (op.data_dependent) data_dependent_error(op.name);
  std::vector<Value*> in(operands.begin(), operands.end());
  std::vector<Val> copies;
  long spent = separate_overlaps(op, in, copies);
  bool recording = must_record(op, in);
  if ((op.expand || (op.predict && !modes.training)) &&
      (!tracer->keeps_calls() || (recording && op.expand) || op.unfolds) && rewrite_call(op, attrs, in, out, given))
    return;
  Inferred r = infer(op, attrs, in, sigs);
  for (int k = 0; given && k < op.visible_outputs(attrs); ++k)
    if (given[k]) check_given(op, *given[k], r.out[static_cast<size_t>(k)]);
  std::vector<Edge> edges;
  for (Value* v : in) edges.push_back(v ? edge_of(*v) : Edge());
  int32_t node = tracer->add_call(op, attrs, edges, r.out, r.work, modes.training);
  int n = static_cast<int>(r.out.size());
  std::vector<Val> results;
  for (int k = 0; k < n; ++k) {
    if (int i = updated(op, k); i >= 0) {
      Value* v = in[static_cast<size_t>(i)];
      if (v) move_to(op, *v, {node, k}, spent);
      results.push_back(Val::share(v));
      continue;
    }
    std::shared_ptr<bool> storage;
    if (r.view && !in[0]->has(kGhost))
      storage = in[0]->has(kTraced) ? link_of(*in[0]).storage : tracer->storage_of(*in[0]);
    results.push_back(Val::adopt(new_traced(*tracer, {node, k}, r.out[static_cast<size_t>(k)], std::move(storage))));
  }
  if (recording) {
    std::vector<Value*> raw;
    for (Val& v : results) raw.push_back(v.get());
    record_call(op, attrs, in, raw, modes.training, {});
  }
  for (int k = 0; k < op.visible_outputs(attrs); ++k) {
    if (given && given[k]) {
      store(op, *given[k], results[static_cast<size_t>(k)]);
      results[static_cast<size_t>(k)] = Val::share(given[k]);
    }
    out[k] = results[static_cast<size_t>(k)].leak();
  }
}

namespace {
/// The gradient of a function is a function of its inputs, outputs and output gradients.
struct FunctionGradient final : GraphFunction {
  std::shared_ptr<const GraphFunction> f;
  size_t inputs, outputs;
  std::vector<Sig> like;  // of the inputs
  std::vector<bool> has;  // which output gradients arrived
  const char* name() const override { return "function_gradient"; }
  std::vector<Sig> infer(SigsIn) const override { return like; }
  std::vector<Val> run(std::span<const Val> in, bool training) const override {
    std::vector<Val> dy(outputs);
    size_t next = inputs + outputs;
    for (size_t k = 0; k < outputs; ++k)
      if (has[k]) dy[k] = in[next++];
    std::vector<Val> dx = f->gradient(in.first(inputs), in.subspan(inputs, outputs), dy, training);
    dx.resize(inputs);
    for (size_t i = 0; i < inputs; ++i)
      if (!dx[i]) dx[i] = Val::adopt(new_zeros(like[i]));
    return dx;
  }
  bool has_gradient() const override { return false; }
  std::vector<Val> gradient(std::span<const Val>, std::span<const Val>, std::span<const Val>, bool) const override {
    throw_error(ErrorKind::runtime, text(f->name(), ": the gradient of a gradient of a function is not known"));
  }
  static Value* new_zeros(const Sig& s) {
    Value* v = new_value(s.dtype, s.shape);
    std::memset(v->data, 0, static_cast<size_t>(v->bytes));
    return v;
  }
};

struct TracedFunctionGradient final : CustomGradient {
  std::shared_ptr<const GraphFunction> f;
  std::vector<Val> in, out;
  const char* name() const override { return f->name(); }
  Vals backward(std::span<const Val> dy, bool) override {
    auto g = std::make_shared<FunctionGradient>();
    g->f = f;
    g->inputs = in.size();
    g->outputs = out.size();
    std::vector<Val> all(in);
    all.insert(all.end(), out.begin(), out.end());
    for (const Val& v : in) g->like.push_back(v.sig());
    for (const Val& d : dy) {
      g->has.push_back(static_cast<bool>(d));
      if (d) all.push_back(d);
    }
    Vals dx;
    for (Val& v : trace_function(g, all)) dx.push_back(std::move(v));
    return dx;
  }
};
}  // namespace

std::vector<Val> trace_function(std::shared_ptr<const GraphFunction> f, std::span<const Val> in) {
  if (!tracer) no_data_error(f->name());
  std::vector<Sig> sigs;
  std::vector<Edge> edges;
  std::vector<Value*> raw;
  for (const Val& v : in) {
    sigs.push_back(v.sig());
    edges.push_back(edge_of(*v));
    raw.push_back(v.get());
  }
  std::vector<Sig> out = f->infer(sigs);
  int32_t node = tracer->add_function(f, edges, out, modes.training);
  std::vector<Val> results;
  for (size_t k = 0; k < out.size(); ++k)
    results.push_back(Val::adopt(new_traced(*tracer, {node, static_cast<int32_t>(k)}, out[k])));
  if (modes.recording && f->has_gradient()) {
    auto gradient = std::make_unique<TracedFunctionGradient>();
    gradient->f = f;
    gradient->in.assign(in.begin(), in.end());
    for (Val& v : results)
      gradient->out.push_back(Val::adopt(new_traced_alias(*v)));  // not the outputs themselves: a cycle
    std::vector<Value*> outs;
    for (Val& v : results) outs.push_back(v.get());
    record_custom(raw, outs, std::move(gradient));
  }
  return results;
}

namespace {
struct EagerFunctionGradient final : CustomGradient {
  std::shared_ptr<const GraphFunction> f;
  std::vector<Val> in, out;
  bool training = false;
  const char* name() const override { return f->name(); }
  Vals backward(std::span<const Val> dy, bool) override {
    Vals dx;
    for (Val& v : f->gradient(in, out, dy, training)) dx.push_back(std::move(v));
    return dx;
  }
};
}  // namespace

std::vector<Val> call_function(std::shared_ptr<const GraphFunction> f, std::span<const Val> in) {
  if (tracer) return trace_function(std::move(f), in);
  for (const Val& v : in) wait_to_read(*v);
  std::vector<Val> out;
  {
    ModeScope quiet(false, modes.training);
    out = f->run(in, modes.training);
  }
  if (!modes.recording || !f->has_gradient()) return out;
  auto gradient = std::make_unique<EagerFunctionGradient>();
  gradient->f = std::move(f);
  gradient->training = modes.training;
  gradient->in.assign(in.begin(), in.end());
  std::vector<Value*> raw, results;
  for (const Val& v : in) raw.push_back(v.get());
  for (Val& v : out) {
    gradient->out.push_back(v);  // the caller gets a view of it: the view has the node, which has this, and no cycle
    v = Val::adopt(new_alias(*v));
    results.push_back(v.get());
  }
  record_custom(raw, results, std::move(gradient));
  return out;
}

}  // namespace twibil
