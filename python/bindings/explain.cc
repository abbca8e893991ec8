// SPDX-License-Identifier: Apache-2.0
#include "explain.h"

#include "convert.h"
#include "ir/compose_program.h"
#include "passes/views.h"
#include "runtime/launch.h"
#include "runtime/measure.h"

namespace twibil::python {

namespace {

/// A dictionary or list that takes over what is put into it.
class Dict {
 public:
  Dict() : dict_(checked(PyDict_New())) {}
  void put(const char* key, PyObject* owned) {
    Ref value(checked(owned));
    if (PyDict_SetItemString(dict_.get(), key, value.get()) < 0) throw PythonError{};
  }
  void put(const char* key, int64_t n) { put(key, PyLong_FromLongLong(n)); }
  PyObject* leak() { return dict_.leak(); }

 private:
  Ref dict_;
};
class List {
 public:
  List() : list_(checked(PyList_New(0))) {}
  void add(PyObject* owned) {
    Ref value(checked(owned));
    if (PyList_Append(list_.get(), value.get()) < 0) throw PythonError{};
  }
  PyObject* leak() { return list_.leak(); }

 private:
  Ref list_;
};

/// Names come from files and users; what is no UTF-8 is shown as a replacement character.
PyObject* string(std::string_view s) {
  return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
}
PyObject* edge(Edge e) {
  if (!e.present()) Py_RETURN_NONE;
  return Py_BuildValue("(ii)", e.node, e.output);
}
PyObject* pair(const Sig& s) {
  Ref shape(checked(shape_tuple(s.shape))), dtype(checked(dtype_object(s.dtype)));
  return Py_BuildValue("(OO)", shape.get(), dtype.get());
}
PyObject* value_of_sig(const Sig& s) {
  Ref shape(checked(shape_tuple(s.shape)));
  std::string dtype = text(s.dtype);
  int64_t bytes = s.shape.size() * size_of(s.dtype);
  return Py_BuildValue("(OsL)", shape.get(), dtype.c_str(), static_cast<long long>(bytes));
}

// ---- formulas ----

PyObject* constant(const ProgramConstant& c) {
  switch (c.kind) {
    case ProgramConstant::Kind::lowest: return string("lowest");
    case ProgramConstant::Kind::highest: return string("highest");
    case ProgramConstant::Kind::number: break;
  }
  return c.number.is_real() ? PyFloat_FromDouble(c.number.real) : PyLong_FromLongLong(c.number.integer);
}
PyObject* parameter(const Scalar& s) {
  return s.is_real() ? PyFloat_FromDouble(s.real) : PyLong_FromLongLong(s.integer);
}
/// [(primitive, temporary it writes, [operand])]; operands: ("temp" or "input", number) or ("number", value).
PyObject* formula(const GraphNode& n) {
  const Program& p = *n.op->program;
  Scalar params[kMaxParams] = {};
  formula_params(*n.op, n.attrs.data(), params);
  List list;
  for (int i = 0; i < p.instruction_count; ++i) {
    const Instruction& step = p.instructions[i];
    List operands;
    for (int k = 0; k < info_of(step.prim).arity; ++k) {
      const auto& r = step.operands[k];
      using Kind = decltype(r.kind);
      switch (r.kind) {
        case Kind::none: break;
        case Kind::temp: operands.add(Py_BuildValue("(si)", "temp", r.index)); break;
        case Kind::input: operands.add(Py_BuildValue("(si)", "input", p.sources[r.index])); break;
        case Kind::param: operands.add(Py_BuildValue("(sN)", "number", checked(parameter(params[r.index])))); break;
        case Kind::constant:
          operands.add(Py_BuildValue("(sN)", "number", checked(constant(p.constants[r.index]))));
          break;
      }
    }
    Ref name(checked(string(name_of(step.prim))));
    list.add(Py_BuildValue("(OiN)", name.get(), step.dst, operands.leak()));
  }
  return list.leak();
}

// ---- graphs ----

const char* kind_name(GraphNode::Kind k) {
  constexpr const char* kNames[] = {"argument", "constant", "shape", "call", "function"};
  return kNames[static_cast<int>(k)];
}
const char* place_name(passes::Place::Kind k) {
  constexpr const char* kNames[] = {"none", "arena", "argument", "output", "constant"};
  return kNames[static_cast<int>(k)];
}

double cost_of(const Graph& g, const GraphNode& n) {
  if (n.kind != GraphNode::Kind::call) return 0;
  if (n.op->pointwise()) return static_cast<double>(n.out[0].shape.size()) * n.op->program->instruction_count;
  if (!n.op->cost) return 0;
  std::vector<Sig> in;
  for (Edge e : n.in) in.push_back(e.present() ? g.sig(e) : Sig());
  return n.op->cost(n.attrs.data(), in, n.out);
}

/// Attributes that differ from their defaults: "axis=1, keepdims=True".
std::string attributes(const GraphNode& n) {
  std::string s;
  if (n.kind != GraphNode::Kind::call || n.attrs.empty()) return s;
  for (const Field& f : n.op->attrs.span()) {
    std::string now = print_attr(f, n.attrs.data());
    if (f.required || now != print_attr(f, n.op->attrs.defaults)) s += text(s.empty() ? "" : ", ", f.name, "=", now);
  }
  return s;
}

PyObject* node(const Graph& g, size_t i, const std::vector<passes::View>& views, const passes::MemoryPlan* plan) {
  const GraphNode& n = g.nodes[i];
  Dict d;
  List inputs, outputs, updates, parts, places;
  for (Edge e : n.in) inputs.add(edge(e));
  for (const Sig& s : n.out) outputs.add(value_of_sig(s));
  for (int k = 0; k < static_cast<int>(n.out.size()); ++k) updates.add(PyLong_FromLong(updated_input(n, k)));
  for (int32_t p : n.parts) parts.add(PyLong_FromLong(p));
  if (plan)
    for (const passes::Place& p : plan->places[i])
      places.add(Py_BuildValue("(siL)", place_name(p.kind), p.index, static_cast<long long>(p.offset)));
  bool pointwise = n.kind == GraphNode::Kind::call && n.op->pointwise();
  d.put("kind", string(kind_name(n.kind)));
  d.put("op", string(n.op_name()));
  d.put("name", string(n.name));
  d.put("site", string(n.site));
  d.put("attrs", string(attributes(n)));
  d.put("inputs", inputs.leak());
  d.put("outputs", outputs.leak());
  d.put("updates", updates.leak());
  d.put("parts", parts.leak());
  d.put("places", places.leak());
  d.put("view", PyBool_FromLong(passes::is_view(views, i)));
  d.put("pointwise", PyBool_FromLong(pointwise));
  d.put("heavy", PyBool_FromLong(n.kind == GraphNode::Kind::call && n.op->heavy));
  d.put("operations", PyFloat_FromDouble(cost_of(g, n)));
  bool number = n.kind == GraphNode::Kind::constant && n.value->size() == 1;
  d.put("value", number ? wrap(n.value) : Py_NewRef(Py_None));
  d.put("formula", pointwise ? formula(n) : Py_NewRef(Py_None));
  return d.leak();
}

PyObject* graph(const Graph& g, const passes::MemoryPlan* plan) {
  std::vector<passes::View> views = passes::find_views(g);
  Dict d;
  List nodes, outputs, arguments;
  for (size_t i = 0; i < g.nodes.size(); ++i) nodes.add(node(g, i, views, plan));
  for (Edge e : g.outputs) outputs.add(edge(e));
  for (int32_t a : g.arguments) arguments.add(PyLong_FromLong(a));
  d.put("nodes", nodes.leak());
  d.put("outputs", outputs.leak());
  d.put("arguments", arguments.leak());
  d.put("forward_outputs", g.forward_outputs);
  d.put("forward_nodes", g.forward_nodes < 0 ? static_cast<int64_t>(g.nodes.size()) : g.forward_nodes);
  return d.leak();
}

CompiledGraph::Signature to_signature(const CompiledGraph& g, PyObject* o) {
  PyObject *given, *wants;
  int training;
  TW_CHECK(PyTuple_Check(o), type, "explain: a signature is a tuple; got ", Py_TYPE(o)->tp_name);
  if (!PyArg_ParseTuple(o, "O!pO!", &PyList_Type, &given, &training, &PyList_Type, &wants)) throw PythonError{};
  CompiledGraph::Signature s;
  s.training = training != 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); ++i) {
    PyObject *shape, *dtype;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(given, i), "OO", &shape, &dtype)) throw PythonError{};
    Sig sig;
    for (int64_t d : to_int_list(shape, "shape")) {
      TW_CHECK(d >= 0, value, "explain: sizes must be known; got ", d);
      sig.shape.push_back(d);
    }
    sig.dtype = to_dtype(dtype);
    s.sigs.push_back(sig);
  }
  for (size_t i = s.sigs.size(); i < g.inputs().size(); ++i) {
    TW_CHECK(g.inputs()[i]->value, value, "explain: the signature says nothing of input ", g.inputs()[i]->name);
    s.sigs.push_back(g.inputs()[i]->value->sig());
  }
  TW_CHECK(s.sigs.size() == g.inputs().size(), value, "explain: the graph has ", g.inputs().size(),
           " inputs; the signature has ", s.sigs.size());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(wants); ++i) s.wants.push_back(is_true(PyList_GET_ITEM(wants, i)));
  s.wants.resize(g.inputs().size());
  TW_CHECK(
      !g.depends_on_data(), value,
      "explain: shapes in this graph depend on the values of arrays, so it has no plan; its operators run one after "
      "the other");
  return s;
}

}  // namespace

