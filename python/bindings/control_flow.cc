// SPDX-License-Identifier: Apache-2.0
// Loops and branches for python/twibil/control_flow.py, which traces or declares their bodies.
#include "runtime/control_flow.h"

#include <algorithm>

#include "compiled.h"
#include "convert.h"
#include "runtime/trace_call.h"
#include "symbol.h"

namespace twibil::python {

/// The function on arrays, traced or run now, or on symbols.
PyObject* call_on(const std::shared_ptr<const GraphFunction>& f, PyObject* inputs, size_t outputs, const char* name,
                  size_t hidden) {
  Ref items(checked(PySequence_Tuple(inputs)));
  Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  bool symbols = false;
  for (Py_ssize_t i = 0; i < n; ++i) symbols |= is_symbol(PyTuple_GET_ITEM(items.get(), i));
  if (symbols) {
    std::vector<SymbolRef> refs;
    for (Py_ssize_t i = 0; i < n; ++i) refs.push_back(to_symbol(PyTuple_GET_ITEM(items.get(), i), f->name(), "input"));
    SymbolNodePtr node = make_function(f, std::move(refs), static_cast<int>(outputs + hidden), name);
    std::vector<SymbolRef> heads;
    for (size_t k = 0; k < outputs; ++k) heads.push_back({node, static_cast<int>(k)});
    return wrap_symbol(std::move(heads));
  }
  std::vector<Val> in;
  for (Py_ssize_t i = 0; i < n; ++i)
    in.push_back(require_operand(PyTuple_GET_ITEM(items.get(), i), f->name(), "input"));
  std::vector<Val> out = call_function(f, in);
  out.resize(out.size() - hidden);
  Ref list(checked(PyList_New(static_cast<Py_ssize_t>(out.size()))));
  for (size_t k = 0; k < out.size(); ++k)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(k), wrap(std::move(out[k])));
  return list.leak();
}

namespace {

/// The body of a loop or branch that was traced: what it captured is an input from now on, and given at the call.
SubGraph body_of(PyObject* compiled) {
  SubGraph g = shared_graph(compiled);
  for (const SymbolNodePtr& n : g->inputs()) {
    n->kind = SymbolNode::Kind::variable;
    n->value = {};
    n->hint = {};
  }
  return g;
}

/// loop(body, condition or None, inputs, data, states, max_iterations, name)
PyObject* loop(PyObject*, PyObject* args) {
  PyObject *body, *condition, *inputs;
  int data, states;
  long long max_iterations;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOOiiLs", &body, &condition, &inputs, &data, &states, &max_iterations, &name))
    return nullptr;
  return guarded([&] {
    SubGraph g = body_of(body), c = condition == Py_None ? nullptr : body_of(condition);
    size_t outputs = g->heads().size();
    return call_on(make_loop(std::move(g), std::move(c), {data, states, max_iterations}), inputs, outputs, name, 1);
  });
}
/// branch(yes, no, inputs, name)
PyObject* branch(PyObject*, PyObject* args) {
  PyObject *yes, *no, *inputs;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOOs", &yes, &no, &inputs, &name)) return nullptr;
  return guarded([&] {
    SubGraph a = body_of(yes), b = body_of(no);
    size_t outputs = a->heads().size();
    return call_on(make_branch(std::move(a), std::move(b)), inputs, outputs, name, 1);
  });
}

PyObject* next_sequence(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(SymbolNode::next_sequence()); }

/// subgraph(symbol, variables, since): (compiled graph, symbols). The part of a symbol that was made after `since` as a
/// graph of its own. Its inputs are the variables, then what it reads from before, which is returned.
PyObject* subgraph(PyObject*, PyObject* args) {
  PyObject *symbol, *variables;
  unsigned long long since;
  if (!PyArg_ParseTuple(args, "O!OK", &SymbolType, &symbol, &variables, &since)) return nullptr;
  return guarded([&] {
    std::vector<SymbolNodePtr> inputs;
    Ref items(checked(PySequence_Tuple(variables)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      inputs.push_back(head_of(PyTuple_GET_ITEM(items.get(), i), "subgraph").node);
    std::vector<SymbolRef> outer;
    std::map<std::pair<SymbolNode*, int>, SymbolNodePtr> stand_ins;
    std::unordered_map<SymbolNode*, SymbolNodePtr> made;
    auto own = [&](const SymbolNode* n) {
      return std::ranges::any_of(inputs, [&](const SymbolNodePtr& p) { return p.get() == n; });
    };
    auto inside = [&](const SymbolRef& r) {
      return own(r.node.get()) || r.node->kind == SymbolNode::Kind::constant ||
             (!r.node->is_input() && r.node->sequence > since);
    };
    auto moved = [&](const SymbolRef& r) -> SymbolRef {
      if (!r || own(r.node.get()) || r.node->kind == SymbolNode::Kind::constant) return r;
      if (inside(r)) return {made.at(r.node.get()), r.output};
      SymbolNodePtr& stand_in = stand_ins[{r.node.get(), r.output}];
      if (!stand_in) {
        stand_in = make_variable(r.node->name);
        stand_in->sequence = r.node->sequence;  // before its readers
        outer.push_back(r);
      }
      return {stand_in, 0};
    };
    std::vector<SymbolNode*> order;  // of the inner nodes, without walking into the outer graph
    std::vector<SymbolNode*> stack;
    std::unordered_map<SymbolNode*, bool> seen;
    for (const SymbolRef& h : heads_of(symbol)) stack.push_back(h.node.get());
    while (!stack.empty()) {
      SymbolNode* n = stack.back();
      stack.pop_back();
      if (seen[n] || !inside({SymbolNodePtr(SymbolNodePtr(), n), 0}) || own(n)) continue;
      seen[n] = true;
      order.push_back(n);
      for (const SymbolRef& r : n->in)
        if (r) stack.push_back(r.node.get());
    }
    std::ranges::sort(order, {}, [](const SymbolNode* n) { return n->sequence; });
    for (SymbolNode* n : order) {
      if (n->kind == SymbolNode::Kind::constant) continue;
      auto copy = std::make_shared<SymbolNode>(*n);
      for (SymbolRef& r : copy->in) r = moved(r);
      if (copy->forward && made.contains(copy->forward.get())) copy->forward = made.at(copy->forward.get());
      made[n] = std::move(copy);
    }
    std::vector<SymbolRef> heads;
    for (const SymbolRef& h : heads_of(symbol)) heads.push_back(moved(h));
    for (const SymbolRef& r : outer) inputs.push_back(stand_ins.at({r.node.get(), r.output}));
    Ref graph(
        wrap_compiled(std::make_shared<CompiledGraph>(std::move(heads), std::vector<SymbolRef>(), std::move(inputs))));
    Ref list(checked(PyList_New(0)));
    for (const SymbolRef& r : outer) {
      Ref item(wrap_symbol({r}));
      if (PyList_Append(list.get(), item.get()) < 0) throw PythonError{};
    }
    return PyTuple_Pack(2, graph.get(), list.get());
  });
}

PyMethodDef functions[] = {
    {"loop", loop, METH_VARARGS, "A loop of a graph, on arrays or symbols."},
    {"branch", branch, METH_VARARGS, "A choice between two graphs, on arrays or symbols."},
    {"next_sequence", next_sequence, METH_NOARGS, "A number between those of the nodes made before and after."},
    {"subgraph", subgraph, METH_VARARGS, "The part of a symbol made after a number."},
    {},
};

}  // namespace

void add_control_flow(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace twibil::python
