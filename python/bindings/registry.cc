// SPDX-License-Identifier: Apache-2.0
// The registry as Python data, and a call of any operator by name: test drivers, documentation and benchmarks walk it.
#include "registry.h"

#include <cstring>
#include <string>
#include <vector>

#include "convert.h"
#include "function.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"

namespace twibil::python {

namespace {

constexpr const char* kSlotKinds[] = {"required", "optional", "variadic", "aux"};
constexpr const char* kDomains[] = {"real", "positive", "unit", "above_one", "index", "boolean", "boxes", "integer"};
constexpr const char* kAttrKinds[] = {"boolean",       "integer",    "real",        "dtype",        "scalar",
                                      "int_list",      "real_list",  "choice",      "text",         "maybe_boolean",
                                      "maybe_integer", "maybe_real", "maybe_dtype", "maybe_scalar", "maybe_int_list"};

PyObject* string(std::string_view s) {
  return checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}
PyObject* string_or_none(const char* s) {
  if (!s) Py_RETURN_NONE;
  return string(s);
}
void put(PyObject* dict, const char* key, PyObject* owned) {
  Ref value(checked(owned));
  checked(PyDict_SetItemString(dict, key, value.get()));
}
void append(PyObject* list, PyObject* owned) {
  Ref value(checked(owned));
  checked(PyList_Append(list, value.get()));
}
Ref new_list() { return checked(PyList_New(0)); }
Ref new_dict() { return checked(PyDict_New()); }

PyObject* inputs_of(const OpDef& op) {
  Ref list = new_list();
  for (int i = 0; i < op.inputs(); ++i)
    append(list.get(), Py_BuildValue("(ss)", op.in[i].name, kSlotKinds[static_cast<int>(op.in[i].kind)]));
  return list.leak();
}

PyObject* attrs_of(const OpDef& op) {
  Ref list = new_list();
  for (const Field& f : op.attrs.span()) {
    Ref d = new_dict();
    put(d.get(), "name", string(f.name));
    put(d.get(), "doc", string_or_none(f.doc));
    put(d.get(), "kind", string(kAttrKinds[static_cast<int>(f.kind)]));
    put(d.get(), "default", string(print_attr(f, op.attrs.defaults)));
    put(d.get(), "required", PyBool_FromLong(f.required));
    put(d.get(), "keyword_only", PyBool_FromLong(f.keyword_only));
    put(d.get(), "choices", string_or_none(f.choices));
    append(list.get(), d.leak());
  }
  return list.leak();
}

PyObject* sample_input(const SampleInput& in) {
  if (in.rank < 0) Py_RETURN_NONE;
  Ref dims(checked(PyTuple_New(in.rank)));
  for (int i = 0; i < in.rank; ++i) PyTuple_SET_ITEM(dims.get(), i, PyLong_FromLong(in.dims[i]));
  return Py_BuildValue("(Osi)", dims.get(), kDomains[static_cast<int>(in.domain)], in.bound);
}

// An unused place of the table has neither inputs nor attributes.
bool is_sample(const OpDef& op, const Sample& s) {
  for (const SampleInput& in : s.in)
    if (in.rank >= 0) return true;
  return op.creates && *s.attrs;
}

PyObject* samples_of(const OpDef& op) {
  Ref list = new_list();
  for (const Sample& s : op.samples) {
    if (!is_sample(op, s)) continue;
    int n = static_cast<int>(s.in.size());
    while (n > 0 && s.in[static_cast<size_t>(n - 1)].rank < 0) --n;
    Ref d = new_dict(), inputs = new_list();
    for (int i = 0; i < n; ++i) append(inputs.get(), sample_input(s.in[static_cast<size_t>(i)]));
    put(d.get(), "inputs", inputs.leak());
    put(d.get(), "attrs", string(s.attrs));
    put(d.get(), "smooth", PyBool_FromLong(s.smooth));
    append(list.get(), d.leak());
  }
  return list.leak();
}

PyObject* dtypes_of(const OpDef& op) {
  Ref list = new_list();
  for (int i = 0; i < kDTypeCount; ++i)
    if (contains(op.types, static_cast<DType>(i))) append(list.get(), string(name_of(static_cast<DType>(i))));
  return list.leak();
}

const char* rule_of(const OpDef& op) {
  if (!op.program) return nullptr;
  constexpr const char* kRules[] = {"same", "floating", "compare", "arithmetic"};
  return kRules[static_cast<int>(op.rule)];
}

PyObject* describe(const OpDef& op) {
  Ref d = new_dict(), names = new_list(), updates = new_list();
  for (const char* name : op.names)
    if (name) append(names.get(), string(name));
  for (Pair u : op.updates)
    if (u.output >= 0) append(updates.get(), Py_BuildValue("(ii)", u.output, u.input));
  put(d.get(), "name", string(op.name));
  put(d.get(), "doc", string(op.doc));
  put(d.get(), "names", names.leak());
  put(d.get(), "inputs", inputs_of(op));
  put(d.get(), "outputs", PyLong_FromLong(op.outputs()));
  put(d.get(), "visible", PyLong_FromLong(op.visible_outputs()));
  put(d.get(), "attrs", attrs_of(op));
  put(d.get(), "dtypes", dtypes_of(op));
  put(d.get(), "rule", string_or_none(rule_of(op)));
  put(d.get(), "samples", samples_of(op));
  put(d.get(), "updates", updates.leak());
  Ref shape_only = new_list();
  for (int i = 0; i < op.inputs(); ++i)
    if (op.shape_only(i)) append(shape_only.get(), PyLong_FromLong(i));
  put(d.get(), "shape_only", shape_only.leak());
  put(d.get(), "no_grad", string_or_none(op.no_grad));
  struct Flag {
    const char* name;
    bool value;
  };
  for (Flag f : {Flag{"random", op.random}, Flag{"trains", op.trains}, Flag{"data_dependent", op.data_dependent},
                 Flag{"creates", op.creates}, Flag{"has_grad", op.grad || op.auto_grad || (op.expand && !op.no_grad)},
                 Flag{"auto_grad", op.auto_grad}, Flag{"pointwise", op.pointwise()}, Flag{"view", op.view != nullptr},
                 Flag{"expands", op.expand != nullptr}, Flag{"counts", op.count != nullptr},
                 Flag{"variadic", op.variadic()}, Flag{"strided", op.strided}})
    put(d.get(), f.name, PyBool_FromLong(f.value));
  return d.leak();
}

PyObject* list_registry(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list = new_list();
    for (const OpDef* op : registry()) append(list.get(), describe(*op));
    return list.leak();
  });
}

