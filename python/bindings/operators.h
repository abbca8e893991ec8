// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "array_object.h"

namespace twibil::python {

extern PyNumberMethods number_methods;
PyObject* compare_slot(PyObject* a, PyObject* b, int how);
void prepare_operators();  // resolves kernels; once, at import
/// The number in a one-element array, waiting for it if need be.
Scalar read_scalar(const Value& v);

}  // namespace twibil::python
