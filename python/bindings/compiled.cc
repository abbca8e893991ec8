// SPDX-License-Identifier: Apache-2.0
#include "compiled.h"

#include <memory>

#include "convert.h"
#include "explain.h"
#include "ir/modes.h"
#include "runtime/compiled_graph.h"
#include "runtime/symbol_tracer.h"
#include "symbol.h"

namespace twibil::python {

namespace {

// ---- a compiled graph ----

struct CompiledObject {
  PyObject_HEAD std::shared_ptr<CompiledGraph>* graph;
};
extern PyTypeObject CompiledType;
CompiledGraph& graph_of(PyObject* o) { return **reinterpret_cast<CompiledObject*>(o)->graph; }
PyObject* compiled_last(PyObject* o, PyObject*) {
  return guarded([&] { return last_signature(graph_of(o)); });
}
PyObject* compiled_describe(PyObject* o, PyObject* signature) {
  return guarded([&] { return describe_compilation(graph_of(o), signature); });
}
PyObject* compiled_measure(PyObject* o, PyObject* args) {
  return guarded([&] { return measure_compilation(graph_of(o), args); });
}

void compiled_dealloc(PyObject* o) {
  delete reinterpret_cast<CompiledObject*>(o)->graph;
  Py_TYPE(o)->tp_free(o);
}
PyObject* wrap_graph(std::shared_ptr<CompiledGraph> g) {
  PyObject* o = checked(CompiledType.tp_alloc(&CompiledType, 0));
  reinterpret_cast<CompiledObject*>(o)->graph = new std::shared_ptr<CompiledGraph>(std::move(g));
  return o;
}

std::vector<std::string> strings(PyObject* sequence) {
  std::vector<std::string> list;
  Ref items(checked(PySequence_Tuple(sequence)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    list.emplace_back(utf8(PyTuple_GET_ITEM(items.get(), i)));
  return list;
}

/// compile(symbol, names of inputs in order, without=(), donate=()): names that the symbol does not use are refused.
PyObject* compile_symbol(PyObject*, PyObject* args) {
  PyObject *symbol, *names, *without, *donate;
  if (!PyArg_ParseTuple(args, "O!OOO", &SymbolType, &symbol, &names, &without, &donate)) return nullptr;
  return guarded([&] {
    const auto& heads = heads_of(symbol);
    std::unordered_map<SymbolNode*, SymbolNodePtr> owner;
    for (const SymbolRef& h : heads) owner[h.node.get()] = h.node;
    for (SymbolNode* n : reachable(heads))
      for (const SymbolRef& r : n->in)
        if (r) owner[r.node.get()] = r.node;
    std::vector<SymbolNode*> variables = variables_of(heads);
    std::vector<SymbolNodePtr> inputs;
    for (const std::string& name : strings(names)) {
      SymbolNodePtr found;
      for (SymbolNode* v : variables)
        if (v->name == name) {
          TW_CHECK(!found, value, "compile: two variables are called ", name, "; give them different names");
          found = owner[v];
        }
      TW_CHECK(found, value, "compile: the symbol has no variable ", name);
      inputs.push_back(std::move(found));
    }
    for (SymbolNode* n : reachable(heads))
      if (n->kind == SymbolNode::Kind::captured) inputs.push_back(owner[n]);
    CompileOptions options{strings(without), std::vector<bool>(inputs.size())};
    for (const std::string& d : strings(donate)) {
      bool known = false;
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i]->name == d) options.donate[i] = known = true;
      TW_CHECK(known, value, "compile: donate names ", d, ", which is no variable of the symbol");
    }
    return wrap_graph(
        std::make_shared<CompiledGraph>(heads, std::vector<SymbolRef>(), std::move(inputs), std::move(options)));
  });
}

PyObject* results(std::vector<Val> y) {
  Ref list(checked(PyList_New(static_cast<Py_ssize_t>(y.size()))));
  for (size_t k = 0; k < y.size(); ++k) PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(k), wrap(std::move(y[k])));
  return list.leak();
}

/// Arguments of Python, then the captured arrays as they are now.
std::vector<Val> arguments(const CompiledGraph& g, PyObject* const* args, Py_ssize_t n) {
  std::vector<Val> list;
  for (Py_ssize_t i = 0; i < n; ++i) {
    Val v = require_operand(args[i], "a compiled graph", g.inputs()[static_cast<size_t>(i)]->name.c_str());
    if (v->has(kWeak)) v = to_array(args[i], {});  // a Python number is an array without dimensions here
    list.push_back(std::move(v));
  }
  for (size_t i = list.size(); i < g.inputs().size(); ++i) list.push_back(g.inputs()[i]->value);
  return list;
}

PyObject* compiled_call(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    CompiledGraph& g = graph_of(o);
    TW_CHECK(static_cast<size_t>(n) <= g.inputs().size(), type, "the compiled graph takes ", g.inputs().size(),
             " arrays; got ", static_cast<int64_t>(n));
    return results(g.call(arguments(g, args, n)));
  });
}
PyObject* compiled_interpret(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    CompiledGraph& g = graph_of(o);
    TW_CHECK(static_cast<size_t>(n) <= g.inputs().size(), type, "the compiled graph takes ", g.inputs().size(),
             " arrays; got ", static_cast<int64_t>(n));
    return results(g.interpret(arguments(g, args, n)));
  });
}

