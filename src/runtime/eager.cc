// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager.h"

#include <vector>

#include "base/profile.h"
#include "engine/variable.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "memory/allocator.h"
#include "runtime/launch.h"
#include "runtime/profiler.h"
#include "runtime/random_state.h"
#include "runtime/record.h"
#include "runtime/trace_call.h"

namespace twibil {

namespace {

constexpr size_t kFewInputs = 8;
constexpr int kMaxOutputs = 6;

/// The inputs of a call, with absent optional ones filled in, and their signatures. Room for a few stands here and is
/// not initialised: most operators have one or two inputs, and clearing eight signatures costs more than running them.
class Inputs {
 public:
  std::span<Value*> values;
  std::span<const Sig> sigs;
  bool traced = false;  // a call inside a trace

  Inputs(const OpDef& op, std::span<Value* const> given) {
    size_t n = given.size();
    if (!op.variadic()) n = std::max(n, static_cast<size_t>(op.inputs()));
    Value** v = few_;
    Sig* s = reinterpret_cast<Sig*>(few_sigs_);
    if (n > kFewInputs) {
      many_.resize(n);
      many_sigs_.resize(n);
      v = many_.data();
      s = many_sigs_.data();
    }
    for (size_t i = 0; i < n; ++i) {
      v[i] = i < given.size() ? given[i] : nullptr;
      new (s + i) Sig(v[i] ? v[i]->sig() : Sig{});
      traced |= v[i] && v[i]->has(kTraced);
    }
    traced |= modes.tracing || (op.random && tracer);
    values = {v, n};
    sigs = {s, n};
  }
  Inputs(const Inputs&) = delete;

 private:
  Value* few_[kFewInputs];
  alignas(Sig) std::byte few_sigs_[kFewInputs * sizeof(Sig)];
  std::vector<Value*> many_;
  std::vector<Sig> many_sigs_;
};

/// Signatures of outputs, as many as the operator has.
struct OutputSigs {
  alignas(Sig) std::byte room[kMaxOutputs * sizeof(Sig)];
  std::span<Sig> sigs;
  explicit OutputSigs(int n) : sigs(reinterpret_cast<Sig*>(room), static_cast<size_t>(n)) {
    for (Sig& s : sigs) new (&s) Sig;
  }
  OutputSigs(const OutputSigs&) = delete;
};

bool update_of(const OpDef& op, int k, int* input) {
  if (!op.writes_inputs()) return false;
  for (Pair u : op.updates)
    if (u.output == k) {
      *input = u.input;
      return true;
    }
  return false;
}

[[noreturn]] void read_only_error(const OpDef& op, const Value& v) {
  throw_error(ErrorKind::value,
              text(op.name, ": the array of shape ", v.shape(), " that is written must be writable; it is read-only"));
}

/// Outputs that views can give: one header, no data touched.
bool make_view(const OpDef& op, const void* attrs, Value& x, Value** out) {
  if (op.in_order && !x.has(kSlow) && x.size()) {
    const Sig sig{Shape(x.dims, x.rank()), x.dtype()};
    Sig result;
    op.infer(attrs, {&sig, 1}, {&result, 1});
    out[0] = new_reshaped(x, result.shape);
    return true;
  }
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
  TW_CHECK(!(written.leaf && written.node == written.leaf && written.leaf->grad_req != GradReq::null), value, op.name,
           ": while recording, a variable with a gradient cannot be written; write it outside of autograd.record(), or "
           "within autograd.pause()");
}

void prepare_outputs(const OpDef& op, const Inputs& in, SigsOut sigs, Value** out, int n, bool recording) {
  for (int k = 0; k < n; ++k) {
    int updated;
    if (update_of(op, k, &updated)) {
      out[k] = in.values[updated];
      if (!out[k]) continue;
      retain(out[k]);  // before anything can throw: the caller releases what stands in `out`
      if (recording) check_recordable(op, *out[k]);
      if (out[k]->has(kReadOnly)) read_only_error(op, *out[k]);
    } else if (!op.data_dependent) {
      out[k] = new_value(sigs[k].dtype, sigs[k].shape);
    }
  }
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
      in.values[i] = copies.back().get();
    }
  }
}

