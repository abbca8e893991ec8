// SPDX-License-Identifier: Apache-2.0
// Calls an operator on values: the runtime runs it at once, or a trace records it. Gradients are written with this.
#pragma once
#include "ir/op.h"

namespace twibil {

using ApplyFunction = void (*)(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out);
extern ApplyFunction apply_hook;  // installed by the runtime

/// All visible outputs of `op`. Missing trailing optional inputs may be left out.
Vals apply_all(const OpDef& op, const void* attrs, std::span<const Val> in);
/// The first output.
Val apply(const OpDef& op, const void* attrs, std::initializer_list<Val> in);
template <class A>
requires(!std::is_pointer_v<A>) Val apply(const OpDef& op, const A& attrs, std::initializer_list<Val> in) {
  return apply(op, static_cast<const void*>(&attrs), in);
}
inline Val apply(const OpDef& op, std::initializer_list<Val> in) { return apply(op, op.attrs.defaults, in); }

/// Reads the default float and other process-wide rules.
DType default_float();

}  // namespace twibil
