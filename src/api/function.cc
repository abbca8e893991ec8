// SPDX-License-Identifier: Apache-2.0
// Compiled symbols and bound ones.
#include "api/function.h"

#include <algorithm>
#include <cstdio>

#include "api/grad_req.h"
#include "ir/apply.h"
#include "ir/compose.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "runtime/backward.h"

namespace twibil {

namespace {

size_t place_of(const std::vector<std::string>& names, const std::string& name, const char* who) {
  auto found = std::ranges::find(names, name);
  TW_CHECK(found != names.end(), type, who, " has no argument ", name,
           did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end())));
  return static_cast<size_t>(found - names.begin());
}

/// Arrays in the order of the names, each exactly once.
std::vector<Array> in_order(const std::vector<std::string>& names, const std::vector<NamedArray>& given,
                            const char* who) {
  std::vector<Array> arrays(names.size());
  for (const NamedArray& n : given) {
    Array& place = arrays[place_of(names, n.name, who)];
    TW_CHECK(!place, type, who, ": argument ", n.name, " is given twice");
    TW_CHECK(n.array, value, who, ": the array given for ", n.name, " is empty");
    place = n.array;
  }
  for (size_t i = 0; i < names.size(); ++i) TW_CHECK(arrays[i], type, who, ": argument ", names[i], " is missing");
  return arrays;
}

/// A C++ number is an array without dimensions here.
Val whole_array(const Array& a) {
  if (!a.value()->has(kWeak)) return a.value();
  return Array::full({}, a.item(), default_dtype(scalar_of(*a.value()))).value();
}

void append_bytes(std::string& to, int64_t bytes) {
  char number[32];
  if (bytes < 10000) std::snprintf(number, sizeof number, "%lld B", static_cast<long long>(bytes));
  else std::snprintf(number, sizeof number, "%.2f MiB", static_cast<double>(bytes) / (1 << 20));
  to += number;
}

std::string describe(const CompiledGraph::Compiled& c) {
  const Executable& e = *c.executable;
  const passes::MemoryPlan& plan = e.plan();
  std::string s = text("the graph before the passes\n", c.report.before, "\nthe passes\n");
  char line[160];
  std::snprintf(line, sizeof line, "  %-16s %8.3f ms\n", "lower", c.lower_seconds * 1e3);
  s += line;
  for (const passes::PassReport& p : c.report.passes) {
    std::snprintf(line, sizeof line, "  %-16s %8.3f ms  %d -> %d nodes\n", p.name.c_str(), p.seconds * 1e3,
                  p.nodes_before, p.nodes_after);
    s += line;
  }
  s += text("\nthe graph after them\n", c.report.after, "\n", e.steps(), " kernels; planned ");
  append_bytes(s, plan.planned_bytes());
  s += ", lower bound ";
  append_bytes(s, plan.lower_bound_bytes());
  s += "\n  arguments ";
  append_bytes(s, plan.argument_bytes);
  s += ", outputs ";
  append_bytes(s, plan.output_bytes);
  s += ", arena ";
  append_bytes(s, plan.arena_bytes);
  s += "\n";
  for (const passes::PlannedBuffer& b : plan.buffers) {
    s += text("  %", b.value.node, ": ");
    append_bytes(s, b.bytes);
    s += text(" at ", b.offset, ", from node ", b.first, " to ", b.last, "\n");
  }
  return s;
}

}  // namespace

struct Function::State {
  std::shared_ptr<CompiledGraph> graph;
  std::vector<std::string> names;  // of the variables; captured arrays follow them
  std::mutex mutex;
  std::vector<Sig> last;  // signatures of the last call
  bool training = false;

  std::vector<Array> call(const std::vector<Array>& arrays);
  CompiledGraph::Compiled const& plan(std::shared_ptr<const CompiledGraph::Compiled>& holder);
};

std::vector<Array> Function::State::call(const std::vector<Array>& arrays) {
  TW_CHECK(arrays.size() == names.size(), type, "the compiled function takes ", names.size(), " arrays; got ",
           arrays.size());
  std::vector<Val> values;
  for (size_t i = 0; i < arrays.size(); ++i) {
    TW_CHECK(arrays[i], value, "the compiled function: the array given for ", names[i], " is empty");
    values.push_back(whole_array(arrays[i]));
  }
  for (size_t i = values.size(); i < graph->inputs().size(); ++i) values.push_back(graph->inputs()[i]->value);
  std::vector<Array> results;
  for (Val& y : graph->call(values)) results.emplace_back(std::move(y));
  std::vector<Sig> sigs;
  for (const Val& v : values) sigs.push_back({Shape(v->shape()), v->dtype()});
  std::lock_guard lock(mutex);
  last = std::move(sigs);
  training = modes.training;
  return results;
}

const CompiledGraph::Compiled& Function::State::plan(std::shared_ptr<const CompiledGraph::Compiled>& holder) {
  std::vector<Sig> sigs;
  bool train;
  {
    std::lock_guard lock(mutex);
    sigs = last, train = training;
  }
  TW_CHECK(!graph->depends_on_data(), runtime,
           "the function has no plan: shapes in it depend on values, so its operators run one after the other");
  TW_CHECK(sigs.size() == graph->inputs().size(), runtime,
           "the function was not called yet, so its shapes are not known; call it first");
  holder = graph->compile(sigs, train, {}, true);
  return *holder;
}

