// SPDX-License-Identifier: Apache-2.0
#include "ir/graph_form.h"

#include <algorithm>
#include <map>

#include "ir/form_words.h"
#include "ir/registry.h"

namespace twibil {

namespace {

/// What files call the operator that a front end knows by this name.
std::vector<std::string> derived_names(std::string_view name) {
  auto after = [&](std::string_view prefix) { return name.substr(prefix.size()); };
  if (name.starts_with("nd.contrib.")) return {text("_contrib_", after("nd.contrib."))};
  if (name.starts_with("nd.")) return {std::string(after("nd."))};
  if (name.starts_with("npx.")) return {text("_npx_", after("npx."))};
  if (name.starts_with("np.random.")) return {text("_npi_", after("np.random."))};
  if (name.starts_with("np.")) return {text("_npi_", after("np.")), text("_np_", after("np."))};
  return {};
}

using Names = std::map<std::string, const OpDef*, std::less<>>;

// What operators say themselves comes before what follows from their names; of two operators with one derived name the
// first keeps it, and the operator's own name is understood at last.
const Names& names() {
  static const Names table = [] {
    Names t;
    for (const OpDef* op : registry())
      each_word(op->graph.names, [&](std::string_view word) {
        auto [place, fresh] = t.emplace(word, op);
        TW_CHECK(fresh, runtime, op->name, " and ", place->second->name, " both claim the graph name ", word);
        return false;
      });
    for (const OpDef* op : registry())
      for (const char* name : op->names)
        for (const std::string& derived : name ? derived_names(name) : std::vector<std::string>())
          t.emplace(derived, op);
    for (const OpDef* op : registry()) t.emplace(op->name, op);
    return t;
  }();
  return table;
}

}  // namespace

const OpDef* find_graph_op(std::string_view name) {
  auto it = names().find(name);
  return it == names().end() ? nullptr : it->second;
}

const OpDef& require_graph_op(std::string_view name) {
  if (const OpDef* op = find_graph_op(name)) return *op;
  throw_error(ErrorKind::key, text("there is no operator ", name.substr(0, 80), did_you_mean(name, graph_op_names())));
}

std::vector<std::string_view> graph_op_names() {
  std::vector<std::string_view> list;
  for (auto& [name, op] : names()) list.push_back(name);
  return list;
}

std::string graph_name(const OpDef& op) {
  std::string found;
  each_word(op.graph.names, [&](std::string_view word) { return found = word, true; });
  for (const char* space : {"nd.", "np.", "npx."})
    for (const char* name : op.names)
      if (found.empty() && name && std::string_view(name).starts_with(space))
        for (const std::string& derived : derived_names(name))
          if (found.empty() && find_graph_op(derived) == &op) found = derived;
  return found.empty() ? op.name : found;
}

GraphWord graph_word(const OpDef& op, const Field& field) {
  GraphWord result{field.name, {}, field.required || field.kind == AttrKind::choice};
  each_word(op.graph.attrs, [&](std::string_view item) {
    AttrForm f = parse_form(item);
    if (f.own != field.name) return false;
    result.word = f.word;
    result.fallback = f.fallback;
    result.always = true;
    return true;
  });
  return result;
}

const Field* find_graph_field(const OpDef& op, std::string_view word) {
  const Field* found = nullptr;
  each_word(op.graph.attrs, [&](std::string_view item) {
    AttrForm f = parse_form(item);
    if (f.word != word) return false;
    found = find_field(op.attrs, f.own);
    return true;
  });
  return found ? found : find_field(op.attrs, word);
}

AttrBytes graph_defaults(const OpDef& op) {
  AttrBytes bytes(op.attrs.size);
  if (!op.attrs.size) return bytes;
  const auto* from = static_cast<const std::byte*>(op.attrs.defaults);
  std::copy_n(from, bytes.size(), bytes.data());
  each_word(op.graph.attrs, [&](std::string_view item) {
    AttrForm f = parse_form(item);
    const Field* field = find_field(op.attrs, f.own);
    TW_CHECK(field, runtime, op.name, ": its graph form names ", f.own, ", which is no attribute");
    if (f.has_fallback) parse_attr(*field, bytes.data(), f.fallback);
    return false;
  });
  return bytes;
}

bool wants_input(const OpDef& op, const AttrBytes& attrs, size_t i) {
  const Field* no = find_field(op.attrs, text("no_", op.in[i].name));
  if (no && no->kind == AttrKind::boolean) return !attr_at<bool>(attrs.data(), *no);
  bool wanted = false;
  each_word(op.graph.wanted, [&](std::string_view item) {
    size_t colon = item.find(':'), equals = item.find('=');
    if (item.substr(0, colon) != op.in[i].name) return false;
    const Field* f = find_field(op.attrs, item.substr(colon + 1, equals - colon - 1));
    TW_CHECK(f, runtime, op.name, ": its graph form names an attribute that is none");
    return wanted = print_attr(*f, attrs.data()) == item.substr(equals + 1);
  });
  return wanted;
}

std::string graph_input(const OpDef& op, size_t i) {
  std::string found;
  size_t k = 0;
  each_word(op.graph.inputs, [&](std::string_view word) {
    if (k++ != i) return false;
    found = word;
    return true;
  });
  size_t slot = std::min(i, static_cast<size_t>(std::max(op.inputs() - 1, 0)));
  return found.empty() && op.inputs() ? op.in[slot].name : found;
}

}  // namespace twibil
