// SPDX-License-Identifier: Apache-2.0
// Operators of users from libraries.
#include "library.h"

#include "convert.h"
#include "function.h"
#include "twibil/operator.h"

namespace twibil::python {

namespace {

/// load_operators(path): {public name: function} of what the library declares; operators without one by their own name.
PyObject* load(PyObject*, PyObject* path) {
  return guarded([&] {
    std::vector<const OpDef*> added = load_operators(std::string(utf8(path)));
    Ref dict(checked(PyDict_New()));
    for (const OpDef* op : added) {
      bool any = false;
      for (const char* name : op->names) {
        if (!name) continue;
        any = true;
        Ref f(make_function(*op, name));
        checked(PyDict_SetItemString(dict.get(), name, f.get()));
      }
      if (any) continue;
      Ref f(make_function(*op, op->name));
      checked(PyDict_SetItemString(dict.get(), op->name, f.get()));
    }
    return dict.leak();
  });
}

PyMethodDef functions[] = {
    {"load_operators", load, METH_O, "Adds the operators of a library; {public name: function}."},
    {},
};

}  // namespace

void add_library(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace twibil::python
