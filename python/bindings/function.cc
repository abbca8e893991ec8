// SPDX-License-Identifier: Apache-2.0
// Calls of operators from Python: arguments are sorted into arrays and attributes by the operator's own tables, without
// dictionaries. Positional arguments are first the arrays, then the attributes, as declared.
#include "function.h"

#include <bit>
#include <string>
#include <vector>

#include "convert.h"
#include "ir/apply.h"
#include "ir/registry.h"
#include "runtime/fast_path.h"
#include "symbol.h"

namespace twibil::python {

namespace {

struct Function {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OpDef* op;
  const FastPath* fast;
  const char* name;                  // "np.sum"
  std::vector<PyObject*>* keywords;  // interned: inputs, then attributes
  uint64_t required;                 // bit k: attribute k has no default
  Py_ssize_t arrays_only;            // this many arrays (1 or 2) and nothing else are a call; 0: of another kind
  bool takes_list;                   // see call_with_list
  bool symbolic;                     // of mx.sym: makes a symbol in any case
  bool graph_form;                   // with the words of graph files: of mx.sym, not of mx.sym.np
};

const char* short_name(const char* name) {
  const char* last = name;
  for (const char* c = name; *c; ++c)
    if (*c == '.') last = c + 1;
  return last;
}

PyObject* interned(const char* s) { return checked(PyUnicode_InternFromString(s)); }

struct Universal {  // keywords that every function takes
  PyObject *out = interned("out"), *ctx = interned("ctx"), *device = interned("device"), *order = interned("order"),
           *name = interned("name"), *where = interned("where");
};
const Universal& universal() {
  static const Universal u;
  return u;
}

constexpr int kFewArrays = 16;  // kept in place; every operator with named inputs has fewer
constexpr size_t kAttrRoom = 2048;
constexpr size_t kListRoom = 256;  // for attributes that are a list of integers and little more

/// The arrays of a call. Those that the caller holds for its length are borrowed; others are counted.
class Operands {
 public:
  ~Operands() {
    for (int i = 0; counted_ && i < std::min(count_, kFewArrays); ++i)
      if (counted_ >> i & 1) release(few_[i]);
  }
  int count() const { return count_; }
  bool has(int k) const { return k < count_ && (k < kFewArrays ? few_[k] != nullptr : true); }
  std::span<Value* const> span() {
    if (count_ <= kFewArrays) return {few_, static_cast<size_t>(count_)};
    many_.assign(few_, few_ + kFewArrays);
    for (const Val& v : held_) many_.push_back(v.get());
    return many_;
  }
  void skip_to(int k) {
    while (count_ < k) few_[count_++] = nullptr;
  }
  void borrow(int k, Value* v) {
    skip_to(k + 1);
    few_[k] = v;
  }
  void take(int k, Val v) {
    skip_to(k + 1);
    few_[k] = v.leak();
    counted_ |= 1u << k;
  }
  void append(Val v) {
    if (count_ < kFewArrays) return take(count_, std::move(v));
    held_.push_back(std::move(v));
    ++count_;
  }

 private:
  int count_ = 0;
  uint32_t counted_ = 0;  // bit i: few_[i] is counted
  Value* few_[kFewArrays];
  std::vector<Val> held_;     // those beyond the few
  std::vector<Value*> many_;  // all of them, when they are more
};

/// The arguments of one call while they are sorted.
class Arguments {
 public:
  Arguments(const Function& f) : f_(f), op_(*f.op), inputs_(op_.inputs()) {
    if (op_.attrs.size) std::memcpy(attrs_, op_.attrs.defaults, op_.attrs.size);
  }

