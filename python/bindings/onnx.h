// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "array_object.h"

namespace twibil::python {

/// Reading of ONNX models.
void add_onnx(PyObject* module);

}  // namespace twibil::python
