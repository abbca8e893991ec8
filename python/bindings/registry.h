// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "array_object.h"

namespace twibil::python {

/// Adds registry() and call_operator() to the module: what the tests that walk the registry stand on.
void add_registry(PyObject* module);

}  // namespace twibil::python