void put(PyObject* dict, const char* key, PyObject* owned) {
  Ref value(checked(owned));
  checked(PyDict_SetItemString(dict, key, value.get()));
}
PyObject* number(int64_t n) { return checked(PyLong_FromLongLong(n)); }
PyObject* string(std::string_view s) {
  return checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}

/// report(signatures [(shape, dtype)], training, wants [bool]): what compiling did, as a dictionary.
PyObject* compiled_report(PyObject* o, PyObject* args) {
  PyObject *given, *wants;
  int training;
  if (!PyArg_ParseTuple(args, "O!pO!", &PyList_Type, &given, &training, &PyList_Type, &wants)) return nullptr;
  return guarded([&] {
    CompiledGraph& g = graph_of(o);
    std::vector<Sig> sigs;
    std::vector<bool> wanted;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); ++i) {
      PyObject* pair = PyList_GET_ITEM(given, i);
      Sig s;
      for (int64_t d : to_int_list(PyTuple_GetItem(pair, 0), "shape")) s.shape.push_back(d);
      s.dtype = to_dtype(PyTuple_GetItem(pair, 1));
      sigs.push_back(s);
    }
    for (size_t i = sigs.size(); i < g.inputs().size(); ++i) sigs.push_back(g.inputs()[i]->value->sig());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(wants); ++i) wanted.push_back(is_true(PyList_GET_ITEM(wants, i)));
    auto compiled = g.compile(sigs, training != 0, wanted, true);
    const Executable& e = *compiled->executable;
    const passes::MemoryPlan& plan = e.plan();
    Ref d(checked(PyDict_New())), passes_list(checked(PyList_New(0))), buffers(checked(PyList_New(0))),
        nodes(checked(PyList_New(0)));
    put(d.get(), "planned_bytes", number(plan.planned_bytes()));
    put(d.get(), "lower_bound_bytes", number(plan.lower_bound_bytes()));
    put(d.get(), "arena_bytes", number(plan.arena_bytes));
    put(d.get(), "arena_lower_bound_bytes", number(plan.lower_bound));
    put(d.get(), "num_kernels", number(e.steps()));
    put(d.get(), "before", string(compiled->report.before));
    put(d.get(), "after", string(compiled->report.after));
    put(d.get(), "lower_seconds", checked(PyFloat_FromDouble(compiled->lower_seconds)));
    for (const passes::PassReport& p : compiled->report.passes) {
      Ref item(checked(Py_BuildValue("(sdii)", p.name.c_str(), p.seconds, p.nodes_before, p.nodes_after)));
      checked(PyList_Append(passes_list.get(), item.get()));
    }
    for (const passes::PlannedBuffer& b : plan.buffers) {
      Ref item(checked(Py_BuildValue("(LLiii)", static_cast<long long>(b.bytes), static_cast<long long>(b.offset),
                                     b.first, b.last, b.value.node)));
      checked(PyList_Append(buffers.get(), item.get()));
    }
    for (int i = 0; i < e.steps(); ++i) {
      const GraphNode& n = e.node_of_step(i);
      Ref out(checked(PyList_New(0)));
      for (const Sig& s : n.out) {
        Ref text_of(string(text(s)));
        checked(PyList_Append(out.get(), text_of.get()));
      }
      Ref item(checked(
          Py_BuildValue("(issOs)", e.node_index_of_step(i), n.op_name(), n.name.c_str(), out.get(), n.site.c_str())));
      checked(PyList_Append(nodes.get(), item.get()));
    }
    put(d.get(), "passes", passes_list.leak());
    put(d.get(), "buffers", buffers.leak());
    put(d.get(), "kernels", nodes.leak());
    return d.leak();
  });
}
PyObject* compilations(PyObject* o, void*) { return PyLong_FromLong(graph_of(o).compilations()); }
PyObject* captured(PyObject* o, PyObject*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    for (const SymbolNodePtr& n : graph_of(o).inputs()) {
      if (n->kind != SymbolNode::Kind::captured) continue;
      Ref array(wrap(n->value));
      checked(PyList_Append(list.get(), array.get()));
    }
    return list.leak();
  });
}
/// watch(callback(name, operator, array, is_input), arrays...): runs operator by operator, and shows what each reads
/// and gives.
PyObject* compiled_watch(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    CompiledGraph& g = graph_of(o);
    TW_CHECK(n >= 1 && static_cast<size_t>(n - 1) <= g.inputs().size(), type, "the compiled graph takes ",
             g.inputs().size(), " arrays; got ", static_cast<int64_t>(n - 1));
    auto show = [&](const std::string& name, const char* op, const Val& v, bool is_input) {
      if (!v) return;
      Ref array(wrap(v));
      Ref done(checked(
          PyObject_CallFunction(args[0], "ssOO", name.c_str(), op, array.get(), is_input ? Py_True : Py_False)));
    };
    auto watch = [&](const SymbolNode& node, std::span<const Val> in, std::span<const Val> out) {
      for (size_t i = 0; i < in.size(); ++i) {
        bool named = node.kind == SymbolNode::Kind::call && !node.op->variadic();
        std::string slot = named ? node.op->in[i].name : text("arg", i);
        show(text(node.name, "_", slot), node.op_name(), in[i], true);
      }
      size_t visible = std::min(out.size(), static_cast<size_t>(node.visible_outputs()));
      for (size_t k = 0; k < visible; ++k)
        show(visible == 1 ? node.name + "_output" : text(node.name, "_output", k), node.op_name(), out[k], false);
    };
    return results(g.interpret(arguments(g, args + 1, n - 1), watch));
  });
}
/// The graph as a symbol in which arrays of the outside are variables, as files hold it.
PyObject* declared(PyObject* o, PyObject*) {
  return guarded([&] {
    const CompiledGraph& g = graph_of(o);
    std::unordered_map<const SymbolNode*, SymbolNodePtr> made;
    auto moved = [&](const SymbolRef& r) {
      return r && made.contains(r.node.get()) ? SymbolRef{made.at(r.node.get()), r.output} : r;
    };
    for (SymbolNode* n : reachable(g.heads())) {
      auto copy = std::make_shared<SymbolNode>(*n);
      for (SymbolRef& r : copy->in) r = moved(r);
      if (copy->forward && made.contains(copy->forward.get())) copy->forward = made.at(copy->forward.get());
      if (copy->kind == SymbolNode::Kind::captured) {
        copy->kind = SymbolNode::Kind::variable;
        copy->value = {};
      }
      copy->hint = {};
      made[n] = std::move(copy);
    }
    std::vector<SymbolRef> heads;
    for (const SymbolRef& h : g.heads()) heads.push_back(moved(h));
    return wrap_symbol(std::move(heads));
  });
}
PyObject* names_of_compiled(PyObject* o, PyObject*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    for (const SymbolNodePtr& n : graph_of(o).inputs()) {
      Ref name(string(n->name));
      checked(PyList_Append(list.get(), name.get()));
    }
    return list.leak();
  });
}
PyObject* symbol_of_compiled(PyObject* o, PyObject*) {
  return guarded([&] { return wrap_symbol(graph_of(o).heads()); });
}
/// name_captured(i, name): in place of "captured3".
PyObject* name_captured(PyObject* o, PyObject* args) {
  int index;
  const char* name;
  if (!PyArg_ParseTuple(args, "is", &index, &name)) return nullptr;
  return guarded([&] {
    int i = 0;
    for (const SymbolNodePtr& n : graph_of(o).inputs())
      if (n->kind == SymbolNode::Kind::captured && i++ == index) n->name = name;
    Py_RETURN_NONE;
  });
}
/// replace_captured(i, array): read from now on in place of the one that was captured.
PyObject* replace_captured(PyObject* o, PyObject* args) {
  int index;
  PyObject* array;
  if (!PyArg_ParseTuple(args, "iO!", &index, &ArrayType, &array)) return nullptr;
  return guarded([&] {
    int i = 0;
    for (const SymbolNodePtr& n : graph_of(o).inputs())
      if (n->kind == SymbolNode::Kind::captured && i++ == index) n->value = Val::share(value_of(array));
    Py_RETURN_NONE;
  });
}

