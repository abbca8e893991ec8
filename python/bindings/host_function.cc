// SPDX-License-Identifier: Apache-2.0
// Functions written in Python as nodes of graphs: python/twibil/host.py has the classes that they are objects of.
#include "compiled.h"
#include "convert.h"
#include "runtime/trace_call.h"
#include "symbol.h"

namespace twibil::python {

namespace {

class Lock {  // the interpreter's, on whatever thread a graph runs
 public:
  Lock() : state_(PyGILState_Ensure()) {}
  ~Lock() { PyGILState_Release(state_); }
  Lock(const Lock&) = delete;

 private:
  PyGILState_STATE state_;
};

PyObject* list_of(std::span<const Val> arrays) {
  Ref list(checked(PyList_New(static_cast<Py_ssize_t>(arrays.size()))));
  for (size_t i = 0; i < arrays.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), arrays[i] ? wrap(arrays[i]) : Py_NewRef(Py_None));
  return list.leak();
}
PyObject* signatures(SigsIn sigs) {
  Ref list(checked(PyList_New(static_cast<Py_ssize_t>(sigs.size()))));
  for (size_t i = 0; i < sigs.size(); ++i) {
    PyObject* item = Py_NewRef(Py_None);
    if (sigs[i].present()) {
      Py_DECREF(item);
      Ref shape(shape_tuple(sigs[i].shape.span())), dtype(dtype_object(sigs[i].dtype));
      item = checked(PyTuple_Pack(2, shape.get(), dtype.get()));
    }
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.leak();
}
std::vector<Sig> to_signatures(PyObject* sequence) {
  Ref items(checked(PySequence_Tuple(sequence)));
  std::vector<Sig> list;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyTuple_GET_ITEM(items.get(), i);
    Sig s;
    if (pair != Py_None) {
      TW_CHECK(PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2, type, "a signature is (shape, dtype); got ",
               Py_TYPE(pair)->tp_name);
      for (int64_t d : to_int_list(PyTuple_GET_ITEM(pair, 0), "shape")) s.shape.push_back(d);
      s.dtype = to_dtype(PyTuple_GET_ITEM(pair, 1));
    }
    list.push_back(std::move(s));
  }
  return list;
}
std::vector<Val> to_arrays(PyObject* sequence, const char* who) {
  Ref items(checked(PySequence_Tuple(sequence)));
  std::vector<Val> list;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    list.push_back(item == Py_None ? Val() : require_operand(item, who, "a result"));
  }
  return list;
}

/// An object with infer(signatures), complete(signatures), run(arrays, training), gradient(in, out, dy, training), and
/// the attributes name and has_gradient.
class HostFunction final : public GraphFunction {
 public:
  explicit HostFunction(PyObject* object) : object_(Py_NewRef(object)) {
    Ref name(checked(PyObject_GetAttrString(object, "name"))),
        has(checked(PyObject_GetAttrString(object, "has_gradient")));
    name_ = std::string(utf8(name.get()));
    has_gradient_ = PyObject_IsTrue(has.get()) == 1;
  }
  ~HostFunction() override {
    if (!Py_IsInitialized()) return;
    Lock lock;
    Py_DECREF(object_);
  }
  const char* name() const override { return name_.c_str(); }
  bool has_gradient() const override { return has_gradient_; }
  std::vector<Sig> infer(SigsIn in) const override {
    Lock lock;
    Ref given(signatures(in)), found(checked(PyObject_CallMethod(object_, "infer", "O", given.get())));
    return to_signatures(found.get());
  }
  void complete(std::span<Sig> in) const override {
    Lock lock;
    Ref given(signatures(in)), found(checked(PyObject_CallMethod(object_, "complete", "O", given.get())));
    std::vector<Sig> full = to_signatures(found.get());
    for (size_t i = 0; i < in.size() && i < full.size(); ++i)
      if (!in[i].present()) in[i] = full[i];
  }
  std::vector<Val> run(std::span<const Val> in, bool training) const override {
    Lock lock;
    TraceScope untraced(nullptr);
    ModeScope quiet(false, training);
    Ref arrays(list_of(in)), out(checked(PyObject_CallMethod(object_, "run", "OO", arrays.get(), truth(training))));
    return to_arrays(out.get(), name());
  }
  std::vector<Val> gradient(std::span<const Val> in, std::span<const Val> out, std::span<const Val> dy,
                            bool training) const override {
    Lock lock;
    TraceScope untraced(nullptr);
    ModeScope quiet(false, training);
    Ref x(list_of(in)), y(list_of(out)), d(list_of(dy));
    Ref dx(checked(PyObject_CallMethod(object_, "gradient", "OOOO", x.get(), y.get(), d.get(), truth(training))));
    return to_arrays(dx.get(), name());
  }

 private:
  static PyObject* truth(bool b) { return b ? Py_True : Py_False; }
  PyObject* object_;
  std::string name_;
  bool has_gradient_ = true;
};

/// host_call(object, arrays or symbols, outputs, name): outputs counts those of symbols.
PyObject* host_call(PyObject*, PyObject* args) {
  PyObject *object, *inputs;
  int outputs;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOis", &object, &inputs, &outputs, &name)) return nullptr;
  return guarded([&] {
    auto f = std::make_shared<HostFunction>(object);
    return call_on(f, inputs, static_cast<size_t>(outputs), name);
  });
}

PyMethodDef functions[] = {
    {"host_call", host_call, METH_VARARGS, "Calls a function written in Python on arrays, in a trace, or on symbols."},
    {},
};

}  // namespace

void add_host_function(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace twibil::python
