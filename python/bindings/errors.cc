// SPDX-License-Identifier: Apache-2.0
// C++ exceptions as Python's.
#include <new>

#include "array_object.h"

namespace twibil::python {

static PyObject* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::value: return PyExc_ValueError;
    case ErrorKind::type: return PyExc_TypeError;
    case ErrorKind::index: return PyExc_IndexError;
    case ErrorKind::key: return PyExc_KeyError;
    case ErrorKind::memory: return PyExc_MemoryError;
    case ErrorKind::not_implemented: return PyExc_NotImplementedError;
    case ErrorKind::os: return PyExc_OSError;
    case ErrorKind::overflow: return PyExc_OverflowError;
    case ErrorKind::runtime: return PyExc_RuntimeError;
    case ErrorKind::attribute: return PyExc_AttributeError;
  }
  return PyExc_RuntimeError;
}

PyObject* raise_current() {
  try {
    throw;
  } catch (const PythonError&) {
    // set already
  } catch (const Error& e) {
    PyErr_SetString(class_of(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

}  // namespace twibil::python
