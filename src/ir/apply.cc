// SPDX-License-Identifier: Apache-2.0
#include "ir/apply.h"

#include <atomic>
#include <vector>

#include "ir/modes.h"

namespace twibil {

TW_API constinit thread_local Modes modes;
ApplyFunction apply_hook = nullptr;
void (*wait_hook)(const Value& v) = nullptr;

static std::atomic<DType> chosen_float = DType::float32;

DType default_float() { return chosen_float.load(std::memory_order_relaxed); }
void set_default_float(DType t) {
  TW_CHECK(t == DType::float32 || t == DType::float64, type, "the default dtype must be float32 or float64; got ", t);
  chosen_float.store(t, std::memory_order_relaxed);
}
DType default_dtype(const Scalar& s) {
  if (s.is_boolean()) return DType::bool_;
  return !s.is_real() && default_float() == DType::float64 ? DType::int64 : default_float();
}

static Vals collect(int count, Value** out) {
  Vals result;
  for (int k = 0; k < count; ++k) result.push_back(Val::adopt(out[k]));
  return result;
}

Vals apply_all(const OpDef& op, const void* attrs, std::span<const Val> in) {
  Value* few[8];
  std::vector<Value*> many;
  Value** values = few;
  if (in.size() > 8) many.resize(in.size()), values = many.data();
  for (size_t i = 0; i < in.size(); ++i) values[i] = in[i].get();
  OutputPointers out(op, attrs);
  apply_hook(op, attrs, {values, in.size()}, out.data());
  return collect(out.count(), out.data());
}

Val apply(const OpDef& op, const void* attrs, std::initializer_list<Val> in) {
  return apply_all(op, attrs, {in.begin(), in.size()})[0];
}

}  // namespace twibil