  void positional(PyObject* const* args, Py_ssize_t n) {
    Py_ssize_t i = 0;
    if (op_.variadic()) {
      for (int k = 0; k < inputs_ - 1 && i < n; ++k) set_input(k, args[i++]);
      if (i < n && (PyList_Check(args[i]) || PyTuple_Check(args[i]))) {
        spread(args[i++]);
      } else {
        while (i < n && (is_array(args[i]) || is_symbol(args[i]))) append(args[i++]);
      }
    } else {
      for (int k = 0; k < inputs_ && i < n; ++k, ++i) {
        if (Py_IS_TYPE(args[i], &ArrayType)) arrays_.borrow(k, value_of(args[i]));
        else set_input(k, args[i]);
      }
    }
    int k = 0;
    for (; k < op_.attrs.count && i < n; ++k) {
      if (op_.attrs.fields[k].keyword_only) break;
      if (n - i > 1 && takes_the_rest(k) && PyLong_Check(args[i])) {  // x.reshape(2, 3)
        Ref rest(checked(PyTuple_New(n - i)));
        for (Py_ssize_t j = i; j < n; ++j) PyTuple_SET_ITEM(rest.get(), j - i, (Py_INCREF(args[j]), args[j]));
        set_field(k, rest.get());
        i = n;
        continue;
      }
      set_field(k, args[i++]);
    }
    if (i < n && i == n - 1 && (is_array(args[i]) || args[i] == Py_None) && !given_) set_out(args[i++]);
    TW_CHECK(i == n, type, op_.name, ": takes at most ", static_cast<int64_t>(i), " positional arguments; got ",
             static_cast<int64_t>(n));
  }

  void keyword(PyObject* key, PyObject* value) {
    int which = find(key);
    if (which >= inputs_) return set_field(which - inputs_, value);
    if (which >= 0) {
      if (op_.in[which].kind == SlotKind::variadic) return spread(value);
      return set_input(which, value);
    }
    const Universal& u = universal();
    if (key == u.out || equal(key, u.out)) return set_out(value);
    if (key == u.ctx || key == u.device || equal(key, u.ctx) || equal(key, u.device)) return check_context(value);
    if (key == u.name || equal(key, u.name)) return;
    if (key == u.order || equal(key, u.order)) return check_order(value);
    if ((key == u.where || equal(key, u.where)) && (value == Py_True || value == Py_None)) return;
    unknown(key);
  }

  PyObject* run() {
    if (uint64_t missing = f_.required & ~set_) {
      const Field& field = op_.attrs.fields[std::countr_zero(missing)];
      throw_error(ErrorKind::type, text(op_.name, ": argument ", field.name, " is missing. ", field.doc));
    }
    TW_CHECK(!given_ || !op_.count || op_.visible_outputs(attrs_) == 1, type, op_.name,
             ": takes no argument out where it has several results");
    return call_op(op_, op_.attrs.size ? attrs_ : nullptr, arrays_.span(), given_ ? outs_ : nullptr);
  }

 private:
  static bool equal(PyObject* a, PyObject* b) { return PyUnicode_Compare(a, b) == 0; }

  /// Whether attribute k is a list and the last one that may be given by position.
  bool takes_the_rest(int k) const {
    AttrKind kind = op_.attrs.fields[k].kind;
    return (kind == AttrKind::int_list || kind == AttrKind::maybe_int_list) &&
           (k + 1 == op_.attrs.count || op_.attrs.fields[k + 1].keyword_only);
  }

  int find(PyObject* key) const {
    const auto& known = *f_.keywords;
    for (size_t i = 0; i < known.size(); ++i)
      if (known[i] == key) return static_cast<int>(i);
    std::string_view s = utf8(key);  // not interned, or another spelling
    for (int i = 0; i < inputs_; ++i)
      if (s == op_.in[i].name || is_among(op_.in[i].renames, s)) return i;
    if (const Field* field = find_field(op_.attrs, s)) return inputs_ + static_cast<int>(field - op_.attrs.fields);
    static constexpr std::string_view kFirst[] = {"x", "a", "data", "array",
                                                  "object"};  // what callers call the first array
    for (std::string_view word : kFirst)
      if (inputs_ > 0 && word == s && op_.in[0].kind != SlotKind::variadic) return 0;
    return -1;
  }
  [[noreturn]] void unknown(PyObject* key) const {
    std::vector<std::string_view> known;
    for (int i = 0; i < inputs_; ++i) known.push_back(op_.in[i].name);
    for (const Field& field : op_.attrs.span()) known.push_back(field.name);
    std::string_view s = utf8(key);
    throw_error(ErrorKind::type, text(op_.name, ": there is no argument ", s, did_you_mean(s, known)));
  }