/// keep(share): how much of what gradients read may be kept between the two parts; the rest is computed again.
PyObject* compiled_keep(PyObject* o, PyObject* share) {
  return guarded([&] {
    double value = PyFloat_AsDouble(share);
    if (value == -1 && PyErr_Occurred()) throw PythonError{};
    graph_of(o).set_keep(value);
    Py_RETURN_NONE;
  });
}

/// rules(exact, autotune): which kernels may be chosen, and how.
PyObject* compiled_rules(PyObject* o, PyObject* args) {
  int exact, autotune;
  if (!PyArg_ParseTuple(args, "pp", &exact, &autotune)) return nullptr;
  return guarded([&] {
    graph_of(o).set_rules(exact != 0, autotune != 0);
    Py_RETURN_NONE;
  });
}
/// fix(names): inputs that seldom change; what follows from them alone is computed once.
PyObject* compiled_fix(PyObject* o, PyObject* names) {
  return guarded([&] {
    graph_of(o).set_fixed(strings(names));
    Py_RETURN_NONE;
  });
}

PyMethodDef compiled_methods[] = {
    {"rules", compiled_rules, METH_VARARGS, "Whether only exact algorithms are taken, and whether they are measured."},
    {"fix", compiled_fix, METH_O, "Names the inputs that seldom change."},
    {"keep", compiled_keep, METH_O, "Sets the share of values for gradients that may be kept, 0 to 1."},
    {"call", as_method(compiled_call), METH_FASTCALL, "Runs on arrays in the order of the inputs; a list of arrays."},
    {"interpret", as_method(compiled_interpret), METH_FASTCALL, "Runs one operator after the other, without a plan."},
    {"report", compiled_report, METH_VARARGS, "What compiling for a signature did."},
    {"last_signature", compiled_last, METH_NOARGS, "(signatures of all inputs, training, wants) of the last call."},
    {"describe", compiled_describe, METH_O, "All that compiling for a signature did, as plain data."},
    {"measure", compiled_measure, METH_VARARGS, "measure(signature, arrays, seconds): seconds of each step."},
    {"captured", captured, METH_NOARGS, "Arrays of the outside that the graph reads."},
    {"name_captured", name_captured, METH_VARARGS, nullptr},
    {"replace_captured", replace_captured, METH_VARARGS, nullptr},
    {"watch", as_method(compiled_watch), METH_FASTCALL, "Runs operator by operator for a callback."},
    {"declared", declared, METH_NOARGS, "The graph as a symbol of variables alone."},
    {"names", names_of_compiled, METH_NOARGS, "Names of the inputs, arrays of the outside last."},
    {"symbol", symbol_of_compiled, METH_NOARGS, "The graph as a symbol."},
    {},
};
PyGetSetDef compiled_properties[] = {
    {"compilations", compilations, nullptr, "How many signatures were compiled.", nullptr},
    {},
};
PyTypeObject CompiledType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil._core.Compiled",
    .tp_basicsize = sizeof(CompiledObject),
    .tp_dealloc = compiled_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = compiled_methods,
    .tp_getset = compiled_properties,
};

