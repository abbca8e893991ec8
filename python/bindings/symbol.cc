// SPDX-License-Identifier: Apache-2.0
// The symbol type: what Python's class Symbol builds on.
#include "symbol.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "api/io/symbol_json.h"
#include "compiled.h"
#include "convert.h"
#include "function.h"
#include "io_arguments.h"
#include "ir/registry.h"
#include "runtime/launch.h"
#include "runtime/lower.h"

namespace twibil::python {

namespace {

struct SymbolObject {
  PyObject_HEAD std::vector<SymbolRef>* heads;
};
PyObject* symbol_class = nullptr;  // Python's, which derives from SymbolType

PyObject* string(std::string_view s) {
  return checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}
void append(PyObject* list, PyObject* owned) {
  Ref value(checked(owned));
  checked(PyList_Append(list, value.get()));
}
Ref new_list() { return checked(PyList_New(0)); }
void put(PyObject* dict, const char* key, PyObject* owned) {
  Ref value(checked(owned));
  checked(PyDict_SetItemString(dict, key, value.get()));
}

void dealloc(PyObject* o) {
  delete reinterpret_cast<SymbolObject*>(o)->heads;
  Py_TYPE(o)->tp_free(o);  // the class is counted down by Python's own part of the deallocation
}

std::vector<SymbolNode*> nodes_of(PyObject* o) { return reachable(heads_of(o)); }

std::string output_name(const SymbolRef& r) {
  const SymbolNode& n = *r.node;
  if (n.kind == SymbolNode::Kind::variable || n.kind == SymbolNode::Kind::captured) return n.name;
  if (n.visible_outputs() == 1) return n.name + "_output";
  const char* own = n.kind == SymbolNode::Kind::call ? n.op->out[static_cast<size_t>(r.output)] : nullptr;
  return own ? text(n.name, "_", own) : text(n.name, "_output", r.output);
}

// ---- making ----

PyObject* make_variable_symbol(PyObject*, PyObject* args) {
  const char* name;
  PyObject *shape = Py_None, *dtype = Py_None, *marks = Py_None;
  if (!PyArg_ParseTuple(args, "s|OOO", &name, &shape, &dtype, &marks)) return nullptr;
  return guarded([&] {
    Hint hint;
    if (shape != Py_None) {
      hint.has_shape = true;
      for (int64_t d : to_int_list(shape, "Variable: shape")) {
        TW_CHECK(d >= -1, value, "Variable ", name, ": sizes must be 0 or more, or -1 where unknown; got ", d);
        hint.shape.push_back(d);
      }
    }
    if (dtype != Py_None) hint.dtype = to_dtype(dtype);
    SymbolNodePtr n = make_variable(name, hint);
    if (marks != Py_None) {
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(marks, &at, &key, &value);)
        n->marks[std::string(utf8(key))] = std::string(utf8(value));
    }
    return wrap_symbol({{n, 0}});
  });
}
PyObject* make_constant_symbol(PyObject*, PyObject* value) {
  return guarded([&] { return wrap_symbol({to_symbol(value, "Constant", "value")}); });
}
PyObject* group(PyObject*, PyObject* list) {
  return guarded([&] {
    Ref items(checked(PySequence_Tuple(list)));
    std::vector<SymbolRef> heads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      PyObject* s = PyTuple_GET_ITEM(items.get(), i);
      TW_CHECK(is_symbol(s), type, "Group: a list of symbols is needed; got ", Py_TYPE(s)->tp_name);
      heads.insert(heads.end(), heads_of(s).begin(), heads_of(s).end());
    }
    TW_CHECK(!heads.empty(), value, "Group: at least one symbol is needed");
    return wrap_symbol(std::move(heads));
  });
}
/// symbol_call(op name, list of inputs, attributes by name, node name, marks): also for readers of files.
PyObject* symbol_call(PyObject*, PyObject* args) {
  const char *op_name, *name;
  PyObject *inputs, *attrs, *marks;
  if (!PyArg_ParseTuple(args, "sO!O!sO!", &op_name, &PyList_Type, &inputs, &PyDict_Type, &attrs, &name, &PyDict_Type,
                        &marks))
    return nullptr;
  return guarded([&] {
    const OpDef& op = require_op(op_name);
    AttrBytes bytes(op.attrs.size);
    if (op.attrs.size) std::memcpy(bytes.data(), op.attrs.defaults, op.attrs.size);
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(attrs, &at, &key, &value);) {
      const Field* f = find_field(op.attrs, utf8(key));
      TW_CHECK(f, type, op.name, ": there is no attribute ", utf8(key));
      if (PyUnicode_Check(value)) parse_attr(*f, bytes.data(), utf8(value));
      else set_attr(*f, bytes.data(), value, op.name);
    }
    std::vector<SymbolRef> in;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i)
      in.push_back(to_symbol(PyList_GET_ITEM(inputs, i), op.name, "input"));
    TW_CHECK(op.variadic() || static_cast<int>(in.size()) <= op.inputs(), value, op.name, ": takes ", op.inputs(),
             " inputs; got ", in.size());
    SymbolNodePtr n = make_call(op, bytes.data(), std::move(in), name);
    for (Py_ssize_t at = 0; PyDict_Next(marks, &at, &key, &value);)
      n->marks[std::string(utf8(key))] = std::string(utf8(value));
    std::vector<SymbolRef> heads;
    for (int k = 0; k < n->visible_outputs(); ++k) heads.push_back({n, k});
    return wrap_symbol(std::move(heads));
  });
}
/// parse_symbol(text, source), read_symbol(path): the symbol in a graph file.
PyObject* parse_symbol_text(PyObject*, PyObject* args) {
  PyObject* json;
  const char* source = "<text>";
  if (!PyArg_ParseTuple(args, "O|s", &json, &source)) return nullptr;
  return guarded([&] {
    if (PyBytes_Check(json))
      return wrap_symbol(
          io::parse_symbol({PyBytes_AS_STRING(json), static_cast<size_t>(PyBytes_GET_SIZE(json))}, source));
    TW_CHECK(PyUnicode_Check(json), type, "load_json: text is needed; got ", Py_TYPE(json)->tp_name);
    return wrap_symbol(io::parse_symbol(utf8(json), source));
  });
}
PyObject* read_symbol_file(PyObject*, PyObject* path) {
  return guarded([&] { return wrap_symbol(io::read_symbol(to_path(path))); });
}
PyObject* symbol_text(PyObject* o, PyObject*) {
  return guarded([&] { return string(io::format_symbol(heads_of(o))); });
}
PyObject* write_symbol_file(PyObject* o, PyObject* path) {
  return guarded([&] {
    io::write_symbol(to_path(path), heads_of(o));
    Py_RETURN_NONE;
  });
}
PyObject* set_symbol_class(PyObject*, PyObject* type) {
  Py_XSETREF(symbol_class, Py_NewRef(type));
  Py_RETURN_NONE;
}

