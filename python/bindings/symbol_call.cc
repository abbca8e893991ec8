// SPDX-License-Identifier: Apache-2.0
// Calls of operators on symbols. Not a fast path: a graph is built once.
#include <cstring>

#include "convert.h"
#include "ir/registry.h"
#include "symbol.h"

namespace twibil::python {

namespace {

class SymbolArguments {
 public:
  explicit SymbolArguments(const OpDef& op, const char* called) : op_(op), called_(called), attrs_(op.attrs.size) {
    if (op.attrs.size) std::memcpy(attrs_.data(), op.attrs.defaults, op.attrs.size);
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
    if (const Field* f = find_field(op_.attrs, key)) return set_field(*f, value);
    if (!op_.variadic() && op_.inputs() > 0 && !given_[0] &&
        (key == "data" || key == "x" || key == "a" || key == "lhs"))
      return set_input(0, value);
    if (op_.inputs() > 1 && !op_.variadic() && !given_[1] && key == "rhs") return set_input(1, value);
    if (key == "ctx" || key == "device" || key == "num_args") return;
    std::vector<std::string_view> known;
    for (int k = 0; k < op_.inputs(); ++k) known.push_back(op_.in[static_cast<size_t>(k)].name);
    for (const Field& f : op_.attrs.span()) known.push_back(f.name);
    throw_error(ErrorKind::type, text(op_.name, ": there is no argument ", key, did_you_mean(key, known)));
  }

  PyObject* make() {
    for (const Field& f : op_.attrs.span())
      TW_CHECK(!f.required || is_set(f), type, op_.name, ": argument ", f.name, " is missing. ", f.doc);
    SymbolNodePtr n = make_call(op_, attrs_.data(), {}, named());
    for (size_t k = 0; k < in_.size(); ++k) {
      if (in_[k] || given_.size() <= k || given_[k]) continue;
      const Slot& s = op_.in[k];
      if (s.kind == SlotKind::optional && !wants_parameter(k)) continue;
      SymbolNodePtr v = make_variable(text(n->name, "_", s.name));
      v->marks = marks_;
      in_[k] = {v, 0};
    }
    TW_CHECK(!op_.variadic() || !in_.empty(), type, op_.name, ": argument ", slot(0), " is missing");
    while (!in_.empty() && !in_.back()) in_.pop_back();
    n->sequence = SymbolNode::next_sequence();  // after the variables that it reads
    n->in = std::move(in_);
    n->marks = std::move(marks_);
    std::vector<SymbolRef> heads;
    for (int k = 0; k < op_.visible_outputs(); ++k) heads.push_back({n, k});
    return wrap_symbol(std::move(heads));
  }

 private:
  const char* slot(size_t k) const { return op_.in[std::min(k, static_cast<size_t>(op_.inputs() - 1))].name; }
  std::string named() const {
    if (!name_.empty()) return name_;
    Ref module(checked(PyImport_ImportModule("twibil.sym.names")));
    Ref result(checked(PyObject_CallMethod(module.get(), "next_name", "s", called_)));
    return std::string(utf8(result.get()));
  }
  /// Optional parameters exist unless an attribute says no: a bias without no_bias=True.
  bool wants_parameter(size_t k) const {
    const Field* f = find_field(op_.attrs, text("no_", op_.in[k].name));
    return f && f->kind == AttrKind::boolean && !attr_at<bool>(attrs_.data(), *f);
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
      marks_[std::string(utf8(key))] = std::string(utf8(value));
    }
  }

  const OpDef& op_;
  const char* called_;
  AttrBytes attrs_;
  std::vector<SymbolRef> in_;
  std::vector<bool> given_;
  std::vector<const Field*> set_;
  std::string name_;
  std::map<std::string, std::string> marks_;
};

}  // namespace

PyObject* call_symbolically(const OpDef& op, const char* name, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  SymbolArguments a(op, name);
  a.positional(args, n);
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    a.keyword(utf8(PyTuple_GET_ITEM(names, i)), args[n + i]);
  return a.make();
}

}  // namespace twibil::python
