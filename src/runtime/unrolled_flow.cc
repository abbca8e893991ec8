// SPDX-License-Identifier: Apache-2.0
#include "runtime/unrolled_flow.h"

#include <algorithm>

#include "ir/apply.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "runtime/launch.h"
#include "runtime/lower.h"

namespace twibil {

namespace {

using Values = std::vector<Val>;
constexpr int64_t kMostSteps = 100'000;  // of a loop that is unrolled into a graph

Values run_part(const SubSymbol& s, std::span<const Val> in) {
  TW_ASSERT(in.size() == s.inputs.size());
  std::unordered_map<const SymbolNode*, Val> given;
  for (size_t i = 0; i < in.size(); ++i) given[s.inputs[i].get()] = in[i];
  return Interpreter(std::move(given)).run(s.heads);
}

Scalar look_at(const Val& v, const char* who, const char* what) {
  if (v->has(kTraced)) data_dependent_error(who);
  TW_CHECK(v->size() == 1, value, who, ": ", what, " must be one number; got shape ", v->shape());
  wait_to_read(*v);
  return scalar_of(*v);
}
bool is_true(const Val& v, const char* who) {
  Scalar s = look_at(v, who, "the condition");
  return s.is_real() ? s.real != 0 : s.integer != 0;
}

Val number(int64_t n) {
  Value* v = new_value(DType::int64, {});
  *reinterpret_cast<int64_t*>(v->data) = n;
  return Val::adopt(v);
}
Val truth(bool yes) {
  Value* v = new_value(DType::bool_, {});
  *reinterpret_cast<bool*>(v->data) = yes;
  return Val::adopt(v);
}

/// Sets an integer attribute by its name.
void set(AttrBytes& attrs, const OpDef& op, const char* name, int64_t n) {
  const Field* f = find_field(op.attrs, name);
  TW_ASSERT(f != nullptr);
  parse_attr(*f, attrs.data(), text(n));
}
AttrBytes defaults(const OpDef& op) {
  const auto* from = static_cast<const std::byte*>(op.attrs.defaults);
  return AttrBytes(from, from + op.attrs.size);
}
Val stack(const Values& steps, int64_t axis) {
  const OpDef& op = op_with_role(Role::stack);
  AttrBytes attrs = defaults(op);
  set(attrs, op, "axis", axis);
  return apply_all(op, attrs.data(), steps)[0];
}
Val item(const Val& x, int64_t axis, int64_t index) {
  const OpDef& op = op_with_role(Role::item);
  AttrBytes attrs = defaults(op);
  set(attrs, op, "axis", axis);
  set(attrs, op, "index", index);
  return apply(op, static_cast<const void*>(attrs.data()), {x});
}

struct Unrolled : GraphFunction {
  bool unfolds() const override { return true; }
  std::vector<Sig> infer(SigsIn) const override {
    throw_bug("a function that unfolds has no rule", __FILE__, __LINE__);
  }
  Values gradient(std::span<const Val>, std::span<const Val>, std::span<const Val>, bool) const override {
    throw_bug("a function that unfolds has the gradient of its parts", __FILE__, __LINE__);
  }
};

struct Branching final : Unrolled {
  SubSymbol yes, no;
  const char* name() const override { return "if"; }
  Values run(std::span<const Val> in, bool) const override {
    bool taken = is_true(in[0], name());
    size_t first = yes.inputs.size();
    return taken ? run_part(yes, in.subspan(1, first)) : run_part(no, in.subspan(1 + first));
  }
};

struct Repeating final : Unrolled {
  SubSymbol body;
  size_t states = 0;
  const char* name() const override { return "loop"; }
  Values run(std::span<const Val> in, bool) const override {
    int64_t most = INT64_MAX;
    if (in[0]) most = look_at(in[0], name(), "the count").as_int();
    Val condition = in[1] ? in[1] : truth(true);
    Values now(in.begin() + 2, in.begin() + 2 + static_cast<std::ptrdiff_t>(states));
    std::span<const Val> rest = in.subspan(2 + states);
    std::vector<Values> results(body.heads.size() - 1 - states);
    int64_t steps = 0;
    for (; steps < most && is_true(condition, name()); ++steps) {
      TW_CHECK(!tracer || steps < kMostSteps, runtime, "loop: more than ", kMostSteps,
               " steps would stand in the graph one after the other");
      Values given{number(steps), condition};
      given.insert(given.end(), now.begin(), now.end());
      given.insert(given.end(), rest.begin(), rest.end());
      Values y = run_part(body, given);
      condition = y[0];
      std::copy_n(y.begin() + 1, states, now.begin());
      for (size_t k = 0; k < results.size(); ++k) results[k].push_back(y[1 + states + k]);
    }
    TW_CHECK(results.empty() || steps > 0, value, "loop: the shape of a stacked result is not known after no step");
    for (Values& r : results) now.push_back(stack(r, 0));
    return now;
  }
};

struct Scanning final : Unrolled {
  SubSymbol body;
  ScanForm form;
  const char* name() const override { return "scan"; }
  static int64_t pick(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }
  Values run(std::span<const Val> in, bool) const override {
    auto states = static_cast<size_t>(form.states), data = static_cast<size_t>(form.data);
    Values now(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(states));
    std::span<const Val> x = in.subspan(states, data), rest = in.subspan(states + data);
    int64_t length = -1;
    for (size_t i = 0; i < data; ++i) {
      int axis = normalize_axis(pick(form.data_axes, i), x[i]->rank(), name());
      TW_CHECK(length < 0 || length == x[i]->dims[axis], value, "scan: all data must be equally long; got ", length,
               " and ", x[i]->dims[axis]);
      length = x[i]->dims[axis];
    }
    TW_CHECK(length > 0, value, "scan: the shape of a stacked result is not known after no step");
    std::vector<Values> results(body.heads.size() - states);
    for (int64_t t = 0; t < length; ++t) {
      Values given = now;
      for (size_t i = 0; i < data; ++i) {
        int axis = normalize_axis(pick(form.data_axes, i), x[i]->rank(), name());
        given.push_back(item(x[i], axis, pick(form.data_backwards, i) ? length - 1 - t : t));
      }
      given.insert(given.end(), rest.begin(), rest.end());
      Values y = run_part(body, given);
      std::copy_n(y.begin(), states, now.begin());
      for (size_t k = 0; k < results.size(); ++k) results[k].push_back(y[states + k]);
    }
    for (size_t k = 0; k < results.size(); ++k) {
      if (pick(form.result_backwards, k)) std::ranges::reverse(results[k]);
      now.push_back(stack(results[k], pick(form.result_axes, k)));
    }
    return now;
  }
};

}  // namespace

std::shared_ptr<const GraphFunction> make_choice(SubSymbol yes, SubSymbol no) {
  auto f = std::make_shared<Branching>();
  f->yes = std::move(yes);
  f->no = std::move(no);
  return f;
}
std::shared_ptr<const GraphFunction> make_repetition(SubSymbol body, int states) {
  auto f = std::make_shared<Repeating>();
  f->body = std::move(body);
  f->states = static_cast<size_t>(states);
  return f;
}
std::shared_ptr<const GraphFunction> make_scan(SubSymbol body, ScanForm form) {
  auto f = std::make_shared<Scanning>();
  f->body = std::move(body);
  f->form = std::move(form);
  return f;
}

}  // namespace twibil
