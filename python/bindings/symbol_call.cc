// SPDX-License-Identifier: Apache-2.0
// Calls of operators on symbols. Not a fast path: a graph is built once.
#include <cstring>

#include "api/io/stored_value.h"
#include "api/io/symbol_json.h"
#include "convert.h"
#include "ir/graph_form.h"
#include "ir/registry.h"
#include "symbol.h"

namespace twibil::python {

namespace {

class SymbolArguments {
 public:
  SymbolArguments(const OpDef& op, const char* called, bool graph_form)
      : op_(op), called_(called), graph_form_(graph_form), attrs_(op.attrs.size) {
    if (op.attrs.size) std::memcpy(attrs_.data(), op.attrs.defaults, op.attrs.size);
    if (graph_form) attrs_ = graph_defaults(op);
    if (!op.variadic()) in_.resize(static_cast<size_t>(op.inputs()));
    given_.resize(in_.size());
  }

  void positional(PyObject* const* args, Py_ssize_t n) {
    Py_ssize_t i = 0;
    if (op_.variadic()) {
      if (n > 0 && (PyList_Check(args[0]) || PyTuple_Check(args[0]))) spread(args[i++]);
      else
        while (i < n && (is_symbol(args[i]) || is_array(args[i])))
          in_.push_back(to_symbol(args[i++], op_.name, slot(0)));
    } else {
      for (size_t k = 0; k < in_.size() && i < n; ++k) set_input(k, args[i++]);
    }
    for (int k = 0; k < op_.attrs.count && i < n; ++k) {
      const Field& f = op_.attrs.fields[k];
      if (f.keyword_only) break;
      bool rest =
          (f.kind == AttrKind::int_list || f.kind == AttrKind::maybe_int_list) && n - i > 1 && PyLong_Check(args[i]);
      if (rest) {
        Ref list(checked(PyTuple_New(n - i)));
        for (Py_ssize_t j = i; j < n; ++j) PyTuple_SET_ITEM(list.get(), j - i, Py_NewRef(args[j]));
        set_field(f, list.get());
        i = n;
      } else {
        set_field(f, args[i++]);
      }
    }
    TW_CHECK(i == n, type, op_.name, ": takes at most ", static_cast<int64_t>(i), " positional arguments; got ",
             static_cast<int64_t>(n));
  }

  void keyword(std::string_view key, PyObject* value) {
    if (key == "name") {
      if (value != Py_None) name_ = std::string(utf8(value));
      return;
    }
    if (key == "attr") {
      if (value != Py_None) marks(value);
      return;
    }
    if (key == "out" && value == Py_None) return;
    for (int k = 0; k < op_.inputs(); ++k) {
      if (key != op_.in[static_cast<size_t>(k)].name && !is_among(op_.in[static_cast<size_t>(k)].renames, key))
        continue;
      if (op_.in[static_cast<size_t>(k)].kind == SlotKind::variadic) return spread(value);
      return set_input(static_cast<size_t>(k), value);
    }
    const Field* f = graph_form_ ? find_graph_field(op_, key) : find_field(op_.attrs, key);
    if (f) return set_field(*f, value);
    for (int k = 0; graph_form_ && k < op_.inputs(); ++k)
      if (key == graph_input(op_, static_cast<size_t>(k))) return set_input(static_cast<size_t>(k), value);
    if (!op_.variadic() && op_.inputs() > 0 && !given_[0] &&
        (key == "data" || key == "x" || key == "a" || key == "lhs"))
      return set_input(0, value);
    if (op_.inputs() > 1 && !op_.variadic() && !given_[1] && key == "rhs") return set_input(1, value);
    if (std::string hidden = io::hidden_attribute(key); !hidden.empty() || key.starts_with("__")) {
      marks_[hidden.empty() ? std::string(key) : hidden] = std::string(utf8(Ref(checked(PyObject_Str(value))).get()));
      return;
    }
    if (key == "ctx" || key == "device" || io::is_without_effect(key)) return;
    std::vector<std::string_view> known;
    for (int k = 0; k < op_.inputs(); ++k) known.push_back(op_.in[static_cast<size_t>(k)].name);
    for (const Field& f : op_.attrs.span()) known.push_back(f.name);
    throw_error(ErrorKind::type, text(op_.name, ": there is no argument ", key, did_you_mean(key, known)));
  }

  PyObject* make() {
    for (const Field& f : op_.attrs.span())
      TW_CHECK(!f.required || is_set(f), type, op_.name, ": argument ", f.name, " is missing. ", f.doc);
    Ref names(checked(PyImport_ImportModule("twibil.sym.names")));
    add_scope_marks(names.get());
    SymbolNodePtr n = make_call(op_, attrs_.data(), {}, named(names.get()));
    for (size_t k = 0; k < in_.size(); ++k) {
      if (in_[k] || given_.size() <= k || given_[k]) continue;
      const Slot& s = op_.in[k];
      if (s.kind == SlotKind::optional && !wants_input(op_, attrs_, k)) continue;
      SymbolNodePtr v = make_variable(text(n->name, "_", graph_input(op_, k)));
      for (auto& [key, value] : marks_)
        if (key.starts_with("__")) v->marks[key] = value;
      in_[k] = {v, 0};
    }
    TW_CHECK(!op_.variadic() || !in_.empty(), type, op_.name, ": argument ", slot(0), " is missing");
    while (!in_.empty() && !in_.back()) in_.pop_back();
    if (n->op->scalar_form && in_.size() == 2) use_scalar_form(*n);
    n->sequence = SymbolNode::next_sequence();  // after the variables that it reads
    n->in = std::move(in_);
    n->marks = std::move(marks_);
    std::vector<SymbolRef> heads;
    for (int k = 0; k < n->visible_outputs(); ++k) heads.push_back({n, k});
    return wrap_symbol(std::move(heads));
  }

