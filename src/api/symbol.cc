// SPDX-License-Identifier: Apache-2.0
#include "twibil/symbol.h"

#include <algorithm>

#include "api/attributes.h"
#include "api/io/symbol_json.h"
#include "ir/compose.h"
#include "ir/registry.h"
#include "runtime/lower.h"

namespace twibil {

namespace {

// layers: operator names (what C++'s syntax means on symbols)
struct Known {
  const OpDef &add = require_op("add"), &subtract = require_op("subtract"), &multiply = require_op("multiply"),
              &divide = require_op("true_divide"), &negative = require_op("negative"), &less = require_op("less"),
              &greater = require_op("greater");
};
const Known& known() {
  static const Known k;
  return k;
}

Symbol one(SymbolNodePtr n) { return Symbol(std::vector<SymbolRef>{{std::move(n), 0}}); }

/// The only output of a symbol that stands for one array; no output for an absent one.
SymbolRef ref_of(const Symbol& s, std::string_view who) {
  if (!s) return {};
  TW_CHECK(s.size() == 1, value, who, ": an input must be one output; the symbol given has ", s.size(),
           ". Choose one by its index");
  return s.outputs()[0];
}
std::vector<SymbolRef> refs_of(const std::vector<Symbol>& symbols, std::string_view who) {
  std::vector<SymbolRef> refs;
  for (const Symbol& s : symbols) refs.push_back(ref_of(s, who));
  return refs;
}

std::vector<std::string> variable_names(const Symbol& s, bool arguments, bool auxiliary) {
  std::vector<SymbolNode*> nodes = reachable(s.outputs());
  std::vector<std::string> names;
  for (SymbolNode* v : variables_of(s.outputs()))
    if (is_auxiliary(nodes, v) ? auxiliary : arguments) names.push_back(v->name);
  return names;
}

SymbolNode& only_node(const Symbol& s, const char* who) {
  TW_CHECK(s, value, who, ": the symbol is empty");
  for (const SymbolRef& r : s.outputs())
    TW_CHECK(r.node == s.outputs()[0].node, value, who,
             ": the outputs belong to several nodes; choose one by its index");
  return *s.outputs()[0].node;
}

[[noreturn]] void no_such_name(const char* what, const std::string& name, const std::vector<std::string>& names) {
  throw_error(ErrorKind::value, text("the symbol has no ", what, " ", name,
                                     did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end()))));
}

}  // namespace

Symbol::Symbol(double number) : Symbol(one(make_constant(Val(number)))) {}
Symbol::Symbol(int number) : Symbol(one(make_constant(Val(number)))) {}

Symbol Symbol::operator[](size_t output) const {
  TW_CHECK(output < size(), index, "the symbol has ", size(), size() == 1 ? " output" : " outputs", "; got index ",
           output);
  return Symbol(std::vector<SymbolRef>{outputs_[output]});
}
Symbol Symbol::operator[](const std::string& name) const {
  std::vector<std::string> names = list_outputs();
  auto found = std::ranges::find(names, name);
  if (found == names.end()) no_such_name("output", name, names);
  TW_CHECK(std::ranges::count(names, name) == 1, value, "the symbol has several outputs called ", name,
           "; choose one by its index");
  return (*this)[static_cast<size_t>(found - names.begin())];
}
std::string Symbol::name() const { return only_node(*this, "Symbol::name").name; }
Symbol Symbol::named(const std::string& name) const {
  SymbolNode& n = only_node(*this, "Symbol::named");
  if (n.kind == SymbolNode::Kind::call)
    for (size_t i = 0; i < n.in.size() && !n.op->variadic(); ++i)
      if (n.in[i] && n.in[i].node->kind == SymbolNode::Kind::variable &&
          n.in[i].node->name == text(n.name, "_", n.op->in[i].name))
        n.in[i].node->name = text(name, "_", n.op->in[i].name);
  n.name = name;
  return *this;
}

