// SPDX-License-Identifier: Apache-2.0
#include "api/attributes.h"

#include <algorithm>

#include "ir/registry.h"

namespace twibil {

namespace {

std::string text_of(const Attribute& a) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) return "None";
        else if constexpr (std::is_same_v<T, bool>) return v ? "True" : "False";
        else if constexpr (std::is_same_v<T, std::string>) return v;
        else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>>) {
          std::string t = "(";
          for (auto x : v) t += text(x, ",");
          return t + ")";
        } else return text(v);
      },
      a);
}

/// Stores a number of the field's own kind; false for all others, which go through text and its checks.
bool store(const Field& f, std::byte* attrs, const Attribute& a) {
  if (const bool* v = std::get_if<bool>(&a)) {
    if (f.kind == AttrKind::boolean) return attr_at<bool>(attrs, f) = *v, true;
  } else if (const int64_t* n = std::get_if<int64_t>(&a)) {
    if (f.kind == AttrKind::integer) return attr_at<int64_t>(attrs, f) = *n, true;
    if (f.kind == AttrKind::maybe_integer) return attr_at<Maybe<int64_t>>(attrs, f) = Maybe<int64_t>(*n), true;
    if (f.kind == AttrKind::scalar) return attr_at<Scalar>(attrs, f) = Scalar(*n), true;
    if (f.kind == AttrKind::maybe_scalar) return attr_at<Maybe<Scalar>>(attrs, f) = Maybe<Scalar>(*n), true;
  } else if (const double* x = std::get_if<double>(&a)) {
    if (f.kind == AttrKind::real) return attr_at<double>(attrs, f) = *x, true;
    if (f.kind == AttrKind::scalar) return attr_at<Scalar>(attrs, f) = Scalar(*x), true;
    if (f.kind == AttrKind::maybe_real) return attr_at<Maybe<double>>(attrs, f) = Maybe<double>(*x), true;
    if (f.kind == AttrKind::maybe_scalar) return attr_at<Maybe<Scalar>>(attrs, f) = Maybe<Scalar>(*x), true;
  }
  return false;
}

void set(const OpDef& op, std::byte* attrs, const NamedAttribute& a) {
  const Field* f = find_field(op.attrs, a.name);
  TW_CHECK(f, type, op.name, ": there is no argument ", a.name);
  if (!store(*f, attrs, a.value)) parse_attr(*f, attrs, text_of(a.value));
}

}  // namespace

AttrBytes pack_attributes(const OpDef& op, std::initializer_list<NamedAttribute> attributes) {
  AttrBytes attrs(op.attrs.size);
  if (op.attrs.size) std::copy_n(static_cast<const std::byte*>(op.attrs.defaults), attrs.size(), attrs.data());
  for (const NamedAttribute& a : attributes) set(op, attrs.data(), a);
  for (const Field& f : op.attrs.span()) {
    auto names_it = [&](const NamedAttribute& a) { return find_field(op.attrs, a.name) == &f; };
    TW_CHECK(!f.required || std::ranges::any_of(attributes, names_it), type, op.name, ": argument ", f.name,
             " is missing. ", f.doc);
  }
  return attrs;
}

}  // namespace twibil