PyObject* last_signature(const CompiledGraph& g) {
  auto last = g.last();
  if (!last) Py_RETURN_NONE;
  List sigs, wants;
  for (const Sig& s : last->signature.sigs) sigs.add(pair(s));
  for (bool w : last->signature.wants) wants.add(PyBool_FromLong(w));
  return Py_BuildValue("(NON)", sigs.leak(), last->signature.training ? Py_True : Py_False, wants.leak());
}

PyObject* describe_compilation(CompiledGraph& g, PyObject* signature) {
  CompiledGraph::Signature s = to_signature(g, signature);
  auto compiled = g.compile(s.sigs, s.training, s.wants, true);
  const Executable& e = *compiled->executable;
  const passes::MemoryPlan& plan = e.plan();
  Dict d;
  List passes_list, buffers, steps, algorithms, verdicts, donated;
  for (const passes::PassReport& p : compiled->report.passes)
    passes_list.add(Py_BuildValue("(sdii)", p.name.c_str(), p.seconds, p.nodes_before, p.nodes_after));
  for (const passes::PlannedBuffer& b : plan.buffers)
    buffers.add(Py_BuildValue("(LLiiii)", static_cast<long long>(b.bytes), static_cast<long long>(b.offset), b.first,
                              b.last, b.value.node, b.value.output));
  for (int i = 0; i < e.steps(); ++i) {
    steps.add(PyLong_FromLong(e.node_index_of_step(i)));
    algorithms.add(string(e.algorithm_of_step(i)));
    List of_step;
    for (const AlgorithmVerdict& v : e.verdicts_of_step(i))
      of_step.add(Py_BuildValue("(ssdN)", v.name.c_str(), v.refusal.c_str(), v.seconds, PyBool_FromLong(v.measured)));
    verdicts.add(of_step.leak());
  }
  for (int32_t a : plan.output_is_argument) donated.add(PyLong_FromLong(a));
  d.put("planned_bytes", plan.planned_bytes());
  d.put("lower_bound_bytes", plan.lower_bound_bytes());
  d.put("arena_bytes", plan.arena_bytes);
  d.put("arena_lower_bound_bytes", plan.lower_bound);
  d.put("argument_bytes", plan.argument_bytes);
  d.put("output_bytes", plan.output_bytes);
  d.put("output_is_argument", donated.leak());
  d.put("training", PyBool_FromLong(s.training));
  d.put("lower_seconds", PyFloat_FromDouble(compiled->lower_seconds));
  d.put("passes", passes_list.leak());
  d.put("buffers", buffers.leak());
  d.put("steps", steps.leak());
  d.put("algorithms", algorithms.leak());
  d.put("verdicts", verdicts.leak());
  d.put("forward_steps", e.forward_steps());
  d.put("before", graph(compiled->report.first, nullptr));
  d.put("after", graph(e.graph(), &plan));
  return d.leak();
}