// ---- what Python's class CompiledFunction builds on: a call with arrays alone goes straight to the graph ----

struct FunctionObject {
  PyObject_HEAD PyObject* compiled;
  Py_ssize_t count;  // of arrays that a call takes
  int single;        // whether the result is one array instead of a list
};

void function_dealloc(PyObject* o) {
  Py_XDECREF(reinterpret_cast<FunctionObject*>(o)->compiled);
  Py_TYPE(o)->tp_free(o);
}
/// _bind(compiled, number of arrays, single)
PyObject* function_bind(PyObject* o, PyObject* args) {
  auto& f = *reinterpret_cast<FunctionObject*>(o);
  PyObject* compiled;
  Py_ssize_t count;
  int single;
  if (!PyArg_ParseTuple(args, "O!np", &CompiledType, &compiled, &count, &single)) return nullptr;
  Py_XSETREF(f.compiled, Py_NewRef(compiled));
  f.count = count;
  f.single = single;
  Py_RETURN_NONE;
}
PyObject* function_call(PyObject* o, PyObject* args, PyObject* keywords) {
  auto& f = *reinterpret_cast<FunctionObject*>(o);
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  bool plain = f.compiled && n == f.count && (!keywords || PyDict_GET_SIZE(keywords) == 0);
  for (Py_ssize_t i = 0; plain && i < n; ++i) plain = Py_IS_TYPE(PyTuple_GET_ITEM(args, i), &ArrayType);
  return guarded([&]() -> PyObject* {
    if (!plain) {
      Ref general(checked(PyObject_GetAttrString(o, "_call_with")));
      return checked(PyObject_Call(general.get(), args, keywords));
    }
    Ref held(Py_NewRef(f.compiled));
    CompiledGraph& g = graph_of(f.compiled);
    std::vector<Val> y = g.call(arguments(g, &PyTuple_GET_ITEM(args, 0), n));
    return f.single ? wrap(std::move(y[0])) : results(std::move(y));
  });
}
PyMethodDef function_methods[] = {
    {"_bind", function_bind, METH_VARARGS, nullptr},
    {},
};
PyTypeObject FunctionType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil._core.CompiledFunctionBase",
    .tp_basicsize = sizeof(FunctionObject),
    .tp_dealloc = function_dealloc,
    .tp_call = function_call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_methods = function_methods,
    .tp_new = PyType_GenericNew,
};