// ---- looking ----

PyObject* length(PyObject* o, PyObject*) { return PyLong_FromSize_t(heads_of(o).size()); }
PyObject* output(PyObject* o, PyObject* index) {
  return guarded([&] {
    int64_t i = to_int(index, "index"), n = static_cast<int64_t>(heads_of(o).size());
    TW_CHECK(i >= -n && i < n, index, "the symbol has ", n, " outputs; got index ", i);
    return wrap_symbol({heads_of(o)[static_cast<size_t>(i < 0 ? i + n : i)]});
  });
}
PyObject* output_names(PyObject* o, PyObject*) {
  return guarded([&] {
    Ref list = new_list();
    for (const SymbolRef& r : heads_of(o)) append(list.get(), string(output_name(r)));
    return list.leak();
  });
}
PyObject* argument_names(PyObject* o, PyObject* which) {  // False: arguments, True: auxiliary states, None: both
  return guarded([&] {
    std::vector<SymbolNode*> nodes = nodes_of(o);
    Ref list = new_list();
    for (SymbolNode* v : variables_of(heads_of(o)))
      if (which == Py_None || is_auxiliary(nodes, v) == (which == Py_True)) append(list.get(), string(v->name));
    return list.leak();
  });
}
PyObject* internals(PyObject* o, PyObject*) {
  return guarded([&] {
    std::vector<SymbolRef> heads;
    std::unordered_map<SymbolNode*, SymbolNodePtr> owner;
    for (const SymbolRef& h : heads_of(o)) owner[h.node.get()] = h.node;
    std::vector<SymbolNode*> nodes = nodes_of(o);
    for (SymbolNode* n : nodes)
      for (const SymbolRef& r : n->in)
        if (r) owner[r.node.get()] = r.node;
    for (SymbolNode* n : nodes)
      for (int k = 0; k < n->visible_outputs(); ++k) heads.push_back({owner[n], k});
    return wrap_symbol(std::move(heads));
  });
}
PyObject* children(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::vector<SymbolRef> heads;
    for (const SymbolRef& h : heads_of(o))
      for (const SymbolRef& r : h.node->in)
        if (r) heads.push_back(r);
    if (heads.empty()) Py_RETURN_NONE;
    return wrap_symbol(std::move(heads));
  });
}
PyObject* node_name(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    const auto& heads = heads_of(o);
    for (const SymbolRef& h : heads)
      if (h.node != heads[0].node) Py_RETURN_NONE;
    return string(heads[0].node->name);
  });
}
PyObject* marks_of(const SymbolNode& n) {
  Ref dict(checked(PyDict_New()));
  for (auto& [key, value] : n.marks) put(dict.get(), key.c_str(), string(value));
  return dict.leak();
}
PyObject* attrs_of(const SymbolNode& n, bool all) {
  Ref dict(checked(PyDict_New()));
  if (n.kind != SymbolNode::Kind::call) return dict.leak();
  for (const Field& f : n.op->attrs.span()) {
    std::string now = print_attr(f, n.attrs.data());
    if (all || f.required || now != print_attr(f, n.op->attrs.defaults)) put(dict.get(), f.name, string(now));
  }
  return dict.leak();
}
const char* kind_name(SymbolNode::Kind k) {
  constexpr const char* kNames[] = {"variable", "captured", "constant", "call", "function", "backward"};
  return kNames[static_cast<int>(k)];
}
/// Every node as a dictionary, inputs by number: for files, pictures and tables.
PyObject* describe_nodes(PyObject* o, PyObject*) {
  return guarded([&] {
    std::vector<SymbolNode*> nodes = nodes_of(o);
    std::unordered_map<const SymbolNode*, int> number;
    for (size_t i = 0; i < nodes.size(); ++i) number[nodes[i]] = static_cast<int>(i);
    Ref list = new_list();
    for (SymbolNode* n : nodes) {
      Ref d(checked(PyDict_New())), in = new_list();
      put(d.get(), "kind", string(kind_name(n->kind)));
      put(d.get(), "op", string(n->op_name()));
      put(d.get(), "name", string(n->name));
      put(d.get(), "attrs", attrs_of(*n, false));
      put(d.get(), "marks", marks_of(*n));
      put(d.get(), "outputs", PyLong_FromLong(n->visible_outputs()));
      for (const SymbolRef& r : n->in)
        append(in.get(), r ? Py_BuildValue("(ii)", number[r.node.get()], r.output) : Py_NewRef(Py_None));
      put(d.get(), "inputs", in.leak());
      if (n->value) put(d.get(), "value", wrap(n->value));
      if (n->hint.has_shape) put(d.get(), "shape", shape_tuple(n->hint.shape));
      if (n->hint.dtype != kUnknownDType) put(d.get(), "dtype", dtype_object(n->hint.dtype));
      append(list.get(), d.leak());
    }
    Ref heads = new_list();
    for (const SymbolRef& r : heads_of(o)) append(heads.get(), Py_BuildValue("(ii)", number[r.node.get()], r.output));
    return Py_BuildValue("(OO)", list.get(), heads.get());
  });
}

