// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/profile.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "kernels/copy.h"
#include "runtime/launch.h"

namespace twibil::python {

PyObject* numpy_module() {
  static PyObject* numpy = nullptr;
  if (!numpy) numpy = checked(PyImport_ImportModule("numpy"));
  return numpy;
}

PyObject* dtype_object(DType t) {
  static PyObject* known[kDTypeCount] = {};
  PyObject*& place = known[static_cast<int>(t)];
  if (!place) {
    if (t == DType::bfloat16) place = checked(PyUnicode_InternFromString("bfloat16"));
    else place = checked(PyObject_CallMethod(numpy_module(), "dtype", "s", std::string(name_of(t)).c_str()));
  }
  Py_INCREF(place);
  return place;
}

DType to_dtype(PyObject* o) {
  for (int i = 0; i < kDTypeCount; ++i) {  // the usual case: one of the objects that we gave out
    Ref known(dtype_object(static_cast<DType>(i)));
    if (known.get() == o) return static_cast<DType>(i);
  }
  if (PyUnicode_Check(o)) {
    return dtype_from_name(utf8(o));
  }
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::float64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::int64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::bool_;
  Ref name(PyObject_GetAttrString(o, "name"));  // numpy.dtype
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    name = Ref(PyObject_GetAttrString(o, "__name__"));  // numpy.float32
  }
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    throw_error(ErrorKind::type,
                text("dtype must be a NumPy dtype, a Python type or a name; got ", Py_TYPE(o)->tp_name));
  }
  return dtype_from_name(utf8(name.get()));
}

bool to_scalar(PyObject* o, Scalar* s) {
  if (PyFloat_Check(o)) return *s = Scalar(PyFloat_AS_DOUBLE(o)), true;
  if (PyBool_Check(o)) return *s = Scalar(o == Py_True), true;
  if (PyLong_Check(o)) {
    int overflow;
    int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) {
      double d = PyLong_AsDouble(o);
      if (d == -1.0 && PyErr_Occurred()) throw PythonError{};
      return *s = Scalar(d), true;
    }
    return *s = Scalar(v), true;
  }
  return false;
}

void check_fits(PyObject* number, DType t, const char* op) {
  if (!PyLong_Check(number) || !is_integer(t)) return;
  int overflow;
  (void)PyLong_AsLongLongAndOverflow(number, &overflow);
  TW_CHECK(!overflow, overflow, op, ": the number does not fit 64 bits, and the dtype is ", t,
           ". Use a float dtype to round it");
}

static bool is_numpy_scalar(PyObject* o) {
  static PyObject* generic = checked(PyObject_GetAttrString(numpy_module(), "generic"));
  return PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(generic));
}
bool is_numpy_integer(PyObject* o) {
  static PyObject* integer = checked(PyObject_GetAttrString(numpy_module(), "integer"));
  return PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(integer));
}

static int64_t whole_number(PyObject* o, const Purpose& what) {
  int overflow;
  int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
  TW_CHECK(!overflow, value, what, " does not fit 64 bits");
  return v;
}

int64_t to_int(PyObject* o, const Purpose& what) {
  if (PyLong_CheckExact(o)) return whole_number(o, what);
  Ref index(PyNumber_Index(o));
  if (!index) {
    PyErr_Clear();
    Scalar s;  // a whole float, as NumPy's users write from divisions
    if (PyFloat_Check(o) && to_scalar(o, &s) && s.real == std::floor(s.real) && std::fabs(s.real) < 9e18)
      return s.as_int();
    throw_error(ErrorKind::type, text(what, " must be an integer; got ", Py_TYPE(o)->tp_name));
  }
  return whole_number(index.get(), what);
}

void read_int_list(PyObject* o, const Purpose& what, IntList& to) {
  to.count = 0;
  if (PyLong_CheckExact(o)) return to.push_back(whole_number(o, what));
  if (PyTuple_Check(o) || PyList_Check(o)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    TW_CHECK(n <= IntList::capacity, value, what, " must hold at most ", IntList::capacity, " integers; got ",
             static_cast<int64_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) to.push_back(to_int(PySequence_Fast_GET_ITEM(o, i), what));
    return;
  }
  if (!PyLong_Check(o) && PySequence_Check(o) && !is_array(o)) {
    Ref sequence(checked(PySequence_Tuple(o)));
    return read_int_list(sequence.get(), what, to);
  }
  to.push_back(to_int(o, what));
}

