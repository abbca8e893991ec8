// SPDX-License-Identifier: Apache-2.0
// Checks the inputs of a call against the operator's slots and dtypes, and decides shapes and dtypes of its outputs.
#include "ir/apply.h"
#include "runtime/eager.h"

namespace twibil {

static std::string list_dtypes(DTypeSet set) {
  std::string s;
  for (int i = 0; i < kDTypeCount; ++i)
    if (contains(set, static_cast<DType>(i)))
      s += (s.empty() ? "" : ", ") + std::string(name_of(static_cast<DType>(i)));
  return s;
}

static void check_dtype(const OpDef& op, DType t) {
  TW_CHECK(contains(op.types, t), type, op.name, ": dtype ", t, " is not supported; supported are ",
           list_dtypes(op.types));
}

namespace {

struct PointwiseTypes {
  DType work, out;
};

bool is_mask(const Program& p, size_t input) {
  for (int k = 0; k < p.input_count; ++k)
    if (p.sources[k] == input && p.reads_mask(k)) return true;
  return false;
}

/// A Python int that the integers of the arrays do not hold would wrap without a word. Comparisons take int64, which
/// holds both; everything else is an error, as in NumPy 2.
DType with_numbers(const OpDef& op, SigsIn in, DType work) {
  for (size_t i = 0; i < in.size(); ++i) {
    const Sig& s = in[i];
    if (!s.weak || s.dtype != DType::int64 || is_mask(*op.program, i) || holds(work, s.number)) continue;
    TW_CHECK(op.rule == Rule::compare || op.program->mask_output(), overflow, op.name, ": the number ", s.number,
             " must fit the dtype of the arrays, ", work, ". Use astype('int64') first");
    work = DType::int64;
  }
  return work;
}

PointwiseTypes pointwise_types(const OpDef& op, SigsIn in) {
  DType work = kUnknownDType;
  bool weak_real = false, weak_int = false, weak_bool = false;
  for (size_t i = 0; i < in.size(); ++i) {
    if (is_mask(*op.program, i)) continue;
    if (in[i].weak) {
      (is_floating(in[i].dtype) ? weak_real : in[i].dtype == DType::bool_ ? weak_bool : weak_int) = true;
    } else {
      work = work == kUnknownDType ? in[i].dtype : promote(work, in[i].dtype);
    }
  }
  if (work == kUnknownDType) work = weak_real ? default_float() : weak_int ? DType::int64 : DType::bool_;
  else work = promote_weak(work, weak_real, !weak_int, default_float());
  switch (op.rule) {
    case Rule::floating:
      if (!is_floating(work)) work = default_float();
      break;
    case Rule::arithmetic:
      if (work == DType::bool_) work = DType::int64;
      break;
    default: break;
  }
  if (weak_int && is_integer(work)) work = with_numbers(op, in, work);
  check_dtype(op, work);
  DType out = op.rule == Rule::compare || op.program->mask_output() ? DType::bool_ : work;
  return {is_half(work) ? DType::float32 : work, out};
}

}  // namespace

void check_inputs(const OpDef& op, SigsIn in) {
  size_t declared = static_cast<size_t>(op.inputs());
  TW_CHECK(op.variadic() || in.size() <= declared, type, op.name, ": takes ", declared, " arrays; got ", in.size());
  for (size_t i = 0; i < std::max(in.size(), declared); ++i) {
    const Slot& slot = op.in[std::min(i, declared - 1)];
    if (slot.kind == SlotKind::optional || (slot.kind == SlotKind::variadic && i >= in.size())) continue;
    TW_CHECK(i < in.size() && in[i].present(), type, op.name, ": argument ", slot.name,
             " is missing; it must be an array");
  }
}

DType infer_call(const OpDef& op, const void* attrs, SigsIn in, SigsOut out) {
  if (op.pointwise()) {
    PointwiseTypes types = pointwise_types(op, in);
    out[0].dtype = types.out;
    if (!in.empty()) out[0].shape = in[0].shape;
    for (size_t i = 1; i < in.size(); ++i)
      if (!(in[i].shape == out[0].shape)) out[0].shape = broadcast(out[0].shape, in[i].shape, op.name);
    return types.work;
  }
  if (op.infer) op.infer(attrs, in, out);
  if (op.creates) {
    check_dtype(op, out[0].dtype);
  } else {
    for (const Sig& s : in)
      if (s.present() && !s.weak) {
        check_dtype(op, s.dtype);
        break;
      }
  }
  return kUnknownDType;
}

}  // namespace twibil
