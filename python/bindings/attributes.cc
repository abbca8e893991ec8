// SPDX-License-Identifier: Apache-2.0
// Attributes of operators from Python objects, one way per kind of attribute.
#include "convert.h"

namespace twibil::python {

// A list in which None stands for an open end.
static IntList with_open_ends(PyObject* o, const Purpose& what) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return o == Py_None ? IntList{kNoInteger} : to_int_list(o, what);
  IntList list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    list.push_back(item == Py_None ? kNoInteger : to_int(item, what));
  }
  return list;
}

namespace {

[[noreturn]] void wrong(const Field& f, const char* op, const char* expected, PyObject* got) {
  throw_error(ErrorKind::type, text(op, ": argument ", f.name, " must be ", expected, "; got ", Py_TYPE(got)->tp_name));
}

double to_double(PyObject* o, const Field& f, const char* op) {
  if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
  double d = PyFloat_AsDouble(o);
  if (d == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    wrong(f, op, "a number", o);
  }
  return d;
}

bool to_bool(PyObject* o, const Field& f, const char* op) {
  if (PyBool_Check(o)) return o == Py_True;
  if (!PyLong_Check(o) && o != Py_None && !PyNumber_Check(o)) wrong(f, op, "True or False", o);
  return is_true(o);
}

int64_t integer(PyObject* o, const Field& f, const char* op) {
  if (PyLong_CheckExact(o) || PyIndex_Check(o) || PyFloat_Check(o)) return to_int(o, Purpose(op, f));
  wrong(f, op, "an integer", o);
}

Scalar scalar(PyObject* o, const Field& f, const char* op) {
  Scalar s;
  if (to_scalar(o, &s)) return s;
  if (PyObject_HasAttrString(o, "item")) {  // arrays of one element, NumPy's scalars: by their kind of number
    Ref number(PyObject_CallMethod(o, "item", nullptr));
    if (number && to_scalar(number.get(), &s)) return s;
    PyErr_Clear();
    wrong(f, op, "one number", o);
  }
  if (PyIndex_Check(o)) return Scalar(to_int(o, f.name));
  return Scalar(to_double(o, f, op));
}

DoubleList double_list(PyObject* o, const Field& f, const char* op) {
  DoubleList list;
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    if (PySequence_Check(o) && !PyUnicode_Check(o)) {
      Ref t(checked(PySequence_Tuple(o)));
      return double_list(t.get(), f, op);
    }
    list.push_back(to_double(o, f, op));
    return list;
  }
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  TW_CHECK(n <= DoubleList::capacity, value, op, ": argument ", f.name, " must hold at most ", DoubleList::capacity,
           " numbers; got ", static_cast<int64_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) list.push_back(to_double(PySequence_Fast_GET_ITEM(o, i), f, op));
  return list;
}

std::string_view word(PyObject* o, const Field& f, const char* op) {
  if (!PyUnicode_Check(o)) wrong(f, op, "a string", o);
  return utf8(o);
}

void set_text(const Field& f, void* attrs, PyObject* o, const char* op) {
  std::string_view s = word(o, f, op);
  TW_CHECK(s.size() < sizeof(ShortText::chars), value, op, ": argument ", f.name,
           " must be shorter than 128 characters; got ", s.size());
  ShortText t;
  std::copy(s.begin(), s.end(), t.chars);
  attr_at<ShortText>(attrs, f) = t;
}

