// SPDX-License-Identifier: Apache-2.0
// The array type: life of its objects, properties, and the few methods that are not operators.
#include "api/grad_req.h"
#include "convert.h"
#include "engine/variable.h"
#include "function.h"
#include "indexing.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/node.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "operators.h"
#include "quick_method.h"
#include "runtime/backward.h"
#include "runtime/launch.h"

namespace twibil::python {

Scalar read_scalar(const Value& v) {
  if (v.has(kTraced)) no_data_error("a number of an array");
  if (v.root->variable.load(std::memory_order_acquire)) wait_to_read(v);
  return scalar_of(v);
}

namespace {

void dealloc(PyObject* o) {
  Value* v = value_of(o);
  if (!Py_IS_TYPE(o, &ArrayType)) Py_TYPE(o)->tp_free(o);  // of a subclass; Python's own dealloc lets go of the type
  if (v) release(v);
}

// Subclasses get an object of their own that shares the array given to them.
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"object", "dtype", "ctx", nullptr};
  PyObject *object = nullptr, *dtype = Py_None, *ctx = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO", const_cast<char**>(kNames), &object, &dtype, &ctx))
    return nullptr;
  return guarded([&] {
    check_context(ctx);
    Val v = dtype == Py_None && is_array(object)
                ? Val::share(value_of(object))
                : to_array(object, dtype == Py_None ? Maybe<DType>() : Maybe<DType>(to_dtype(dtype)));
    if (type == &ArrayType) return wrap(v);
    PyObject* o = checked(type->tp_alloc(type, 0));
    reinterpret_cast<ArrayObject*>(o)->value = v.leak();
    return o;
  });
}

PyObject* get_shape(PyObject* o, void*) {
  return guarded([&] { return shape_tuple(value_of(o)->shape()); });
}
PyObject* get_dtype(PyObject* o, void*) {
  return guarded([&] { return dtype_object(value_of(o)->dtype()); });
}
PyObject* get_size(PyObject* o, void*) { return PyLong_FromLongLong(value_of(o)->size()); }
PyObject* get_ndim(PyObject* o, void*) { return PyLong_FromLong(value_of(o)->rank()); }
PyObject* get_itemsize(PyObject* o, void*) { return PyLong_FromLongLong(size_of(value_of(o)->dtype())); }
PyObject* get_nbytes(PyObject* o, void*) {
  return PyLong_FromLongLong(value_of(o)->size() * size_of(value_of(o)->dtype()));
}
PyObject* get_strides(PyObject* o, void*) {
  return guarded([&] {
    int64_t strides[kMaxRank];
    Value& v = *value_of(o);
    v.copy_strides(strides);
    for (int i = 0; i < v.rank(); ++i) strides[i] *= size_of(v.dtype());
    return shape_tuple({strides, static_cast<size_t>(v.rank())});
  });
}
PyObject* get_transposed(PyObject* o, void*) {
  return guarded([&] {
    // layers: operator names (what .T means)
    static const OpDef& op = require_op("transpose");
    Value* x = value_of(o);
    return call_op(op, op.attrs.defaults, {&x, 1}, nullptr);
  });
}
PyObject* get_context(PyObject*, void*) {
  return guarded([] {
    static PyObject* cpu = nullptr;
    if (!cpu) {
      Ref module(checked(PyImport_ImportModule("twibil.device")));
      cpu = checked(PyObject_CallMethod(module.get(), "cpu", nullptr));
    }
    return Py_NewRef(cpu);
  });
}
PyObject* get_grad(PyObject* o, void*) {
  Value* v = value_of(o);
  if (!v->leaf || !v->leaf->grad) Py_RETURN_NONE;
  retain(v->leaf->grad);
  return wrap(v->leaf->grad);
}
int set_grad(PyObject* o, PyObject* to, void*) {
  Value* v = value_of(o);
  if (to && is_array(to) && v->leaf && v->leaf->grad == value_of(to)) return 0;
  PyErr_SetString(PyExc_AttributeError, "grad cannot be replaced; use attach_grad() or x.grad[:] = value");
  return -1;
}
PyObject* get_grad_req(PyObject* o, void*) {
  Value* v = value_of(o);
  if (!v->leaf) Py_RETURN_NONE;
  return PyUnicode_FromString(name_of(v->leaf->grad_req));
}
PyObject* get_version(PyObject* o, void*) { return PyLong_FromUnsignedLong(value_of(o)->root->version); }
PyObject* get_default_storage(PyObject*, void*) { return PyUnicode_FromString("default"); }
PyObject* get_writable(PyObject* o, void*) { return PyBool_FromLong(!value_of(o)->has(kReadOnly)); }

