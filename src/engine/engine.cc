// SPDX-License-Identifier: Apache-2.0
// The public functions: they keep the books under one lock and leave running to the scheduler.
#include "engine/engine.h"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <new>

#include "base/error.h"
#include "base/parallel.h"
#include "base/profile.h"
#include "base/settings.h"
#include "engine/dependencies.h"
#include "engine/scheduler.h"

namespace twibil::engine {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr auto kSpin = std::chrono::microseconds(20);

Task* current_task() { return static_cast<Task*>(thread_state().task); }

/// Whether this thread lives, for the tasks that it pushed.
const std::shared_ptr<std::atomic<bool>>& this_thread_lives() {
  struct Thread {
    std::shared_ptr<std::atomic<bool>> lives = std::make_shared<std::atomic<bool>>(true);
    ~Thread() { lives->store(false, std::memory_order_release); }
  };
  thread_local Thread thread;
  return thread.lives;
}

/// Marks the thread as being inside a task; tasks nest when a wait inside one runs others.
struct InTask {
  explicit InTask(Task* task) : before(std::exchange(thread_state().task, task)) {}
  ~InTask() { thread_state().task = before; }
  void* before;
};

std::unique_ptr<Scheduler> make_scheduler(Kind kind, const Simulation& simulation) {
  if (kind == Kind::naive) return make_naive();
  if (kind == Kind::simulated) return make_simulated(simulation);
  return make_threaded();
}

void read_setting(Core& c) {
  std::string value = setting(Setting::engine).value_or("threaded");
  std::string kind = value.substr(0, value.find(':'));
  bool good = value == "threaded" || value == "naive" || kind == "simulated";
  if (value == "naive") c.kind = Kind::naive;
  if (kind == "simulated") {
    c.kind = Kind::simulated;
    if (kind != value) {
      char* end = nullptr;
      const char* digits = value.c_str() + kind.size() + 1;
      c.simulation.seed = std::strtoull(digits, &end, 10);
      good = *digits >= '0' && *digits <= '9' && *end == '\0';
    }
  }
  TW_CHECK(good, value, "TWIBIL_ENGINE: must be threaded, naive, simulated or simulated:seed; got `", value, "`");
}

// Prepare handlers run in reverse order of registration: ours comes after the allocator's (which thread_state()
// registers), so tasks come to rest before the allocator's locks are taken.
void before_fork() {
  Core& c = core();
  Lock lock(c.mutex);
  c.scheduler->before_fork(lock);
  lock.release();  // stays locked over the fork
}
void after_fork(bool child) {
  Core& c = core();
  c.scheduler->after_fork(child);
  c.mutex.unlock();
}
void after_fork_in_parent() { after_fork(false); }
void after_fork_in_child() { after_fork(true); }

Core* make_core() {
  thread_state();
  auto c = std::make_unique<Core>();
  read_setting(*c);
  c->scheduler = make_scheduler(c->kind, c->simulation);
  TW_ASSERT(pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0);
  std::atexit([] { shutdown(); });
  set_memory_pressure_callback(finish_pending);
  return c.release();
}

/// Puts a chain of finished tasks, newest first, where drain_retired() finds them.
void retire(Core& c, Task& newest, Task& oldest) {
  oldest.next = c.retired.load(std::memory_order_relaxed);
  while (!c.retired.compare_exchange_weak(oldest.next, &newest, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

bool may_destroy(const Task& task) {
  return task.owner == nullptr || task.owner == this_thread_lives() || !task.owner->load(std::memory_order_acquire);
}

/// Hands a ready task to the scheduler.
void take(Core& c, Task* ready) {
  if (ready->pushed_at != 0) [[unlikely]]
    ready->ready_at = profile::now();
  c.scheduler->take(ready);
}

/// Tells the profiler how long a task was queued, and which part of it passed until its inputs were ready. Returns its
/// number there.
uint64_t record_queue(const Task& task) {
  profile::Event e{.kind = profile::Kind::queue, .from = task.pushed_by, .begin = task.pushed_at};
  e.end = profile::now();
  e.name = task.name;
  e.id = profile::next_id();
  e.number = task.ready_at - task.pushed_at;
  profile::record(e);
  return e.id;
}

bool has_room(const Core& c, int64_t bytes) {
  return c.pending == 0 || (c.pending < c.limit.tasks && c.pending_bytes + bytes <= c.limit.bytes);
}

/// A task that has been granted an access must not wait for it: later tasks in the queue wait for this one.
bool held_by_current_task(const Variable* v, bool to_write) {
  const Task* task = current_task();
  if (task == nullptr) return false;
  for (uint32_t i = 0; i < task->count; ++i)
    if (task->accesses[i].variable == v) return task->accesses[i].write || !to_write;
  return false;
}

/// A short look before going to sleep: waking up costs more than most kernels take.
void spin_for(const Variable* v, uint64_t bits) {
  if (num_threads() == 1 || engine_kind() != Kind::threaded) return;
  auto end = std::chrono::steady_clock::now() + kSpin;
  while ((v->state.load(std::memory_order_acquire) & bits) != 0 && std::chrono::steady_clock::now() < end) {
  }
}

/// Waits with the lock held; inside a task nothing is destroyed, since the thread may be a worker.
void wait_until(Lock& lock, const Condition& condition) {
  if (condition()) return;
  if (current_task() == nullptr && core().retired.load(std::memory_order_relaxed) != nullptr) {
    lock.unlock();
    drain_retired();
    lock.lock();
  }
  core().scheduler->wait(lock, condition);
}

}  // namespace

Core& core() {
  static Core* c = make_core();
  return *c;
}

std::shared_ptr<Failure> execute(Task& task, bool fail) {
  if (auto inherited = inherited_failure(task)) return inherited;
  InTask inside(&task);
  const uint64_t id = task.pushed_at != 0 && profile::on(profile::kKernels) ? record_queue(task) : 0;
  profile::Timer timer(profile::kKernels, profile::Kind::task, task.name, id);
  try {
    TW_CHECK(!fail, runtime, task.name, ": failed because the simulation asked for it");
    task.run();
    return nullptr;
  } catch (...) {
    auto failure = failure_of_current_exception(task);
    Core& c = core();
    Lock lock(c.mutex);
    c.failures.add(failure);
    return failure;
  }
}

void end(Task& task, const std::shared_ptr<Failure>& failure) {
  Core& c = core();
  --c.pending;
  c.pending_bytes -= task.bytes;
  for (Task* ready = end_accesses(task, failure); ready != nullptr;) {
    Task* next = ready->next;
    take(c, ready);
    ready = next;
  }
}

Task* finish(Task& task, const std::shared_ptr<Failure>& failure) {
  end(task, failure);
  if (task.release_on_worker) return &task;
  retire(core(), task, task);
  return nullptr;
}

void run_unlocked(Lock& lock, Task& task, bool fail) {
  lock.unlock();
  auto failure = execute(task, fail);
  lock.lock();
  if (Task* done = finish(task, failure)) {
    lock.unlock();
    delete done;
    lock.lock();
  }
}

void block(Lock& lock, std::condition_variable& changed, const Condition& condition) {
  const Hooks hooks = core().hooks;
  while (!condition()) {
    lock.unlock();
    void* saved = hooks.before_block != nullptr ? hooks.before_block() : nullptr;
    lock.lock();
    bool done = changed.wait_for(lock, kPollInterval, condition);
    lock.unlock();  // never hold the lock while waiting for the interpreter's
    if (hooks.after_block != nullptr) hooks.after_block(saved);
    if (!done && hooks.poll != nullptr) hooks.poll();
    lock.lock();
  }
}

void push(std::unique_ptr<Task> task, std::span<Variable* const> reads, std::span<Variable* const> writes) {
  Core& c = core();
  reserve_accesses(*task, reads.size() + writes.size());
  bool outside = current_task() == nullptr;
  if (outside) drain_retired();
  if (outside) task->owner = this_thread_lives();
  Lock lock(c.mutex);
  if (c.hooks.before_block != nullptr) task->owner.reset();
  if (outside && !has_room(c, task->bytes)) {
    profile::Timer waiting(profile::kApi, profile::Kind::wait, "wait for room in the queue");
    wait_until(lock, [&] { return has_room(c, task->bytes); });
  }
  if (profile::on(profile::kKernels)) [[unlikely]] {
    task->pushed_at = profile::now();
    task->pushed_by = profile::thread_number();
  }
  ++c.pending;
  c.pending_bytes += task->bytes;
  task->sequence = c.sequence++;
  Task* t = task.release();
  if (add_accesses(*t, reads, writes)) take(c, t);
  lock.unlock();
  c.scheduler->pushed();
}

void wait_to_read(const Variable* v) {
  if (ready_to_read(v) || held_by_current_task(v, false)) return;
  profile::Timer waiting(profile::kApi, profile::Kind::wait, "wait_to_read");
  spin_for(v, Variable::kWriters);
  Core& c = core();
  Lock lock(c.mutex);
  wait_until(lock, [&] { return (v->state.load() & Variable::kWriters) == 0; });
  auto failure = v->failure;
  lock.unlock();
  if (current_task() == nullptr) drain_retired();
  if (failure != nullptr) throw_failure(*failure);
}

void wait_to_write(const Variable* v) {
  if (ready_to_write(v) || held_by_current_task(v, true)) return;
  profile::Timer waiting(profile::kApi, profile::Kind::wait, "wait_to_write");
  spin_for(v, ~Variable::kFailed);
  Core& c = core();
  Lock lock(c.mutex);
  wait_until(lock, [&] { return (v->state.load() & ~Variable::kFailed) == 0; });
  lock.unlock();
  if (current_task() == nullptr) drain_retired();
}

void wait_all() {
  TW_CHECK(!in_task(), runtime, "wait_all: must not be called inside an operation, which it would wait for");
  profile::Timer waiting(profile::kApi, profile::Kind::wait, "wait_all");
  Core& c = core();
  Lock lock(c.mutex);
  wait_until(lock, [&] { return c.pending == 0; });
  auto failure = c.failures.take();
  lock.unlock();
  drain_retired();
  if (failure != nullptr) throw_failure(*failure);
}

bool finish_pending() {
  Core& c = core();
  if (in_task()) return false;
  Lock lock(c.mutex);
  if (c.pending == 0 && c.retired.load(std::memory_order_relaxed) == nullptr) return false;
  wait_until(lock, [&] { return c.pending == 0; });
  lock.unlock();
  drain_retired();
  return true;
}

void clear_failure(Variable* v) {
  if (v == nullptr || (v->state.load(std::memory_order_acquire) & Variable::kFailed) == 0) return;
  std::lock_guard lock(core().mutex);
  set_failure(*v, nullptr);
}

void store_failure(Variable* v, std::exception_ptr error) {
  auto failure = std::make_shared<Failure>(std::move(error));
  std::lock_guard lock(core().mutex);
  core().failures.add(failure);
  set_failure(*v, failure);
}

void inherit_failure(const Variable* from, Variable* to) {
  if (from == nullptr || (from->state.load(std::memory_order_acquire) & Variable::kFailed) == 0) return;
  std::lock_guard lock(core().mutex);
  set_failure(*to, from->failure);
}

void drain_retired() {
  Core& c = core();
  if (c.retired.load(std::memory_order_relaxed) == nullptr) return;
  Task* newest = c.retired.exchange(nullptr, std::memory_order_acquire);
  Task *oldest = nullptr, *others = nullptr, *others_end = nullptr;
  while (newest != nullptr) {  // turns the list round, without what other threads shall destroy
    Task* next = newest->next;
    if (may_destroy(*newest)) {
      newest->next = oldest;
      oldest = newest;
    } else {
      (others_end != nullptr ? others_end->next : others) = newest;
      others_end = newest;
    }
    newest = next;
  }
  if (others != nullptr) retire(c, *others, *others_end);
  while (oldest != nullptr) {
    Task* next = oldest->next;
    delete oldest;
    oldest = next;
  }
}

bool in_task() { return current_task() != nullptr; }

void set_hooks(const Hooks& hooks) {
  std::lock_guard lock(core().mutex);
  core().hooks = hooks;
}

void set_flight_limit(FlightLimit limit) {
  TW_CHECK(limit.tasks > 0 && limit.bytes > 0, value, "set_flight_limit: tasks and bytes must be positive; got ",
           limit.tasks, " and ", limit.bytes);
  std::lock_guard lock(core().mutex);
  core().limit = limit;
}
FlightLimit flight_limit() {
  std::lock_guard lock(core().mutex);
  return core().limit;
}

void set_engine(Kind kind, const Simulation& simulation) {
  Core& c = core();
  auto scheduler = make_scheduler(kind, simulation);
  Lock lock(c.mutex);
  wait_until(lock, [&] { return c.pending == 0; });
  c.kind = kind;
  c.simulation = simulation;
  std::swap(c.scheduler, scheduler);
  lock.unlock();
  drain_retired();
}

Kind engine_kind() {
  std::lock_guard lock(core().mutex);
  return core().kind;
}

std::string engine_name() {
  Core& c = core();
  std::lock_guard lock(c.mutex);
  if (c.kind == Kind::simulated) return text("simulated:", c.simulation.seed);
  return c.kind == Kind::naive ? "naive" : "threaded";
}

void shutdown() noexcept {
  Core& c = core();
  try {
    Lock lock(c.mutex);
    wait_until(lock, [&] { return c.pending == 0; });
  } catch (...) {  // a signal ended the wait: leave at once
  }
  drain_retired();
  std::lock_guard lock(c.mutex);
  c.failures.report();
}

Counters counters() {
  std::lock_guard lock(core().mutex);
  return {core().pending, core().scheduler->workers()};
}

}  // namespace twibil::engine