// ---- a trace ----

struct TraceObject {
  PyObject_HEAD SymbolTracer* tracer;
  Tracer* before;
  bool running;
};

void trace_dealloc(PyObject* o) {
  auto* t = reinterpret_cast<TraceObject*>(o);
  if (t->running && tracer == t->tracer) install_tracer(t->before);
  delete t->tracer;
  Py_TYPE(o)->tp_free(o);
}
PyObject* trace_enter(PyObject* o, PyObject*) {
  auto* t = reinterpret_cast<TraceObject*>(o);
  t->before = install_tracer(t->tracer);
  t->tracer->outer = t->before;
  t->tracer->begin(modes);
  t->running = true;
  return Py_NewRef(o);
}
PyObject* trace_exit(PyObject* o, PyObject* const*, Py_ssize_t) {
  auto* t = reinterpret_cast<TraceObject*>(o);
  if (t->running) install_tracer(t->before);
  t->running = false;
  Py_RETURN_NONE;
}
/// input(name, array or (shape, dtype)): a traced array like it.
PyObject* trace_input(PyObject* o, PyObject* args) {
  const char* name;
  PyObject* like;
  if (!PyArg_ParseTuple(args, "sO", &name, &like)) return nullptr;
  return guarded([&] {
    if (PyTuple_Check(like) && PyTuple_GET_SIZE(like) == 2) {
      Sig s{{}, to_dtype(PyTuple_GET_ITEM(like, 1))};
      for (int64_t d : to_int_list(PyTuple_GET_ITEM(like, 0), "shape")) s.shape.push_back(d);
      return wrap(reinterpret_cast<TraceObject*>(o)->tracer->input(name, s));
    }
    TW_CHECK(is_array(like), type, "a trace's input is like an array, or a shape and a dtype; got ",
             Py_TYPE(like)->tp_name);
    Value& v = *value_of(like);
    return wrap(reinterpret_cast<TraceObject*>(o)->tracer->input(name, {Shape(v.shape()), v.dtype()}));
  });
}
/// finish([outputs], without, donate): the compiled graph; None where there is nothing to run. Outputs are traced
/// arrays or arrays of the outside.
PyObject* trace_finish(PyObject* o, PyObject* args) {
  PyObject *outputs, *without, *donate;
  if (!PyArg_ParseTuple(args, "O!OO", &PyList_Type, &outputs, &without, &donate)) return nullptr;
  return guarded([&] {
    SymbolTracer& t = *reinterpret_cast<TraceObject*>(o)->tracer;
    TraceScope scope(&t);
    std::vector<SymbolRef> heads;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) {
      Val v = require_operand(PyList_GET_ITEM(outputs, i), "jit", "an output");
      heads.push_back(t.ref(edge_of(*v)));
    }
    if (heads.empty() && t.effects().empty()) Py_RETURN_NONE;
    std::vector<SymbolNodePtr> inputs = t.inputs();
    std::vector<SymbolNodePtr> more = t.captured();
    inputs.insert(inputs.end(), more.begin(), more.end());
    CompileOptions options{strings(without), std::vector<bool>(inputs.size())};
    for (const std::string& d : strings(donate))
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i]->name == d) options.donate[i] = true;
    return wrap_graph(std::make_shared<CompiledGraph>(std::move(heads), t.effects(), std::move(inputs), options));
  });
}
PyObject* trace_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    PyObject* o = checked(type->tp_alloc(type, 0));
    reinterpret_cast<TraceObject*>(o)->tracer = new SymbolTracer;
    return o;
  });
}
PyMethodDef trace_methods[] = {
    {"__enter__", trace_enter, METH_NOARGS, nullptr},
    {"__exit__", as_method(trace_exit), METH_FASTCALL, nullptr},
    {"input", trace_input, METH_VARARGS, nullptr},
    {"finish", trace_finish, METH_VARARGS, nullptr},
    {},
};
PyObject* trace_data_dependent(PyObject* o, void*) {
  return PyBool_FromLong(reinterpret_cast<TraceObject*>(o)->tracer->met_data_dependence);
}
PyObject* trace_writes(PyObject* o, void*) {
  return PyBool_FromLong(!reinterpret_cast<TraceObject*>(o)->tracer->effects().empty());
}
PyGetSetDef trace_properties[] = {
    {"writes", trace_writes, nullptr, "Whether arguments or arrays of the outside were written.", nullptr},
    {"data_dependent", trace_data_dependent, nullptr, "Whether tracing met a shape that depends on elements.", nullptr},
    {},
};
PyTypeObject TraceType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil._core.Trace",
    .tp_basicsize = sizeof(TraceObject),
    .tp_dealloc = trace_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = trace_methods,
    .tp_getset = trace_properties,
    .tp_new = trace_new,
};

