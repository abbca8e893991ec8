// SPDX-License-Identifier: Apache-2.0
#include "api/io/onnx_attributes.h"

#include <cstring>

#include "ir/onnx_form.h"

namespace twibil::io {

namespace {

using Kind = OnnxAttribute::Kind;

std::string quoted(const OnnxAttribute& a) { return text("attribute '", a.name.substr(0, 80), "'"); }

template <class T> Val array_of(std::span<const T> elements, bool scalar, DType t) {
  Shape shape;
  if (!scalar) shape.push_back(static_cast<int64_t>(elements.size()));
  Value* v = new_value(t, shape);
  if (!elements.empty()) std::memcpy(v->data, elements.data(), elements.size_bytes());
  return Val::adopt(v);
}

/// The attribute as an array; ONNX's numbers are float32 and int64.
Val constant_of(const OnnxAttribute& a) {
  auto floats = [](std::span<const double> list) { return std::vector<float>(list.begin(), list.end()); };
  switch (a.kind) {
    case Kind::real: return array_of<float>(floats({&a.real, 1}), true, DType::float32);
    case Kind::reals: return array_of<float>(floats(a.reals), false, DType::float32);
    case Kind::integer: return array_of<int64_t>({&a.integer, 1}, true, DType::int64);
    case Kind::integers: return array_of<int64_t>(a.integers, false, DType::int64);
    case Kind::tensor:
      TW_CHECK(a.tensor.value, not_implemented, quoted(a), ": ", a.tensor.refused);
      return a.tensor.value;
    default: throw_error(ErrorKind::not_implemented, text(quoted(a), ": texts in arrays are not supported"));
  }
}

template <class List, class T> List list_of(const OnnxAttribute& a, const std::vector<T>& from) {
  TW_CHECK(from.size() <= static_cast<size_t>(List::capacity), not_implemented, quoted(a), " has ", from.size(),
           " numbers; at most ", List::capacity, " are supported");
  List list;
  for (const T& v : from) list.push_back(v);
  return list;
}

/// The input that takes what older opsets say as an attribute; -1: none.
int input_called(const OpDef& op, std::string_view name) {
  for (int i = 0; i < op.inputs(); ++i)
    if (const Slot& s = op.in[static_cast<size_t>(i)]; s.name == name || is_among(s.renames, name)) return i;
  return -1;
}

std::string print(const OnnxAttribute& a) {
  switch (a.kind) {
    case Kind::integer: return text(a.integer);
    case Kind::real: return text(a.real);
    case Kind::string: return a.string;
    default: return "...";
  }
}

class Setter {
 public:
  Setter(const Field& f, void* attrs, const OnnxAttribute& a) : f_(f), attrs_(attrs), a_(a) {}

  void set() {
    switch (f_.kind) {
      case AttrKind::boolean: return put<bool>(integer() != 0);
      case AttrKind::maybe_boolean: return put<Maybe<bool>>(integer() != 0);
      case AttrKind::integer: return put<int64_t>(integer());
      case AttrKind::maybe_integer: return put<Maybe<int64_t>>(integer());
      case AttrKind::real: return put<double>(real());
      case AttrKind::maybe_real: return put<Maybe<double>>(real());
      case AttrKind::dtype: return put<DType>(dtype());
      case AttrKind::maybe_dtype: return put<Maybe<DType>>(dtype());
      case AttrKind::scalar: return put<Scalar>(number());
      case AttrKind::maybe_scalar: return put<Maybe<Scalar>>(number());
      case AttrKind::int_list: return put<IntList>(list_of<IntList>(a_, integers()));
      case AttrKind::maybe_int_list: return put<Maybe<IntList>>(list_of<IntList>(a_, integers()));
      case AttrKind::real_list:
        need(a_.kind == Kind::reals, "numbers");
        return put<DoubleList>(list_of<DoubleList>(a_, a_.reals));
      case AttrKind::choice:
        need(a_.kind == Kind::string, "a text");
        return put<Choice>(Choice(find_choice(f_, a_.string)));
      case AttrKind::text: return set_text();
    }
  }

 private:
  void need(bool held, const char* what) const { TW_CHECK(held, value, quoted(a_), " must be ", what); }
  template <class T> void put(T v) { attr_at<T>(attrs_, f_) = v; }
  int64_t integer() const {
    need(a_.kind == Kind::integer, "a whole number");
    return a_.integer;
  }
  double real() const {
    need(a_.kind == Kind::real || a_.kind == Kind::integer, "a number");
    return a_.kind == Kind::real ? a_.real : static_cast<double>(a_.integer);
  }
  Scalar number() const {
    if (a_.kind == Kind::integer) return Scalar(a_.integer);
    return Scalar(real());
  }
  const std::vector<int64_t>& integers() const {
    need(a_.kind == Kind::integers, "whole numbers");
    return a_.integers;
  }
  DType dtype() const {
    DType t = dtype_of_onnx(integer());
    TW_CHECK(t != kUnknownDType, not_implemented, quoted(a_), ": dtype ", name_of_onnx_type(a_.integer),
             " is not supported");
    return t;
  }
  void set_text() {
    std::string joined = a_.string;
    if (a_.kind == Kind::strings) {
      for (const std::string& s : a_.strings) joined += (joined.empty() ? "" : ",") + s;
    } else {
      need(a_.kind == Kind::string, "a text");
    }
    ShortText t;
    TW_CHECK(joined.size() < sizeof(t.chars), not_implemented, quoted(a_), " is longer than ", sizeof(t.chars) - 1,
             " characters");
    std::memcpy(t.chars, joined.data(), joined.size());
    put<ShortText>(t);
  }

  const Field& f_;
  void* attrs_;
  const OnnxAttribute& a_;
};

}  // namespace

OnnxCall read_onnx_call(const OpDef& op, const OnnxNode& node, int64_t version) {
  OnnxCall call;
  call.attrs = onnx_defaults(op, static_cast<int64_t>(node.outputs.size()), version);
  for (const OnnxAttribute& a : node.attributes) {
    TW_CHECK(a.refers.empty(), value, quoted(a), " stands for attribute '", a.refers.substr(0, 80),
             "' of a function's call, but the node is in no function");
    if (const Field* f = find_onnx_field(op, a.name)) {
      Setter(*f, call.attrs.data(), a).set();
    } else if (int i = input_called(op, a.name); i >= 0) {
      call.constants.emplace_back(static_cast<size_t>(i), constant_of(a));
    } else {
      TW_CHECK(is_unused_onnx(op, a.name, print(a)), not_implemented, quoted(a), a.kind == Kind::none ? "" : " = ",
               a.kind == Kind::none ? "" : print(a).substr(0, 80), " is not supported");
    }
  }
  for (const Field& f : op.attrs.span()) {
    bool given = !f.required;
    for (const OnnxAttribute& a : node.attributes) given = given || find_onnx_field(op, a.name) == &f;
    TW_CHECK(given, value, "attribute '", f.name, "' is missing");
  }
  return call;
}

}  // namespace twibil::io