std::vector<std::string> Symbol::list_arguments() const { return variable_names(*this, true, false); }
std::vector<std::string> Symbol::list_auxiliary_states() const { return variable_names(*this, false, true); }
std::vector<std::string> Symbol::list_inputs() const { return variable_names(*this, true, true); }
std::vector<std::string> Symbol::list_outputs() const {
  std::vector<std::string> names;
  for (const SymbolRef& r : outputs_) names.push_back(output_name(r));
  return names;
}
Symbol Symbol::get_internals() const { return Symbol(internals_of(outputs_)); }
Symbol Symbol::get_children() const {
  std::vector<SymbolRef> children;
  for (const SymbolRef& h : outputs_)
    for (const SymbolRef& r : h.node->in)
      if (r) children.push_back(r);
  return Symbol(std::move(children));
}

std::string Symbol::attr(const std::string& key) const {
  const SymbolNode& n = only_node(*this, "Symbol::attr");
  auto found = n.marks.find(key);
  return found == n.marks.end() ? std::string() : found->second;
}
void Symbol::set_attr(const std::string& key, const std::string& value) const {
  only_node(*this, "Symbol::set_attr").marks[key] = value;
}

Symbol::Inferred Symbol::infer(const std::map<std::string, Sig>& known, bool partial) const {
  std::vector<SymbolNode*> nodes = reachable(outputs_), variables = variables_of(outputs_);
  std::unordered_map<const SymbolNode*, Sig> given;
  for (auto& [name, sig] : known) {
    auto found = std::ranges::find(variables, name, &SymbolNode::name);
    if (found == variables.end()) no_such_name("variable", name, list_inputs());
    given[*found] = sig;
  }
  InferredSigs sigs = infer_sigs(outputs_, given, false, partial);
  Inferred result;
  for (SymbolNode* v : variables)
    (is_auxiliary(nodes, v) ? result.auxiliary : result.arguments).push_back(sigs.nodes[v][0]);
  for (const SymbolRef& h : outputs_) result.outputs.push_back(sigs.of(h));
  return result;
}
Symbol::Inferred Symbol::infer_shape(const std::map<std::string, Shape>& known, bool partial) const {
  std::map<std::string, Sig> sigs;
  for (auto& [name, shape] : known) sigs[name] = {shape, DType::float32};
  return infer(sigs, partial);
}

Symbol Symbol::grad(const std::vector<std::string>& wrt, const std::vector<Symbol>& head_grads) const {
  auto owner = owners_of(outputs_);
  std::vector<SymbolNode*> variables = variables_of(outputs_);
  std::vector<Symbol> refs;
  for (const std::string& name : wrt) {
    auto found = std::ranges::find(variables, name, &SymbolNode::name);
    if (found == variables.end()) no_such_name("variable", name, list_inputs());
    refs.push_back(one(owner[*found]));
  }
  return grad(refs, head_grads);
}
Symbol Symbol::grad(const std::vector<Symbol>& wrt, const std::vector<Symbol>& head_grads) const {
  TW_CHECK(head_grads.size() <= size(), value, "Symbol::grad: the symbol has ", size(), " outputs; got ",
           head_grads.size(), " head gradients");
  std::vector<SymbolRef> of = refs_of(wrt, "Symbol::grad");
  for (const SymbolRef& r : of) TW_CHECK(r, value, "Symbol::grad: wrt holds an empty symbol");
  return Symbol(gradient(outputs_, of, refs_of(head_grads, "Symbol::grad")));
}

Symbol Symbol::operator()(const std::vector<NamedSymbol>& variables) const {
  std::vector<std::string> names = list_inputs();
  std::map<std::string, SymbolRef> by;
  for (const NamedSymbol& v : variables) {
    if (std::ranges::find(names, v.name) == names.end()) no_such_name("variable", v.name, names);
    by[v.name] = ref_of(v.symbol, "composition");
    TW_CHECK(by[v.name], value, "composition: the symbol given for ", v.name, " is empty");
  }
  return Symbol(replace_variables(outputs_, by));
}

