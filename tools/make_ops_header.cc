// SPDX-License-Identifier: Apache-2.0
// Writes include/twibil/ops.h: one C++ function for each operator with a public name, made from its declaration.
//
//   make_ops_header FILE
//
// Arrays come first, then attributes without a default, then the others as one struct, so that they read like keywords:
//   op::softmax(x, {.axis = 1})
// Each takes arrays, and runs, or symbols, and makes a graph.
#include <cmath>
#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "ir/registry.h"

using namespace twibil;

namespace {

constexpr const char* kPrelude = R"(// SPDX-License-Identifier: Apache-2.0
// All operators as functions. Made from their declarations by tools/make_ops_header.cc: do not edit.
//
//   Array p = op::softmax(x, {.axis = 1});   // runs now
//   Symbol s = op::softmax(Variable("x"), {.axis = 1});   // a graph
//
// Arguments: arrays, then attributes that have no default, then a struct of those that have one. An optional array that
// is not given is Array() or Symbol(). Of symbols, parameters that are not given become variables. Functions without an
// array argument stand once more in namespace symbol, where they make symbols.
#pragma once
#include <limits>
#include <optional>

#include "ir/registry.h"
#include "twibil/symbol.h"

// NOLINTBEGIN(readability-identifier-naming): names of arguments are the operators', as NumPy's N and M
namespace twibil::op {

namespace detail {
template <class T> Attribute attribute(const T& v) { return v; }
inline Attribute attribute(const Scalar& v) {
  if (v.is_real()) return v.real;
  return v.is_boolean() ? Attribute(v.integer != 0) : Attribute(v.integer);
}
template <class T> Attribute attribute(const std::optional<T>& v) { return v ? attribute(*v) : std::monostate{}; }
template <class A, class... T> std::vector<A> joined(const std::vector<A>& last, const T&... first) {
  std::vector<A> all{first...};
  all.insert(all.end(), last.begin(), last.end());
  return all;
}
}  // namespace detail

)";

bool is_keyword(std::string_view s) {
  static constexpr std::string_view kWords[] = {"and",    "bool", "case",     "char",     "default", "delete", "do",
                                                "double", "else", "float",    "for",      "if",      "int",    "long",
                                                "new",    "not",  "operator", "or",       "return",  "short",  "signed",
                                                "switch", "this", "union",    "unsigned", "while",   "xor",    "auto"};
  for (std::string_view w : kWords)
    if (w == s) return true;
  return false;
}
std::string identifier(std::string_view s) { return is_keyword(s) ? text(s, "_") : std::string(s); }

std::string camel(std::string_view name) {
  std::string s;
  bool up = true;
  for (char c : name) {
    if (c != '_') s += up && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    up = c == '_';
  }
  return s;
}

std::string comment(const std::string& indent, std::string_view doc) {
  std::string s;
  while (!doc.empty()) {
    size_t end = std::min(doc.find('\n'), doc.size());
    s += text(indent, "/// ", doc.substr(0, end), "\n");
    doc.remove_prefix(std::min(end + 1, doc.size()));
  }
  return s;
}

std::string type_of(AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean: return "bool";
    case AttrKind::integer: return "int64_t";
    case AttrKind::real: return "double";
    case AttrKind::dtype: return "DType";
    case AttrKind::scalar: return "Scalar";
    case AttrKind::int_list: return "std::vector<int64_t>";
    case AttrKind::real_list: return "std::vector<double>";
    case AttrKind::choice:
    case AttrKind::text: return "std::string";
    case AttrKind::maybe_boolean: return "std::optional<bool>";
    case AttrKind::maybe_integer: return "std::optional<int64_t>";
    case AttrKind::maybe_real: return "std::optional<double>";
    case AttrKind::maybe_dtype: return "std::optional<DType>";
    case AttrKind::maybe_scalar: return "std::optional<Scalar>";
    case AttrKind::maybe_int_list: return "std::optional<std::vector<int64_t>>";
  }
  return {};
}

std::string literal(bool v) { return v ? "true" : "false"; }
std::string literal(int64_t v) { return v == INT64_MIN ? "INT64_MIN" : text(v); }
std::string literal(double v) {
  if (std::isnan(v)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(v)) return text(v < 0 ? "-" : "", "std::numeric_limits<double>::infinity()");
  char s[40];
  std::snprintf(s, sizeof s, "%.17g", v);
  for (int digits = 1; digits < 17; ++digits) {  // the shortest that reads back as the same number
    char t[40];
    std::snprintf(t, sizeof t, "%.*g", digits, v);
    if (std::strtod(t, nullptr) == v) return t;
  }
  return s;
}
std::string literal(DType t) { return t == DType::bool_ ? "DType::bool_" : text("DType::", name_of(t)); }
std::string literal(const Scalar& s) {
  return s.is_boolean() ? literal(s.integer != 0) : s.is_real() ? literal(s.real) : literal(s.integer);
}
template <class T, int N> std::string literal(const FixedList<T, N>& list) {
  std::string s = "{";
  for (int i = 0; i < list.size(); ++i) s += (i ? ", " : "") + literal(list[i]);
  return s + "}";
}
template <class T> std::string literal(const Maybe<T>& m) { return m ? literal(*m) : "std::nullopt"; }

std::string quoted(std::string_view s) {
  std::string q = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') q += '\\';
    q += c;
  }
  return q + "\"";
}

