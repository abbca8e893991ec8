// SPDX-License-Identifier: Apache-2.0
// ONNX models for Python: src/api/io/onnx_import.h with Python's lists and dicts.
#include "onnx.h"

#include "api/io/onnx_import.h"
#include "convert.h"
#include "io_arguments.h"
#include "ir/onnx_form.h"
#include "symbol.h"

namespace twibil::python {
namespace {

Ref text_of(const std::string& s) {
  return Ref(checked(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace")));
}
void put(PyObject* dict, const char* key, const Ref& value) { checked(PyDict_SetItemString(dict, key, value.get())); }
void append(PyObject* list, const Ref& item) { checked(PyList_Append(list, item.get())); }

template <class T> Ref numbers_by_name(const std::map<std::string, T>& all) {
  Ref dict(checked(PyDict_New()));
  for (auto& [name, n] : all) {
    Ref number(checked(PyLong_FromLongLong(n)));
    checked(PyDict_SetItem(dict.get(), text_of(name).get(), number.get()));
  }
  return dict;
}

/// (name, dtype or None, shape or None); unknown sizes are their names, or None.
Ref value_of(const io::OnnxValue& v) {
  Ref shape(Py_NewRef(Py_None));
  if (v.has_shape) {
    shape = Ref(checked(PyTuple_New(static_cast<Py_ssize_t>(v.dims.size()))));
    for (size_t i = 0; i < v.dims.size(); ++i) {
      PyObject* size = v.dims[i] >= 0        ? checked(PyLong_FromLongLong(v.dims[i]))
                       : v.labels[i].empty() ? Py_NewRef(Py_None)
                                             : text_of(v.labels[i]).leak();
      PyTuple_SET_ITEM(shape.get(), static_cast<Py_ssize_t>(i), size);
    }
  }
  DType t = io::dtype_of_onnx(v.type);
  Ref dtype = t == kUnknownDType ? text_of(io::name_of_onnx_type(v.type)) : text_of(std::string(name_of(t)));
  return Ref(checked(PyTuple_Pack(3, text_of(v.name).get(), dtype.get(), shape.get())));
}
Ref list_of(const std::vector<io::OnnxValue>& values) {
  Ref list(checked(PyList_New(0)));
  for (const io::OnnxValue& v : values) append(list.get(), value_of(v));
  return list;
}

io::OnnxModel read(PyObject* source) {
  if (PyBytes_Check(source)) {
    std::string_view bytes(PyBytes_AS_STRING(source), static_cast<size_t>(PyBytes_GET_SIZE(source)));
    const WithoutLock unlocked;
    return io::parse_onnx(io::bytes_of(bytes));
  }
  const std::string path = to_path(source);
  const WithoutLock unlocked;
  return io::read_onnx(path);
}

Ref metadata_of(const io::OnnxModel& m) {
  Ref dict(checked(PyDict_New())), properties(checked(PyDict_New()));
  for (auto& [key, value] : m.metadata)
    checked(PyDict_SetItem(properties.get(), text_of(key).get(), text_of(value).get()));
  put(dict.get(), "opsets", numbers_by_name(m.opsets));
  put(dict.get(), "ir_version", Ref(checked(PyLong_FromLongLong(m.ir_version))));
  put(dict.get(), "producer", text_of(m.producer));
  put(dict.get(), "producer_version", text_of(m.producer_version));
  put(dict.get(), "domain", text_of(m.domain));
  put(dict.get(), "model_version", Ref(checked(PyLong_FromLongLong(m.model_version))));
  put(dict.get(), "doc", text_of(m.doc));
  put(dict.get(), "graph", text_of(m.graph.name));
  put(dict.get(), "metadata", properties);
  put(dict.get(), "outputs", list_of(m.graph.outputs));
  return dict;
}

/// import_onnx(path or bytes): (symbol, {name: array}, description)
PyObject* import_onnx(PyObject*, PyObject* source) {
  return guarded([&] {
    io::OnnxModel model = read(source);
    const std::string name = PyBytes_Check(source) ? "<bytes>" : to_path(source);
    io::OnnxProgram program = io::import_onnx(model, name);
    Ref parameters(checked(PyDict_New())), about = metadata_of(model);
    put(about.get(), "inputs", list_of(program.inputs));
    put(about.get(), "operators", numbers_by_name(program.operators));
    for (auto& [key, value] : program.parameters) {
      Ref array(checked(wrap(value)));
      checked(PyDict_SetItem(parameters.get(), text_of(key).get(), array.get()));
    }
    Ref symbol(checked(wrap_symbol(std::move(program.heads))));
    return checked(PyTuple_Pack(3, symbol.get(), parameters.get(), about.get()));
  });
}

/// describe_onnx(path or bytes): what the model says of itself; its operators need not be known.
PyObject* describe_onnx(PyObject*, PyObject* source) {
  return guarded([&] {
    io::OnnxModel model = read(source);
    Ref about = metadata_of(model);
    std::vector<io::OnnxValue> inputs;
    for (const io::OnnxValue& v : model.graph.inputs) {
      bool given = false;
      for (const io::OnnxTensor& t : model.graph.initializers) given |= t.name == v.name;
      if (!given) inputs.push_back(v);
    }
    put(about.get(), "inputs", list_of(inputs));
    return about.leak();
  });
}

/// onnx_operators(): the names of ONNX's operators that some opset has here.
PyObject* onnx_operators(PyObject*, PyObject*) {
  return guarded([] {
    Ref list(checked(PyList_New(0)));
    for (const std::string& name : onnx_op_names()) append(list.get(), text_of(name));
    return list.leak();
  });
}
/// has_onnx_operator(domain, name, version)
PyObject* has_onnx_operator(PyObject*, PyObject* args) {
  const char *domain, *name;
  long long version;
  if (!PyArg_ParseTuple(args, "ssL", &domain, &name, &version)) return nullptr;
  return guarded([&] { return PyBool_FromLong(find_onnx_op(domain, name, version) != nullptr); });
}

PyMethodDef methods[] = {
    {"import_onnx", import_onnx, METH_O, "import_onnx(path or bytes): (symbol, parameters by name, description)."},
    {"describe_onnx", describe_onnx, METH_O, "describe_onnx(path or bytes): what a model says of itself."},
    {"onnx_operators", onnx_operators, METH_NOARGS, "onnx_operators(): names of ONNX's operators that are known."},
    {"has_onnx_operator", has_onnx_operator, METH_VARARGS,
     "has_onnx_operator(domain, name, version): whether it is known."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_onnx(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace twibil::python