PyObject* asnumpy(PyObject* o, PyObject*) {
  return guarded([&] { return to_numpy(*value_of(o)); });
}
PyObject* as_array(PyObject* o, PyObject* args, PyObject* keywords) {  // numpy's __array__(dtype=None, copy=None)
  static const char* kNames[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO", const_cast<char**>(kNames), &dtype, &copy)) return nullptr;
  return guarded([&] {
    TW_CHECK(copy != Py_False, value, "array: the elements cannot be shared with NumPy without a copy");
    Ref array(to_numpy(*value_of(o)));
    return dtype == Py_None ? array.leak() : PyObject_CallMethod(array.get(), "astype", "O", dtype);
  });
}
PyObject* item(PyObject* o, PyObject* args) {
  return guarded([&] {
    if (PyTuple_GET_SIZE(args)) {
      Ref element(checked(array_subscript(o, PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : args)));
      Ref none(checked(PyTuple_New(0)));
      return item(element.get(), none.get());
    }
    Value& v = *value_of(o);
    TW_CHECK(v.size() == 1, value, "item: the array must have one element; its shape is ", v.shape());
    Scalar s = read_scalar(v);
    return s.is_real()      ? PyFloat_FromDouble(s.real)
           : s.is_boolean() ? PyBool_FromLong(s.integer != 0)
                            : PyLong_FromLongLong(s.integer);
  });
}
PyObject* tolist(PyObject* o, PyObject*) {
  return guarded([&] {
    Ref array(to_numpy(*value_of(o)));
    return PyObject_CallMethod(array.get(), "tolist", nullptr);
  });
}
PyObject* wait_for_writes(PyObject* o, PyObject*) {
  if (engine::ready_to_read(value_of(o)->root->variable.load(std::memory_order_acquire))) Py_RETURN_NONE;
  return guarded([&] {
    wait_to_read(*value_of(o));
    Py_RETURN_NONE;
  });
}
PyObject* wait_for_all(PyObject* o, PyObject*) {
  return guarded([&] {
    wait_to_write(*value_of(o));
    Py_RETURN_NONE;
  });
}
PyObject* same(PyObject* o, PyObject*) { return Py_INCREF(o), o; }
PyObject* in_context(PyObject* o, PyObject* ctx) {
  return guarded([&] {
    check_context(ctx);
    return Py_NewRef(o);
  });
}
PyObject* detach(PyObject* o, PyObject*) {
  return guarded([&] {
    Value& v = *value_of(o);
    if (!modes.tracing) return wrap(new_alias(v));
    // layers: operator names (what detach means in a graph)
    static const OpDef& op = require_op("stop_gradient");
    return wrap(apply(op, {Val::share(&v)}));
  });
}

PyObject* attach(PyObject* o, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"grad_req", "stype", nullptr};
  const char* req = "write";
  PyObject* stype = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|sO", const_cast<char**>(kNames), &req, &stype)) return nullptr;
  return guarded([&] {
    attach_grad(*value_of(o), grad_req_of(req, "attach_grad"));
    Py_RETURN_NONE;
  });
}
PyObject* drop_grad(PyObject* o, PyObject*) {
  Value* v = value_of(o);
  if (v->leaf) {
    Node* leaf = std::exchange(v->leaf, nullptr);
    if (v->node == leaf) set_node(v, nullptr, 0);
    release(leaf);
  }
  Py_RETURN_NONE;
}
PyObject* backward_method(PyObject* o, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"out_grad", "retain_graph", "train_mode", nullptr};
  PyObject* head = Py_None;
  int retain = 0, train = 1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|Opp", const_cast<char**>(kNames), &head, &retain, &train))
    return nullptr;
  return guarded([&] {
    Val y = Val::share(value_of(o));
    Val dy = head == Py_None ? Val() : require_operand(head, "backward", "out_grad");
    backward({&y, 1}, {&dy, 1}, {.retain_graph = retain != 0, .training = train != 0});
    Py_RETURN_NONE;
  });
}
PyObject* copyto(PyObject* o, PyObject* other) {
  return guarded([&] {
    if (!is_array(other)) {
      check_context(other);
      return wrap(to_array(o, {}));
    }
    assign(*value_of(other), *value_of(o));
    return Py_NewRef(other);
  });
}
PyObject* astype(PyObject* o, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"dtype", "order", "casting", "subok", "copy", nullptr};
  PyObject *dtype = nullptr, *order = Py_None, *casting = Py_None;
  int subok = 1, copy = 1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOpp", const_cast<char**>(kNames), &dtype, &order, &casting,
                                   &subok, &copy))
    return nullptr;
  return guarded([&] {
    DType t = to_dtype(dtype);
    return !copy && t == value_of(o)->dtype() ? Py_NewRef(o) : wrap(to_array(o, t));
  });
}
PyObject* reduce(PyObject* o, PyObject*) {
  return guarded([&] {
    Ref array(to_numpy(*value_of(o))), module(checked(PyImport_ImportModule("twibil._core"))),
        make_array(checked(PyObject_GetAttrString(module.get(), "array"))), dtype(dtype_object(value_of(o)->dtype()));
    return Py_BuildValue("(O(OO))", make_array.get(), array.get(), dtype.get());
  });
}
PyObject* deepcopy(PyObject* o, PyObject*) {
  return guarded([&] { return wrap(to_array(o, {})); });
}
// NumPy's functions on our arrays come here; python/twibil/np decides what they mean.
PyObject* call_protocol(const char* name, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    Ref module(checked(PyImport_ImportModule("twibil.np._protocols")));
    Ref f(checked(PyObject_GetAttrString(module.get(), name)));
    return PyObject_Call(f.get(), args, keywords);
  });
}
PyObject* array_ufunc(PyObject*, PyObject* args, PyObject* keywords) {
  return call_protocol("array_ufunc", args, keywords);
}
PyObject* array_function(PyObject*, PyObject* args, PyObject* keywords) {
  return call_protocol("array_function", args, keywords);
}

