// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx_form.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "ir/form_words.h"
#include "ir/registry.h"

namespace twibil {

namespace {

struct Version {
  int64_t from, to;
  const OpDef* op;
};
using Table = std::map<std::string, std::vector<Version>, std::less<>>;

int64_t number(std::string_view s, int64_t otherwise) {
  int64_t n = otherwise;
  std::from_chars(s.data(), s.data() + s.size(), n);
  return n;
}

/// "Softmax:1-12": name, first and last opset.
std::pair<std::string, Version> parse_name(std::string_view word, const OpDef& op) {
  size_t colon = word.find(':');
  Version v{1, INT64_MAX, &op};
  if (colon != std::string_view::npos) {
    std::string_view range = word.substr(colon + 1);
    size_t dash = range.find('-');
    v.from = number(range.substr(0, dash), 1);
    if (dash != std::string_view::npos) v.to = number(range.substr(dash + 1), INT64_MAX);
  }
  return {std::string(word.substr(0, colon)), v};
}

Table build() {
  Table table;
  for (const OpDef* op : registry())
    each_word(op->onnx.names, [&](std::string_view word) {
      auto [name, version] = parse_name(word, *op);
      for (const Version& other : table[name])
        TW_CHECK(version.from > other.to || version.to < other.from, runtime, op->name, " and ", other.op->name,
                 " both claim the ONNX name ", word);
      table[name].push_back(version);
      return false;
    });
  return table;
}

const Table& names() {
  static const Table table = build();
  return table;
}

}  // namespace

const OpDef* find_onnx_op(std::string_view domain, std::string_view name, int64_t version) {
  bool own = domain.empty() || domain == "ai.onnx";
  auto it = own ? names().find(name) : names().find(text(domain, ".", name));
  if (it == names().end()) return nullptr;
  for (const Version& v : it->second)
    if (version >= v.from && version <= v.to) return v.op;
  return nullptr;
}

std::vector<std::string> onnx_op_names() {
  std::vector<std::string> list;
  for (auto& [name, versions] : names()) list.push_back(name);
  return list;
}

const Field* find_onnx_field(const OpDef& op, std::string_view word) {
  const Field* found = nullptr;
  bool renamed = false;  // a word of its own keeps an attribute from being found by ours
  each_word(op.onnx.attrs, [&](std::string_view item) {
    AttrForm f = parse_form(item);
    if (f.word == word) found = find_field(op.attrs, f.own);
    renamed |= f.own == word && f.word != word;
    return found != nullptr;
  });
  return found || renamed ? found : find_field(op.attrs, word);
}

AttrBytes onnx_defaults(const OpDef& op, int64_t outputs, int64_t version) {
  AttrBytes bytes(op.attrs.size);
  if (!op.attrs.size) return bytes;
  std::copy_n(static_cast<const std::byte*>(op.attrs.defaults), bytes.size(), bytes.data());
  each_word(op.onnx.attrs, [&](std::string_view item) {
    AttrForm f = parse_form(item);
    const Field* field = find_field(op.attrs, f.own);
    TW_CHECK(field, runtime, op.name, ": its ONNX form names ", f.own, ", which is no attribute");
    if (f.word == "@outputs") parse_attr(*field, bytes.data(), text(outputs));
    else if (f.word == "@opset") parse_attr(*field, bytes.data(), text(version));
    else if (f.has_fallback) parse_attr(*field, bytes.data(), f.fallback);
    return false;
  });
  return bytes;
}

bool is_unused_onnx(const OpDef& op, std::string_view word, std::string_view value) {
  bool unused = false;
  each_word(op.onnx.unused, [&](std::string_view item) {
    AttrForm f = parse_form(item);
    if (f.own == word) unused = !f.has_fallback || f.fallback == value;
    return unused;
  });
  return unused;
}

}  // namespace twibil