struct Outputs {  // released unless handed over
  Value* values[kMaxOutputs];
  int count;
  explicit Outputs(int n) : count(n) { std::fill_n(values, n, nullptr); }
  Outputs(const Outputs&) = delete;
  ~Outputs() {
    for (int k = 0; k < count; ++k)
      if (values[k]) release(values[k]);
  }
  std::span<Value*> span() { return {values, static_cast<size_t>(count)}; }
  void hand_over(const OpDef& op, Value** out) {
    for (int k = 0; k < op.visible_outputs(); ++k) out[k] = std::exchange(values[k], nullptr);
  }
};

/// The history of an array that was overwritten by something that is not recorded is no longer its own.
void forget_history(Value& y) {
  if (modes.recording && y.node && !y.leaf) set_node(&y, nullptr, 0);
}

/// y takes the elements of `fresh`, and its place on the tape.
void store_result(Value& y, Value& fresh) {
  assign(y, fresh);
  if (fresh.node) set_node(&y, share(fresh.node), fresh.node_output);
  else forget_history(y);
}

/// out= for an operator whose result is a view: a copy of it.
void copy_view(const OpDef& op, Value& view, Value** out, Value* const* given) {
  check_given(op, *given[0], view.sig());
  assign(*given[0], view);
  retain(given[0]);
  out[0] = given[0];
}

void run_call(const OpDef& op, const void* attrs, const Inputs& in, Value** out, Value* const* given, bool recording) {
  int n = op.outputs();
  Outputs outputs(n);
  if (op.view && (!given || !op.infer) && make_view(op, attrs, *in.values[0], outputs.values)) {
    if (given) return copy_view(op, *outputs.values[0], out, given);
    if (recording) record_call(op, attrs, in.values, outputs.span(), modes.training, {});
    return outputs.hand_over(op, out);
  }
  OutputSigs inferred(n);
  SigsOut sigs = inferred.sigs;
  DType work = kUnknownDType;
  if (op.view && !op.infer) sigs[0] = {op.view(attrs, in.values[0]->layout()).shape, in.sigs[0].dtype};
  else work = infer_call(op, attrs, in.sigs, sigs);
  if (given)
    for (int k = 0; k < op.visible_outputs(); ++k)
      if (given[k]) check_given(op, *given[k], sigs[static_cast<size_t>(k)]);
  RandomKey key = op.random ? next_random_key() : RandomKey{};
  bool in_place = given && given[0] && direct_write(op, *given[0], in);
  if (in_place) {
    retain(given[0]);
    outputs.values[0] = given[0];
  } else {
    prepare_outputs(op, in, sigs, outputs.values, n, recording);
  }
  Launch l{.op = op,
           .attrs = attrs,
           .in = in.values,
           .out = outputs.span(),
           .in_sigs = in.sigs,
           .out_sigs = sigs,
           .work = work,
           .training = modes.training,
           .key = key};
  launch(l);
  if (op.writes_inputs())
    for (int k = 0, input; k < n; ++k)
      if (update_of(op, k, &input) && outputs.values[k]) bump_version(outputs.values[k]);
  if (in_place) bump_version(given[0]);
  if (recording) record_call(op, attrs, in.values, outputs.span(), l.training, key);
  else if (in_place) forget_history(*given[0]);
  outputs.hand_over(op, out);
  if (given && !in_place)
    for (int k = 0; k < op.visible_outputs(); ++k)
      if (given[k]) {
        Val fresh = Val::adopt(out[k]);
        retain(given[k]);
        out[k] = given[k];
        store_result(*given[k], *fresh);
      }
}

void apply_eagerly(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out) {
  invoke(op, attrs, in, out);
}

}  // namespace

