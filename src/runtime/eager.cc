// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager.h"

#include <vector>

#include "engine/variable.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "memory/allocator.h"
#include "runtime/launch.h"
#include "runtime/random_state.h"
#include "runtime/record.h"

namespace twibil {

namespace {

constexpr int kFewInputs = 8;

/// The inputs of a call, with absent optional ones filled in, and their signatures.
struct Inputs {
  Value* few[kFewInputs];
  Sig few_sigs[kFewInputs];
  std::vector<Value*> many;
  std::vector<Sig> many_sigs;
  std::span<Value* const> values;
  std::span<const Sig> sigs;

  Inputs(const OpDef& op, std::span<Value* const> given) {
    size_t n = given.size();
    if (!op.variadic()) n = std::max(n, static_cast<size_t>(op.inputs()));
    Value** v = few;
    Sig* s = few_sigs;
    if (n > kFewInputs) {
      many.resize(n);
      many_sigs.resize(n);
      v = many.data();
      s = many_sigs.data();
    }
    for (size_t i = 0; i < n; ++i) {
      v[i] = i < given.size() ? given[i] : nullptr;
      if (v[i]) s[i] = v[i]->sig();
      else s[i] = Sig{};
    }
    values = {v, n};
    sigs = {s, n};
  }
};

bool update_of(const OpDef& op, int k, int* input) {
  for (Pair u : op.updates)
    if (u.output == k) {
      *input = u.input;
      return true;
    }
  return false;
}

[[noreturn]] void overwritten_error(const OpDef& op, const Value& v) {
  throw_error(ErrorKind::value,
              text(op.name, ": the array of shape ", v.shape(), " that is written must be writable; it is read-only"));
}

/// Outputs that views can give: one header, no data touched.
bool make_view(const OpDef& op, const void* attrs, Value& x, Value** out) {
  Layout layout = op.view(attrs, x.layout());
  if (!layout.possible) return false;
  out[0] = new_view(x, layout);
  return true;
}

/// A write through a view of a recorded array would not be seen by the array's own history.
void check_recordable(const OpDef& op, const Value& written) {
  TW_CHECK(!(written.has(kView) && written.root->node), value, op.name,
           ": while recording, a view of a recorded array cannot be written; "
           "write through the array itself (x[key] = value), or use detach()");
}

void prepare_outputs(const OpDef& op, const Inputs& in, SigsOut sigs, Value** out, int n, bool recording) {
  for (int k = 0; k < n; ++k) {
    int updated;
    if (update_of(op, k, &updated)) {
      out[k] = in.values[updated];
      if (!out[k]) continue;
      retain(out[k]);  // before anything can throw: the caller releases what stands in `out`
      if (recording) check_recordable(op, *out[k]);
      if (out[k]->has(kReadOnly)) overwritten_error(op, *out[k]);
    } else if (!op.data_dependent) {
      out[k] = new_value(sigs[k].dtype, sigs[k].shape);
    }
  }
}

void check_given(const OpDef& op, const Value& out, const Sig& sig) {
  TW_CHECK(std::ranges::equal(out.shape(), sig.shape.span()), value, op.name, ": out must have shape ", sig.shape,
           "; got ", out.shape());
  bool lossy = (is_floating(sig.dtype) && !is_floating(out.dtype())) ||
               (sig.dtype != DType::bool_ && out.dtype() == DType::bool_);
  TW_CHECK(!lossy, type, op.name, ": the result of dtype ", sig.dtype, " cannot be stored in an array of dtype ",
           out.dtype(), ". Use astype first");
  if (out.has(kReadOnly)) overwritten_error(op, out);
}

/// Whether the kernel may write to `out` while it reads `x`: no shared storage, or element for element the same.
bool may_share(const Value& out, const Value& x) {
  if (out.root != x.root) return true;
  if (out.data != x.data || out.dtype() != x.dtype() || !std::ranges::equal(out.shape(), x.shape())) return false;
  int64_t a[kMaxRank], b[kMaxRank];
  out.copy_strides(a);
  x.copy_strides(b);
  return std::equal(a, a + out.rank(), b);
}

bool direct_write(const OpDef& op, const Value& out, const Inputs& in) {
  if (!op.pointwise()) return false;
  for (Value* x : in.values)
    if (x && !may_share(out, *x)) return false;
  return true;
}

/// Inputs that overlap what the operator writes are copied first, as NumPy does.
void separate_overlaps(const OpDef& op, Inputs& in, std::vector<Val>& copies) {
  for (Pair u : op.updates) {
    if (u.output < 0) break;
    Value* written = in.values[u.input];
    for (size_t i = 0; i < in.values.size(); ++i) {
      Value* x = in.values[i];
      if (static_cast<int>(i) == u.input || !x || !written || x->root != written->root) continue;
      copies.push_back(apply(op_with_role(Role::copy), {Val::share(x)}));
      const_cast<Value**>(in.values.data())[i] = copies.back().get();
    }
  }
}

struct Outputs {  // released unless handed over
  Value* values[6] = {};
  ~Outputs() {
    for (Value* v : values)
      if (v) release(v);
  }
};

void hand_over(const OpDef& op, Outputs& outputs, Value** out) {
  for (int k = 0; k < op.visible_outputs(); ++k) out[k] = std::exchange(outputs.values[k], nullptr);
}

void invoke_with_modes(const OpDef& op, const void* attrs, const Inputs& in, Value** out, Value* const* given,
                       bool recording) {
  int n = op.outputs();
  Outputs outputs;
  if (op.view && !given && make_view(op, attrs, *in.values[0], outputs.values)) {
    if (recording) record_call(op, attrs, in.values, {outputs.values, 1}, modes.training, {});
    return hand_over(op, outputs, out);
  }
  Sig sigs[6];
  if (op.view && !op.infer) {
    Layout layout = op.view(attrs, in.values[0]->layout());
    sigs[0] = {layout.shape, in.sigs[0].dtype};
    if (layout.possible) {  // out= was given
      Value* view = new_view(*in.values[0], layout);
      outputs.values[0] = view;
      check_given(op, *given[0], sigs[0]);
      assign(*given[0], *view);
      retain(given[0]);
      out[0] = given[0];
      return;
    }
  } else {
    infer_call(op, attrs, in.sigs, {sigs, static_cast<size_t>(n)});
  }
  if (given)
    for (int k = 0; k < op.visible_outputs(); ++k)
      if (given[k]) check_given(op, *given[k], sigs[k]);
  RandomKey key = op.random ? next_random_key() : RandomKey{};
  bool in_place = given && given[0] && direct_write(op, *given[0], in);
  if (recording && in_place) check_recordable(op, *given[0]);
  if (in_place) {
    retain(given[0]);
    outputs.values[0] = given[0];
  } else {
    prepare_outputs(op, in, {sigs, 6}, outputs.values, n, recording);
  }
  Launch l{.op = op,
           .attrs = attrs,
           .in = in.values,
           .out = {outputs.values, static_cast<size_t>(n)},
           .training = modes.training,
           .key = key};
  if (op.pointwise()) l.work = pointwise_types(op, in.sigs).work;
  if (op.data_dependent)  // the kernel allocates these and needs their dtypes
    for (int k = 0; k < n; ++k) l.out_dtypes[k] = sigs[k].dtype;
  launch(l);
  for (int k = 0, input; k < n; ++k)
    if (update_of(op, k, &input) && outputs.values[k]) bump_version(outputs.values[k]);
  if (in_place) bump_version(given[0]);
  if (recording) record_call(op, attrs, in.values, {outputs.values, static_cast<size_t>(n)}, l.training, key);
  hand_over(op, outputs, out);
  if (given && !in_place)
    for (int k = 0; k < op.visible_outputs(); ++k)
      if (given[k]) {
        Value* fresh = out[k];
        assign(*given[k], *fresh);
        if (fresh->node) set_node(given[k], share(fresh->node), fresh->node_output);
        release(fresh);
        retain(given[k]);
        out[k] = given[k];
      }
}

/// A call that stands for calls of other operators. False if a prediction has nothing to replace.
bool invoke_others(const OpDef& op, const void* attrs, const Inputs& in, Value** out, Value* const* given) {
  std::vector<Val> values;
  for (Value* v : in.values) values.push_back(Val::share(v));
  Vals y = op.expand ? op.expand(attrs, values) : op.predict(attrs, values);
  for (int k = 0; k < y.size(); ++k) {
    if (given && given[k]) {
      check_given(op, *given[k], y[k]->sig());
      assign(*given[k], *y[k]);
      if (y[k]->node) set_node(given[k], share(y[k]->node), y[k]->node_output);
      y[k] = Val::share(given[k]);
    }
    out[k] = y[k].leak();
  }
  return y.size() > 0;
}

void apply_eagerly(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out) {
  invoke(op, attrs, in, out);
}

}  // namespace

static void invoke_unnamed(const OpDef& op, const void* attrs, std::span<Value* const> given_in, Value** out,
                           Value* const* given) {
  TW_CHECK(op.variadic() || given_in.size() <= static_cast<size_t>(op.inputs()), type, op.name, ": takes ", op.inputs(),
           " arrays; got ", given_in.size());
  Inputs in(op, given_in);
  for (int i = 0; i < op.inputs(); ++i) {
    SlotKind kind = op.in[i].kind;
    if (kind == SlotKind::variadic || kind == SlotKind::optional) continue;
    TW_CHECK(in.values[i], type, op.name, ": argument ", op.in[i].name, " is missing; it must be an array");
  }
  if (op.expand || (op.predict && !modes.training))
    if (invoke_others(op, attrs, in, out, given)) return;
  std::vector<Val> copies;
  if (op.updates[0].output >= 0) separate_overlaps(op, in, copies);
  invoke_with_modes(op, attrs, in, out, given, must_record(op, in.values));
}

void invoke(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out, Value* const* given) {
  try {
    invoke_unnamed(op, attrs, in, out, given);
  } catch (Error& e) {  // of a part, or of a helper that does not know for whom it works
    std::string name = text(op.name, ": ");
    if (!e.message().starts_with(name)) e.prefix(name);
    throw;
  }
}

void assign(Value& dst, Value& src) {
  const OpDef& op = op_with_role(Role::assign);
  Value* in[2] = {&dst, &src};
  Value* out[6] = {};
  ModeScope quiet(false, modes.training);
  invoke(op, op.attrs.defaults, in, out);
  release(out[0]);
}

void install_runtime() {
  apply_hook = apply_eagerly;
  free_variable = [](engine::Variable* v) { destroy_block(v); };
}

}  // namespace twibil
