// SPDX-License-Identifier: Apache-2.0
// What a call of a traced function is remembered by: the arrays in its arguments, and a key of everything else.
#include <string>
#include <vector>

#include "compiled.h"
#include "convert.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "symbol.h"

namespace twibil::python {

namespace {

constexpr int kDeepest = 64;

bool is_numpy_array(PyObject* o) {
  static PyObject* type = checked(PyObject_GetAttrString(numpy_module(), "ndarray"));
  return PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(type));
}

/// Walks nested tuples, lists and dictionaries.
class Signature {
 public:
  std::string code;          // structure, and what is known of each array
  std::vector<Val> arrays;   // in the order of the walk
  std::vector<Ref> statics;  // other objects with their types: 1, 1.0 and True are different arguments
  bool symbols = false;

  void visit(PyObject* o, int depth = 0) {
    TW_CHECK(depth < kDeepest, value, "the arguments are nested more than ", kDeepest, " deep");
    if (is_array(o)) return add(Val::share(value_of(o)));
    if (PyTuple_Check(o) || PyList_CheckExact(o)) {
      Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      code += PyTuple_Check(o) ? '(' : '[';
      put(n);
      if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) keep(reinterpret_cast<PyObject*>(Py_TYPE(o)));
      for (Py_ssize_t i = 0; i < n; ++i) visit(PySequence_Fast_GET_ITEM(o, i), depth + 1);
      return;
    }
    if (PyDict_Check(o)) {
      code += '{';
      put(PyDict_Size(o));
      if (!PyDict_CheckExact(o)) keep(reinterpret_cast<PyObject*>(Py_TYPE(o)));
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
        keep(key);
        visit(value, depth + 1);
      }
      return;
    }
    if (is_symbol(o)) symbols = true;
    if (is_numpy_array(o)) return add(require_operand(o, "a traced function", "argument"));
    code += 's';
    keep(reinterpret_cast<PyObject*>(Py_TYPE(o)));
    keep(o);
  }

  PyObject* key() const {
    Ref first(checked(PyBytes_FromStringAndSize(code.data(), static_cast<Py_ssize_t>(code.size()))));
    if (statics.empty()) return first.leak();
    Ref all(checked(PyTuple_New(static_cast<Py_ssize_t>(statics.size()) + 1)));
    PyTuple_SET_ITEM(all.get(), 0, first.leak());
    for (size_t i = 0; i < statics.size(); ++i)
      PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i) + 1, Py_NewRef(statics[i].get()));
    return all.leak();
  }

 private:
  void put(int64_t n) { code.append(reinterpret_cast<const char*>(&n), sizeof n); }
  void keep(PyObject* o) { statics.emplace_back(Py_NewRef(o)); }
  void add(Val v) {
    code += 'a';
    code += static_cast<char>(v->dtype());
    code += static_cast<char>(v->rank());
    for (int64_t d : v->shape()) put(d);
    arrays.push_back(std::move(v));
  }
};

/// signature(arguments): (arrays, key) of any nesting of tuples, lists and dictionaries; the modes of the thread are
/// part of the key. With symbols among the arguments: (None, None).
PyObject* signature(PyObject*, PyObject* arguments) {
  return guarded([&] {
    Signature s;
    s.code += static_cast<char>('0' + modes.training + 2 * modes.recording);
    s.code += static_cast<char>(default_float());
    s.visit(arguments);
    if (s.symbols) return Py_BuildValue("(OO)", Py_None, Py_None);
    Ref list(checked(PyList_New(static_cast<Py_ssize_t>(s.arrays.size()))));
    for (size_t i = 0; i < s.arrays.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), wrap(std::move(s.arrays[i])));
    Ref key(s.key());
    return PyTuple_Pack(2, list.get(), key.get());
  });
}

PyMethodDef functions[] = {
    {"signature", signature, METH_O, "(arrays, key) of nested arguments, for a cache of traces."},
    {},
};

}  // namespace

void add_signature(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace twibil::python
