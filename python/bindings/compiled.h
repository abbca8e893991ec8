// SPDX-License-Identifier: Apache-2.0
// Compiled graphs and traces for Python.
#pragma once
#include "array_object.h"

namespace twibil::python {
void add_compiled(PyObject* module);
void add_signature(PyObject* module);
}  // namespace twibil::python