void store(const Field& f, void* attrs, PyObject* o, const char* op) {
  bool none = o == Py_None;
  switch (f.kind) {
    case AttrKind::boolean: attr_at<bool>(attrs, f) = to_bool(o, f, op); return;
    case AttrKind::integer: attr_at<int64_t>(attrs, f) = integer(o, f, op); return;
    case AttrKind::real: attr_at<double>(attrs, f) = to_double(o, f, op); return;
    case AttrKind::dtype:
      if (!none) attr_at<DType>(attrs, f) = to_dtype(o);
      return;
    case AttrKind::scalar: attr_at<Scalar>(attrs, f) = scalar(o, f, op); return;
    case AttrKind::int_list:
      if (none) wrong(f, op, "an integer or a tuple of integers", o);
      if (f.open_ends) {
        attr_at<IntList>(attrs, f) = with_open_ends(o, Purpose(op, f));
        return;
      }
      return read_int_list(o, Purpose(op, f), attr_at<IntList>(attrs, f));
    case AttrKind::real_list: attr_at<DoubleList>(attrs, f) = double_list(o, f, op); return;
    case AttrKind::text: return set_text(f, attrs, o, op);
    case AttrKind::choice: try { attr_at<Choice>(attrs, f) = Choice(find_choice(f, word(o, f, op)));
      } catch (Error& e) {
        e.prefix(text(op, ": "));
        throw;
      }
      return;
    case AttrKind::maybe_boolean:
      attr_at<Maybe<bool>>(attrs, f) = none ? Maybe<bool>() : Maybe<bool>(to_bool(o, f, op));
      return;
    case AttrKind::maybe_integer:
      attr_at<Maybe<int64_t>>(attrs, f) = none ? Maybe<int64_t>() : Maybe<int64_t>(integer(o, f, op));
      return;
    case AttrKind::maybe_real:
      attr_at<Maybe<double>>(attrs, f) = none ? Maybe<double>() : Maybe<double>(to_double(o, f, op));
      return;
    case AttrKind::maybe_dtype:
      attr_at<Maybe<DType>>(attrs, f) = none ? Maybe<DType>() : Maybe<DType>(to_dtype(o));
      return;
    case AttrKind::maybe_scalar:
      attr_at<Maybe<Scalar>>(attrs, f) = none ? Maybe<Scalar>() : Maybe<Scalar>(scalar(o, f, op));
      return;
    case AttrKind::maybe_int_list:
      attr_at<Maybe<IntList>>(attrs, f).has = !none;
      if (!none) read_int_list(o, Purpose(op, f), attr_at<Maybe<IntList>>(attrs, f).value);
      return;
  }
}

}  // namespace

void set_attr(const Field& f, void* attrs, PyObject* o, const char* op) {
  try {
    store(f, attrs, o, op);
  } catch (Error& e) {  // of a conversion that does not know for whom it works
    if (!e.message().starts_with(text(op, ": "))) e.prefix(text(op, ": argument ", f.name, ": "));
    throw;
  }
}

PyObject* attr_object(const Field& f, const void* attrs) {
  auto maybe = [](bool has, PyObject* o) -> PyObject* {
    if (has) return o;
    Py_XDECREF(o);
    Py_RETURN_NONE;
  };
  auto number = [](const Scalar& s) {
    return s.is_real()      ? PyFloat_FromDouble(s.real)
           : s.is_boolean() ? PyBool_FromLong(s.integer != 0)
                            : PyLong_FromLongLong(s.integer);
  };
  switch (f.kind) {
    case AttrKind::boolean: return PyBool_FromLong(attr_at<bool>(attrs, f));
    case AttrKind::integer: return PyLong_FromLongLong(attr_at<int64_t>(attrs, f));
    case AttrKind::real: return PyFloat_FromDouble(attr_at<double>(attrs, f));
    case AttrKind::scalar: return number(attr_at<Scalar>(attrs, f));
    case AttrKind::int_list: return shape_tuple(attr_at<IntList>(attrs, f).span());
    case AttrKind::real_list: {
      const auto& list = attr_at<DoubleList>(attrs, f);
      Ref t(checked(PyTuple_New(list.size())));
      for (int i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(t.get(), i, checked(PyFloat_FromDouble(list[i])));
      return t.leak();
    }
    case AttrKind::maybe_integer: {
      auto& m = attr_at<Maybe<int64_t>>(attrs, f);
      return maybe(m.has, PyLong_FromLongLong(*m));
    }
    case AttrKind::maybe_real: {
      auto& m = attr_at<Maybe<double>>(attrs, f);
      return maybe(m.has, PyFloat_FromDouble(*m));
    }
    case AttrKind::maybe_boolean: {
      auto& m = attr_at<Maybe<bool>>(attrs, f);
      return maybe(m.has, PyBool_FromLong(*m));
    }
    case AttrKind::maybe_scalar: {
      auto& m = attr_at<Maybe<Scalar>>(attrs, f);
      return maybe(m.has, number(*m));
    }
    case AttrKind::maybe_int_list: {
      auto& m = attr_at<Maybe<IntList>>(attrs, f);
      return maybe(m.has, shape_tuple((*m).span()));
    }
    case AttrKind::maybe_dtype:
      if (!attr_at<Maybe<DType>>(attrs, f)) Py_RETURN_NONE;
      [[fallthrough]];
    default: {
      std::string s = print_attr(f, attrs);
      return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
    }
  }
}

}  // namespace twibil::python