PyObject* measure_compilation(CompiledGraph& g, PyObject* args) {
  PyObject *signature, *arrays;
  double seconds;
  if (!PyArg_ParseTuple(args, "OO!d", &signature, &PyList_Type, &arrays, &seconds)) throw PythonError{};
  CompiledGraph::Signature s = to_signature(g, signature);
  std::vector<Val> arguments;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arrays); ++i) {
    TW_CHECK(static_cast<size_t>(i) < s.sigs.size(), type, "explain: the graph takes ", s.sigs.size(), " arrays; got ",
             static_cast<int64_t>(PyList_GET_SIZE(arrays)));
    const Sig& want = s.sigs[static_cast<size_t>(i)];
    Val v = require_operand(PyList_GET_ITEM(arrays, i), "explain", g.inputs()[static_cast<size_t>(i)]->name.c_str());
    TW_CHECK(v->dtype() == want.dtype && std::ranges::equal(v->shape(), want.shape.span()), value, "explain: input ",
             g.inputs()[static_cast<size_t>(i)]->name, " must be ", want, " to measure; got ", v->sig());
    arguments.push_back(std::move(v));
  }
  for (size_t i = arguments.size(); i < s.sigs.size(); ++i) {
    TW_CHECK(g.inputs()[i]->value, value, "explain: input ", g.inputs()[i]->name, " is given no array");
    arguments.push_back(g.inputs()[i]->value);
  }
  List times;
  for (double t : measure_steps(*g.compile(s.sigs, s.training, s.wants, true), arguments, seconds))
    times.add(PyFloat_FromDouble(t));
  return times.leak();
}

}  // namespace twibil::python
