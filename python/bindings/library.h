// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "array_object.h"

namespace twibil::python {

/// Adds load_operators() to the module.
void add_library(PyObject* module);

}  // namespace twibil::python
