// SPDX-License-Identifier: Apache-2.0
// Runs one operator as it is called: types and shapes, views, outputs, the kernel, the tape. The short way for small
// arrays of one type stands in fast_path.h.
#pragma once
#include "ir/op.h"

namespace twibil {

/// Calls `op`. out[k] receives a counted value per visible output. `given[k]`, when not null, is written instead of a
/// fresh array (NumPy's `out=`), and comes back in out[k].
void invoke(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out, Value* const* given = nullptr);

/// A call that stands for calls of other operators. False if a prediction has nothing to replace.
bool rewrite_call(const OpDef& op, const void* attrs, std::span<Value* const> in, Value** out, Value* const* given);
/// Whether an array given as out= can take a result.
void check_given(const OpDef& op, const Value& out, const Sig& sig);

/// The short way of an operator that is `plain` (ir/op.h), on few and small arrays that are all there, ready, and of
/// the layout and dtype that the kernel takes. Null for all other calls, also those that are errors: nothing is done.
Value* call_plain(const OpDef& op, const void* attrs, std::span<Value* const> in);

/// Whether every array that the operator needs is there, and none that it does not take. Throws a type error.
void check_inputs(const OpDef& op, SigsIn in);
/// Shapes and dtypes of the outputs. Returns the dtype that a pointwise operator computes in.
DType infer_call(const OpDef& op, const void* attrs, SigsIn in, SigsOut out);

/// Copies src into dst (shapes broadcast, dtypes cast), a write like any other operator's.
void assign(Value& dst, Value& src);

/// Makes the runtime the one that `apply` runs on. Called once by whoever starts the library.
void install_runtime();

}  // namespace twibil
