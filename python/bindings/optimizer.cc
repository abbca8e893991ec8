// SPDX-License-Identifier: Apache-2.0
// One call for the steps of many parameters.
#include "optimizer.h"

#include <cstring>
#include <vector>

#include "convert.h"
#include "ir/modes.h"
#include "ir/registry.h"

namespace twibil::python {

namespace {

struct Items {  // a tuple of its own: reading a number may run code that changes a list
  Ref held;
  explicit Items(PyObject* o) : held(checked(PySequence_Tuple(o))) {}
  Py_ssize_t size() const { return PyTuple_GET_SIZE(held.get()); }
  PyObject* operator[](Py_ssize_t i) const { return PyTuple_GET_ITEM(held.get(), i); }
};

Value* array_of(PyObject* o, const char* op) {
  TW_CHECK(is_array(o), type, op, ": weights, gradients and states must be arrays; got ", Py_TYPE(o)->tp_name);
  return value_of(o);
}

const Field& field_of(const OpDef& op, std::string_view name) {
  const Field* f = find_field(op.attrs, name);
  TW_CHECK(f, value, op.name, ": is not an optimizer's step: it has no attribute ", name);
  return *f;
}

PyObject* multi_update(PyObject*, PyObject* args, PyObject* keywords) {
  const char* name;
  PyObject *weights, *grads, *states, *rates, *decays;
  if (!PyArg_ParseTuple(args, "sOOOOO", &name, &weights, &grads, &states, &rates, &decays)) return nullptr;
  return guarded([&] {
    const OpDef& op = require_op(name);
    std::vector<std::byte> attrs(op.attrs.size);
    std::memcpy(attrs.data(), op.attrs.defaults, attrs.size());
    PyObject *key, *value;
    for (Py_ssize_t at = 0; keywords && PyDict_Next(keywords, &at, &key, &value);)
      set_attr(field_of(op, utf8(key)), attrs.data(), value, op.name);
    const Field &rate = field_of(op, "lr"), &decay = field_of(op, "wd");
    Items w(weights), g(grads), s(states), lr(rates), wd(decays);
    TW_CHECK(w.size() == g.size() && w.size() == s.size() && w.size() == lr.size() && w.size() == wd.size(), value,
             op.name, ": the lists must have one length");
    ModeScope quiet(false, modes.training);
    for (Py_ssize_t i = 0; i < w.size(); ++i) {
      Items state(s[i]);
      std::vector<Value*> in{array_of(w[i], op.name), array_of(g[i], op.name)};
      for (Py_ssize_t k = 0; k < state.size(); ++k) in.push_back(array_of(state[k], op.name));
      set_attr(rate, attrs.data(), lr[i], op.name);
      set_attr(decay, attrs.data(), wd[i], op.name);
      Value* out[6] = {};
      invoke(op, attrs.data(), in, out);
      for (int k = 0; k < op.visible_outputs(); ++k) release(out[k]);
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"multi_update", as_method(multi_update), METH_VARARGS | METH_KEYWORDS,
     "multi_update(name, weights, grads, states, lrs, wds, **attrs): one optimizer step for each weight, in place."},
    {},
};

}  // namespace

void add_optimizer(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace twibil::python
