// SPDX-License-Identifier: Apache-2.0
// Small work whose inputs are ready runs on the calling thread; everything else becomes a task of the engine.
#include "runtime/launch.h"

#include <algorithm>
#include <vector>

#include "engine/engine.h"
#include "ir/registry.h"
#include "memory/allocator.h"

namespace twibil {

std::string (*call_site_hook)() = nullptr;

engine::Variable* state_of(const Value& v) { return v.root->variable.load(std::memory_order_acquire); }

engine::Variable* make_state(const Value& v) {
  if (engine::Variable* known = state_of(v)) return known;
  engine::Variable* fresh = make_block<engine::Variable>();
  engine::Variable* expected = nullptr;
  if (v.root->variable.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return fresh;
  destroy_block(fresh);
  return expected;
}

namespace {

// About a tenth of a millisecond of work: below it a queue and a second thread cost more than they give.
constexpr double kInlineWork = 1 << 18;           // elements
constexpr double kOperationsPerElement = 1 << 4;  // of heavy operators, which compute more on an element

/// About how much there is to do: operations of a heavy operator, elements of another one.
double work_of(const Launch& l) {
  if (l.op.cost) return l.op.cost(l.attrs, l.in_sigs, l.out_sigs) / kOperationsPerElement;
  double n = 0;
  for (const Value* v : l.in)
    if (v && !v->has(kGhost)) n += static_cast<double>(v->size());
  for (const Value* v : l.out)
    if (v) n += static_cast<double>(v->size());
  return n;
}

/// Whether the run needs the elements that input i had before. A view overwrites a part of its root only.
bool reads(const Launch& l, size_t i) {
  const Value* x = l.in[i];
  return x && !x->has(kGhost) && !l.op.shape_only(static_cast<int>(i)) &&
         !(l.op.overwrites && !x->has(kView) && std::ranges::find(l.out, x) != l.out.end());
}

bool ready(const Launch& l) {
  for (size_t i = 0; i < l.in.size(); ++i)
    if (reads(l, i) && !engine::ready_to_read(state_of(*l.in[i]))) return false;
  for (const Value* v : l.out)  // a view writes a part of its root, which must be whole before
    if (v && !(v->has(kView) ? engine::idle(state_of(*v)) : engine::ready_to_write(state_of(*v)))) return false;
  return true;
}

/// A queued run: holds everything it needs.
class QueuedLaunch final : public engine::Task {
 public:
  explicit QueuedLaunch(const Launch& l)
      : engine::Task(l.op.name),
        op_(l.op),
        work_(l.work),
        training_(l.training),
        key_(l.key),
        attrs_(static_cast<const std::byte*>(l.attrs),
               static_cast<const std::byte*>(l.attrs) + (l.attrs ? l.op.attrs.size : 0)) {
    for (Value* v : l.in) in_.push_back(Val::share(v));
    for (Value* v : l.out) {
      out_.push_back(Val::share(v));
      if (v) bytes += v->size() * size_of(v->dtype());
    }
    if (call_site_hook) site_ = call_site_hook();
  }
  void run() override {
    std::vector<Value*> in, out;
    for (const Val& v : in_) in.push_back(v.get());
    for (const Val& v : out_) out.push_back(v.get());
    Launch l{
        .op = op_, .attrs = attrs_.data(), .in = in, .out = out, .work = work_, .training = training_, .key = key_};
    try {
      run_kernel(l);
    } catch (Error& e) {
      name_error(op_, e);
      throw;
    }
  }
  std::string describe() const override {
    std::string s = " (inputs";
    for (const Val& v : in_)
      if (v) s += text(" ", v->sig());
    if (!site_.empty()) s += "; called at " + site_;
    return s + ")";
  }

 private:
  const OpDef& op_;
  DType work_;
  bool training_;
  RandomKey key_;
  std::vector<std::byte> attrs_;
  std::vector<Val> in_, out_;
  std::string site_;
};

void queue(const Launch& l) {
  std::vector<engine::Variable*> read, written;
  for (size_t i = 0; i < l.in.size(); ++i)
    if (reads(l, i)) read.push_back(make_state(*l.in[i]));
  for (Value* v : l.out) {
    if (!v) continue;
    written.push_back(make_state(*v));
    if (v->has(kView)) read.push_back(written.back());  // a part of its root: the rest keeps its elements
  }
  engine::push(std::make_unique<QueuedLaunch>(l), read, written);
}

}  // namespace

void name_error(const OpDef& op, Error& error) {
  // An operator without a public name is a part of this one, whose name says more to the caller.
  size_t colon = error.message().find(": ");
  const OpDef* part = colon == std::string::npos ? nullptr : find_op(error.message().substr(0, colon));
  if (part && part != &op && !part->names[0]) error = Error(error.kind(), error.message().substr(colon + 2));
  std::string name = text(op.name, ": ");
  if (!error.message().starts_with(name)) error.prefix(name);
}

void launch(Launch& l) {
  bool is_now = ready(l);
  if (l.op.data_dependent) {  // shapes follow from values
    if (!is_now)
      for (const Value* v : l.in)
        if (v) wait_to_read(*v);
    return run_kernel(l);
  }
  if (!is_now || (work_of(l) > kInlineWork && engine::engine_kind() != engine::Kind::naive)) return queue(l);
  run_kernel(l);
  for (const Value* v : l.out)
    if (v)
      if (engine::Variable* state = state_of(*v)) engine::clear_failure(state);
}

void wait_to_read(const Value& v) {
  if (engine::Variable* state = state_of(v)) engine::wait_to_read(state);
}
void wait_to_write(const Value& v) {
  if (engine::Variable* state = state_of(v)) engine::wait_to_write(state);
}
bool is_ready(const Value& v) { return engine::ready_to_read(state_of(v)); }
void wait_all() { engine::wait_all(); }

}  // namespace twibil
