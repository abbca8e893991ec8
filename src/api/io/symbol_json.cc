// SPDX-License-Identifier: Apache-2.0
// Writing, and what reading (symbol_json_read.cc) shares with it.
#include "api/io/symbol_json.h"

#include <algorithm>
#include <unordered_map>

#include "api/io/json.h"
#include "api/io/stored_value.h"
#include "ir/graph_form.h"

namespace twibil::io {

namespace {

constexpr int kWrittenVersion = 10901;  // of MXNet, whose words the files use

bool is_number(const SymbolRef& r) {
  return r && r.node->kind == SymbolNode::Kind::constant && r.node->value->has(kWeak);
}

/// x + 2 is one node in MXNet's files: the operator with the number as its attribute.
struct WrittenCall {
  const OpDef* op;
  AttrBytes attrs;
  std::vector<SymbolRef> in;
};
WrittenCall written_call(const SymbolNode& n) {
  WrittenCall w{n.op, n.attrs, n.in};
  if (n.in.size() != 2 || is_number(n.in[0]) == is_number(n.in[1])) return w;
  bool first = is_number(n.in[0]);
  const OpDef* form = first ? n.op->reversed_scalar_form : n.op->scalar_form;
  if (!form) return w;
  const Field* scalar = find_field(form->attrs, "scalar");
  TW_ASSERT(scalar);
  w.op = form;
  w.attrs = graph_defaults(*form);
  attr_at<Scalar>(w.attrs.data(), *scalar) = read_number(*n.in[first ? 0 : 1].node->value);
  w.in = {n.in[first ? 1 : 0]};
  return w;
}

/// Sizes that are not known are 0 in files, as long as no size is 0.
bool has_zero_size(const SymbolNode& n) {
  return n.hint.has_shape && std::ranges::find(n.hint.shape.span(), 0) != n.hint.shape.span().end();
}
std::string print_shape(const Shape& shape, bool numpy) {
  std::string s = "(";
  for (int i = 0; i < shape.rank(); ++i) s += text(i ? ", " : "", shape[i] < 0 && !numpy ? 0 : shape[i]);
  return s + (shape.rank() == 1 ? ",)" : ")");
}

void put_call(std::map<std::string, std::string>& to, const OpDef& op, const AttrBytes& attrs, size_t inputs) {
  AttrBytes defaults = graph_defaults(op);
  for (const Field& f : op.attrs.span()) {
    GraphWord w = graph_word(op, f);
    std::string now = print_attr(f, attrs.data());
    if (!w.always && now == print_attr(f, defaults.data())) continue;
    if (f.kind == AttrKind::text && now.empty()) continue;
    to[std::string(w.word)] = now;
  }
  if (op.variadic()) to["num_args"] = std::to_string(inputs);
}

std::string inputs_mask(const std::vector<SymbolRef>& in) {
  std::string mask;
  for (const SymbolRef& r : in) mask += r ? '1' : '0';
  return mask;
}

class Writer {
 public:
  explicit Writer(std::span<const SymbolRef> heads) : heads_(heads) {
    std::vector<SymbolNode*> reached = reachable(heads);
    std::vector<const SymbolNode*> used;
    for (const SymbolRef& h : heads) use(h.node.get());
    for (auto it = reached.rbegin(); it != reached.rend(); ++it) {  // numbers that became attributes are not nodes
      const SymbolNode& n = **it;
      if (!numbers_.contains(&n)) continue;
      if (n.kind == SymbolNode::Kind::call) calls_.emplace(&n, written_call(n));
      for (const SymbolRef& r : inputs_of(n))
        if (r) use(r.node.get());
      numpy_ |= has_zero_size(n);
    }
    for (const SymbolNode* n : reached)
      if (numbers_.contains(n)) {
        numbers_[n] = static_cast<int>(nodes_.size());
        nodes_.push_back(n);
      }
  }

  std::string write() {
    std::string s = "{\n  \"nodes\": [", arguments, rows = "0";
    int row = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const SymbolNode& n = *nodes_[i];
      s += i ? ", \n    {" : "\n    {";
      node(s, n);
      s += "\n    }";
      if (is_variable(n)) arguments += text(arguments.empty() ? "" : ", ", i);
      row += n.outputs;
      rows += text(", ", row);
    }
    s += text("\n  ], \n  \"arg_nodes\": [", arguments, "], \n  \"node_row_ptr\": [", rows, "], \n  \"heads\": [");
    for (size_t i = 0; i < heads_.size(); ++i) s += text(i ? ", " : "", edge(heads_[i]));
    s += "], \n  \"attrs\": {";
    if (numpy_) s += "\"is_np_shape\": [\"int\", 1], ";
    return s + text("\"mxnet_version\": [\"int\", ", kWrittenVersion, "]}\n}");
  }