PyObject* text_of(PyObject* o, const char* function) {
  return guarded([&] {
    Ref module(checked(PyImport_ImportModule("twibil._print")));
    return PyObject_CallMethod(module.get(), function, "O", o);
  });
}
PyObject* repr_slot(PyObject* o) { return text_of(o, "array_repr"); }
PyObject* str_slot(PyObject* o) { return text_of(o, "array_str"); }
PyObject* format_method(PyObject* o, PyObject* spec) {
  return guarded([&] {
    TW_CHECK(PyUnicode_Check(spec), type, "__format__: the format must be a string; got ", Py_TYPE(spec)->tp_name);
    Ref none(checked(PyTuple_New(0)));
    Ref number(checked(value_of(o)->rank() == 0 ? item(o, none.get()) : str_slot(o)));
    return PyObject_Format(number.get(), spec);
  });
}

PyGetSetDef properties[] = {
    {"shape", get_shape, nullptr, "Sizes of the dimensions, a tuple of int.", nullptr},
    {"dtype", get_dtype, nullptr, "Element type, a numpy.dtype (the string \"bfloat16\" for what NumPy lacks).",
     nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"strides", get_strides, nullptr, "Bytes from one element to the next, per dimension.", nullptr},
    {"T", get_transposed, nullptr, "The array with its dimensions reversed, a view.", nullptr},
    {"ctx", get_context, nullptr, "The device that holds the elements.", nullptr},
    {"context", get_context, nullptr, "The device that holds the elements.", nullptr},
    {"device", get_context, nullptr, "The device that holds the elements.", nullptr},
    {"grad", get_grad, set_grad, "The gradient array made by attach_grad(); None without one.", nullptr},
    {"_version", get_version, nullptr, "How often the memory of this array was written to.", nullptr},
    {"grad_req", get_grad_req, nullptr, "How backward treats the gradient array: write, add or null.", nullptr},
    {"stype", get_default_storage, nullptr, "Always \"default\": arrays are dense.", nullptr},
    {"writable", get_writable, nullptr, "Whether elements may be assigned.", nullptr},
    {},
};
PyMethodDef methods[] = {
    {"asnumpy", asnumpy, METH_NOARGS, "A NumPy copy; waits for the elements. bfloat16 comes as float32."},
    {"__array__", as_method(as_array), METH_VARARGS | METH_KEYWORDS, "NumPy's protocol; a copy."},
    {"item", item, METH_VARARGS, "The one element (or the one at the given index) as a Python number."},
    {"asscalar", item, METH_VARARGS, "The one element as a Python number."},
    {"tolist", tolist, METH_NOARGS, "Nested lists of Python numbers."},
    {"wait_to_write", wait_for_all, METH_NOARGS, "Waits until nobody reads or writes the elements."},
    {"as_np_ndarray", same, METH_NOARGS, "This array."},
    {"as_nd_ndarray", same, METH_NOARGS, "This array: there is one array type."},
    {"as_in_ctx", in_context, METH_O, "This array on a device."},
    {"as_in_context", in_context, METH_O, "This array on a device."},
    {"to_device", in_context, METH_O, "This array on a device."},
    {"detach", detach, METH_NOARGS, "The same elements without their history: no gradient flows through."},
    {"attach_grad", as_method(attach), METH_VARARGS | METH_KEYWORDS,
     "Makes this array a variable with a gradient array; grad_req is write, add or null."},
    {"drop_grad", drop_grad, METH_NOARGS, "Undoes attach_grad()."},
    {"backward", as_method(backward_method), METH_VARARGS | METH_KEYWORDS,
     "Computes gradients of this array (ones by default as its own) for all variables it came from."},
    {"copyto", copyto, METH_O, "Writes the elements into another array, which is returned."},
    {"astype", as_method(astype), METH_VARARGS | METH_KEYWORDS, "The elements converted to another dtype."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__deepcopy__", deepcopy, METH_O, nullptr},
    {"__copy__", deepcopy, METH_NOARGS, nullptr},
    {"__format__", format_method, METH_O, nullptr},
    {"__array_ufunc__", as_method(array_ufunc), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__array_function__", as_method(array_function), METH_VARARGS | METH_KEYWORDS, nullptr},
    {},
};

PyMethodDef wait_to_read_method = {"wait_to_read", wait_for_writes, METH_NOARGS,
                                   "Waits until the elements are computed; raises what went wrong in them."};

Py_ssize_t length(PyObject* o) {
  Value& v = *value_of(o);
  if (v.rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of an array without dimensions");
    return -1;
  }
  return v.dims[0];
}
PyMappingMethods mapping = {
    .mp_length = length, .mp_subscript = array_subscript, .mp_ass_subscript = array_assign_subscript};
PySequenceMethods sequence = {.sq_length = length, .sq_item = array_item, .sq_contains = nullptr};

Py_hash_t hash(PyObject* o) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(value_of(o)) >> 6); }

}  // namespace

void add_quick_methods() {
  Ref method(make_quick_method(wait_to_read_method));
  checked(PyDict_SetItemString(ArrayType.tp_dict, wait_to_read_method.ml_name, method.get()));
}

PyTypeObject ArrayType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil.np.ndarray",
    .tp_basicsize = sizeof(ArrayObject),
    .tp_dealloc = dealloc,
    .tp_repr = repr_slot,
    .tp_as_number = &number_methods,
    .tp_as_sequence = &sequence,
    .tp_as_mapping = &mapping,
    .tp_hash = hash,
    .tp_str = str_slot,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "A dense array of numbers. Slices, transposes and reshapes are views; arithmetic follows NumPy's broadcasting.",
    .tp_richcompare = compare_slot,
    .tp_iter = array_iterator,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = make,
};

}  // namespace twibil::python
