// SPDX-License-Identifier: Apache-2.0
#include "quick_method.h"

namespace twibil::python {

namespace {

struct Method {
  PyObject_HEAD vectorcallfunc vectorcall;
  const PyMethodDef* definition;
};
/// A method of one array. The collector does not know it: an array (not of a subclass) refers to no object, so there
/// can be no cycle through it.
struct Bound {
  PyObject_HEAD vectorcallfunc vectorcall;
  const PyMethodDef* definition;
  PyObject* array;
};
Bound* spare =
    nullptr;  // the last one that went away: most are gone before the next look. Under the interpreter's lock

extern PyTypeObject BoundType;

const PyMethodDef& definition_of(PyObject* self) {
  return Py_IS_TYPE(self, &BoundType) ? *reinterpret_cast<Bound*>(self)->definition
                                      : *reinterpret_cast<Method*>(self)->definition;
}

PyObject* refuse_arguments(PyObject* self, Py_ssize_t given) {
  return PyErr_Format(PyExc_TypeError, "ndarray.%s() takes no arguments (%zd given)", definition_of(self).ml_name,
                      given);
}
Py_ssize_t count(size_t flags, PyObject* names) {
  return PyVectorcall_NARGS(flags) + (names ? PyTuple_GET_SIZE(names) : 0);
}

PyObject* call_method(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  const PyMethodDef& m = *reinterpret_cast<Method*>(self)->definition;
  if (PyVectorcall_NARGS(flags) == 1 && !names && Py_IS_TYPE(args[0], &ArrayType)) return m.ml_meth(args[0], nullptr);
  if (PyVectorcall_NARGS(flags) < 1 || !is_array(args[0]))
    return PyErr_Format(PyExc_TypeError, "ndarray.%s() needs an array", m.ml_name);
  Py_ssize_t n = count(flags, names);
  return n == 1 ? m.ml_meth(args[0], nullptr) : refuse_arguments(self, n - 1);
}
PyObject* call_bound(PyObject* self, PyObject* const*, size_t flags, PyObject* names) {
  Py_ssize_t n = count(flags, names);
  return n ? refuse_arguments(self, n) : definition_of(self).ml_meth(reinterpret_cast<Bound*>(self)->array, nullptr);
}

PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance) return Py_INCREF(self), self;
  if (!Py_IS_TYPE(instance, &ArrayType)) return PyMethod_New(self, instance);
  Bound* b = std::exchange(spare, nullptr);
  if (b)
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(b), 1);  // it kept its type, which is no heap type: nothing counts it
  else b = PyObject_New(Bound, &BoundType);
  if (!b) return nullptr;
  b->vectorcall = call_bound;
  b->definition = reinterpret_cast<Method*>(self)->definition;
  b->array = (Py_INCREF(instance), instance);
  return reinterpret_cast<PyObject*>(b);
}

void dealloc(PyObject* self) {
  PyObject* array = reinterpret_cast<Bound*>(self)->array;
  if (spare) PyObject_Free(self);
  else spare = reinterpret_cast<Bound*>(self);
  Py_DECREF(array);  // last: what this runs may bind a method
}

PyObject* repr_method(PyObject* self) {
  return PyUnicode_FromFormat("<method '%s' of '%s' objects>", definition_of(self).ml_name, ArrayType.tp_name);
}
PyObject* repr_bound(PyObject* self) {
  return PyUnicode_FromFormat("<method %s of %s object at %p>", definition_of(self).ml_name, ArrayType.tp_name,
                              reinterpret_cast<Bound*>(self)->array);
}
PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(definition_of(self).ml_name); }
PyObject* get_qualified(PyObject* self, void*) {
  return PyUnicode_FromFormat("ndarray.%s", definition_of(self).ml_name);
}
PyObject* get_doc(PyObject* self, void*) { return PyUnicode_FromString(definition_of(self).ml_doc); }
PyObject* get_self(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<Bound*>(self)->array); }

// Two looks at one array give equal methods, as Python's own do.
PyObject* compare(PyObject* a, PyObject* b, int how) {
  if ((how != Py_EQ && how != Py_NE) || !Py_IS_TYPE(b, &BoundType)) Py_RETURN_NOTIMPLEMENTED;
  bool equal = reinterpret_cast<Bound*>(a)->array == reinterpret_cast<Bound*>(b)->array &&
               &definition_of(a) == &definition_of(b);
  return PyBool_FromLong(equal == (how == Py_EQ));
}
Py_hash_t hash(PyObject* self) {
  const Bound& b = *reinterpret_cast<Bound*>(self);
  return static_cast<Py_hash_t>((reinterpret_cast<uintptr_t>(b.array) >> 6) ^
                                reinterpret_cast<uintptr_t>(b.definition));
}

PyGetSetDef method_properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualified, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {},
};
PyGetSetDef bound_properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualified, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__self__", get_self, nullptr, nullptr, nullptr},
    {},
};

PyTypeObject MethodType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil.np.ndarray_method",
    .tp_basicsize = sizeof(Method),
    .tp_vectorcall_offset = offsetof(Method, vectorcall),
    .tp_repr = repr_method,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_getset = method_properties,
    .tp_descr_get = bind,
};
PyTypeObject BoundType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil.np.ndarray_bound_method",
    .tp_basicsize = sizeof(Bound),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(Bound, vectorcall),
    .tp_repr = repr_bound,
    .tp_hash = hash,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_richcompare = compare,
    .tp_getset = bound_properties,
};

}  // namespace

void prepare_quick_methods() {
  checked(PyType_Ready(&MethodType));
  checked(PyType_Ready(&BoundType));
}

PyObject* make_quick_method(const PyMethodDef& definition) {
  Method* m = PyObject_New(Method, &MethodType);
  checked(reinterpret_cast<PyObject*>(m));
  m->vectorcall = call_method;
  m->definition = &definition;
  return reinterpret_cast<PyObject*>(m);
}

}  // namespace twibil::python
