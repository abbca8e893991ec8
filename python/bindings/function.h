// SPDX-License-Identifier: Apache-2.0
// One callable object per public name of an operator; it is function and method at once.
#pragma once
#include "array_object.h"
#include "ir/op.h"

namespace twibil::python {

extern PyTypeObject FunctionType;
/// A new function object. `name` outlives it (a string of the operator's definition).
PyObject* make_function(const OpDef& op, const char* name);
void prepare_function_type();
/// Runs one operator for Python: an array, or a list of them when several outputs are visible.
PyObject* call_op(const OpDef& op, const void* attrs, std::span<Value* const> in, Value* const* given);

}  // namespace twibil::python
