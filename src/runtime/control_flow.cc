// SPDX-License-Identifier: Apache-2.0
#include "runtime/control_flow.h"

#include <cstring>

#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "runtime/backward.h"
#include "runtime/eager.h"
#include "runtime/launch.h"
#include "runtime/random_state.h"

namespace twibil {

namespace {

using Arrays = std::vector<Val>;

std::vector<Sig> outputs_of(const CompiledGraph& g, SigsIn in) {
  std::unordered_map<const SymbolNode*, Sig> known;
  for (size_t i = 0; i < g.inputs().size(); ++i) known[g.inputs()[i].get()] = in[i];
  InferredSigs found = infer_sigs(g.heads(), known, modes.training, false);
  std::vector<Sig> out;
  for (const SymbolRef& h : g.heads()) out.push_back(found.of(h));
  return out;
}

bool is_true(const Val& v, const char* who) {
  TW_CHECK(v->size() == 1, value, who, ": the condition must be one number; got shape ", v->shape());
  wait_to_read(*v);
  Scalar s = scalar_of(*v);
  return s.is_real() ? s.real != 0 : s.integer != 0;
}
void check_condition(const Sig& s, const char* who) {
  TW_CHECK(s.shape.size() == 1, value, who, ": the condition must be one number; got shape ", s.shape);
}

Val zeros(const Sig& s) {
  Value* v = new_value(s.dtype, s.shape);
  std::memset(v->data, 0, static_cast<size_t>(v->bytes));
  return Val::adopt(v);
}
Val row(const Val& x, int64_t i) { return Val::adopt(new_item_view(*x, i)); }
void accumulate(Val& total, const Val& more) {
  if (more) total = total ? apply(op_with_role(Role::accumulate), {total, more}) : more;
}

/// Gradients of one run of a graph: it is run again on the tape. `dy` null: nothing arrived there.
Arrays gradients(const SubGraph& g, Arrays in, std::span<const Val> dy, bool training) {
  Arrays variables;
  std::vector<size_t> place;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!is_floating(in[i]->dtype())) continue;
    in[i] = Val::adopt(new_alias(*in[i]));
    set_node(in[i].get(), new_node(nullptr, nullptr, 0, 0), 0);
    variables.push_back(in[i]);
    place.push_back(i);
  }
  Arrays heads, head_grads, dx(in.size());
  {
    ModeScope scope(true, training);
    Arrays y = g->call(in);
    for (size_t k = 0; k < y.size(); ++k) {
      if (!dy[k] || !y[k]->node) continue;
      heads.push_back(y[k]);
      head_grads.push_back(dy[k]);
    }
  }
  if (heads.empty()) return dx;
  Vals found = grad(heads, variables, head_grads, {.training = training, .allow_unused = true});
  for (size_t i = 0; i < place.size(); ++i) dx[place[i]] = found[static_cast<int>(i)];
  return dx;
}

class Loop final : public GraphFunction {
 public:
  Loop(SubGraph body, SubGraph condition, LoopShape shape)
      : body_(std::move(body)),
        condition_(std::move(condition)),
        data_(static_cast<size_t>(shape.data)),
        states_(static_cast<size_t>(shape.states)),
        outputs_(body_->heads().size() - states_),
        free_(body_->inputs().size() - data_ - states_),
        max_(shape.max_iterations) {}
  const char* name() const override { return condition_ ? "while_loop" : "foreach"; }

  std::vector<Sig> infer(SigsIn in) const override {
    int64_t length = condition_ ? max_ : -1;
    std::vector<Sig> step;
    for (size_t i = 0; i < data_; ++i) {
      TW_CHECK(in[i].rank() > 0, value, name(),
               ": data must have a first axis to walk along; got an array without axes");
      TW_CHECK(length < 0 || length == in[i].shape[0], value, name(), ": all data must be equally long; got ", length,
               " and ", in[i].shape[0]);
      length = in[i].shape[0];
      step.push_back({Shape(in[i].shape.span().subspan(1)), in[i].dtype});
    }
    step.insert(step.end(), in.begin() + static_cast<std::ptrdiff_t>(data_),
                in.begin() + static_cast<std::ptrdiff_t>(data_ + states_ + free_));
    std::vector<Sig> out = outputs_of(*body_, step);
    for (size_t i = 0; i < states_; ++i) {
      const Sig &begin = step[data_ + i], &end = out[outputs_ + i];
      TW_CHECK(begin.shape == end.shape && begin.dtype == end.dtype, value, name(), ": state ", i,
               " must keep its shape and dtype; it begins as ", begin, " and becomes ", end);
    }
    if (condition_) check_condition(outputs_of(*condition_, condition_inputs(step, in))[0], name());
    for (size_t k = 0; k < outputs_; ++k) {
      Shape shape{std::max<int64_t>(length, 0)};
      for (int64_t d : out[k].shape) shape.push_back(d);
      out[k].shape = shape;
    }
    return out;
  }