// ---- a pause of tracing: calls run ----

struct UntracedObject {
  PyObject_HEAD Tracer* before;
};
PyObject* untraced_enter(PyObject* o, PyObject*) {
  reinterpret_cast<UntracedObject*>(o)->before = install_tracer(nullptr);
  return Py_NewRef(o);
}
PyObject* untraced_exit(PyObject* o, PyObject* const*, Py_ssize_t) {
  install_tracer(reinterpret_cast<UntracedObject*>(o)->before);
  Py_RETURN_NONE;
}
PyMethodDef untraced_methods[] = {
    {"__enter__", untraced_enter, METH_NOARGS, nullptr},
    {"__exit__", as_method(untraced_exit), METH_FASTCALL, nullptr},
    {},
};
PyTypeObject UntracedType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil._core.Untraced",
    .tp_basicsize = sizeof(UntracedObject),
    .tp_dealloc = [](PyObject* o) { Py_TYPE(o)->tp_free(o); },
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "In a with statement inside a trace: calls run at once, as for initial values of parameters.",
    .tp_methods = untraced_methods,
    .tp_new = PyType_GenericNew,
};

PyObject* is_tracing(PyObject*, PyObject*) { return PyBool_FromLong(tracer != nullptr); }
PyObject* is_traced(PyObject*, PyObject* o) { return PyBool_FromLong(is_array(o) && value_of(o)->has(kTraced)); }
PyObject* list_passes(PyObject*, PyObject*) {
  return guarded([] {
    Ref list(checked(PyList_New(0)));
    for (const passes::Pass& p : passes::pipeline()) {
      Ref item(checked(Py_BuildValue("(ssi)", p.name, p.summary, static_cast<int>(p.needed))));
      checked(PyList_Append(list.get(), item.get()));
    }
    return list.leak();
  });
}

