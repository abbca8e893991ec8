// SPDX-License-Identifier: Apache-2.0
// x[key] and x[key] = value.
#pragma once
#include "array_object.h"

namespace twibil::python {

PyObject* array_subscript(PyObject* array, PyObject* key);
int array_assign_subscript(PyObject* array, PyObject* key, PyObject* value);
PyObject* array_item(PyObject* array, Py_ssize_t i);
PyObject* array_iterator(PyObject* array);
void prepare_iterator_type();

}  // namespace twibil::python