 private:
  static bool is_variable(const SymbolNode& n) { return n.is_input() || n.kind == SymbolNode::Kind::constant; }
  void use(const SymbolNode* n) { numbers_.emplace(n, 0); }
  const std::vector<SymbolRef>& inputs_of(const SymbolNode& n) const {
    auto it = calls_.find(&n);
    return it == calls_.end() ? n.in : it->second.in;
  }
  std::string edge(const SymbolRef& r) const { return text("[", numbers_.at(r.node.get()), ", ", r.output, ", 0]"); }
  std::string op_of(const SymbolNode& n) const {
    if (is_variable(n)) return "null";
    if (n.kind == SymbolNode::Kind::backward) return kBackwardName;
    // A graph that was read keeps the names that it had, of several that mean the same.
    auto said = n.marks.find(kGraphNameWord);
    if (said != n.marks.end() && calls_.at(&n).op == n.op && find_graph_op(said->second) == n.op) return said->second;
    TW_CHECK(n.kind == SymbolNode::Kind::call, value, "save: node ", n.name, " is a function of the program (",
             n.op_name(), "), which no file can hold");
    return graph_name(*calls_.at(&n).op);
  }
  std::map<std::string, std::string> attributes(const SymbolNode& n) const {
    std::map<std::string, std::string> all(n.marks.begin(), n.marks.end());
    if (n.kind == SymbolNode::Kind::call)
      put_call(all, *calls_.at(&n).op, calls_.at(&n).attrs, calls_.at(&n).in.size());
    all.erase(kGraphNameWord);
    if (auto unknown = all.find(kUnknownSizesWord); unknown != all.end()) {
      all["shape"] = unknown->second;
      all.erase(unknown);
    }
    if (n.hint.has_shape && n.kind == SymbolNode::Kind::variable) all[kShapeWord] = print_shape(n.hint.shape, numpy_);
    if (n.hint.dtype != kUnknownDType && n.kind == SymbolNode::Kind::variable)
      all[kDTypeWord] = std::to_string(type_flag(n.hint.dtype));
    if (n.value) {
      if (n.value->has(kWeak)) all[kNumberWord] = print_number(*n.value);
      else all[n.kind == SymbolNode::Kind::captured ? kCapturedWord : kConstantWord] = store_value(n.value);
    }
    const std::vector<SymbolRef>& in = inputs_of(n);
    if (std::ranges::any_of(in, [](const SymbolRef& r) { return !r; })) all[kInputsWord] = inputs_mask(in);
    return all;
  }
  void node(std::string& s, const SymbolNode& n) const {
    s += text("\n      \"op\": ", quote_json(op_of(n)), ", \n      \"name\": ", quote_json(n.name));
    std::map<std::string, std::string> all = attributes(n);
    if (!all.empty()) {
      s += ", \n      \"attrs\": {";
      bool first = true;
      for (auto& [key, value] : all) {
        s += text(first ? "" : ", ", "\n        ", quote_json(key), ": ", quote_json(value));
        first = false;
      }
      s += "\n      }";
    }
    s += ", \n      \"inputs\": [";
    bool first = true;
    for (const SymbolRef& r : inputs_of(n)) {
      if (!r) continue;
      s += text(first ? "" : ", ", edge(r));
      first = false;
    }
    s += "]";
  }

  std::span<const SymbolRef> heads_;
  std::vector<const SymbolNode*> nodes_;
  std::unordered_map<const SymbolNode*, int> numbers_;
  std::unordered_map<const SymbolNode*, WrittenCall> calls_;
  bool numpy_ = false;
};

}  // namespace

std::map<std::string, std::string> graph_attributes(const SymbolNode& n) {
  std::map<std::string, std::string> all(n.marks.begin(), n.marks.end());
  all.erase(kGraphNameWord);
  all.erase(kUnknownSizesWord);
  if (n.kind == SymbolNode::Kind::call) put_call(all, *n.op, n.attrs, n.in.size());
  if (n.hint.has_shape && n.kind == SymbolNode::Kind::variable) all[kShapeWord] = print_shape(n.hint.shape, true);
  if (n.hint.dtype != kUnknownDType && n.kind == SymbolNode::Kind::variable)
    all[kDTypeWord] = std::to_string(type_flag(n.hint.dtype));
  return all;
}

std::string format_symbol(std::span<const SymbolRef> heads) { return Writer(heads).write(); }

void write_symbol(const std::string& path, std::span<const SymbolRef> heads) {
  write_atomic(path, bytes_of(format_symbol(heads)));
}

}  // namespace twibil::io
