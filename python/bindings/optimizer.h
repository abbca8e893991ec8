// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "array_object.h"

namespace twibil::python {
void add_optimizer(PyObject* module);
}
