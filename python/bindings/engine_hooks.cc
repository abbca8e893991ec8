// SPDX-License-Identifier: Apache-2.0
// What the engine needs of Python: the interpreter's lock is free while a thread waits, Ctrl-C ends a wait, and errors
// of queued work name the line that asked for it.
#include "engine_hooks.h"

#include <frameobject.h>  // Python 3.10 keeps PyFrame_GetBack there

#include "engine/engine.h"
#include "runtime/launch.h"

namespace twibil::python {

namespace {

void poll_signals() {
  if (PyGILState_Check() && PyErr_CheckSignals() != 0) throw PythonError{};
}
void* release_lock() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
void take_lock(void* state) {
  if (state) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

/// The folder of the library's own Python files, with a slash at its end.
const std::string& package_folder() {
  static const std::string folder = [] {
    Ref module(PyImport_ImportModule("twibil"));
    Ref file(module ? PyObject_GetAttrString(module.get(), "__file__") : nullptr);
    const char* s = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
    PyErr_Clear();
    std::string_view path = s ? s : "";
    return std::string(path.substr(0, path.rfind('/') + 1));
  }();
  return folder;
}

/// Whether a file is the library's own; the demo in its folder is a program like a user's.
bool is_ours(std::string_view file) {
  const std::string& folder = package_folder();
  return !folder.empty() && file.starts_with(folder) && !file.substr(folder.size()).starts_with("demo/");
}

std::string call_site() {
  if (!PyGILState_Check()) return {};
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  // The library's own Python files are not where the user's program stands.
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (!file) PyErr_Clear();  // a name that is no text
    if (file && !is_ours(file)) {
      std::string site = text(file, ":", PyFrame_GetLineNumber(frame));
      Py_DECREF(code);
      Py_DECREF(frame);
      return site;
    }
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return {};
}

PyObject* drain(PyObject*, PyObject*) {
  engine::shutdown();
  engine::set_hooks({});  // a wait at the process's end must not call into an interpreter that is gone
  call_site_hook = nullptr;
  Py_RETURN_NONE;
}
PyMethodDef drain_method = {"_drain", drain, METH_NOARGS, "Finishes queued work before the interpreter goes away."};

}  // namespace

void install_engine_hooks() {
  engine::set_hooks({.poll = poll_signals, .before_block = release_lock, .after_block = take_lock});
  call_site_hook = call_site;
  Ref atexit(checked(PyImport_ImportModule("atexit")));
  Ref function(checked(PyCFunction_New(&drain_method, nullptr)));
  Ref done(checked(PyObject_CallMethod(atexit.get(), "register", "O", function.get())));
}

}  // namespace twibil::python