  Arrays run(std::span<const Val> in, bool training) const override {
    ModeScope scope(false, training);
    std::vector<Sig> sigs;
    for (const Val& v : in) sigs.push_back(v.sig());
    std::vector<Sig> like = infer(sigs);
    Arrays results;
    for (size_t k = 0; k < outputs_; ++k) results.push_back(zeros(like[k]));
    Arrays states = walk(in, [&](int64_t t, const Arrays&, const Arrays& y) {
      for (size_t k = 0; k < outputs_; ++k) assign(*row(results[k], t), *y[k]);
    });
    results.insert(results.end(), states.begin(), states.end());
    return results;
  }

  /// The states of all steps are computed again and kept; then each step is differentiated, the last one first.
  Arrays gradient(std::span<const Val> in, std::span<const Val>, std::span<const Val> dy,
                  bool training) const override {
    std::vector<Arrays> before;
    std::vector<RandomKey> keys;  // at the beginning of each step
    {
      ModeScope scope(false, training);
      walk(
          in, [&](int64_t, const Arrays& x, const Arrays&) { before.push_back(x); }, &keys);
    }
    Arrays dx(in.size()), dstates(dy.begin() + static_cast<std::ptrdiff_t>(outputs_), dy.end());
    ModeScope scope(false, training);
    for (auto t = static_cast<int64_t>(before.size()) - 1; t >= 0; --t) {
      Arrays dstep(outputs_);
      for (size_t k = 0; k < outputs_; ++k)
        if (dy[k]) dstep[k] = row(dy[k], t);
      dstep.insert(dstep.end(), dstates.begin(), dstates.end());
      RandomStream same(keys[static_cast<size_t>(t)]);
      Arrays d = gradients(body_, before[static_cast<size_t>(t)], dstep, training);
      for (size_t i = 0; i < data_; ++i) {
        if (!d[i]) continue;
        if (!dx[i]) dx[i] = zeros(in[i].sig());
        assign(*row(dx[i], t), *d[i]);
      }
      for (size_t i = 0; i < states_; ++i) dstates[i] = d[data_ + i];
      for (size_t i = 0; i < free_; ++i) accumulate(dx[data_ + states_ + i], d[data_ + states_ + i]);
    }
    for (size_t i = 0; i < states_; ++i) dx[data_ + i] = dstates[i];
    return dx;
  }

 private:
  /// What the condition reads: states (of `step`), then its own inputs (the last of `in`).
  template <class T> std::vector<T> condition_inputs(const std::vector<T>& step, std::span<const T> in) const {
    auto from = step.begin() + static_cast<std::ptrdiff_t>(data_);
    std::vector<T> list(from, from + static_cast<std::ptrdiff_t>(states_));
    list.insert(list.end(), in.begin() + static_cast<std::ptrdiff_t>(data_ + states_ + free_), in.end());
    return list;
  }
  /// Runs the steps: each(t, inputs of the body, its outputs). Returns the last states. `keys` gets where the stream of
  /// random keys stood before each step.
  template <class Each> Arrays walk(std::span<const Val> in, Each each, std::vector<RandomKey>* keys = nullptr) const {
    int64_t length = condition_ ? max_ : data_ ? in[0]->dims[0] : 0;
    Arrays x(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(data_ + states_ + free_));
    for (int64_t t = 0; t < length; ++t) {
      if (condition_ && !is_true(condition_->call(condition_inputs(x, in))[0], name())) break;
      for (size_t i = 0; i < data_; ++i) x[i] = row(in[i], t);
      if (keys) keys->push_back(random_state());
      Arrays y = body_->call(x);
      each(t, x, y);
      std::copy_n(y.begin() + static_cast<std::ptrdiff_t>(outputs_), states_,
                  x.begin() + static_cast<std::ptrdiff_t>(data_));
    }
    auto from = x.begin() + static_cast<std::ptrdiff_t>(data_);
    return {from, from + static_cast<std::ptrdiff_t>(states_)};
  }