  void set_input(int k, PyObject* o) {
    TW_CHECK(!arrays_.has(k), type, op_.name, ": argument ", op_.in[k].name, " is given twice");
    if (is_array(o)) {
      arrays_.borrow(k, value_of(o));
    } else if (o == Py_None) {
      TW_CHECK(op_.in[k].kind == SlotKind::optional, type, op_.name, ": argument ", op_.in[k].name,
               " must be an array; got None");
      arrays_.skip_to(k + 1);
    } else {
      if (is_symbol(o)) throw SymbolArgument{};
      arrays_.take(k, require_operand(o, op_.name, op_.in[k].name));
    }
  }
  void append(PyObject* o) {
    arrays_.skip_to(inputs_ - 1);
    if (is_symbol(o)) throw SymbolArgument{};
    arrays_.append(require_operand(o, op_.name, op_.in[inputs_ - 1].name));
  }
  void spread(PyObject* sequence) {
    if (is_symbol(sequence)) throw SymbolArgument{};
    if (is_array(sequence) || !(PyList_Check(sequence) || PyTuple_Check(sequence))) {
      Ref list(checked(PySequence_List(sequence)));
      return spread(list.get());
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(sequence, i);
      if (is_array(item)) {
        arrays_.skip_to(inputs_ - 1);
        arrays_.append(Val::share(value_of(item)));
        continue;
      }
      Ref held(Py_NewRef(item));  // its conversion may run code that changes the list
      append(held.get());
    }
  }
  void set_field(int k, PyObject* o) {
    TW_CHECK(!(set_ >> k & 1), type, op_.name, ": argument ", op_.attrs.fields[k].name, " is given twice");
    set_ |= uint64_t{1} << k;
    set_attr(op_.attrs.fields[k], attrs_, o, op_.name);
  }
  void set_out(PyObject* o) {
    if (o == Py_None) return;
    std::fill(std::begin(outs_), std::end(outs_), nullptr);
    if (is_array(o)) {
      outs_[0] = value_of(o);
      given_ = true;
      return;
    }
    if (PyList_Check(o)) {  // what converts the other arguments may run Python code that empties a list
      out_list_ = Ref(checked(PyList_AsTuple(o)));
      o = out_list_.get();
    }
    TW_CHECK(PyTuple_Check(o), type, op_.name, ": out must be an array or a tuple of arrays; got ",
             Py_TYPE(o)->tp_name);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    TW_CHECK(n <= op_.visible_outputs(), value, op_.name, ": out must have at most ", op_.visible_outputs(),
             " arrays; got ", static_cast<int64_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      TW_CHECK(item == Py_None || is_array(item), type, op_.name, ": out must be arrays; got ", Py_TYPE(item)->tp_name);
      outs_[i] = item == Py_None ? nullptr : value_of(item);
      given_ |= outs_[i] != nullptr;
    }
  }
  void check_order(PyObject* o) const {
    if (o == Py_None) return;
    std::string_view s = PyUnicode_Check(o) ? utf8(o) : "?";
    TW_CHECK(s == "C" || s == "K" || s == "A", value, op_.name, ": order must be \"C\"; got \"", s, "\"");
  }

