// SPDX-License-Identifier: Apache-2.0
#include "twibil/array.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "api/attributes.h"
#include "api/grad_req.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "kernels/copy.h"
#include "ops/index/basic_index.h"
#include "runtime/backward.h"
#include "runtime/eager.h"
#include "runtime/launch.h"
#include "runtime/random_state.h"

namespace twibil {

namespace {

// Linking against this file is linking against the runtime: it is installed before any array exists.
const bool installed = (install_runtime(), true);

// layers: operator names (what C++'s syntax and Array's members mean)
struct Known {
  const OpDef &zeros = require_op("zeros"), &ones = require_op("ones"), &full = require_op("full"),
              &add = require_op("add"), &subtract = require_op("subtract"), &multiply = require_op("multiply"),
              &divide = require_op("true_divide"), &negative = require_op("negative"), &less = require_op("less"),
              &greater = require_op("greater"), &equal = require_op("equal"), &reshape = require_op("reshape"),
              &transpose = require_op("transpose");
};
const Known& known() {
  static const Known k;
  return k;
}

std::vector<int64_t> list(std::span<const int64_t> s) { return {s.begin(), s.end()}; }

Array run(const OpDef& op, std::initializer_list<Array> in, std::initializer_list<NamedAttribute> attrs = {}) {
  return call_all(op, in, attrs)[0];
}

Array binary(const OpDef& op, const Array& a, const Array& b) { return Array(apply(op, {a.value(), b.value()})); }

Array& in_place(const OpDef& op, Array& a, const Array& b) {
  Value* in[2] = {a.value().get(), b.value().get()};
  Value* given[1] = {in[0]};
  Value* out[6];
  invoke(op, op.attrs.defaults, in, out, given);
  release(out[0]);
  return a;
}

unsigned pack(Modes m) { return (m.recording ? 1u : 0u) | (m.training ? 2u : 0u); }
void restore(unsigned m) { modes.recording = (m & 1) != 0, modes.training = (m & 2) != 0; }

}  // namespace

std::vector<Array> call_all(const OpDef& op, const std::vector<Array>& inputs,
                            std::initializer_list<NamedAttribute> attributes) {
  AttrBytes attrs = pack_attributes(op, attributes);
  std::vector<Val> in;
  for (const Array& x : inputs) in.push_back(x.value());
  Vals out = apply_all(op, attrs.data(), in);
  std::vector<Array> result;
  for (int k = 0; k < out.size(); ++k) result.emplace_back(out[k]);
  return result;
}
std::vector<Array> call_all(const OpDef& op, std::initializer_list<Array> inputs,
                            std::initializer_list<NamedAttribute> attributes) {
  return call_all(op, std::vector<Array>(inputs), attributes);
}
Array call(const char* op, std::initializer_list<Array> inputs, std::initializer_list<NamedAttribute> attributes) {
  return call_all(require_op(op), inputs, attributes)[0];
}

Array::Array(double number) : value_(number) {}
Array::Array(int number) : value_(number) {}
Array Array::zeros(std::initializer_list<int64_t> shape, DType t) {
  return run(known().zeros, {}, {{"shape", std::vector<int64_t>(shape)}, {"dtype", t}});
}
Array Array::zeros(const Shape& shape, DType t) {
  return run(known().zeros, {}, {{"shape", list(shape)}, {"dtype", t}});
}
Array Array::ones(std::initializer_list<int64_t> shape, DType t) {
  return run(known().ones, {}, {{"shape", std::vector<int64_t>(shape)}, {"dtype", t}});
}
Array Array::full(std::initializer_list<int64_t> shape, double value, DType t) {
  return run(known().full, {}, {{"shape", std::vector<int64_t>(shape)}, {"fill_value", value}, {"dtype", t}});
}
Array Array::from(const void* data, const Shape& shape, DType t) {
  Val v = Val::adopt(new_value(t, shape));
  std::copy_n(static_cast<const std::byte*>(data), v->size() * size_of(t), v->data);
  return Array(modes.tracing ? traced_constant(std::move(v)) : std::move(v));
}

int64_t Array::dim(int axis) const { return get().dims[normalize_axis(axis, rank(), "Array::dim")]; }

void Array::read(void* to, DType dtype) const {
  wait_to_read();
  int64_t from[kMaxRank], row_major[kMaxRank];
  get().copy_strides(from);
  contiguous_strides(get().shape(), row_major);
  size_t n = static_cast<size_t>(rank());
  kernels::convert(get().dtype(), dtype, get().shape(), get().data, {from, n}, to, {row_major, n});
}
double Array::item() const {
  TW_CHECK(size() == 1, value, "Array::item: the array must have one element; its shape is ", shape());
  wait_to_read();
  return scalar_of(get()).as_double();
}
void Array::wait_to_read() const {
  if (get().has(kTraced)) no_data_error("Array");
  twibil::wait_to_read(get());
}

Array Array::slice(int64_t begin, int64_t end, int axis) const {
  axis = normalize_axis(axis, rank(), "Array::slice");
  TW_CHECK(begin >= 0 && begin <= end && end <= get().dims[axis], index, "Array::slice: [", begin, ", ", end,
           ") is out of range for axis ", axis, " with size ", get().dims[axis]);
  ops::BasicIndexAttrs a;
  for (int i = 0; i < rank(); ++i) {
    a.start.push_back(i == axis && end > begin ? begin : 0);
    a.step.push_back(1);
    a.size.push_back(i == axis ? end - begin : get().dims[i]);
  }
  // layers: operator names (what slices of C++ mean)
  return Array(apply(ops::op_basic_index, a, {value_}));
}
Array Array::operator[](int64_t i) const {
  TW_CHECK(rank() > 0, index, "Array: an array without dimensions cannot be indexed");
  int64_t n = get().dims[0];
  TW_CHECK(i >= -n && i < n, index, "Array: index ", i, " is out of range for axis 0 with size ", n);
  ops::BasicIndexAttrs a;
  for (int d = 0; d < rank(); ++d) {
    a.start.push_back(d == 0 ? (i < 0 ? i + n : i) : 0);
    a.step.push_back(1);
    a.size.push_back(d == 0 ? -1 : get().dims[d]);
  }
  // layers: operator names (what slices of C++ mean)
  return Array(apply(ops::op_basic_index, a, {value_}));
}
Array Array::reshape(const Shape& shape) const { return run(known().reshape, {*this}, {{"newshape", list(shape)}}); }
Array Array::transpose(std::initializer_list<int64_t> axes) const {
  if (axes.size() == 0) return run(known().transpose, {*this});
  return run(known().transpose, {*this}, {{"axes", std::vector<int64_t>(axes)}});
}
Array Array::astype(DType dtype) const { return run(op_with_role(Role::cast), {*this}, {{"dtype", dtype}}); }
Array Array::copy() const { return run(op_with_role(Role::copy), {*this}); }
Array Array::detach() const { return Array(Val::adopt(new_alias(get()))); }
void Array::assign(const Array& from) { twibil::assign(get(), from.get()); }

void Array::attach_grad(const char* grad_req) { twibil::attach_grad(get(), grad_req_of(grad_req, "attach_grad")); }
Array Array::grad() const { return get().leaf && get().leaf->grad ? Array(Val::share(get().leaf->grad)) : Array(); }
void Array::backward(const Array& head_gradient, bool retain_graph) const {
  Val head = Val::share(&get()), dy = head_gradient.value_;
  twibil::backward({&head, 1}, {&dy, 1}, {.retain_graph = retain_graph});
}

Array operator+(const Array& a, const Array& b) { return binary(known().add, a, b); }
Array operator-(const Array& a, const Array& b) { return binary(known().subtract, a, b); }
Array operator*(const Array& a, const Array& b) { return binary(known().multiply, a, b); }
Array operator/(const Array& a, const Array& b) { return binary(known().divide, a, b); }
Array operator-(const Array& a) { return Array(apply(known().negative, {a.value()})); }
Array operator<(const Array& a, const Array& b) { return binary(known().less, a, b); }
Array operator>(const Array& a, const Array& b) { return binary(known().greater, a, b); }
Array operator==(const Array& a, const Array& b) { return binary(known().equal, a, b); }
Array& operator+=(Array& a, const Array& b) { return in_place(known().add, a, b); }
Array& operator-=(Array& a, const Array& b) { return in_place(known().subtract, a, b); }

/// The shortest digits that read back as the same element.
static std::string digits(int64_t x, DType) { return std::to_string(x); }
static std::string digits(double x, DType t) {
  if (t == DType::float64 || !std::isfinite(x)) return shortest(x);
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(x)).ptr};
}

template <class T>
static void print(std::string& to, const std::vector<T>& v, const Shape& shape, int axis, int64_t& at, DType dtype) {
  if (axis == shape.rank()) {
    to += digits(v[static_cast<size_t>(at++)], dtype);
    return;
  }
  to += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i) to += ", ";
    print(to, v, shape, axis + 1, at, dtype);
  }
  to += ']';
}

std::string to_string(const Array& a) {
  if (!a) return "array()";
  if (a.size() > 1000) return text("array(shape ", a.shape(), ", ", a.dtype(), ")");
  std::string s = "array(";
  int64_t at = 0;
  if (is_floating(a.dtype())) print(s, a.to_vector<double>(), a.shape(), 0, at, a.dtype());
  else print(s, a.to_vector<int64_t>(), a.shape(), 0, at, a.dtype());
  return s + text(", ", a.dtype(), ")");
}

Record::Record(bool training) : before_(pack(modes)) { modes.recording = true, modes.training = training; }
Record::~Record() { restore(before_); }
NoGradient::NoGradient() : before_(pack(modes)) { modes.recording = false; }
NoGradient::~NoGradient() { restore(before_); }

void seed(uint64_t number) { seed_random(number); }

}  // namespace twibil