 private:
  const char* slot(size_t k) const { return op_.in[std::min(k, static_cast<size_t>(op_.inputs() - 1))].name; }
  /// The name that the user gave, or the next number, with what scopes put before it. A call of an operator and a
  /// number is named after the operator that it becomes.
  std::string named(PyObject* module) const {
    const OpDef* form = in_.size() == 2 ? scalar_form() : nullptr;
    std::string hint = form && graph_form_ ? scalar_hint(*form) : called_;
    Ref result(
        checked(PyObject_CallMethod(module, "next_name", "sz", hint.c_str(), name_.empty() ? nullptr : name_.c_str())));
    return std::string(utf8(result.get()));
  }
  static std::string scalar_hint(const OpDef& form) {
    std::string hint;
    for (char c : graph_name(form))
      if (c != '_' || hint.empty()) hint += c;
    return hint;
  }
  static bool is_number(const SymbolRef& r) {
    return r && r.node->kind == SymbolNode::Kind::constant && r.node->value->has(kWeak);
  }
  /// The operator with a number as its attribute that this call is; null: it is none.
  const OpDef* scalar_form() const {
    if (!graph_form_ || is_number(in_[0]) == is_number(in_[1])) return nullptr;
    return is_number(in_[0]) ? op_.reversed_scalar_form : op_.scalar_form;
  }
  void use_scalar_form(SymbolNode& n) {
    const OpDef* form = scalar_form();
    if (!form) return;
    bool first = is_number(in_[0]);
    n.op = form;
    n.attrs = graph_defaults(*form);
    attr_at<Scalar>(n.attrs.data(), *find_field(form->attrs, "scalar")) =
        io::read_number(*in_[first ? 0 : 1].node->value);
    in_ = {in_[first ? 1 : 0]};
  }
  void add_scope_marks(PyObject* module) {
    Ref all(checked(PyObject_CallMethod(module, "current_attributes", nullptr)));
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(all.get(), &at, &key, &value);)
      marks_.emplace(std::string(utf8(key)), std::string(utf8(value)));
  }
  void set_input(size_t k, PyObject* o) {
    TW_CHECK(!given_[k], type, op_.name, ": argument ", slot(k), " is given twice");
    in_[k] = to_symbol(o, op_.name, slot(k));
    given_[k] = true;
  }
  void spread(PyObject* sequence) {
    if (is_symbol(sequence) && heads_of(sequence).size() > 1) {
      for (const SymbolRef& r : heads_of(sequence)) in_.push_back(r);
      return;
    }
    Ref list(checked(PySequence_List(sequence)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
      in_.push_back(to_symbol(PyList_GET_ITEM(list.get(), i), op_.name, slot(0)));
  }
  void set_field(const Field& f, PyObject* o) {
    set_.push_back(&f);
    if (PyUnicode_Check(o) && f.kind != AttrKind::text && f.kind != AttrKind::choice && f.kind != AttrKind::dtype &&
        f.kind != AttrKind::maybe_dtype)
      return parse_attr(f, attrs_.data(), utf8(o));  // "(3, 3)", as files hold it
    set_attr(f, attrs_.data(), o, op_.name);
  }
  bool is_set(const Field& f) const { return std::ranges::find(set_, &f) != set_.end(); }
  void marks(PyObject* dict) {
    TW_CHECK(PyDict_Check(dict), type, op_.name, ": attr must be a dictionary of strings; got ",
             Py_TYPE(dict)->tp_name);
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
      TW_CHECK(PyUnicode_Check(key) && PyUnicode_Check(value), type, op_.name, ": attr must hold strings");
      std::string hidden = io::hidden_attribute(utf8(key));
      marks_[hidden.empty() ? std::string(utf8(key)) : hidden] = std::string(utf8(value));
    }
  }

  const OpDef& op_;
  const char* called_;
  bool graph_form_;  // called by the name that graph files use, with their words and defaults
  AttrBytes attrs_;
  std::vector<SymbolRef> in_;
  std::vector<bool> given_;
  std::vector<const Field*> set_;
  std::string name_;
  std::map<std::string, std::string> marks_;
};

}  // namespace

PyObject* call_symbolically(const OpDef& op, const char* name, PyObject* const* args, Py_ssize_t n, PyObject* names,
                            bool graph_form) {
  SymbolArguments a(op, name, graph_form);
  a.positional(args, n);
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    a.keyword(utf8(PyTuple_GET_ITEM(names, i)), args[n + i]);
  return a.make();
}

}  // namespace twibil::python
