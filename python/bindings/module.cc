// SPDX-License-Identifier: Apache-2.0
// The compiled module: array type, one function per public name of every operator, and what is not an operator.
#include <cstring>
#include <set>

#include "autograd.h"
#include "convert.h"
#include "engine_hooks.h"
#include "files.h"
#include "function.h"
#include "indexing.h"
#include "ir/apply.h"
#include "ir/graph_form.h"
#include "ir/registry.h"
#include "library.h"
#include "memory/allocator.h"
#include "onnx.h"
#include "operators.h"
#include "optimizer.h"
#include "profiler.h"
#include "quick_method.h"
#include "registry.h"
#include "runtime/launch.h"
#include "runtime/random_state.h"
#include "symbol.h"

namespace twibil::python {

namespace {

PyObject* make_array(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"object", "dtype", "ctx", "device", "copy", nullptr};
  PyObject *object = nullptr, *dtype = Py_None, *ctx = Py_None, *device = Py_None, *copy = Py_True;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOOO", const_cast<char**>(kNames), &object, &dtype, &ctx, &device,
                                   &copy))
    return nullptr;
  return guarded([&] {
    check_context(ctx);
    check_context(device);
    return wrap(to_array(object, dtype == Py_None ? Maybe<DType>() : Maybe<DType>(to_dtype(dtype))));
  });
}

/// Functions that make symbols: "sym" has the names of graph files, "sym.contrib" those that begin with _contrib_,
/// "sym.np" the public names in "np".
PyObject* symbolic_functions(std::string_view space) {
  static std::set<std::string> kept;  // functions point to their names
  Ref dict(checked(PyDict_New()));
  auto put = [&](const OpDef& op, std::string_view name) {
    if (name.empty() || name.find('.') != std::string_view::npos) return;
    const std::string& whole = *kept.insert(text(space, ".", name)).first;
    Ref f(make_function(op, whole.c_str()));
    checked(PyDict_SetItemString(dict.get(), whole.c_str() + space.size() + 1, f.get()));
  };
  std::string_view inner = space.substr(std::min<size_t>(space.size(), 4));
  if (inner.starts_with("np")) {
    std::string prefix = text(inner, ".");
    for (const OpDef* op : registry())
      for (const char* name : op->names)
        if (name && std::string_view(name).starts_with(prefix)) put(*op, std::string_view(name).substr(prefix.size()));
  } else {
    std::string prefix = inner.empty() ? "" : text("_", inner, "_");
    for (std::string_view name : graph_op_names())
      if (name.starts_with(prefix)) put(*find_graph_op(name), name.substr(prefix.size()));
  }
  return dict.leak();
}

/// {"sum": function, ...} of the public names that start with "np." and so on.
PyObject* functions_of(PyObject*, PyObject* space) {
  return guarded([&] {
    if (utf8(space) == "sym" || utf8(space).starts_with("sym.")) return symbolic_functions(utf8(space));
    std::string prefix = text(utf8(space), ".");
    Ref dict(checked(PyDict_New()));
    for (const OpDef* op : registry())
      for (const char* name : op->names) {
        if (!name || std::strncmp(name, prefix.c_str(), prefix.size()) != 0 || std::strchr(name + prefix.size(), '.'))
          continue;
        Ref f(make_function(*op, name));
        checked(PyDict_SetItemString(dict.get(), name + prefix.size(), f.get()));
      }
    return dict.leak();
  });
}

PyObject* all_operators(PyObject*, PyObject*) {
  return guarded([] {
    Ref dict(checked(PyDict_New()));
    for (const OpDef* op : registry()) {
      Ref f(make_function(*op, op->name));
      checked(PyDict_SetItemString(dict.get(), op->name, f.get()));
    }
    return dict.leak();
  });
}

void add_methods() {
  for (const OpDef* op : registry())
    for (const char* name : op->names)
      if (name && std::strncmp(name, "ndarray.", 8) == 0) {
        Ref f(make_function(*op, name));
        checked(PyDict_SetItemString(ArrayType.tp_dict, name + 8, f.get()));
      }
  PyType_Modified(&ArrayType);
}

/// Methods written in Python, where no operator has a method of the name.
PyObject* add_python_methods(PyObject*, PyObject* methods) {
  return guarded([&] {
    TW_CHECK(PyDict_Check(methods), type, "add_methods: a dict of functions is needed; got ",
             Py_TYPE(methods)->tp_name);
    PyObject *name = nullptr, *function = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(methods, &at, &name, &function);)
      if (!checked(PyDict_Contains(ArrayType.tp_dict, name)))
        checked(PyDict_SetItem(ArrayType.tp_dict, name, function));
    PyType_Modified(&ArrayType);
    Py_RETURN_NONE;
  });
}