  const Function& f_;
  const OpDef& op_;
  int inputs_;
  bool given_ = false;
  uint64_t set_ = 0;  // bit k: attribute k is given
  Operands arrays_;
  Value* outs_[6];
  Ref out_list_;  // holds the outputs of a list
  alignas(16) std::byte attrs_[kAttrRoom];
};

/// x.reshape(2, 3): one array and integers for the list that is the operator's first attribute. Null, and no exception:
/// they are something else.
PyObject* call_with_list(const Function& f, PyObject* const* args, Py_ssize_t n) {
  const AttrSchema& schema = f.op->attrs;
  alignas(16) std::byte attrs[kListRoom];
  constexpr size_t kWord = alignof(IntList);  // the list stands first; what follows it are a few words at most
  for (size_t i = sizeof(IntList); i < schema.size; i += kWord)
    std::memcpy(attrs + i, static_cast<const std::byte*>(schema.defaults) + i, kWord);
  auto& list = attr_at<IntList>(attrs, schema.fields[0]);
  list.count = static_cast<int32_t>(n - 1);
  for (Py_ssize_t i = 1; i < n; ++i) {
    int overflow = 0;
    if (!PyLong_CheckExact(args[i])) return nullptr;
    list.items[i - 1] = PyLong_AsLongLongAndOverflow(args[i], &overflow);
    if (overflow) return nullptr;
  }
  Value *in[1] = {value_of(args[0])}, *y;
  invoke(*f.op, attrs, in, &y);
  return wrap(y);
}

PyObject* call_function(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  const Function& f = *reinterpret_cast<Function*>(self);
  Py_ssize_t n = PyVectorcall_NARGS(flags);
  return guarded([&] {
    if (f.symbolic) return call_symbolically(*f.op, short_name(f.name), args, n, names, f.graph_form);
    if (!names && n && n == f.arrays_only && Py_IS_TYPE(args[0], &ArrayType)) {  // nothing to sort
      Value* in[2] = {value_of(args[0]), nullptr};
      if (n == 1) {
        if (Value* y = fast_unary(*f.fast, in[0])) return wrap_new(y);
        return call_op(*f.op, f.op->attrs.defaults, {in, 1}, nullptr);
      }
      if (Py_IS_TYPE(args[1], &ArrayType)) {
        in[1] = value_of(args[1]);
        if (Value* y = fast_binary(*f.fast, in[0], in[1])) return wrap_new(y);
        return call_op(*f.op, f.op->attrs.defaults, in, nullptr);
      }
    }
    if (!names && f.takes_list && n > 1 && n <= IntList::capacity && Py_IS_TYPE(args[0], &ArrayType))
      if (PyObject* y = call_with_list(f, args, n)) return y;
    try {
      Arguments arguments(f);
      arguments.positional(args, n);
      for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
        arguments.keyword(PyTuple_GET_ITEM(names, i), args[n + i]);
      return arguments.run();
    } catch (const SymbolArgument&) {
      return call_symbolically(*f.op, short_name(f.name), args, n, names);
    }
  });
}

PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance) return Py_INCREF(self), self;
  return PyMethod_New(self, instance);
}

PyObject* repr(PyObject* self) {
  const Function& f = *reinterpret_cast<Function*>(self);
  return PyUnicode_FromFormat("<function %s>", f.name);
}

PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(short_name(reinterpret_cast<Function*>(self)->name));
}

std::string document(const OpDef& op) {
  std::string s = text(op.doc, "\n\nParameters\n----------\n");
  for (int i = 0; i < op.inputs(); ++i) {
    const Slot& slot = op.in[i];
    s += text(slot.name,
              slot.kind == SlotKind::optional   ? " : array, optional"
              : slot.kind == SlotKind::variadic ? " : arrays"
                                                : " : array",
              "\n");
    if (slot.doc) s += text("    ", slot.doc, "\n");
  }
  for (const Field& field : op.attrs.span()) {
    s += text(field.name, field.required ? " : required" : text(" : default ", print_attr(field, op.attrs.defaults)),
              "\n    ", field.doc);
    if (field.choices) s += text(" One of ", field.choices, ".");
    s += "\n";
  }
  if (op.no_grad && !op.expand) s += text("\nHas no gradient: ", op.no_grad, ".\n");
  return s;
}
PyObject* get_doc(PyObject* self, void*) {
  return PyUnicode_FromString(document(*reinterpret_cast<Function*>(self)->op).c_str());
}

