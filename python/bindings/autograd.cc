// SPDX-License-Identifier: Apache-2.0
// Recording scopes, backward and grad.
#include "autograd.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "api/grad_req.h"
#include "convert.h"
#include "ir/modes.h"
#include "ir/node.h"
#include "runtime/backward.h"

namespace twibil::python {

namespace {

// A scope that sets one or both modes; reusable, nestable, and shared by threads.
struct Scope {
  PyObject_HEAD signed char record, train;  // -1: as it is
};

struct Entered {
  const Scope* scope;
  Modes before;
};
thread_local std::vector<Entered> entered;  // modes belong to a thread, so what to go back to does too

PyObject* scope_enter(PyObject* self, PyObject*) {
  Scope* s = reinterpret_cast<Scope*>(self);
  entered.push_back({s, modes});
  if (s->record >= 0) modes.recording = s->record != 0;
  if (s->train >= 0) modes.training = s->train != 0;
  return Py_INCREF(self), self;
}
PyObject* scope_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  Scope* s = reinterpret_cast<Scope*>(self);
  for (size_t i = entered.size(); i-- > 0;) {  // mostly the last; generators may leave their scopes in another order
    if (entered[i].scope != s) continue;
    modes.recording = entered[i].before.recording;
    modes.training = entered[i].before.training;
    entered.erase(entered.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  Py_RETURN_NONE;
}
void scope_dealloc(PyObject* self) { PyObject_Free(self); }
PyObject* is_recorded(PyObject*, PyObject* o) { return PyBool_FromLong(is_array(o) && value_of(o)->node != nullptr); }

PyMethodDef scope_methods[] = {
    {"__enter__", scope_enter, METH_NOARGS, nullptr},
    {"__exit__", as_method(scope_exit), METH_FASTCALL, nullptr},
    {},
};
PyTypeObject ScopeType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil.autograd.scope",
    .tp_basicsize = sizeof(Scope),
    .tp_dealloc = scope_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Sets recording and training modes inside a with statement.",
    .tp_methods = scope_methods,
};

enum class Nones { refused, allowed };

/// One array or a sequence of them. Where None is allowed, it stands for no array, or for an empty list.
std::vector<Val> values(PyObject* o, const char* who, const char* what, Nones nones = Nones::refused) {
  std::vector<Val> list;
  if (o == Py_None && nones == Nones::allowed) return list;
  if (is_array(o)) {
    list.push_back(Val::share(value_of(o)));
    return list;
  }
  TW_CHECK(PySequence_Check(o), type, who, ": ", what, " must be an array or a list of arrays; got ",
           Py_TYPE(o)->tp_name);
  Ref items(checked(PySequence_Tuple(o)));  // of its own: converting an item may run code that changes a list
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    list.push_back(item == Py_None && nones == Nones::allowed ? Val() : require_operand(item, who, what));
  }
  return list;
}

/// A gradient written in Python: called with the output gradients, returns those of the inputs.
struct PythonGradient final : CustomGradient {
  explicit PythonGradient(PyObject* f) : function((Py_INCREF(f), f)) {}
  ~PythonGradient() override {
    if (Py_IsInitialized()) Py_DECREF(function);
  }
  const char* name() const override { return "Function"; }
  Vals backward(std::span<const Val> dy, bool) override {
    Ref args(checked(PyTuple_New(static_cast<Py_ssize_t>(dy.size()))));
    for (size_t i = 0; i < dy.size(); ++i) PyTuple_SET_ITEM(args.get(), i, wrap(dy[i]));
    Ref result(checked(PyObject_CallObject(function, args.get())));
    Vals dx;
    for (Val& v : values(result.get(), "Function.backward", "its result", Nones::allowed)) dx.push_back(std::move(v));
    return dx;
  }
  PyObject* function;
};

PyObject* set_recording(PyObject*, PyObject* on) {
  return guarded([&] { return PyBool_FromLong(std::exchange(modes.recording, is_true(on))); });
}
PyObject* set_training(PyObject*, PyObject* on) {
  return guarded([&] { return PyBool_FromLong(std::exchange(modes.training, is_true(on))); });
}
PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(modes.recording); }
PyObject* is_training(PyObject*, PyObject*) { return PyBool_FromLong(modes.training); }

PyObject* recording_scope(PyObject*, PyObject* args) {
  PyObject *record = Py_None, *train = Py_None;
  if (!PyArg_ParseTuple(args, "|OO", &record, &train)) return nullptr;
  return guarded([&] {
    auto mode = [](PyObject* o) -> signed char { return o == Py_None ? -1 : is_true(o); };
    signed char records = mode(record), trains = mode(train);
    Scope* s = PyObject_New(Scope, &ScopeType);
    PyObject* o = checked(reinterpret_cast<PyObject*>(s));
    s->record = records;
    s->train = trains;
    return o;
  });
}