PyMethodDef functions[] = {
    {"compile", compile_symbol, METH_VARARGS, "compile(symbol, names, without, donate): a compiled graph."},
    {"passes", list_passes, METH_NOARGS, "The compiler's passes in their order: (name, summary, needed)."},
    {"is_tracing", is_tracing, METH_NOARGS, "Whether a function is being traced on this thread."},
    {"is_traced", is_traced, METH_O, "Whether an array is one of a trace, without elements."},
    {},
};

}  // namespace

std::shared_ptr<CompiledGraph> shared_graph(PyObject* compiled) {
  TW_CHECK(PyObject_TypeCheck(compiled, &CompiledType), type, "a compiled graph is needed; got ",
           Py_TYPE(compiled)->tp_name);
  return *reinterpret_cast<CompiledObject*>(compiled)->graph;
}
PyObject* wrap_compiled(std::shared_ptr<CompiledGraph> g) { return wrap_graph(std::move(g)); }

void add_compiled(PyObject* module) {
  checked(PyType_Ready(&CompiledType));
  checked(PyType_Ready(&FunctionType));
  checked(PyType_Ready(&TraceType));
  checked(PyType_Ready(&UntracedType));
  checked(PyModule_AddObjectRef(module, "Untraced", reinterpret_cast<PyObject*>(&UntracedType)));
  checked(PyModule_AddObjectRef(module, "Compiled", reinterpret_cast<PyObject*>(&CompiledType)));
  checked(PyModule_AddObjectRef(module, "CompiledFunctionBase", reinterpret_cast<PyObject*>(&FunctionType)));
  checked(PyModule_AddObjectRef(module, "Trace", reinterpret_cast<PyObject*>(&TraceType)));
  checked(PyModule_AddFunctions(module, functions));
  add_signature(module);
  add_control_flow(module);
  add_host_function(module);
}

}  // namespace twibil::python
