// SPDX-License-Identifier: Apache-2.0
#include "twibil/jit.h"

#include <algorithm>
#include <mutex>

#include "api/function.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "runtime/symbol_tracer.h"
#include "runtime/trace_call.h"

namespace twibil {

namespace {

std::string signature_of(std::span<const Array> arrays) {
  std::string s{modes.training ? 't' : 'p', modes.recording ? 'r' : '-'};
  for (const Array& a : arrays) s += text(" ", Sig{a.shape(), a.dtype()});
  return s;
}

Arrays arrays_of(std::span<const Val> values) {
  Arrays list;
  for (const Val& v : values) list.emplace_back(v);
  return list;
}
std::vector<Val> values_of(const Arrays& arrays) {
  std::vector<Val> list;
  for (const Array& a : arrays) list.push_back(a.value());
  return list;
}

class HostGraphFunction final : public GraphFunction {
 public:
  explicit HostGraphFunction(HostFunction f) : f_(std::move(f)) {
    TW_CHECK(!f_.name.empty() && f_.run, value, "HostFunction: a name and a function to run are needed");
  }
  const char* name() const override { return f_.name.c_str(); }
  std::vector<Sig> infer(SigsIn in) const override {
    std::vector<Sig> sigs(in.begin(), in.end());
    if (f_.infer) return f_.infer(sigs);
    TW_CHECK(!sigs.empty(), value, name(), ": without inputs, infer must say the shapes of the results");
    return {sigs[0]};
  }
  std::vector<Val> run(std::span<const Val> in, bool training) const override {
    ModeScope quiet(false, training);
    TraceScope outside(nullptr);
    std::vector<Val> out = values_of(f_.run(arrays_of(in)));
    for (const Val& y : out) TW_CHECK(y, value, name(), ": a result is an empty array");
    return out;
  }
  bool has_gradient() const override { return static_cast<bool>(f_.gradient); }
  std::vector<Val> gradient(std::span<const Val> in, std::span<const Val> out, std::span<const Val> dy,
                            bool) const override {
    std::vector<Val> dx = values_of(f_.gradient(arrays_of(in), arrays_of(out), arrays_of(dy)));
    TW_CHECK(dx.size() == in.size(), value, name(), ": the gradient must give ", in.size(), " arrays; got ", dx.size());
    for (size_t i = 0; i < dx.size(); ++i)
      TW_CHECK(!dx[i] || dx[i]->has(kWeak) || std::ranges::equal(dx[i]->shape(), in[i]->shape()), value, name(),
               ": the gradient of input ", i, " must have its shape ", in[i]->shape(), "; got ", dx[i]->shape());
    return dx;
  }

 private:
  HostFunction f_;
};

}  // namespace

struct Jit::State {
  std::function<Arrays(const Arrays&)> body;
  CompileSettings settings;
  std::mutex mutex;
  std::map<std::string, Function> traced;
  Function last;

  Function trace(const Arrays& arguments) const;
};

/// The function is run once on traced arguments; what it reads from outside follows them as captured inputs.
Function Jit::State::trace(const Arrays& arguments) const {
  SymbolTracer t;
  TraceScope scope(&t);
  t.begin(modes);
  Arrays traced_arguments;
  std::vector<std::string> names;
  for (size_t i = 0; i < arguments.size(); ++i) {
    names.push_back(text(i));
    traced_arguments.emplace_back(t.input(names.back(), {arguments[i].shape(), arguments[i].dtype()}));
  }
  Arrays results = body(traced_arguments);
  std::vector<SymbolRef> heads;
  for (const Array& y : results) {
    TW_CHECK(y, value, "jit: the function returned an empty array");
    heads.push_back(t.ref(edge_of(*y.value())));
  }
  std::vector<SymbolNodePtr> inputs = t.inputs();
  for (const SymbolNodePtr& n : t.captured()) inputs.push_back(n);
  CompileOptions options{settings.without, std::vector<bool>(inputs.size())};
  for (const std::string& d : settings.donate) {
    auto found = std::ranges::find(names, d);
    TW_CHECK(found != names.end(), value, "jit: donate must hold positions of arguments as text; got ", d);
    options.donate[static_cast<size_t>(found - names.begin())] = true;
  }
  options.exact = settings.exact;
  options.autotune = settings.autotune;
  return FunctionMaker::make(
      std::make_shared<CompiledGraph>(std::move(heads), t.effects(), std::move(inputs), std::move(options)),
      std::move(names));
}

Jit::Jit(std::function<Arrays(const Arrays&)> body, const CompileSettings& settings)
    : state_(std::make_shared<State>()) {
  state_->body = std::move(body);
  state_->settings = settings;
}

Arrays Jit::call(const Arrays& arguments) const {
  if (tracer) return state_->body(arguments);  // part of the trace around it
  Arrays whole;
  for (const Array& a : arguments) {
    TW_CHECK(a, value, "jit: an argument is an empty array");
    bool number = a.value()->has(kWeak);
    whole.push_back(number ? Array::full({}, a.item(), default_dtype(scalar_of(*a.value()))) : a);
  }
  std::string key = signature_of(whole);
  Function f;
  {
    std::lock_guard lock(state_->mutex);
    auto found = state_->traced.find(key);
    if (found == state_->traced.end()) found = state_->traced.emplace(key, state_->trace(whole)).first;
    state_->last = f = found->second;
  }
  return f.all(whole);
}
int Jit::num_traces() const {
  std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->traced.size());
}
std::string Jit::explain() const {
  std::unique_lock lock(state_->mutex);
  TW_CHECK(!state_->traced.empty(), runtime, "jit: the function was not called yet; call it first");
  Function f = state_->last;
  lock.unlock();
  return f.explain();
}

Arrays host_call(const HostFunction& f, const Arrays& in) {
  std::vector<Val> values = values_of(in);
  for (const Val& v : values) TW_CHECK(v, value, f.name, ": an input is an empty array");
  return arrays_of(call_function(std::make_shared<HostGraphFunction>(f), values));
}
Symbol host_call(const HostFunction& f, const std::vector<Symbol>& in, int results) {
  TW_CHECK(results > 0, value, f.name, ": at least one result is needed; got ", results);
  std::vector<SymbolRef> refs;
  for (const Symbol& s : in) {
    TW_CHECK(s.size() == 1, value, f.name, ": each input must be one output of a symbol");
    refs.push_back(s.outputs()[0]);
  }
  SymbolNodePtr n = make_function(std::make_shared<HostGraphFunction>(f), std::move(refs), results);
  std::vector<SymbolRef> heads;
  for (int k = 0; k < results; ++k) heads.push_back({n, k});
  return Symbol(std::move(heads));
}

}  // namespace twibil
