// SPDX-License-Identifier: Apache-2.0
// a + b, a < b, -a, a @ b and their in-place forms. Each first tries the short way (runtime/fast_path.h).
#include "operators.h"

#include "convert.h"
#include "function.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "runtime/fast_path.h"

namespace twibil::python {

namespace {

// The operators of Python's syntax by their registered names; everything else is asked of the registry.
enum Syntax {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kMod,
  kPower,
  kMatmul,
  kAnd,
  kOr,
  kXor,
  kLeftShift,
  kRightShift,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kNegative,
  kAbsolute,
  kInvert,
  kSyntaxCount
};
// layers: operator names (what Python's syntax means)
constexpr const char* kSyntaxNames[kSyntaxCount] = {
    "add",         "subtract",   "multiply",      "true_divide", "floor_divide", "mod",   "power",      "matmul",
    "bitwise_and", "bitwise_or", "bitwise_xor",   "left_shift",  "right_shift",  "less",  "less_equal", "equal",
    "not_equal",   "greater",    "greater_equal", "negative",    "absolute",     "invert"};

const FastPath* paths[kSyntaxCount];

bool plain(PyObject* o) { return Py_IS_TYPE(o, &ArrayType); }

bool same_kind(const Value& x, const Scalar& s) { return is_floating(x.dtype()) || !s.is_real(); }

PyObject* invoke_binary(const OpDef& op, PyObject* a, PyObject* b) {
  Val x = to_operand(a), y = to_operand(b);
  if (!x || !y) Py_RETURN_NOTIMPLEMENTED;
  Value* in[2] = {x.get(), y.get()};
  Value* out[6];
  invoke(op, op.attrs.defaults, in, out);
  return wrap(out[0]);
}

PyObject* binary(Syntax which, PyObject* a, PyObject* b) {
  return guarded([&] {
    const FastPath& f = *paths[which];
    if (plain(a)) {
      if (plain(b)) {
        if (Value* y = fast_binary(f, value_of(a), value_of(b))) return wrap_new(y);
      } else if (PyFloat_CheckExact(b)) {
        Value& x = *value_of(a);
        if (is_floating(x.dtype()))
          if (Value* y = fast_scalar(f, &x, Scalar(PyFloat_AS_DOUBLE(b)), false)) return wrap_new(y);
      } else if (PyLong_CheckExact(b)) {
        Scalar s;
        if (to_scalar(b, &s) && same_kind(*value_of(a), s))
          if (Value* y = fast_scalar(f, value_of(a), s, false)) return wrap_new(y);
      }
    } else if (plain(b) && (PyFloat_CheckExact(a) || PyLong_CheckExact(a))) {
      Scalar s;
      if (to_scalar(a, &s) && same_kind(*value_of(b), s))
        if (Value* y = fast_scalar(f, value_of(b), s, true)) return wrap_new(y);
    }
    if (plain(a) && plain(b)) {
      Value* in[2] = {value_of(a), value_of(b)};
      return call_op(*f.op, f.op->attrs.defaults, in, nullptr);
    }
    return invoke_binary(*f.op, a, b);
  });
}

PyObject* unary(Syntax which, PyObject* a) {
  return guarded([&] {
    const FastPath& f = *paths[which];
    Value* x = value_of(a);
    if (Value* y = fast_unary(f, x)) return wrap_new(y);
    Value* out[6];
    invoke(*f.op, f.op->attrs.defaults, {&x, 1}, out);
    return wrap(out[0]);
  });
}

// a += b writes into a, in a's dtype.
PyObject* in_place(Syntax which, PyObject* a, PyObject* b) {
  return guarded([&] {
    const OpDef& op = *paths[which]->op;
    Val x = Val::share(value_of(a)), y = to_operand(b);
    if (!y) Py_RETURN_NOTIMPLEMENTED;
    Value* in[2] = {x.get(), y.get()};
    Value* given[1] = {x.get()};
    Value* out[6];
    invoke(op, op.attrs.defaults, in, out, given);
    return wrap(out[0]);
  });
}

template <Syntax which> PyObject* binary_slot(PyObject* a, PyObject* b) { return binary(which, a, b); }
template <Syntax which> PyObject* in_place_slot(PyObject* a, PyObject* b) { return in_place(which, a, b); }
template <Syntax which> PyObject* unary_slot(PyObject* a) { return unary(which, a); }

PyObject* power_slot(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(kPower, a, b);
}
PyObject* in_place_power_slot(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return in_place(kPower, a, b);
}
PyObject* positive_slot(PyObject* a) { return Py_INCREF(a), a; }

// The one element of an array of size one, as Python's number.
Scalar only_element(PyObject* a) {
  Value& v = *value_of(a);
  TW_CHECK(v.size() == 1, type, "only arrays with one element can become a number; this one has shape ", v.shape());
  return read_scalar(v);
}

int truth_slot(PyObject* a) {
  try {
    Value& v = *value_of(a);
    TW_CHECK(v.size() == 1, value, "the truth of an array of shape ", v.shape(), " is ambiguous. Use any() or all()");
    if (v.has(kTraced)) no_truth_error();
    Scalar s = read_scalar(v);
    return s.is_real() ? s.real != 0 : s.integer != 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}
PyObject* float_slot(PyObject* a) {
  return guarded([&] { return PyFloat_FromDouble(only_element(a).as_double()); });
}
PyObject* int_slot(PyObject* a) {
  return guarded([&] {
    Scalar s = only_element(a);
    return s.is_real() ? PyLong_FromDouble(s.real) : PyLong_FromLongLong(s.integer);
  });
}
PyObject* index_slot(PyObject* a) {
  return guarded([&] {
    TW_CHECK(!is_floating(value_of(a)->dtype()), type,
             "only integer arrays of one element can be used as an index; this one is ", value_of(a)->dtype());
    return PyLong_FromLongLong(only_element(a).as_int());
  });
}

}  // namespace

PyObject* compare_slot(PyObject* a, PyObject* b, int how) {
  static constexpr Syntax kOrder[] = {kLess, kLessEqual, kEqual, kNotEqual, kGreater, kGreaterEqual};
  PyObject* result = binary(kOrder[how], a, b);
  return result;
}

PyNumberMethods number_methods = {
    .nb_add = binary_slot<kAdd>,
    .nb_subtract = binary_slot<kSubtract>,
    .nb_multiply = binary_slot<kMultiply>,
    .nb_remainder = binary_slot<kMod>,
    .nb_power = power_slot,
    .nb_negative = unary_slot<kNegative>,
    .nb_positive = positive_slot,
    .nb_absolute = unary_slot<kAbsolute>,
    .nb_bool = truth_slot,
    .nb_invert = unary_slot<kInvert>,
    .nb_lshift = binary_slot<kLeftShift>,
    .nb_rshift = binary_slot<kRightShift>,
    .nb_and = binary_slot<kAnd>,
    .nb_xor = binary_slot<kXor>,
    .nb_or = binary_slot<kOr>,
    .nb_int = int_slot,
    .nb_float = float_slot,
    .nb_inplace_add = in_place_slot<kAdd>,
    .nb_inplace_subtract = in_place_slot<kSubtract>,
    .nb_inplace_multiply = in_place_slot<kMultiply>,
    .nb_inplace_remainder = in_place_slot<kMod>,
    .nb_inplace_power = in_place_power_slot,
    .nb_inplace_lshift = in_place_slot<kLeftShift>,
    .nb_inplace_rshift = in_place_slot<kRightShift>,
    .nb_inplace_and = in_place_slot<kAnd>,
    .nb_inplace_xor = in_place_slot<kXor>,
    .nb_inplace_or = in_place_slot<kOr>,
    .nb_floor_divide = binary_slot<kFloorDivide>,
    .nb_true_divide = binary_slot<kDivide>,
    .nb_inplace_floor_divide = in_place_slot<kFloorDivide>,
    .nb_inplace_true_divide = in_place_slot<kDivide>,
    .nb_index = index_slot,
    .nb_matrix_multiply = binary_slot<kMatmul>,
};

void prepare_operators() {
  for (int i = 0; i < kSyntaxCount; ++i) paths[i] = new FastPath(require_op(kSyntaxNames[i]));
}

}  // namespace twibil::python
