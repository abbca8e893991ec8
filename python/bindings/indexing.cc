// SPDX-License-Identifier: Apache-2.0
// x[key] and x[key] = value. Keys of integers, slices, None and ... are resolved here into a view; integer arrays and
// masks go on to advanced_indexing.cc.
#include "indexing.h"

#include "advanced_indexing.h"
#include "convert.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "kernels/copy.h"
#include "ops/index/basic_index.h"
#include "runtime/fast_path.h"

namespace twibil::python {

namespace {

/// Integers give views; arrays without dimensions are index arrays, which give copies.
bool is_integer_key(PyObject* o) {
  if (PyLong_Check(o)) return !PyBool_Check(o);
  return PyIndex_Check(o) && !is_array(o) && (!PyObject_CheckBuffer(o) || is_numpy_integer(o));
}

int64_t checked_index(int64_t i, int64_t size, int axis) {
  TW_CHECK(i >= -size && i < size, index, "index ", i, " is out of range for axis ", axis, " with size ", size);
  return i < 0 ? i + size : i;
}

void add_slice(ops::BasicIndexAttrs& a, PyObject* o, int64_t size) {
  Py_ssize_t start, stop, step;
  checked(PySlice_Unpack(o, &start, &stop, &step));
  Py_ssize_t n = PySlice_AdjustIndices(size, &start, &stop, step);
  a.start.push_back(n ? start : 0);
  a.step.push_back(n ? step : 1);
  a.size.push_back(n);
}

void add_whole(ops::BasicIndexAttrs& a, int64_t size) {
  a.start.push_back(0);
  a.step.push_back(1);
  a.size.push_back(size);
}

struct ParsedKey {
  ops::BasicIndexAttrs basic;
  AdvancedKey advanced;  // entries that are arrays, by the axis of the result of the basic part
};

ParsedKey parse(const Value& x, PyObject* key) {
  PyObject* one[1] = {key};
  PyObject** entries = one;
  Py_ssize_t n = 1;
  if (PyTuple_Check(key)) {
    n = PyTuple_GET_SIZE(key);
    entries = &PyTuple_GET_ITEM(key, 0);
  }
  int used = 0, dots = 0;
  // Of the entries that are no integers, slices, None or ...; made once, for that may run code.
  std::vector<Val> arrays;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = entries[i];
    dots += o == Py_Ellipsis;
    if (o == Py_None || o == Py_Ellipsis) continue;
    if (!is_integer_key(o) && !PySlice_Check(o)) {
      arrays.push_back(entry_array(o));
      used += advanced_axes(*arrays.back());
    } else {
      ++used;
    }
  }
  TW_CHECK(dots <= 1, index, "an index can hold only one ellipsis");
  TW_CHECK(used <= x.rank(), index, "too many indices: the array has ", x.rank(), " dimensions, ", used,
           " were indexed");
  ParsedKey parsed;
  int axis = 0, result_axis = 0;
  size_t next_array = 0;
  auto whole = [&](int count) {
    for (; count > 0; --count, ++axis, ++result_axis) add_whole(parsed.basic, x.dims[axis]);
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = entries[i];
    if (o == Py_Ellipsis) {
      parsed.advanced.ellipsis();
      whole(x.rank() - used);
    } else if (o == Py_None) {
      parsed.basic.new_axes.push_back(result_axis++);
    } else if (PySlice_Check(o)) {
      add_slice(parsed.basic, o, x.dims[axis++]);
      ++result_axis;
    } else if (is_integer_key(o) && arrays.empty()) {
      parsed.basic.start.push_back(checked_index(to_int(o, "an index"), x.dims[axis], axis));
      parsed.basic.step.push_back(1);
      parsed.basic.size.push_back(-1);
      ++axis;
    } else {
      Val entry = is_integer_key(o) ? entry_array(o) : std::move(arrays[next_array++]);
      int taken =
          parsed.advanced.add(std::move(entry), result_axis, {x.dims + axis, static_cast<size_t>(x.rank() - axis)});
      whole(taken);
    }
  }
  whole(x.rank() - axis);
  return parsed;
}

bool must_link(const Value& x) { return (modes.recording && x.node) || x.has(kTraced) || modes.tracing; }

bool is_whole(const Value& x, const ops::BasicIndexAttrs& attrs) {
  bool whole = attrs.new_axes.empty();
  for (int i = 0; whole && i < attrs.size.size(); ++i) whole = attrs.size[i] == x.dims[i] && attrs.step[i] == 1;
  return whole;
}

/// A view that nobody records needs no call of an operator.
Val basic_view(Value& x, const ops::BasicIndexAttrs& attrs) {
  // layers: operator names (what x[key] means)
  if (must_link(x)) return apply(ops::op_basic_index, attrs, {Val::share(&x)});
  return Val::adopt(new_view(x, ops::index_layout(attrs, x.layout())));
}

/// x[key] = number for elements that are there, and that nobody records: they are filled. False: use assign_basic.
bool fill_part(Value& x, const ops::BasicIndexAttrs& attrs, PyObject* to) {
  Scalar number;
  if (modes.recording || modes.tracing || x.has(kReadOnly | kTraced) || x.size() > kInlineElements ||
      !to_scalar(to, &number) || !engine::idle(x.root->variable.load(std::memory_order_acquire)))
    return false;
  TW_CHECK(number.is_real() || number.is_boolean() || holds(x.dtype(), number.integer), overflow, "assign: the number ",
           number.integer, " must fit the dtype of the array, ", x.dtype());
  Layout part = ops::index_layout(attrs, x.layout());
  kernels::fill(x.dtype(), part.shape, x.data + part.offset * size_of(x.dtype()),
                {part.strides, static_cast<size_t>(part.shape.rank())}, number);
  bump_version(&x);
  return true;
}

}  // namespace