// ---- changing ----

PyObject* set_mark(PyObject* o, PyObject* args) {
  const char *key, *value;
  if (!PyArg_ParseTuple(args, "ss", &key, &value)) return nullptr;
  return guarded([&] {
    head_of(o, "attributes").node->marks[key] = value;
    Py_RETURN_NONE;
  });
}
PyObject* rename(PyObject* o, PyObject* name) {
  return guarded([&] {
    head_of(o, "rename").node->name = std::string(utf8(name));
    Py_RETURN_NONE;
  });
}
PyObject* own_marks(PyObject* o, PyObject*) {
  return guarded([&] { return marks_of(*heads_of(o)[0].node); });
}
PyObject* own_attrs(PyObject* o, PyObject*) {
  return guarded([&] { return attrs_of(*heads_of(o)[0].node, true); });
}
/// Attributes in the words of graph files, with what users attached: [(node name, {key: text})] of all nodes.
PyObject* attribute_dict(const SymbolNode& n) {
  Ref dict(checked(PyDict_New()));
  for (auto& [key, value] : io::graph_attributes(n)) put(dict.get(), key.c_str(), string(value));
  return dict.leak();
}
PyObject* own_attributes(PyObject* o, PyObject*) {
  return guarded([&] { return attribute_dict(*heads_of(o)[0].node); });
}
PyObject* all_attributes(PyObject* o, PyObject*) {
  return guarded([&] {
    Ref list = new_list();
    for (SymbolNode* n : nodes_of(o)) {
      Ref attributes(attribute_dict(*n));
      append(list.get(), Py_BuildValue("(sO)", n->name.c_str(), attributes.get()));
    }
    return list.leak();
  });
}
/// A copy of the graph in which variables are replaced: {name: symbol}.
PyObject* replace_variables(PyObject* o, PyObject* by) {
  return guarded([&] {
    std::unordered_map<std::string, SymbolRef> replacement;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(by, &at, &key, &value);)
      replacement[std::string(utf8(key))] = to_symbol(value, "compose", "argument");
    std::unordered_map<const SymbolNode*, SymbolNodePtr> made;
    std::unordered_map<const SymbolNode*, SymbolRef> instead;
    auto moved = [&](const SymbolRef& r) -> SymbolRef {
      if (!r) return r;
      auto it = instead.find(r.node.get());
      return it != instead.end() ? it->second : SymbolRef{made.at(r.node.get()), r.output};
    };
    for (SymbolNode* n : nodes_of(o)) {
      auto it = n->kind == SymbolNode::Kind::variable ? replacement.find(n->name) : replacement.end();
      if (it != replacement.end()) {
        instead[n] = it->second;
        continue;
      }
      auto copy = std::make_shared<SymbolNode>(*n);
      if (!n->is_input()) copy->sequence = SymbolNode::next_sequence();
      for (SymbolRef& r : copy->in) r = moved(r);
      if (copy->forward && made.contains(copy->forward.get())) copy->forward = made.at(copy->forward.get());
      made[n] = std::move(copy);
    }
    std::vector<SymbolRef> heads;
    for (const SymbolRef& h : heads_of(o)) heads.push_back(moved(h));
    return wrap_symbol(std::move(heads));
  });
}
PyObject* gradient_of(PyObject* o, PyObject* args) {
  PyObject *wrt, *head_grads = Py_None;
  if (!PyArg_ParseTuple(args, "O|O", &wrt, &head_grads)) return nullptr;
  return guarded([&] {
    auto refs = [](PyObject* sequence) {
      std::vector<SymbolRef> list;
      Ref items(checked(PySequence_Tuple(sequence)));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
        list.push_back(to_symbol(PyTuple_GET_ITEM(items.get(), i), "gradient", "argument"));
      return list;
    };
    std::vector<SymbolRef> given;
    if (head_grads != Py_None) given = refs(head_grads);
    return wrap_symbol(gradient(heads_of(o), refs(wrt), given));
  });
}

