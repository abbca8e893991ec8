// SPDX-License-Identifier: Apache-2.0
#include "engine/dependencies.h"

#include <new>

namespace twibil::engine {
namespace {

void set_state(Variable& v, uint64_t state) { v.state.store(state, std::memory_order_release); }
uint64_t state_of(const Variable& v) { return v.state.load(std::memory_order_relaxed); }
uint64_t unit_of(const Access& a) { return a.write ? Variable::kWriter : Variable::kReader; }

bool can_start(const Variable& v, const Access& a) { return !v.writer && (!a.write || v.readers == 0); }

void start(Variable& v, const Access& a) {
  if (a.write) v.writer = true;
  else ++v.readers;
}

void note(Task& task, Variable* v, bool write) {
  if (v->pushed != nullptr) {
    (write ? v->pushed->write : v->pushed->read) = true;
    return;
  }
  v->pushed = new (&task.accesses[task.count++]) Access{v, &task, nullptr, !write, write};
}

}  // namespace

void reserve_accesses(Task& task, size_t count) {
  if (count == 0) return;
  task.accesses = static_cast<Access*>(allocate_block(count * sizeof(Access)));
  task.capacity = static_cast<uint32_t>(count);
}

bool add_accesses(Task& task, std::span<Variable* const> reads, std::span<Variable* const> writes) {
  for (Variable* v : reads) note(task, v, false);
  for (Variable* v : writes) note(task, v, true);
  for (uint32_t i = 0; i < task.count; ++i) {
    Access& a = task.accesses[i];
    Variable& v = *a.variable;
    v.pushed = nullptr;
    set_state(v, state_of(v) + unit_of(a));
    if (v.first == nullptr && can_start(v, a)) {
      start(v, a);
      continue;
    }
    ++task.blocked;
    (v.last != nullptr ? v.last->next : v.first) = &a;
    v.last = &a;
  }
  return task.blocked == 0;
}

Task* end_accesses(Task& task, const std::shared_ptr<Failure>& failure) {
  Task* ready = nullptr;
  for (uint32_t i = 0; i < task.count; ++i) {
    Access& a = task.accesses[i];
    Variable& v = *a.variable;
    if (a.write) {
      v.writer = false;
      v.failure = failure;
    } else {
      --v.readers;
    }
    while (v.first != nullptr && can_start(v, *v.first)) {
      Access* granted = v.first;
      start(v, *granted);
      v.first = granted->next;
      if (v.first == nullptr) v.last = nullptr;
      if (--granted->task->blocked == 0) {
        granted->task->next = ready;
        ready = granted->task;
      }
    }
    uint64_t counts = (state_of(v) & ~Variable::kFailed) - unit_of(a);
    set_state(v, counts | (v.failure != nullptr ? Variable::kFailed : 0));
  }
  return ready;
}

std::shared_ptr<Failure> inherited_failure(const Task& task) {
  for (uint32_t i = 0; i < task.count; ++i) {
    const Access& a = task.accesses[i];
    if (a.read && a.variable->failure != nullptr) return a.variable->failure;
  }
  return nullptr;
}

void set_failure(Variable& v, std::shared_ptr<Failure> failure) {
  v.failure = std::move(failure);
  set_state(v, (state_of(v) & ~Variable::kFailed) | (v.failure != nullptr ? Variable::kFailed : 0));
}

}  // namespace twibil::engine