PyObject* array_subscript(PyObject* o, PyObject* key) {
  return guarded([&] {
    Value& x = *value_of(o);
    if (PyLong_CheckExact(key) && !must_link(x)) {
      TW_CHECK(x.rank() > 0, index, "too many indices: the array has 0 dimensions, 1 was indexed");
      return wrap_new(new_item_view(x, checked_index(to_int(key, "an index"), x.dims[0], 0)));
    }
    if (Py_IS_TYPE(key, &ArrayType) && is_integer(value_of(key)->dtype()) && x.rank() > 0) {
      AdvancedKey rows;
      rows.add(Val::share(value_of(key)), 0, x.shape());
      return wrap(rows.read(Val::share(&x)));
    }
    ParsedKey parsed = parse(x, key);
    if (parsed.advanced.empty()) return wrap(basic_view(x, parsed.basic));
    return wrap(parsed.advanced.read(is_whole(x, parsed.basic) ? Val::share(&x) : basic_view(x, parsed.basic)));
  });
}

/// x[mask] = value inside a trace, where positions are not known: a choice for every element. False where one value
/// does not serve all of them.
static bool assign_masked(Value& x, PyObject* key, const Value& mask, Val value) {
  int rest = x.rank() - mask.rank();
  if (rest < 0 || mask.rank() == 0 || value->rank() > rest) return false;
  for (int i = 0; i < mask.rank(); ++i)
    if (mask.dims[i] != x.dims[i]) return false;
  Ref wide(checked(PyTuple_New(1 + rest)));
  PyTuple_SET_ITEM(wide.get(), 0, Py_NewRef(Py_Ellipsis));
  for (int i = 0; i < rest; ++i) PyTuple_SET_ITEM(wide.get(), 1 + i, Py_NewRef(Py_None));
  Ref condition(checked(array_subscript(key, wide.get())));
  // layers: operator names (what x[mask] = value means)
  static const OpDef& where = require_op("where");
  Value* in[3] = {value_of(condition.get()), value.get(), &x};
  Value* given[1] = {&x};
  Value* out[1];
  invoke(where, nullptr, in, out, given);
  release(out[0]);
  return true;
}

int array_assign_subscript(PyObject* o, PyObject* key, PyObject* to) {
  try {
    TW_CHECK(to, type, "elements of an array cannot be deleted");
    Value& x = *value_of(o);
    if (modes.tracing && is_array(key) && value_of(key)->dtype() == DType::bool_ &&
        assign_masked(x, key, *value_of(key), require_operand(to, "assign", "value")))
      return 0;
    ParsedKey parsed = parse(x, key);
    check_fits(to, x.dtype(), "assign");
    if (parsed.advanced.empty() && fill_part(x, parsed.basic, to)) return 0;
    Val value = require_operand(to, "assign", "value");
    if (parsed.advanced.empty() && !modes.recording && is_whole(x, parsed.basic) && value->rank() <= x.rank()) {
      assign(x, *value);  // unlike a part, it needs nothing of what was there, which may be a failed value
    } else if (parsed.advanced.empty()) {
      // layers: operator names (what x[key] means)
      apply(ops::op_assign_basic, parsed.basic, {Val::share(&x), value});
    } else {
      parsed.advanced.write(is_whole(x, parsed.basic) ? Val::share(&x) : basic_view(x, parsed.basic), std::move(value));
    }
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

PyObject* array_item(PyObject* o, Py_ssize_t i) {
  Ref key(PyLong_FromSsize_t(i));
  return array_subscript(o, key.get());
}

// ---- iteration: without exceptions as control flow ----

namespace {

struct Iterator {
  PyObject_HEAD PyObject* array;
  int64_t next;
};

PyObject* iterator_next(PyObject* self) {
  Iterator* it = reinterpret_cast<Iterator*>(self);
  return guarded([&]() -> PyObject* {
    Value& x = *value_of(it->array);
    if (it->next >= x.dims[0]) return nullptr;
    if (!must_link(x)) return wrap_new(new_item_view(x, it->next++));
    Ref key(checked(PyLong_FromLongLong(it->next++)));
    return array_subscript(it->array, key.get());
  });
}
void iterator_dealloc(PyObject* self) {
  Py_DECREF(reinterpret_cast<Iterator*>(self)->array);
  PyObject_Free(self);
}
PyTypeObject IteratorType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil.np.ndarray_iterator",
    .tp_basicsize = sizeof(Iterator),
    .tp_dealloc = iterator_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = iterator_next,
};

}  // namespace

PyObject* array_iterator(PyObject* o) {
  if (value_of(o)->rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "an array without dimensions cannot be iterated");
    return nullptr;
  }
  Iterator* it = PyObject_New(Iterator, &IteratorType);
  if (!it) return nullptr;
  it->array = (Py_INCREF(o), o);
  it->next = 0;
  return reinterpret_cast<PyObject*>(it);
}

void prepare_iterator_type() { checked(PyType_Ready(&IteratorType)); }

}  // namespace twibil::python
