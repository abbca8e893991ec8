// SPDX-License-Identifier: Apache-2.0
// A method of arrays without arguments that is looked up about as often as it is called: generic code asks
// hasattr(x, "wait_to_read") of every result. Python's own method descriptor makes an object for the garbage collector
// at each look, which takes longer than the wait.
#pragma once
#include "array_object.h"

namespace twibil::python {

void prepare_quick_methods();
/// A new descriptor for the type's dictionary. `definition` (METH_NOARGS) outlives it.
PyObject* make_quick_method(const PyMethodDef& definition);

}  // namespace twibil::python