/// infer({name: (shape or None, dtype or None)}, training, partial) -> ({name: (shape, dtype) or None} of variables,
/// [(shape, dtype) or None] of outputs)
PyObject* infer(PyObject* o, PyObject* args) {
  PyObject* given;
  int training, partial;
  if (!PyArg_ParseTuple(args, "O!pp", &PyDict_Type, &given, &training, &partial)) return nullptr;
  return guarded([&] {
    std::unordered_map<const SymbolNode*, Sig> known;
    std::vector<SymbolNode*> variables = variables_of(heads_of(o));
    // A dtype alone is a hint, for as long as this call lasts.
    struct Restore {
      std::vector<std::pair<SymbolNode*, DType>> before;
      ~Restore() {
        for (auto& [node, dtype] : before) node->hint.dtype = dtype;
      }
    } hints;
    for (SymbolNode* v : variables) {
      PyObject* it = PyDict_GetItemString(given, v->name.c_str());
      Sig s;
      if (it) {
        PyObject *shape = PyTuple_GetItem(it, 0), *dtype = PyTuple_GetItem(it, 1);
        if (!shape || !dtype) throw PythonError{};
        s.dtype = dtype != Py_None ? to_dtype(dtype) : v->hint.dtype != kUnknownDType ? v->hint.dtype : DType::float32;
        if (shape == Py_None) {
          hints.before.emplace_back(v, v->hint.dtype);
          v->hint.dtype = s.dtype;
          continue;
        }
        for (int64_t d : to_int_list(shape, "shape")) s.shape.push_back(d);
        known[v] = s;
      }
    }
    InferredSigs found = infer_sigs(heads_of(o), known, training != 0, partial != 0);
    auto pair = [](const Sig& s) -> PyObject* {
      if (!s.present()) Py_RETURN_NONE;
      Ref shape(shape_tuple(s.shape)), dtype(dtype_object(s.dtype));
      return checked(Py_BuildValue("(OO)", shape.get(), dtype.get()));
    };
    Ref names(checked(PyDict_New())), outputs = new_list();
    for (SymbolNode* v : variables) put(names.get(), v->name.c_str(), pair(found.nodes[v][0]));
    for (const SymbolRef& h : heads_of(o)) append(outputs.get(), pair(found.of(h)));
    return Py_BuildValue("(OO)", names.get(), outputs.get());
  });
}

