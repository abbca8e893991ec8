// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "array_object.h"

namespace twibil::python {
/// Parameter files, pictures, atomic writing.
void add_files(PyObject* module);
/// The demo's pictures.
void add_scenes(PyObject* module);
}  // namespace twibil::python
