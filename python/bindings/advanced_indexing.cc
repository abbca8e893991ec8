// SPDX-License-Identifier: Apache-2.0
#include "advanced_indexing.h"

#include "convert.h"
#include "ir/apply.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "kernels/index.h"
#include "kernels/reduce.h"
#include "ops/index/advanced_index.h"
#include "runtime/launch.h"

namespace twibil::python {

/// Floats, cut off to int64: MXNet's users index with the float32 that array([0, 2]) gives them.
static Val whole_numbers(Value& v) {
  if (modes.tracing || v.has(kTraced)) return apply(op_with_role(Role::cast), DType::int64, {Val::share(&v)});
  wait_to_read(v);
  int64_t strides[kMaxRank];
  v.copy_strides(strides);
  std::span<const int64_t> walk(strides, static_cast<size_t>(v.rank()));
  double sum = 0;  // is NaN when one of them is
  kernels::reduce(kernels::Reduction::sum, v.dtype(), DType::float64, v.shape(), v.data, walk, (1u << v.rank()) - 1,
                  &sum);
  TW_CHECK(sum == sum, index, "an index must be a number; got an array with NaN or infinity among its elements");
  Val whole = Val::adopt(new_value(DType::int64, v.shape()));
  assign(*whole, v);
  return whole;
}

Val entry_array(PyObject* o) {
  Val v;
  if (is_array(o)) {
    v = Val::share(value_of(o));
  } else if (is_list(o)) {  // keeps integers and bools, which array() would make float32
    Ref array(checked(PyObject_CallMethod(numpy_module(), "asarray", "(O)", o)));
    if (PyObject_Size(array.get()) == 0) return Val::adopt(new_value(DType::int64, Shape{0}));
    v = to_array(array.get(), {});
  } else if (PyBool_Check(o)) {
    v = to_array(o, {});
  } else if (PyIndex_Check(o) && !PyObject_CheckBuffer(o)) {
    v = to_array(o, DType::int64);
  } else if (!PyFloat_Check(o)) {
    v = to_operand(o);
  }
  TW_CHECK(v && (is_integer(v->dtype()) || v->dtype() == DType::bool_ || is_floating(v->dtype())), index,
           "only integers, slices, ..., None, integer arrays and boolean arrays are valid indices; got ",
           Py_TYPE(o)->tp_name);
  return is_floating(v->dtype()) ? whole_numbers(*v) : v;
}

namespace {

/// The positions of true elements, one int64 array per axis of the mask.
std::vector<Val> mask_indices(const Value& mask) {
  if (mask.has(kTraced)) data_dependent_error("indexing by a boolean array");
  wait_to_read(mask);
  int64_t strides[kMaxRank];
  mask.copy_strides(strides);
  size_t rank = static_cast<size_t>(mask.rank());
  int64_t n = kernels::count_nonzero(mask.dtype(), mask.shape(), mask.data, {strides, rank});
  std::vector<int64_t> coordinates(static_cast<size_t>(n) * std::max<size_t>(rank, 1));
  kernels::nonzero(mask.dtype(), mask.shape(), mask.data, {strides, rank}, coordinates.data(), 1, n);
  std::vector<Val> result;
  for (size_t a = 0; a < rank; ++a) {
    Val v = Val::adopt(new_value(DType::int64, Shape{n}));
    std::copy_n(coordinates.data() + static_cast<int64_t>(a) * n, n, reinterpret_cast<int64_t*>(v->data));
    result.push_back(std::move(v));
  }
  return result;
}

}  // namespace

void AdvancedKey::push_back(Val index, int axis) {
  TW_ASSERT(count_ < kMaxRank);  // each takes an axis, and the key fits the array
  operands_[2 + count_++] = std::move(index);
  axes_.push_back(axis);
}

int AdvancedKey::add(Val v, int axis, std::span<const int64_t> dims) {
  front_ |= gap_;
  if (v->dtype() != DType::bool_) {
    push_back(std::move(v), axis);
    return 1;
  }
  TW_CHECK(v->rank() > 0, index, "a single bool cannot index an array; use an array of bools");
  for (int i = 0; i < v->rank(); ++i)
    TW_CHECK(v->dims[i] == dims[static_cast<size_t>(i)], index, "a boolean index of shape ", v->shape(),
             " does not match the array: axis ", axis + i, " has size ", dims[static_cast<size_t>(i)]);
  for (Val& positions : mask_indices(*v)) push_back(std::move(positions), axis++);
  return v->rank();
}

Val AdvancedKey::read(Val x) {
  operands_[1] = std::move(x);
  ops::AdvancedIndexAttrs attrs{axes_, front_};
  // layers: operator names (what x[key] means)
  return apply_all(ops::op_advanced_index, &attrs, {operands_ + 1, static_cast<size_t>(1 + count_)})[0];
}

void AdvancedKey::write(Val x, Val value) {
  operands_[0] = std::move(x);
  operands_[1] = std::move(value);
  ops::AdvancedIndexAttrs attrs{axes_, front_};
  // layers: operator names (what x[key] means)
  apply_all(ops::op_advanced_put, &attrs, {operands_, static_cast<size_t>(2 + count_)});
}

}  // namespace twibil::python
