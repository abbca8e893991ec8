// SPDX-License-Identifier: Apache-2.0
// Python objects to values and attributes, and back.
#pragma once
#include "array_object.h"
#include "ir/attr.h"

namespace twibil::python {

/// Python's sequences of numbers: lists, tuples and ranges.
inline bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o) || PyRange_Check(o); }

/// An operand of an operator: arrays as they are, numbers as weak scalars, NumPy arrays and lists as new arrays.
/// Null (no exception set) when the object is nothing of that kind.
Val to_operand(PyObject* o);
/// The same, but a type error that names the operator and the argument.
Val require_operand(PyObject* o, const char* op, const char* argument);
/// numpy-like array(): lists and Python numbers take `dtype` or float32, arrays keep theirs.
Val to_array(PyObject* o, Maybe<DType> dtype);

DType to_dtype(PyObject* o);             // NumPy dtypes and scalar types, Python types, names
PyObject* dtype_object(DType t);         // numpy.dtype; the string "bfloat16" for what NumPy lacks
bool to_scalar(PyObject* o, Scalar* s);  // Python's int, float, bool; false for everything else
/// What a conversion is for, as messages call it; put into words only when there is something to say.
struct Purpose {
  const char* op;  // null: the name says it all
  const char* name;
  Purpose(const char* what) : op(nullptr), name(what) {}
  Purpose(const char* op_name, const Field& field) : op(op_name), name(field.name) {}
};
inline void append_part(std::string& to, const Purpose& p) {
  if (p.op) to += text(p.op, ": argument ");
  to += p.name;
}
int64_t to_int(PyObject* o, const Purpose& what);
PyObject* shape_tuple(std::span<const int64_t> dims);
void read_int_list(PyObject* o, const Purpose& what, IntList& to);  // replaces what stands there
inline IntList to_int_list(PyObject* o, const Purpose& what) {
  IntList list;
  read_int_list(o, what, list);
  return list;
}

void set_attr(const Field& field, void* attrs, PyObject* o, const char* op);
PyObject* attr_object(const Field& field, const void* attrs);

PyObject* to_numpy(const Value& v);
PyObject* numpy_module();
/// OverflowError for an int beyond 64 bits that is to be an element of integers.
void check_fits(PyObject* number, DType t, const char* op);
bool is_numpy_integer(PyObject* o);  // numpy.int64(3) and its kind; not numpy.bool_, not arrays
void check_context(PyObject* o);     // a device argument must be a CPU

}  // namespace twibil::python