PyMethodDef symbol_methods[] = {
    {"_length", length, METH_NOARGS, nullptr},
    {"_output", output, METH_O, nullptr},
    {"_output_names", output_names, METH_NOARGS, nullptr},
    {"_argument_names", argument_names, METH_O, nullptr},
    {"_internals", internals, METH_NOARGS, nullptr},
    {"_children", children, METH_NOARGS, nullptr},
    {"_name", node_name, METH_NOARGS, nullptr},
    {"_nodes", describe_nodes, METH_NOARGS, nullptr},
    {"_set_mark", set_mark, METH_VARARGS, nullptr},
    {"_rename", rename, METH_O, nullptr},
    {"_marks", own_marks, METH_NOARGS, nullptr},
    {"_attrs", own_attrs, METH_NOARGS, nullptr},
    {"_attributes", own_attributes, METH_NOARGS, nullptr},
    {"_all_attributes", all_attributes, METH_NOARGS, nullptr},
    {"_replace", replace_variables, METH_O, nullptr},
    {"_gradient", gradient_of, METH_VARARGS, nullptr},
    {"_tojson", symbol_text, METH_NOARGS, nullptr},
    {"_save", write_symbol_file, METH_O, nullptr},
    {"_infer", infer, METH_VARARGS, nullptr},
    {},
};

PyMethodDef functions[] = {
    {"variable", make_variable_symbol, METH_VARARGS, "variable(name, shape=None, dtype=None, marks=None): a symbol."},
    {"constant", make_constant_symbol, METH_O, "A symbol for a number or an array."},
    {"group", group, METH_O, "One symbol with the outputs of many."},
    {"symbol_call", symbol_call, METH_VARARGS,
     "symbol_call(operator, inputs, attributes, name, marks): a symbol for one call."},
    {"parse_symbol", parse_symbol_text, METH_VARARGS,
     "parse_symbol(text, source='<text>'): the symbol in a graph file."},
    {"read_symbol", read_symbol_file, METH_O, "read_symbol(path): the symbol in a file."},
    {"set_symbol_class", set_symbol_class, METH_O, "Python's class of symbols."},
    {},
};

}  // namespace

PyTypeObject SymbolType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil._core.SymbolBase",
    .tp_basicsize = sizeof(SymbolObject),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "Outputs of a symbolic graph.",
    .tp_methods = symbol_methods,
};

const std::vector<SymbolRef>& heads_of(PyObject* symbol) {
  const auto* heads = reinterpret_cast<SymbolObject*>(symbol)->heads;
  TW_CHECK(heads, value, "the symbol is empty");
  return *heads;
}

SymbolRef head_of(PyObject* symbol, const char* who) {
  const auto& heads = heads_of(symbol);
  TW_CHECK(heads.size() == 1, value, who, ": a symbol with one output is needed; this one has ", heads.size(),
           ". Choose one with symbol[i]");
  return heads[0];
}

PyObject* wrap_symbol(std::vector<SymbolRef> heads) {
  TW_CHECK(symbol_class, runtime, "the package twibil.sym is not imported");
  auto* type = reinterpret_cast<PyTypeObject*>(symbol_class);
  PyObject* o = checked(type->tp_alloc(type, 0));
  reinterpret_cast<SymbolObject*>(o)->heads = new std::vector<SymbolRef>(std::move(heads));
  if (call_site_hook)
    for (const SymbolRef& r : *reinterpret_cast<SymbolObject*>(o)->heads)
      if (r.node->site.empty() && !r.node->is_input()) r.node->site = call_site_hook();
  return o;
}

SymbolRef to_symbol(PyObject* o, const char* op, const char* argument) {
  if (o == Py_None) return {};
  if (is_symbol(o)) {
    const auto& heads = heads_of(o);
    TW_CHECK(heads.size() == 1, value, op, ": argument ", argument, " must be a symbol with one output; this one has ",
             heads.size(), ". Choose one with symbol[i]");
    return heads[0];
  }
  return {make_constant(require_operand(o, op, argument)), 0};
}

void add_symbol(PyObject* module) {
  checked(PyType_Ready(&SymbolType));
  checked(PyModule_AddObjectRef(module, "SymbolBase", reinterpret_cast<PyObject*>(&SymbolType)));
  checked(PyModule_AddFunctions(module, functions));
  add_compiled(module);
}

}  // namespace twibil::python
