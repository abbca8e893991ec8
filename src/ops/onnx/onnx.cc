// SPDX-License-Identifier: Apache-2.0
#include "ops/onnx/onnx.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ir/trace.h"

namespace twibil::ops {

TW_DECLARE(full)

With::With(const OpDef& op) : op_(op), attrs_(op.attrs.size) {
  if (op.attrs.size) std::memcpy(attrs_.data(), op.attrs.defaults, op.attrs.size);
}
const Field& With::field(const char* name) const {
  const Field* f = find_field(op_.attrs, name);
  TW_ASSERT(f != nullptr);
  return *f;
}
With& With::set(const char* name, int64_t v) {
  const Field& f = field(name);
  void* a = attrs_.data();
  switch (f.kind) {
    case AttrKind::boolean: attr_at<bool>(a, f) = v != 0; break;
    case AttrKind::integer: attr_at<int64_t>(a, f) = v; break;
    case AttrKind::maybe_integer: attr_at<Maybe<int64_t>>(a, f) = v; break;
    case AttrKind::scalar: attr_at<Scalar>(a, f) = Scalar(v); break;
    case AttrKind::maybe_boolean: attr_at<Maybe<bool>>(a, f) = v != 0; break;
    case AttrKind::maybe_int_list: attr_at<Maybe<IntList>>(a, f) = IntList{v}; break;
    case AttrKind::choice: attr_at<Choice>(a, f) = Choice(static_cast<int>(v)); break;
    case AttrKind::real: attr_at<double>(a, f) = static_cast<double>(v); break;
    default: throw_bug("an attribute of this kind", __FILE__, __LINE__);
  }
  return *this;
}
With& With::set(const char* name, double v) {
  const Field& f = field(name);
  if (f.kind == AttrKind::scalar) attr_at<Scalar>(attrs_.data(), f) = Scalar(v);
  else if (f.kind == AttrKind::maybe_real) attr_at<Maybe<double>>(attrs_.data(), f) = v;
  else attr_at<double>(attrs_.data(), f) = v;
  return *this;
}
With& With::set(const char* name, DType v) {
  const Field& f = field(name);
  if (f.kind == AttrKind::dtype) attr_at<DType>(attrs_.data(), f) = v;
  else attr_at<Maybe<DType>>(attrs_.data(), f) = v;
  return *this;
}
With& With::set(const char* name, const IntList& v) {
  const Field& f = field(name);
  if (f.kind == AttrKind::int_list) attr_at<IntList>(attrs_.data(), f) = v;
  else attr_at<Maybe<IntList>>(attrs_.data(), f) = v;
  return *this;
}
With& With::set(const char* name, const char* word) {
  parse_attr(field(name), attrs_.data(), word);
  return *this;
}
With& With::set(const char* name, const Scalar& v) {
  attr_at<Scalar>(attrs_.data(), field(name)) = v;
  return *this;
}
Val With::operator()(std::initializer_list<Val> in) const {
  return apply(op_, attrs_.empty() ? nullptr : static_cast<const void*>(attrs_.data()), in);
}
Vals With::all(std::span<const Val> in) const {
  return apply_all(op_, attrs_.empty() ? nullptr : static_cast<const void*>(attrs_.data()), in);
}

namespace {

/// Calls f with every element, row by row.
template <class T, class F> void each_element(const Val& v, DType t, const char* who, F f) {
  if (v->has(kTraced)) data_dependent_error(who);
  Val x = cast(v, t);
  if (x->has(kStrided)) x = copy(x);
  wait_hook(*x);
  const T* p = reinterpret_cast<const T*>(x->data);
  for (int64_t i = 0; i < x->size(); ++i) f(p[i]);
}

template <class T, class From> Val array_of(const std::vector<From>& v, const Shape& shape, DType t) {
  Value* y = new_value(t, shape);
  TW_ASSERT(y->size() == static_cast<int64_t>(v.size()));
  for (size_t i = 0; i < v.size(); ++i) reinterpret_cast<T*>(y->data)[i] = static_cast<T>(v[i]);
  return Val::adopt(y);
}

}  // namespace

std::vector<int64_t> ints_of(const Val& v, const char* who) {
  std::vector<int64_t> list;
  each_element<int64_t>(v, DType::int64, who, [&](int64_t n) { list.push_back(n); });
  return list;
}
std::vector<double> reals_of(const Val& v, const char* who) {
  std::vector<double> list;
  each_element<double>(v, DType::float64, who, [&](double n) { list.push_back(n); });
  return list;
}
int64_t int_of(const Val& v, const char* who) {
  std::vector<int64_t> list = ints_of(v, who);
  TW_CHECK(list.size() == 1, value, who, ": one number is needed; got shape ", v->shape());
  return list[0];
}
double real_of(const Val& v, const char* who) {
  std::vector<double> list = reals_of(v, who);
  TW_CHECK(list.size() == 1, value, who, ": one number is needed; got shape ", v->shape());
  return list[0];
}
IntList list_of(const std::vector<int64_t>& v, const char* who) {
  TW_CHECK(v.size() <= static_cast<size_t>(IntList::capacity), value, who, ": at most ", IntList::capacity,
           " numbers are supported; got ", v.size());
  return IntList(std::span<const int64_t>(v));
}

Val int_array(const std::vector<int64_t>& v) { return int_array(v, Shape{static_cast<int64_t>(v.size())}); }
Val int_array(const std::vector<int64_t>& v, const Shape& shape) { return array_of<int64_t>(v, shape, DType::int64); }
Val real_array(const std::vector<double>& v, const Shape& shape, DType t) {
  return cast(array_of<double>(v, shape, DType::float64), t);
}
Val number(double v, DType t) { return real_array({v}, Shape(), t); }
Val full(const Shape& shape, const Scalar& v, DType t) {
  return With(op_full).set("shape", IntList(shape.span())).set("fill_value", v).set("dtype", t)({});
}

Val as_weak(const Val& v) {
  if (!is_known(v) || v->size() != 1) return v;
  if (is_floating(v->dtype())) return Val(real_of(v, "number"));
  return v->dtype() == DType::bool_ ? v : Val(int_of(v, "number"));
}

std::vector<int> axes_of(const std::vector<int64_t>& given, int rank, const char* who) {
  std::vector<int> axes;
  for (int64_t a : given) axes.push_back(normalize_axis(a, rank, who));
  std::ranges::sort(axes);
  TW_CHECK(std::ranges::adjacent_find(axes) == axes.end(), value, who, ": an axis is named twice in ",
           std::span<const int64_t>(given));
  return axes;
}

Val pad_or_cut(const Val& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, const char* mode,
               const Scalar& fill) {
  BasicIndexAttrs cut = whole_of(x);
  IntList front, back;
  bool cuts = false, pads = false;
  for (int i = 0; i < x->rank(); ++i) {
    int64_t b = before[static_cast<size_t>(i)], a = after[static_cast<size_t>(i)];
    int64_t begin = std::max<int64_t>(0, -b), end = checked_add(x->dims[i], std::min<int64_t>(0, a));
    TW_CHECK(begin <= end, value, "pad: more is cut off axis ", i, " than its ", x->dims[i], " elements");
    cut.start[i] = end > begin ? begin : 0;
    cut.size[i] = end - begin;
    cuts |= end - begin != x->dims[i];
    front.push_back(std::max<int64_t>(0, b));
    back.push_back(std::max<int64_t>(0, a));
    pads |= b > 0 || a > 0;
  }
  Val y = cuts ? apply(op_basic_index, cut, {x}) : x;
  if (!pads) return y;
  return With(op_pad).set("before", front).set("after", back).set("mode", mode).set("constant_values", fill)({y});
}

std::vector<Window> windows_of(const WindowAttrs& a, std::span<const int64_t> kernel, const Val& x, const char* who) {
  int axes = x->rank() - 2;
  TW_CHECK(axes >= 1, value, who, ": data must have shape (batch, channels, size...); got ", x->shape());
  auto check = [&](const IntList& list, const char* name, int count) {
    TW_CHECK(list.empty() || list.size() == count, value, who, ": ", name, " needs ", count, " numbers; got ",
             list.span());
    for (int64_t v : list)
      TW_CHECK(v >= 0 && v < (int64_t{1} << 31), value, who, ": ", name, " must be at least 0; got ", list.span());
  };
  TW_CHECK(static_cast<int>(kernel.size()) == axes, value, who, ": the window needs ", axes, " sizes; got ", kernel);
  check(a.strides, "strides", axes);
  check(a.dilations, "dilations", axes);
  check(a.pads, "pads", 2 * axes);
  std::vector<Window> list;
  for (int i = 0; i < axes; ++i) {
    Window w{kernel[static_cast<size_t>(i)], a.strides.empty() ? 1 : a.strides[i],
             a.dilations.empty() ? 1 : a.dilations[i]};
    TW_CHECK(w.kernel > 0 && w.kernel < (int64_t{1} << 31) && w.stride > 0 && w.dilation > 0, value, who,
             ": window, strides and dilations must be positive");
    if (a.auto_pad == kNotSet && !a.pads.empty()) w.before = a.pads[i], w.after = a.pads[i + axes];
    if (a.auto_pad == kSameUpper || a.auto_pad == kSameLower) {
      int64_t in = x->dims[i + 2], out = (in + w.stride - 1) / w.stride;
      int64_t total = std::max<int64_t>(0, (out - 1) * w.stride + w.covered() - in), less = total / 2;
      w.before = a.auto_pad == kSameUpper ? less : total - less;
      w.after = total - w.before;
    }
    list.push_back(w);
  }
  return list;
}

}  // namespace twibil::ops