Function FunctionMaker::make(std::shared_ptr<CompiledGraph> graph, std::vector<std::string> names) {
  Function f;
  f.state_ = std::make_shared<Function::State>();
  f.state_->graph = std::move(graph);
  f.state_->names = std::move(names);
  return f;
}

Array Function::single(std::vector<Array> results) {
  TW_CHECK(results.size() == 1, value, "the compiled function has ", results.size(), " results; call all()");
  return std::move(results[0]);
}
std::vector<Array> Function::all(const std::vector<Array>& arrays) const {
  TW_CHECK(state_, value, "Function: this one is empty; make it with compile()");
  return state_->call(arrays);
}
std::vector<Array> Function::all(const std::vector<NamedArray>& arrays) const {
  return all(in_order(arguments(), arrays, "the compiled function"));
}
Array Function::operator()(const std::vector<NamedArray>& arrays) const { return single(all(arrays)); }
const std::vector<std::string>& Function::arguments() const {
  TW_CHECK(state_, value, "Function: this one is empty; make it with compile()");
  return state_->names;
}

int64_t Function::planned_bytes() const {
  std::shared_ptr<const CompiledGraph::Compiled> c;
  return (arguments(), state_->plan(c)).executable->plan().planned_bytes();
}
int64_t Function::lower_bound_bytes() const {
  std::shared_ptr<const CompiledGraph::Compiled> c;
  return (arguments(), state_->plan(c)).executable->plan().lower_bound_bytes();
}
passes::MemoryPlan Function::plan() const {
  std::shared_ptr<const CompiledGraph::Compiled> c;
  return (arguments(), state_->plan(c)).executable->plan();
}
int Function::num_kernels() const {
  std::shared_ptr<const CompiledGraph::Compiled> c;
  return (arguments(), state_->plan(c)).executable->steps();
}
std::string Function::explain() const {
  std::shared_ptr<const CompiledGraph::Compiled> c;
  return describe((arguments(), state_->plan(c)));
}
int Function::num_compilations() const { return arguments(), state_->graph->compilations(); }

Function compile(const Symbol& symbol, const CompileSettings& settings) {
  TW_CHECK(symbol, value, "compile: the symbol is empty");
  auto owner = owners_of(symbol.outputs());
  std::vector<SymbolNodePtr> inputs;
  std::vector<std::string> names;
  for (SymbolNode* v : variables_of(symbol.outputs())) {
    TW_CHECK(std::ranges::find(names, v->name) == names.end(), value, "compile: two variables are called ", v->name,
             "; give them different names");
    names.push_back(v->name);
    inputs.push_back(owner[v]);
  }
  CompileOptions options{settings.without, std::vector<bool>(inputs.size())};
  for (const std::string& d : settings.donate) options.donate[place_of(names, d, "compile: donate: the symbol")] = true;
  options.fixed.resize(inputs.size());
  for (const std::string& f : settings.fixed) options.fixed[place_of(names, f, "compile: fixed: the symbol")] = true;
  for (SymbolNode* n : reachable(symbol.outputs()))
    if (n->kind == SymbolNode::Kind::captured) inputs.push_back(owner[n]);
  options.donate.resize(inputs.size());
  options.fixed.resize(inputs.size());
  options.exact = settings.exact;
  options.autotune = settings.autotune;
  return FunctionMaker::make(std::make_shared<CompiledGraph>(symbol.outputs(), std::vector<SymbolRef>(),
                                                             std::move(inputs), std::move(options)),
                             std::move(names));
}
Function compile(const std::vector<Symbol>& symbols, const CompileSettings& settings) {
  return compile(Group(symbols), settings);
}

Executor::Executor(const Symbol& symbol, const std::vector<NamedArray>& arrays, const std::string& grad_req)
    : function_(compile(symbol)) {
  GradReq req = grad_req_of(grad_req, "Executor");
  std::vector<std::string> arguments = symbol.list_arguments();
  std::vector<Array> given = in_order(function_.arguments(), arrays, "Executor");
  for (size_t i = 0; i < given.size(); ++i) {
    // A handle of its own on the same elements, so that the caller's array keeps its own gradient.
    arrays_.emplace_back(Val::adopt(new_alias(*whole_array(given[i]))));
    bool argument = std::ranges::find(arguments, function_.arguments()[i]) != arguments.end();
    if (argument && req != GradReq::null && is_floating(arrays_.back().dtype()))
      attach_grad(*arrays_.back().value(), req);
  }
}
const std::vector<Array>& Executor::forward(bool training) {
  ModeScope mode(training, training);
  outputs_ = function_.all(arrays_);
  trained_ = training;
  return outputs_;
}
void Executor::backward(const std::vector<Array>& head_grads) {
  TW_CHECK(trained_, runtime, "Executor::backward: call forward(true) first");
  TW_CHECK(head_grads.empty() || head_grads.size() == outputs_.size(), value, "Executor::backward: the symbol has ",
           outputs_.size(), " outputs; got ", head_grads.size(), " head gradients");
  std::vector<Val> heads, dys;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    if (!outputs_[k].value()->node) continue;
    heads.push_back(outputs_[k].value());
    dys.push_back(head_grads.empty() ? Val() : head_grads[k].value());
  }
  twibil::backward(heads, dys, {});
  trained_ = false;
}
size_t Executor::place(const std::string& name) const { return place_of(function_.arguments(), name, "Executor"); }
Array Executor::array(const std::string& name) const { return arrays_[place(name)]; }
Array Executor::grad(const std::string& name) const { return arrays_[place(name)].grad(); }

}  // namespace twibil
