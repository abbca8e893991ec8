// SPDX-License-Identifier: Apache-2.0
// The Python object of an array lives in the head of its Value: wrapping allocates nothing, and one value has one
// object.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ir/value.h"
#include "runtime/eager.h"

namespace twibil::python {

struct ArrayObject {  // the first 24 bytes of a Value; instances of subclasses are this and nothing more
  PyObject_HEAD Value* value;
};
static_assert(offsetof(ArrayObject, value) == offsetof(Value, self), "the object head must fit into Value::front_end");

extern PyTypeObject ArrayType;
void add_quick_methods();  // to the type's dictionary (quick_method.h)

inline bool is_array(PyObject* o) { return Py_IS_TYPE(o, &ArrayType) || PyType_IsSubtype(Py_TYPE(o), &ArrayType); }
inline Value* value_of(PyObject* o) { return reinterpret_cast<ArrayObject*>(o)->value; }

/// The object of a value that never had one.
inline PyObject* wrap_new(Value* v) {
  PyObject* o = reinterpret_cast<PyObject*>(v);
  Py_SET_TYPE(o, &ArrayType);
  Py_SET_REFCNT(o, 1);
  return o;
}
/// Takes over one count of v; the object may exist already.
inline PyObject* wrap(Value* v) {
  if (v->front_end[0] == 0) return wrap_new(v);
  PyObject* o = reinterpret_cast<PyObject*>(v);
  Py_INCREF(o);
  release(v);
  return o;
}
inline PyObject* wrap(Val v) { return wrap(v.leak()); }

/// Sets the Python exception for the C++ one in flight; returns null.
PyObject* raise_current();
/// Calls f; a C++ exception becomes Python's. What Python calls goes through here, for nothing may be thrown into it.
template <class F> PyObject* guarded(F f) {
  try {
    return f();
  } catch (...) {
    return raise_current();
  }
}

/// An owned reference that is given back at the end of its scope.
class Ref {
 public:
  Ref(PyObject* o = nullptr) : o_(o) {}
  Ref(Ref&& other) noexcept : o_(std::exchange(other.o_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(o_, other.o_);
    return *this;
  }
  ~Ref() { Py_XDECREF(o_); }
  PyObject* get() const { return o_; }
  PyObject* leak() { return std::exchange(o_, nullptr); }
  explicit operator bool() const { return o_ != nullptr; }

 private:
  PyObject* o_;
};
/// Python's method tables hold functions of several kinds behind one type.
template <class F> PyCFunction as_method(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
/// Thrown when a Python exception is set already.
struct PythonError {};
inline PyObject* checked(PyObject* o) {
  if (!o) throw PythonError{};
  return o;
}
inline int checked(int status) {
  if (status < 0) throw PythonError{};
  return status;
}
inline bool is_true(PyObject* o) { return checked(PyObject_IsTrue(o)) != 0; }
/// The text of a str, which owns it; there is a zero behind it. Lone surrogates are refused: they have no UTF-8.
inline std::string_view utf8(PyObject* o) {
  Py_ssize_t size = 0;
  const char* s = PyUnicode_AsUTF8AndSize(o, &size);
  if (!s) throw PythonError{};
  return {s, static_cast<size_t>(size)};
}

}  // namespace twibil::python
