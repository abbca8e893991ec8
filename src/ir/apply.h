// SPDX-License-Identifier: Apache-2.0
// Calls an operator on values: the runtime runs it at once, or a trace records it. Gradients are written with this.
#pragma once
#include <vector>

#include "ir/op.h"

namespace twibil {

using ApplyFunction = void (*)(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out);
extern ApplyFunction apply_hook;           // installed by the runtime
extern void (*wait_hook)(const Value& v);  // until the elements are there; installed by the runtime

/// Room for the outputs of one call, null at first.
class OutputPointers {
 public:
  OutputPointers(const OpDef& op, const void* attrs) : count_(op.visible_outputs(attrs)) {
    if (count_ > kFew) more_.resize(static_cast<size_t>(count_));
  }
  Value** data() { return more_.empty() ? few_ : more_.data(); }
  Value* operator[](int k) { return data()[k]; }
  int count() const { return count_; }

 private:
  static constexpr int kFew = 6;
  int count_;
  Value* few_[kFew] = {};
  std::vector<Value*> more_;
};

/// All visible outputs of `op`. Missing trailing optional inputs may be left out.
TW_API Vals apply_all(const OpDef& op, const void* attrs, std::span<const Val> in);
/// The first output.
TW_API Val apply(const OpDef& op, const void* attrs, std::initializer_list<Val> in);
template <class A>
requires(!std::is_pointer_v<A>) Val apply(const OpDef& op, const A& attrs, std::initializer_list<Val> in) {
  return apply(op, static_cast<const void*>(&attrs), in);
}
inline Val apply(const OpDef& op, std::initializer_list<Val> in) { return apply(op, op.attrs.defaults, in); }

/// The dtype of new arrays and of results that no input decides, the same in the whole process: float32, or float64
/// after set_default_float(float64), which is NumPy's rule.
TW_API DType default_float();
void set_default_float(DType t);  // a type error for others
/// The dtype of an array that is made from numbers: bool for a bool; int64 for an integer where NumPy's rule holds.
TW_API DType default_dtype(const Scalar& s);

}  // namespace twibil