std::string default_of(const Field& f, const void* attrs) {
  switch (f.kind) {
    case AttrKind::boolean: return literal(attr_at<bool>(attrs, f));
    case AttrKind::integer: return literal(attr_at<int64_t>(attrs, f));
    case AttrKind::real: return literal(attr_at<double>(attrs, f));
    case AttrKind::dtype: return literal(attr_at<DType>(attrs, f));
    case AttrKind::scalar: return literal(attr_at<Scalar>(attrs, f));
    case AttrKind::int_list: return literal(attr_at<IntList>(attrs, f));
    case AttrKind::real_list: return literal(attr_at<DoubleList>(attrs, f));
    case AttrKind::choice:
    case AttrKind::text: return quoted(print_attr(f, attrs));
    case AttrKind::maybe_boolean: return literal(attr_at<Maybe<bool>>(attrs, f));
    case AttrKind::maybe_integer: return literal(attr_at<Maybe<int64_t>>(attrs, f));
    case AttrKind::maybe_real: return literal(attr_at<Maybe<double>>(attrs, f));
    case AttrKind::maybe_dtype: return literal(attr_at<Maybe<DType>>(attrs, f));
    case AttrKind::maybe_scalar: return literal(attr_at<Maybe<Scalar>>(attrs, f));
    case AttrKind::maybe_int_list: return literal(attr_at<Maybe<IntList>>(attrs, f));
  }
  return {};
}

bool passed_by_value(AttrKind k) {
  return k == AttrKind::boolean || k == AttrKind::integer || k == AttrKind::real || k == AttrKind::dtype;
}

struct Lists {  // the parts of a function, put together argument by argument
  std::string parameters, inputs, attributes;
  void parameter(const std::string& p) { parameters += (parameters.empty() ? "" : ", ") + p; }
};

/// One function; with or without the optional arrays, on arrays or on symbols. Those on symbols are templates only so
/// that numbers alone (`op::maximum(1, 2)`) mean arrays.
std::string function(const OpDef& op, bool optional_arrays, const std::string& options, const std::string& type) {
  Lists l;
  std::string variadic;
  for (int i = 0; i < op.inputs(); ++i) {
    std::string name = identifier(op.in[i].name);
    if (op.in[i].kind == SlotKind::variadic) {
      l.parameter(text("const std::vector<", type, ">& ", name));
      variadic = name;
    } else if (op.in[i].kind != SlotKind::optional || optional_arrays) {
      l.parameter(text("const ", type, "& ", name));
      l.inputs += (l.inputs.empty() ? "" : ", ") + name;
    }
  }
  auto attribute = [&](const Field& f, const std::string& from) {
    l.attributes += text(l.attributes.empty() ? "" : ", ", "{\"", f.name, "\", detail::attribute(", from, ")}");
  };
  for (const Field& f : op.attrs.span()) {
    if (!f.required) continue;
    std::string kind = type_of(f.kind);
    l.parameter(text(passed_by_value(f.kind) ? kind : text("const ", kind, "&"), " ", identifier(f.name)));
    attribute(f, identifier(f.name));
  }
  if (!options.empty()) l.parameter(text("const ", options, "& options = {}"));
  for (const Field& f : op.attrs.span())
    if (!f.required) attribute(f, text("options.", identifier(f.name)));
  std::string inputs = variadic.empty()   ? text("std::vector<", type, ">{", l.inputs, "}")
                       : l.inputs.empty() ? variadic
                                          : text("detail::joined(", variadic, ", ", l.inputs, ")");
  std::string head = text(identifier(op.name), "(", l.parameters,
                          ") {\n  static const OpDef& definition = require_op(\"", op.name, "\");\n  return ");
  std::string call = text("(definition, ", inputs, ", {", l.attributes, "})");
  if (type == "Symbol") {
    bool arrays = !l.inputs.empty() || !variadic.empty();
    std::string f = text(arrays ? "template <int = 0> " : "inline ", "Symbol ", head, "compose", call, ";\n}\n");
    return arrays ? f : text("namespace symbol {\n", f, "}  // namespace symbol\n");
  }
  bool one = op.visible_outputs() == 1 && !op.count;
  return text("inline ", one ? "Array " : "std::vector<Array> ", head, "call_all", call, one ? "[0]" : "", ";\n}\n");
}

std::string declare(const OpDef& op) {
  std::string s, fields;
  for (const Field& f : op.attrs.span()) {
    if (f.required) continue;
    std::string doc = f.choices ? text(f.doc, " One of ", f.choices, ".") : std::string(f.doc);
    fields += text(comment("  ", doc), "  ", type_of(f.kind), " ", identifier(f.name), " = ",
                   default_of(f, op.attrs.defaults), ";\n");
  }
  std::string options = fields.empty() ? "" : camel(op.name) + "Options";
  if (!fields.empty()) s += text("struct ", options, " {\n", fields, "};\n");
  bool some_optional = false;
  for (int i = 0; i < op.inputs(); ++i) some_optional |= op.in[i].kind == SlotKind::optional;
  s += comment("", op.doc);
  for (int i = 0; i < op.inputs(); ++i)
    if (op.in[i].doc) s += comment("", text(op.in[i].name, ": ", op.in[i].doc));
  for (const Field& f : op.attrs.span())
    if (f.required) s += comment("", text(f.name, ": ", f.doc));
  for (const char* type : {"Array", "Symbol"}) {
    if (some_optional) s += function(op, false, options, type);
    s += function(op, true, options, type);
  }
  return s + "\n";
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: make_ops_header FILE\n"), 2;
  std::ofstream out(arguments[1]);
  out << kPrelude;
  for (const OpDef* op : registry())
    if (op->names[0]) out << declare(*op);
  out << "}  // namespace twibil::op\n// NOLINTEND(readability-identifier-naming)\n";
  out.close();
  return out ? 0 : (std::fprintf(stderr, "cannot write %s\n", arguments[1]), 1);
}