PyObject* seed(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"seed", "ctx", nullptr};
  PyObject *number = nullptr, *ctx = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O", const_cast<char**>(kNames), &number, &ctx)) return nullptr;
  return guarded([&] {
    seed_random(static_cast<uint64_t>(to_int(number, "seed")));
    Py_RETURN_NONE;
  });
}
PyObject* get_random_state(PyObject*, PyObject*) {
  return guarded([] {
    RandomKey k = random_state();
    return Py_BuildValue("(KK)", static_cast<unsigned long long>(k.seed), static_cast<unsigned long long>(k.counter));
  });
}
PyObject* put_random_state(PyObject*, PyObject* args) {
  unsigned long long s, c;
  if (!PyArg_ParseTuple(args, "(KK)", &s, &c)) return nullptr;
  return guarded([&] {
    set_random_state({s, c});
    Py_RETURN_NONE;
  });
}
PyObject* waitall(PyObject*, PyObject*) {
  return guarded([] {
    wait_all();
    Py_RETURN_NONE;
  });
}
PyObject* stats(PyObject*, PyObject*) {
  return guarded([] {
    MemoryStats s = memory_stats();
    return Py_BuildValue("{sLsLsLsLsL}", "current_bytes", static_cast<long long>(s.current_bytes), "peak_bytes",
                         static_cast<long long>(s.peak_bytes), "reserved_bytes",
                         static_cast<long long>(s.reserved_bytes), "limit_bytes", static_cast<long long>(s.limit_bytes),
                         "allocations", static_cast<long long>(s.allocations));
  });
}
PyObject* reset_peak(PyObject*, PyObject*) {
  return guarded([] {
    reset_peak_memory();
    Py_RETURN_NONE;
  });
}
PyObject* empty_cache(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromLongLong(trim_memory()); });
}
PyObject* num_gpus(PyObject*, PyObject*) { return PyLong_FromLong(0); }
PyObject* set_limit(PyObject*, PyObject* bytes) {
  return guarded([&] {
    set_memory_limit(to_int(bytes, "limit"));
    Py_RETURN_NONE;
  });
}

PyObject* get_default_dtype(PyObject*, PyObject*) {
  return guarded([] { return dtype_object(default_float()); });
}
PyObject* put_default_dtype(PyObject*, PyObject* dtype) {
  return guarded([&] {
    set_default_float(to_dtype(dtype));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"array", as_method(make_array), METH_VARARGS | METH_KEYWORDS,
     "array(object, dtype=None, ctx=None): a new array; lists become float32 unless dtype says otherwise."},
    {"functions", functions_of, METH_O, "The functions of a namespace (\"np\", \"npx\", \"nd\") by name."},
    {"add_methods", add_python_methods, METH_O,
     "Gives the array type methods written in Python, where it has none of the name."},
    {"operators", all_operators, METH_NOARGS, "Every registered operator by its own name."},
    {"seed", as_method(seed), METH_VARARGS | METH_KEYWORDS, "Starts the stream of random numbers anew."},
    {"random_state", get_random_state, METH_NOARGS, "(seed, counter) of the stream of random numbers."},
    {"set_random_state", put_random_state, METH_VARARGS, "Puts the stream back to a state."},
    {"waitall", waitall, METH_NOARGS, "Waits for all queued work; raises its first error."},
    {"memory_stats", stats, METH_NOARGS, "Bytes of array data now, at the peak, reserved, and the limit (0: none)."},
    {"reset_peak_memory", reset_peak, METH_NOARGS, "Sets the peak to what is live now."},
    {"empty_cache", empty_cache, METH_NOARGS, "Gives cached memory back to the system; returns how many bytes."},
    {"num_gpus", num_gpus, METH_NOARGS, "How many GPUs this build can use: none."},
    {"default_dtype", get_default_dtype, METH_NOARGS, "The dtype of arrays made from numbers: float32 or float64."},
    {"set_default_dtype", put_default_dtype, METH_O, "Makes float32 or float64 the dtype of arrays made from numbers."},
    {"set_memory_limit", set_limit, METH_O, "Allocations beyond this many bytes raise MemoryError; 0: no limit."},
    {},
};

PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                          .m_name = "twibil._core",
                          .m_doc = "The compiled part of twibil.",
                          .m_size = -1,
                          .m_methods = functions};

}  // namespace

}  // namespace twibil::python

PyMODINIT_FUNC PyInit__core() {
  using namespace twibil;
  using namespace twibil::python;
  return guarded([] {
    counts_are_plain = true;  // every handle is touched under the interpreter's lock
    install_runtime();
    checked(PyType_Ready(&ArrayType));
    prepare_function_type();
    prepare_iterator_type();
    prepare_operators();
    prepare_quick_methods();
    add_quick_methods();
    add_methods();
    python::Ref module(checked(PyModule_Create(&definition)));
    checked(PyModule_AddStringConstant(module.get(), "__version__", TWIBIL_VERSION));
    add_autograd(module.get());
    add_optimizer(module.get());
    install_engine_hooks();
    add_files(module.get());
    add_onnx(module.get());
    add_scenes(module.get());
    add_registry(module.get());
    add_library(module.get());
    add_symbol(module.get());
    add_profiler(module.get());
    checked(PyModule_AddObjectRef(module.get(), "ndarray", reinterpret_cast<PyObject*>(&ArrayType)));
    return module.leak();
  });
}