  SubGraph body_, condition_;
  size_t data_, states_, outputs_, free_;  // free_: further inputs of the body
  int64_t max_;
};

class Branch final : public GraphFunction {
 public:
  Branch(SubGraph yes, SubGraph no) : yes_(std::move(yes)), no_(std::move(no)) {
    TW_CHECK(yes_->heads().size() == no_->heads().size(), value, "cond: both branches must give as many arrays; got ",
             yes_->heads().size(), " and ", no_->heads().size());
  }
  const char* name() const override { return "cond"; }
  std::vector<Sig> infer(SigsIn in) const override {
    check_condition(in[0], name());
    std::vector<Sig> a = outputs_of(*yes_, in.subspan(1, first())), b = outputs_of(*no_, in.subspan(1 + first()));
    for (size_t k = 0; k < a.size(); ++k)
      TW_CHECK(a[k].shape == b[k].shape && a[k].dtype == b[k].dtype, value,
               "cond: both branches must give arrays of one "
               "shape and dtype; result ",
               k, " is ", a[k], " and ", b[k]);
    return a;
  }
  Arrays run(std::span<const Val> in, bool training) const override {
    ModeScope scope(false, training);
    return is_true(in[0], name()) ? yes_->call(in.subspan(1, first())) : no_->call(in.subspan(1 + first()));
  }
  Arrays gradient(std::span<const Val> in, std::span<const Val>, std::span<const Val> dy,
                  bool training) const override {
    bool yes = is_true(in[0], name());
    auto part = yes ? in.subspan(1, first()) : in.subspan(1 + first());
    Arrays d = gradients(yes ? yes_ : no_, {part.begin(), part.end()}, dy, training), dx(in.size());
    std::ranges::copy(d, dx.begin() + static_cast<std::ptrdiff_t>(yes ? 1 : 1 + first()));
    return dx;
  }

 private:
  size_t first() const { return yes_->inputs().size(); }
  SubGraph yes_, no_;
};

/// Lets a function draw random numbers of its own stream. Where that begins is one output more, behind those that
/// others see, so that the gradient, which runs the function again, meets the same numbers.
class OwnStream final : public GraphFunction {
 public:
  explicit OwnStream(std::shared_ptr<const GraphFunction> f) : f_(std::move(f)) {}
  const char* name() const override { return f_->name(); }
  std::vector<Sig> infer(SigsIn in) const override {
    std::vector<Sig> out = f_->infer(in);
    out.push_back({Shape{2}, DType::int64});
    return out;
  }
  void complete(std::span<Sig> in) const override { f_->complete(in); }
  Arrays run(std::span<const Val> in, bool training) const override {
    RandomStream own;
    Arrays out = f_->run(in, training);
    RandomKey start = own.start();
    Val key = Val::adopt(new_value(DType::int64, std::array<int64_t, 1>{2}));
    auto* words = reinterpret_cast<uint64_t*>(key->data);
    words[0] = start.seed;
    words[1] = start.counter;
    out.push_back(std::move(key));
    return out;
  }
  Arrays gradient(std::span<const Val> in, std::span<const Val> out, std::span<const Val> dy,
                  bool training) const override {
    wait_to_read(*out.back());
    const auto* words = reinterpret_cast<const uint64_t*>(out.back()->data);
    RandomStream same({words[0], words[1]});
    return f_->gradient(in, out.first(out.size() - 1), dy.first(dy.size() - 1), training);
  }

 private:
  std::shared_ptr<const GraphFunction> f_;
};

}  // namespace

std::shared_ptr<const GraphFunction> make_loop(SubGraph body, SubGraph condition, LoopShape shape) {
  return std::make_shared<OwnStream>(std::make_shared<Loop>(std::move(body), std::move(condition), shape));
}
std::shared_ptr<const GraphFunction> make_branch(SubGraph yes, SubGraph no) {
  return std::make_shared<OwnStream>(std::make_shared<Branch>(std::move(yes), std::move(no)));
}

}  // namespace twibil