PyObject* backward_function(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"heads", "head_grads", "retain_graph", "train_mode", "create_graph", nullptr};
  PyObject *heads = nullptr, *head_grads = Py_None;
  int retain = 0, train = 1, create = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|Oppp", const_cast<char**>(kNames), &heads, &head_grads, &retain,
                                   &train, &create))
    return nullptr;
  return guarded([&] {
    std::vector<Val> h = values(heads, "backward", "heads"),
                     g = values(head_grads, "backward", "head_grads", Nones::allowed);
    backward(h, g, {.retain_graph = retain || create, .create_graph = create != 0, .training = train != 0});
    Py_RETURN_NONE;
  });
}

PyObject* grad_function(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"heads",        "variables",  "head_grads", "retain_graph",
                                 "create_graph", "train_mode", nullptr};
  PyObject *heads = nullptr, *variables = nullptr, *head_grads = Py_None, *retain = Py_None;
  int create = 0, train = 1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|OOpp", const_cast<char**>(kNames), &heads, &variables,
                                   &head_grads, &retain, &create, &train))
    return nullptr;
  return guarded([&] {
    std::vector<Val> h = values(heads, "grad", "heads"), v = values(variables, "grad", "variables"),
                     g = values(head_grads, "grad", "head_grads", Nones::allowed);
    bool keep = retain == Py_None ? create != 0 : is_true(retain);
    Vals dx = grad(h, v, g, {.retain_graph = keep, .create_graph = create != 0, .training = train != 0});
    if (is_array(variables)) return wrap(dx[0]);
    Ref list(checked(PyList_New(dx.size())));
    for (int i = 0; i < dx.size(); ++i) PyList_SET_ITEM(list.get(), i, wrap(dx[i]));
    return list.leak();
  });
}

GradReq to_grad_req(PyObject* o, const char* who) {
  TW_CHECK(PyUnicode_Check(o), type, who, ": grad_req must be a string, write, add or null; got ", Py_TYPE(o)->tp_name);
  return grad_req_of(utf8(o), who);
}

PyObject* mark_variables(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"variables", "gradients", "grad_reqs", nullptr};
  PyObject *variables = nullptr, *gradients = nullptr, *reqs = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|O", const_cast<char**>(kNames), &variables, &gradients, &reqs))
    return nullptr;
  return guarded([&] {
    constexpr const char* kWho = "mark_variables";
    std::vector<Val> v = values(variables, kWho, "variables"), g = values(gradients, kWho, "gradients");
    TW_CHECK(v.size() == g.size(), value, kWho, ": there must be one gradient per variable; got ", v.size(), " and ",
             g.size());
    std::vector<GradReq> r(v.size(), GradReq::write);
    if (PyUnicode_Check(reqs)) {
      std::ranges::fill(r, to_grad_req(reqs, kWho));
    } else if (reqs != Py_None) {
      Ref list(checked(PySequence_List(reqs)));
      TW_CHECK(PyList_GET_SIZE(list.get()) == std::ssize(v), value, kWho,
               ": there must be one grad_req per variable; got ", static_cast<int64_t>(PyList_GET_SIZE(list.get())),
               " for ", v.size());
      for (size_t i = 0; i < r.size(); ++i)
        r[i] = to_grad_req(PyList_GET_ITEM(list.get(), static_cast<Py_ssize_t>(i)), kWho);
    }
    for (size_t i = 0; i < v.size(); ++i) attach_grad(*v[i], r[i], g[i]);
    Py_RETURN_NONE;
  });
}

PyObject* record_function(PyObject*, PyObject* args) {
  PyObject *outputs, *inputs, *function;
  if (!PyArg_ParseTuple(args, "OOO", &outputs, &inputs, &function)) return nullptr;
  return guarded([&] {
    std::vector<Val> y = values(outputs, "Function", "outputs"), x = values(inputs, "Function", "inputs");
    std::vector<Value*> in, out;
    for (Val& v : x) in.push_back(v.get());
    for (Val& v : y) out.push_back(v.get());
    record_custom(in, out, std::make_unique<PythonGradient>(function));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"set_recording", set_recording, METH_O, "Switches recording; returns how it was."},
    {"set_training", set_training, METH_O, "Switches the training mode; returns how it was."},
    {"is_recorded", is_recorded, METH_O,
     "Whether an array was computed while recording from a variable with a gradient."},
    {"is_recording", is_recording, METH_NOARGS, "Whether operations are recorded for gradients."},
    {"is_training", is_training, METH_NOARGS, "Whether networks behave as in training."},
    {"recording_scope", recording_scope, METH_VARARGS,
     "recording_scope(record=None, train=None): a reusable context manager."},
    {"backward", as_method(backward_function), METH_VARARGS | METH_KEYWORDS,
     "Gradients of heads into the marked variables."},
    {"grad", as_method(grad_function), METH_VARARGS | METH_KEYWORDS,
     "Gradients of heads with respect to variables, returned."},
    {"mark_variables", as_method(mark_variables), METH_VARARGS | METH_KEYWORDS,
     "Gives variables the gradient arrays that backward fills."},
    {"record_function", record_function, METH_VARARGS,
     "record_function(outputs, inputs, backward): links outputs to a gradient written in Python."},
    {},
};

}  // namespace

void add_autograd(PyObject* module) {
  checked(PyType_Ready(&ScopeType));
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace twibil::python
