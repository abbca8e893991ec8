// SPDX-License-Identifier: Apache-2.0
// The profiler for python/twibil/profiler.py.
#pragma once
#include "array_object.h"

namespace twibil::python {

void add_profiler(PyObject* module);

}  // namespace twibil::python