// inspect.signature wants a Signature object on types of one's own, so it is made when somebody asks.
PyObject* get_signature(PyObject* self, void*) {
  return guarded([&] {
    const OpDef& op = *reinterpret_cast<Function*>(self)->op;
    Ref inspect(checked(PyImport_ImportModule("inspect")));
    Ref parameter(checked(PyObject_GetAttrString(inspect.get(), "Parameter")));
    Ref list(checked(PyList_New(0)));
    bool optional = false, only = false;
    auto add = [&](const char* name, const char* kind, PyObject* fallback) {
      Ref how(checked(PyObject_GetAttrString(parameter.get(), kind)));
      Ref args(checked(Py_BuildValue("(sO)", name, how.get()))), keywords(checked(PyDict_New()));
      if (fallback) checked(PyDict_SetItemString(keywords.get(), "default", fallback));
      Ref p(checked(PyObject_Call(parameter.get(), args.get(), keywords.get())));
      checked(PyList_Append(list.get(), p.get()));
      optional |= fallback != nullptr;
    };
    for (int i = 0; i < op.inputs(); ++i)
      add(op.in[i].name, "POSITIONAL_OR_KEYWORD", op.in[i].kind == SlotKind::optional ? Py_None : nullptr);
    for (const Field& field : op.attrs.span()) {
      Ref fallback(field.required ? nullptr : checked(attr_object(field, op.attrs.defaults)));
      only |= field.keyword_only || (field.required && optional);  // none by position after it
      add(field.name, only ? "KEYWORD_ONLY" : "POSITIONAL_OR_KEYWORD", fallback.get());
    }
    add("out", "KEYWORD_ONLY", Py_None);
    return PyObject_CallMethod(inspect.get(), "Signature", "O", list.get());
  });
}

PyGetSetDef properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {},
};

}  // namespace

PyTypeObject FunctionType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "twibil.function",
    .tp_basicsize = sizeof(Function),
    .tp_vectorcall_offset = offsetof(Function, vectorcall),
    .tp_repr = repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_getset = properties,
    .tp_descr_get = bind,
};

PyObject* make_function(const OpDef& op, const char* name) {
  Function* f = PyObject_New(Function, &FunctionType);
  checked(reinterpret_cast<PyObject*>(f));
  f->vectorcall = call_function;
  f->op = &op;
  f->fast = new FastPath(op);
  f->name = name;
  f->keywords = new std::vector<PyObject*>;
  for (int i = 0; i < op.inputs(); ++i) f->keywords->push_back(interned(op.in[i].name));
  for (const Field& field : op.attrs.span()) f->keywords->push_back(interned(field.name));
  f->symbolic = std::string_view(name).starts_with("sym.");
  f->graph_form = f->symbolic && !std::string_view(name).starts_with("sym.np");
  f->required = 0;
  for (int k = 0; k < op.attrs.count; ++k) f->required |= uint64_t{op.attrs.fields[k].required} << k;
  const Field* first = op.attrs.fields;
  f->takes_list = op.inputs() == 1 && !op.variadic() && op.visible_outputs() == 1 && !op.count && op.attrs.count &&
                  op.attrs.size <= kListRoom && f->required <= 1 && first->kind == AttrKind::int_list &&
                  first->offset == 0 && (op.attrs.count == 1 || first[1].keyword_only);
  f->arrays_only = f->required || op.variadic() || op.inputs() > 2 ? 0 : op.inputs();
  return reinterpret_cast<PyObject*>(f);
}

PyObject* call_op(const OpDef& op, const void* attrs, std::span<Value* const> in, Value* const* given) {
  if (op.visible_outputs() == 1 && !op.count) {
    Value* y[6];
    invoke(op, attrs, in, y, given);
    return wrap(y[0]);
  }
  OutputPointers out(op, attrs);
  invoke(op, attrs, in, out.data(), given);
  if (op.count && out.count() == 1) return wrap(out[0]);
  Ref list(checked(PyList_New(out.count())));
  for (int k = 0; k < out.count(); ++k) PyList_SET_ITEM(list.get(), k, wrap(out[k]));
  return list.leak();
}

void prepare_function_type() { checked(PyType_Ready(&FunctionType)); }

}  // namespace twibil::python
