// SPDX-License-Identifier: Apache-2.0
#include "profiler.h"

#include "base/profile.h"
#include "convert.h"
#include "runtime/profiler.h"
#include "twibil/profiler.h"

namespace twibil::python {

namespace {

PyObject* configure(PyObject*, PyObject* args) {
  const char* filename = nullptr;
  int imperative = 0, symbolic = 0, memory = 0, api = 0;
  long long max_events = 0;
  if (!PyArg_ParseTuple(args, "sppppL", &filename, &imperative, &symbolic, &memory, &api, &max_events)) return nullptr;
  return guarded([&] {
    profiler::set_config({.filename = filename,
                          .imperative = imperative != 0,
                          .symbolic = symbolic != 0,
                          .memory = memory != 0,
                          .api = api != 0,
                          .max_events = max_events});
    Py_RETURN_NONE;
  });
}

template <void (*function)()> PyObject* call(PyObject*, PyObject*) {
  return guarded([] {
    function();
    Py_RETURN_NONE;
  });
}

PyObject* state(PyObject*, PyObject*) {
  return guarded([] {
    switch (profiler::state()) {
      case profiler::State::running: return PyUnicode_FromString("run");
      case profiler::State::paused: return PyUnicode_FromString("pause");
      case profiler::State::stopped: break;
    }
    return PyUnicode_FromString("stop");
  });
}

PyObject* dump(PyObject*, PyObject* finished) {
  return guarded([&] {
    const int is_finished = PyObject_IsTrue(finished);
    if (is_finished < 0) throw PythonError{};
    profiler::dump(is_finished != 0);
    Py_RETURN_NONE;
  });
}

PyObject* dumps(PyObject*, PyObject* args) {
  int reset = 0, json = 0, sort_by = 0, ascending = 0;
  if (!PyArg_ParseTuple(args, "ppip", &reset, &json, &sort_by, &ascending)) return nullptr;
  return guarded([&] {
    std::string s = profiler::dumps({.reset = reset != 0,
                                     .json = json != 0,
                                     .sort_by = static_cast<profiler::SortBy>(sort_by),
                                     .ascending = ascending != 0});
    return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
  });
}

/// Nanoseconds of the clock while the user's events are recorded, else 0.
PyObject* begin(PyObject*, PyObject*) { return PyLong_FromLongLong(profile::on(profile::kUser) ? profile::now() : 0); }

/// end(kind, name, domain, begin): kind "scope" or "span".
PyObject* end(PyObject*, PyObject* args) {
  const char *kind = nullptr, *name = nullptr, *domain = nullptr;
  long long begin = 0;
  if (!PyArg_ParseTuple(args, "sszL", &kind, &name, &domain, &begin)) return nullptr;
  profile::Event e{.kind = kind[1] == 'p' ? profile::Kind::span : profile::Kind::scope, .begin = begin};
  e.end = profile::now();
  e.name = profile::intern(name);
  e.detail = domain ? profile::intern(domain) : nullptr;
  e.id = profile::next_id();
  profile::record(e);
  Py_RETURN_NONE;
}

/// value(kind, name, domain, number): kind "counter", or "marker" with the letter of its scope.
PyObject* value(PyObject*, PyObject* args) {
  const char *kind = nullptr, *name = nullptr, *domain = nullptr;
  long long number = 0;
  if (!PyArg_ParseTuple(args, "sszL", &kind, &name, &domain, &number)) return nullptr;
  if (!profile::on(profile::kUser)) Py_RETURN_NONE;
  profile::Event e{.kind = kind[0] == 'c' ? profile::Kind::counter : profile::Kind::marker};
  e.begin = e.end = profile::now();
  e.name = profile::intern(name);
  e.detail = domain ? profile::intern(domain) : nullptr;
  e.number = number;
  profile::record(e);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"profiler_configure", configure, METH_VARARGS, nullptr},
    {"profiler_run", call<profiler::run>, METH_NOARGS, nullptr},
    {"profiler_stop", call<profiler::stop>, METH_NOARGS, nullptr},
    {"profiler_pause", call<profiler::pause>, METH_NOARGS, nullptr},
    {"profiler_resume", call<profiler::resume>, METH_NOARGS, nullptr},
    {"profiler_clear", call<profiler::clear>, METH_NOARGS, nullptr},
    {"profiler_state", state, METH_NOARGS, nullptr},
    {"profiler_dump", dump, METH_O, nullptr},
    {"profiler_dumps", dumps, METH_VARARGS, nullptr},
    {"profiler_begin", begin, METH_NOARGS, nullptr},
    {"profiler_end", end, METH_VARARGS, nullptr},
    {"profiler_value", value, METH_VARARGS, nullptr},
    {},
};

}  // namespace

void add_profiler(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace twibil::python