Variable::Variable(const std::string& name, const Options& options) {
  Hint hint{options.shape.has_value(), options.shape.value_or(Shape()), options.dtype};
  for (int64_t d : hint.shape)
    TW_CHECK(d >= -1, value, "Variable ", name, ": sizes must be 0 or more, or -1 where unknown; got ", d);
  TW_CHECK(!name.empty(), value, "Variable: the name must not be empty");
  static_cast<Symbol&>(*this) = one(make_variable(name, hint));
}
Constant::Constant(const Array& array) {
  TW_CHECK(array, value, "Constant: the array is empty");
  bool number = array.value()->has(kWeak);
  static_cast<Symbol&>(*this) = one(make_constant(number ? array.value() : array.copy().value()));
}
Group::Group(const std::vector<Symbol>& symbols) {
  std::vector<SymbolRef> all;
  for (const Symbol& s : symbols) {
    TW_CHECK(s, value, "Group: one of the symbols is empty");
    all.insert(all.end(), s.outputs().begin(), s.outputs().end());
  }
  TW_CHECK(!all.empty(), value, "Group: at least one symbol is needed");
  static_cast<Symbol&>(*this) = Symbol(std::move(all));
}

Symbol operator+(const Symbol& a, const Symbol& b) { return compose(known().add, {a, b}); }
Symbol operator-(const Symbol& a, const Symbol& b) { return compose(known().subtract, {a, b}); }
Symbol operator*(const Symbol& a, const Symbol& b) { return compose(known().multiply, {a, b}); }
Symbol operator/(const Symbol& a, const Symbol& b) { return compose(known().divide, {a, b}); }
Symbol operator-(const Symbol& a) { return compose(known().negative, {a}); }
Symbol operator<(const Symbol& a, const Symbol& b) { return compose(known().less, {a, b}); }
Symbol operator>(const Symbol& a, const Symbol& b) { return compose(known().greater, {a, b}); }

std::string to_string(const Symbol& s) {
  std::string lines;
  for (SymbolNode* n : reachable(s.outputs())) {
    lines += text(n->name, " = ", n->op_name(), "(");
    for (size_t i = 0; i < n->in.size(); ++i)
      lines += text(i ? ", " : "", n->in[i] ? output_name(n->in[i]) : std::string("-"));
    if (n->kind == SymbolNode::Kind::call)
      for (const Field& f : n->op->attrs.span()) {
        std::string now = print_attr(f, n->attrs.data());
        if (now != print_attr(f, n->op->attrs.defaults)) lines += text(n->in.empty() ? "" : ", ", f.name, "=", now);
      }
    lines += ")\n";
  }
  return lines;
}

void save_symbol(const std::string& path, const Symbol& s) {
  TW_CHECK(s, value, "save_symbol: the symbol is empty");
  io::write_symbol(path, s.outputs());
}
Symbol load_symbol(const std::string& path) { return Symbol(io::read_symbol(path)); }

Symbol compose(const OpDef& op, const std::vector<Symbol>& inputs, std::initializer_list<NamedAttribute> attributes,
               const std::string& name) {
  AttrBytes attrs = pack_attributes(op, attributes);
  std::vector<SymbolRef> in;
  if (op.variadic() && inputs.size() == 1) in = inputs[0].outputs();  // all outputs of one symbol
  else in = refs_of(inputs, op.name);
  SymbolNodePtr n = make_call(op, attrs.data(), {}, name);
  complete_inputs(*n, std::move(in));
  std::vector<SymbolRef> outputs;
  for (int k = 0; k < n->visible_outputs(); ++k) outputs.push_back({n, k});
  return Symbol(std::move(outputs));
}
Symbol compose(const char* op, const std::vector<Symbol>& inputs, std::initializer_list<NamedAttribute> attributes,
               const std::string& name) {
  return compose(require_op(op), inputs, attributes, name);
}

}  // namespace twibil