void check_given(const OpDef& op, const Value& out, const Sig& sig) {
  TW_CHECK(!op.data_dependent, value, op.name,
           ": out cannot be given, as the size of the result is known only once it is computed");
  TW_CHECK(std::ranges::equal(out.shape(), sig.shape.span()), value, op.name, ": out must have shape ", sig.shape,
           "; got ", out.shape());
  bool lossy = (is_floating(sig.dtype) && !is_floating(out.dtype())) ||
               (sig.dtype != DType::bool_ && out.dtype() == DType::bool_);
  TW_CHECK(!lossy, type, op.name, ": the result of dtype ", sig.dtype, " cannot be stored in an array of dtype ",
           out.dtype(), ". Use astype first");
  if (out.has(kReadOnly)) read_only_error(op, out);
  if (modes.recording) check_recordable(op, out);
}

bool rewrite_call(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out, Value* const* given) {
  std::vector<Val> values;
  for (Value* v : in) values.push_back(Val::share(v));
  Vals y = op.expand ? op.expand(attrs, values) : op.predict(attrs, values);
  if (y.size() == 0) return false;
  TW_ASSERT(y.size() == op.visible_outputs(attrs));
  for (int k = 0; given && k < y.size(); ++k)
    if (given[k]) check_given(op, *given[k], y[k]->sig());
  for (int k = 0; given && k < y.size(); ++k)
    if (given[k]) {
      store_result(*given[k], *y[k]);
      y[k] = Val::share(given[k]);
    }
  for (int k = 0; k < y.size(); ++k) out[k] = y[k].leak();
  return true;
}

[[gnu::noinline]] static void invoke_long(const OpDef& op, const void* attrs, std::span<Value* const> given_in,
                                          Value** out, Value* const* given) {
  Inputs in(op, given_in);
  check_inputs(op, in.sigs);
  for (int k = 0; given && k < op.visible_outputs(attrs); ++k) in.traced |= given[k] && given[k]->has(kTraced);
  if (in.traced) return trace_call(op, attrs, in.values, in.sigs, out, given);
  if (op.expand || (op.predict && !modes.training))
    if (rewrite_call(op, attrs, in.values, out, given)) return;
  std::vector<Val> copies;
  if (op.writes_inputs()) separate_overlaps(op, in, copies);
  run_call(op, attrs, in, out, given, must_record(op, in.values));
}

/// While the profiler runs: the long way, where kernels are timed. Out of line, as a timer's destructor costs its
/// function registers.
[[gnu::noinline, gnu::cold]] static void invoke_timed(const OpDef& op, const void* attrs, std::span<Value* const> in,
                                                      Value** out, Value* const* given) {
  profiler::CallTimer timer(op.name);
  invoke_long(op, attrs, in, out, given);
}

void invoke(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out, Value* const* given) {
  try {
    if (profile::on(profile::kAllParts)) [[unlikely]]
      return invoke_timed(op, attrs, in, out, given);
    if (modes.tracing) {
      // every call is traced
    } else if (!given && op.plain) {
      out[0] = call_plain(op, attrs, in);
      if (out[0]) return;
    } else if (!given && op.view && in.size() == 1 && in[0] && !in[0]->has(kTraced) &&
               !(modes.recording && must_record(op, in))) {
      if (make_view(op, attrs, *in[0], out)) return;
    }
    invoke_long(op, attrs, in, out, given);
  } catch (Error& e) {
    name_error(op, e);
    throw;
  }
}

void assign(Value& dst, Value& src) {
  const OpDef& op = op_with_role(Role::assign);
  Value* in[2] = {&dst, &src};
  Value* out[1];
  ModeScope quiet(false, modes.training);
  invoke(op, op.attrs.defaults, in, out);
  release(out[0]);
}

void install_runtime() {
  apply_hook = apply_eagerly;
  wait_hook = wait_to_read;
  free_variable = [](engine::Variable* v) { destroy_block(v); };
}

}  // namespace twibil