PyObject* shape_tuple(std::span<const int64_t> dims) {
  Ref t(checked(PyTuple_New(static_cast<Py_ssize_t>(dims.size()))));
  for (size_t i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(t.get(), i, checked(PyLong_FromLongLong(dims[i])));
  return t.leak();
}

void check_context(PyObject* o) {
  static PyObject* accepted = nullptr;  // the last device that passed: mostly the one that arrays name as theirs
  if (o == Py_None || o == accepted) return;
  Ref s(checked(PyObject_Str(o)));
  std::string_view name = utf8(s.get());
  TW_CHECK(name.starts_with("cpu"), value, "device ", name,
           " is not there: this build runs on the CPU, and num_gpus() is 0. Use cpu()");
  Py_INCREF(o);
  Py_XSETREF(accepted, o);
}

// ---- values ----

namespace {

struct NumpyView {
  Py_buffer buffer{};  // without `obj` where NumPy has none for elements of the kind, which it says by a ValueError
  explicit NumpyView(PyObject* o, int flags) {
    if (PyObject_GetBuffer(o, &buffer, flags) == 0) return;
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw PythonError{};
    PyErr_Clear();
    buffer.obj = nullptr;
  }
  ~NumpyView() { PyBuffer_Release(&buffer); }
  NumpyView(const NumpyView&) = delete;
};

// The dtype of a buffer's elements; unknown for what we do not have (int16, complex, strings).
DType buffer_dtype(const Py_buffer& b) {
  const char* f = b.format ? b.format : "B";
  if (*f == '@' || *f == '=' || *f == '<') ++f;
  if (f[0] == '\0' || f[1] != '\0') return kUnknownDType;
  switch (*f) {
    case '?': return DType::bool_;
    case 'b': return DType::int8;
    case 'B': return DType::uint8;
    case 'e': return DType::float16;
    case 'f': return DType::float32;
    case 'd': return DType::float64;
    case 'i':
    case 'l':
    case 'q':
    case 'n': return b.itemsize == 8 ? DType::int64 : b.itemsize == 4 ? DType::int32 : kUnknownDType;
    default: return kUnknownDType;
  }
}

/// The NumPy dtype that elements without a dtype of ours are cast to first, so that they keep their values.
Ref nearest_dtype(PyObject* o, Maybe<DType> wanted) {
  Ref type(checked(PyObject_GetAttrString(o, "dtype")));
  Ref letter(checked(PyObject_GetAttrString(type.get(), "kind"))), text_of(checked(PyObject_Str(type.get())));
  std::string_view kind = utf8(letter.get());
  TW_CHECK(kind == "i" || kind == "u" || kind == "f", type, "array: elements must be numbers; got NumPy dtype ",
           utf8(text_of.get()));
  if (!is_true(Ref(checked(PyObject_GetAttrString(type.get(), "isnative"))).get()))
    return checked(PyObject_CallMethod(type.get(), "newbyteorder", "s", "="));
  if (kind == "f") return dtype_object(DType::float64);  // loses what float64 lacks
  Ref bytes(checked(PyObject_GetAttrString(type.get(), "itemsize")));
  if (kind == "i" || to_int(bytes.get(), "itemsize") < 8) return dtype_object(DType::int64);
  DType to = wanted.value_or(DType::int64);
  if (to == DType::bool_ || to == DType::float32) return dtype_object(to);
  if (is_floating(to)) return dtype_object(DType::float64);
  if (is_true(Ref(checked(PyObject_GetAttrString(o, "size"))).get())) {
    Ref largest(checked(PyObject_CallMethod(o, "max", nullptr)));
    int overflow;
    Ref number(checked(PyNumber_Index(largest.get())));
    (void)PyLong_AsLongLongAndOverflow(number.get(), &overflow);
    TW_CHECK(!overflow, overflow, "array: ", utf8(Ref(checked(PyObject_Str(number.get()))).get()),
             " does not fit int64, the widest integer dtype. Use dtype=\"float64\" to round it");
  }
  return dtype_object(DType::int64);
}

Val from_numpy(PyObject* o, Maybe<DType> dtype) {
  NumpyView view(o, PyBUF_RECORDS_RO);
  const Py_buffer& b = view.buffer;
  // A numpy.datetime64 calls itself a row of bytes without strides; arrays of them have no buffer.
  DType from = !b.obj || (b.ndim > 0 && !b.strides) ? kUnknownDType : buffer_dtype(b);
  if (from == kUnknownDType) {
    // A plain array: the conversion runs no code of a subclass.
    Ref cast(checked(PyObject_CallMethod(numpy_module(), "array", "OO", o, nearest_dtype(o, dtype).get())));
    return from_numpy(cast.get(), dtype);
  }
  TW_CHECK(b.ndim <= kMaxRank, value, "array: at most ", kMaxRank, " dimensions; got ", b.ndim);
  Shape shape;
  int64_t strides[kMaxRank], out_strides[kMaxRank];
  // Fields of records and parts of files lie anywhere; kernels take elements at multiples of their size.
  bool aligned = reinterpret_cast<uintptr_t>(b.buf) % static_cast<uintptr_t>(b.itemsize) == 0;
  for (int i = 0; i < b.ndim; ++i) {
    shape.push_back(b.shape[i]);
    aligned &= b.strides[i] % b.itemsize == 0;
    strides[i] = b.strides[i] / b.itemsize;
  }
  if (!aligned) {
    Ref copy(checked(PyObject_CallMethod(numpy_module(), "array", "(O)", o)));
    return from_numpy(copy.get(), dtype);
  }
  contiguous_strides(shape, out_strides);
  Val v = Val::adopt(new_value(dtype.value_or(from), shape));
  size_t rank = static_cast<size_t>(b.ndim);
  kernels::convert(from, v->dtype(), shape, b.buf, {strides, rank}, v->data, {out_strides, rank});
  return modes.tracing ? traced_constant(v) : v;
}

Val from_scalar(const Scalar& s, DType dtype) {
  Val v = Val::adopt(new_value(dtype, {}));
  kernels::fill(dtype, {}, v->data, {}, s);
  return modes.tracing ? traced_constant(v) : v;
}

/// Whether nested lists hold an array of which `is_one` is true.
template <class F> bool holds_array(PyObject* o, F is_one, int depth = 0) {
  if (is_array(o)) return is_one(*value_of(o));
  if ((!PyList_Check(o) && !PyTuple_Check(o)) || depth > kMaxRank) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (holds_array(PySequence_Fast_GET_ITEM(o, i), is_one, depth + 1)) return true;
  return false;
}

/// The items of a list in a tuple of their own: converting one may run code that changes the list.
Ref items_of(PyObject* o, int depth) {
  TW_CHECK(depth <= kMaxRank, value, "array: lists may be nested at most ", kMaxRank, " deep; these are deeper");
  return checked(PySequence_Tuple(o));
}

PyObject* without_arrays(PyObject* o, int depth = 0) {  // nested lists with our arrays as NumPy's
  if (is_array(o)) return to_numpy(*value_of(o));
  if (!PyList_Check(o) && !PyTuple_Check(o)) return Py_INCREF(o), o;
  Ref items = items_of(o, depth);
  Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  Ref list(checked(PyList_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyList_SET_ITEM(list.get(), i, without_arrays(PyTuple_GET_ITEM(items.get(), i), depth + 1));
  return list.leak();
}

bool is_numpy_array(PyObject* o) {
  static PyObject* type = checked(PyObject_GetAttrString(numpy_module(), "ndarray"));
  return PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(type));
}

Val cast_to(DType t, Val v) { return v->dtype() == t ? v : apply(op_with_role(Role::cast), t, {v}); }

/// Nested lists as an array by operators, so that gradients flow to the arrays in them.
Val stack_of(PyObject* o, DType dtype, int depth = 0) {
  if (is_array(o)) return cast_to(dtype, Val::share(value_of(o)));
  if (!PyList_Check(o) && !PyTuple_Check(o)) return to_array(o, dtype);
  Ref items = items_of(o, depth);
  std::vector<Val> parts;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    parts.push_back(stack_of(PyTuple_GET_ITEM(items.get(), i), dtype, depth + 1));
    TW_CHECK(std::ranges::equal(parts[0]->shape(), parts.back()->shape()), value,
             "array: the arrays and numbers of a list must have one shape; got ", parts[0]->shape(), " and ",
             parts.back()->shape(), ". np.concatenate joins arrays of several sizes");
  }
  if (parts.empty()) return Val::adopt(new_value(dtype, Shape{0}));
  // layers: operator names (what a list of arrays means)
  static const OpDef& stack = require_op("stack");
  return apply_all(stack, stack.attrs.defaults, parts)[0];
}

Val from_sequence(PyObject* o, Maybe<DType> dtype) {
  if (holds_array(o, [](const Value& v) { return modes.tracing || (modes.recording && v.node != nullptr); }))
    return stack_of(o, dtype.value_or(default_float()));
  Ref plain(holds_array(o, [](const Value&) { return true; }) ? without_arrays(o) : (Py_INCREF(o), o));
  Ref array(checked(PyObject_CallMethod(numpy_module(), "asarray", "(O)", plain.get())));
  if (!dtype) {
    Ref type(checked(PyObject_GetAttrString(array.get(), "dtype")));
    Ref kind(checked(PyObject_GetAttrString(type.get(), "kind")));
    if (PyUnicode_CompareWithASCIIString(kind.get(), "b") != 0) dtype = default_float();
  }
  return from_numpy(array.get(), dtype);
}

}  // namespace

Val to_operand(PyObject* o) {
  if (is_array(o)) return Val::share(value_of(o));
  Scalar s;
  if (to_scalar(o, &s))
    return Val::adopt(s.is_real()      ? new_weak(s.real)
                      : s.is_boolean() ? new_weak_bool(s.integer != 0)
                                       : new_weak(s.integer));
  if (is_numpy_array(o) || is_numpy_scalar(o)) return from_numpy(o, {});
  if (is_list(o)) return from_sequence(o, {});
  return nullptr;
}

Val require_operand(PyObject* o, const char* op, const char* argument) {
  Val v = to_operand(o);
  TW_CHECK(v, type, op, ": argument ", argument, " must be an array or a number; got ", Py_TYPE(o)->tp_name);
  return v;
}

Val to_array(PyObject* o, Maybe<DType> dtype) {
  Scalar s;
  if (is_array(o)) {
    Val v = Val::share(value_of(o));
    return dtype && *dtype != v->dtype() ? cast_to(*dtype, v) : apply(op_with_role(Role::copy), {v});
  }
  if (to_scalar(o, &s)) {
    if (dtype) check_fits(o, *dtype, "array");
    return from_scalar(s, dtype.value_or(s.is_boolean() ? DType::bool_ : default_float()));
  }
  if (is_numpy_array(o) || is_numpy_scalar(o)) return from_numpy(o, dtype);
  if (is_list(o)) return from_sequence(o, dtype);
  Ref array(checked(PyObject_CallMethod(numpy_module(), "asarray", "(O)", o)));
  return from_numpy(array.get(), dtype);
}

PyObject* to_numpy(const Value& v) {
  if (v.has(kTraced)) no_data_error("asnumpy");
  profile::Timer timer(profile::kApi, profile::Kind::call, "asnumpy");  // its wait is an event of its own
  wait_to_read(v);
  DType t = v.dtype() == DType::bfloat16 ? DType::float32 : v.dtype();
  Ref shape(shape_tuple(v.shape())), dtype(dtype_object(t));
  Ref array(checked(PyObject_CallMethod(numpy_module(), "empty", "OO", shape.get(), dtype.get())));
  if (v.size() == 0) return array.leak();
  NumpyView view(array.get(), PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS);
  int64_t from[kMaxRank], to[kMaxRank];
  v.copy_strides(from);
  contiguous_strides(v.shape(), to);
  size_t rank = static_cast<size_t>(v.rank());
  kernels::convert(v.dtype(), t, v.shape(), v.data, {from, rank}, view.buffer.buf, {to, rank});
  return array.leak();
}

}  // namespace twibil::python