const Field& require_field(const OpDef& op, std::string_view name) {
  const Field* f = find_field(op.attrs, name);
  TW_CHECK(f, type, op.name, ": there is no argument ", name);
  return *f;
}

/// Whether `rest` begins with `name=`, so that the comma before it ends an attribute.
bool begins_attr(std::string_view rest) {
  size_t word = rest.find_first_not_of(' ');
  if (word == std::string_view::npos) return true;
  size_t end = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", word);
  return end != std::string_view::npos && end > word && rest[end] == '=';
}

// "axis=(0, 2), subscripts=ij,jk->ik": other commas than those before a name belong to a value.
void parse_attrs(const OpDef& op, std::byte* attrs, std::string_view text_of) {
  size_t begin = 0;
  for (size_t i = 0; i <= text_of.size(); ++i) {
    if (i < text_of.size() && (text_of[i] != ',' || !begins_attr(text_of.substr(i + 1)))) continue;
    std::string_view part = text_of.substr(begin, i - begin);
    begin = i + 1;
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    if (part.empty()) continue;
    size_t equals = part.find('=');
    TW_CHECK(equals != std::string_view::npos, value, op.name, ": attributes must be name=value; got \"", part, "\"");
    parse_attr(require_field(op, part.substr(0, equals)), attrs, part.substr(equals + 1));
  }
}

void read_attrs(const OpDef& op, std::byte* attrs, PyObject* given) {
  if (op.attrs.size) std::memcpy(attrs, op.attrs.defaults, op.attrs.size);
  if (given == Py_None) return;
  if (PyUnicode_Check(given)) return parse_attrs(op, attrs, utf8(given));
  TW_CHECK(PyDict_Check(given), type, op.name, ": attributes must be a dictionary or text; got ",
           Py_TYPE(given)->tp_name);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(given, &at, &key, &value);)
    set_attr(require_field(op, utf8(key)), attrs, value, op.name);
}

PyObject* call_operator(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"name", "arrays", "attrs", "training", nullptr};
  const char* name = nullptr;
  PyObject *arrays = nullptr, *given = Py_None;
  int training = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO!|Op", const_cast<char**>(kNames), &name, &PyList_Type, &arrays,
                                   &given, &training))
    return nullptr;
  return guarded([&] {
    const OpDef& op = require_op(name);
    alignas(16) std::byte attrs[2048];
    read_attrs(op, attrs, given);
    std::vector<Val> held;
    std::vector<Value*> in;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arrays); ++i) {
      PyObject* o = PyList_GET_ITEM(arrays, i);
      held.push_back(o == Py_None ? Val() : require_operand(o, op.name, "arrays"));
      in.push_back(held.back().get());
    }
    ModeScope scope(modes.recording, training != 0);
    const void* bytes = op.attrs.size ? attrs : nullptr;
    OutputPointers out(op, bytes);
    invoke(op, bytes, in, out.data());
    Ref list = new_list();
    for (int k = 0; k < out.count(); ++k) append(list.get(), wrap(out[k]));
    return list.leak();
  });
}

PyMethodDef functions[] = {
    {"registry", list_registry, METH_NOARGS, "Every operator as a dictionary of what its declaration says."},
    {"call_operator", as_method(call_operator), METH_VARARGS | METH_KEYWORDS,
     "call_operator(name, arrays, attrs=None, training=False): the visible outputs as a list. attrs: a dictionary, or "
     "text as in samples."},
    {},
};

}  // namespace

void add_registry(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace twibil::python
