// SPDX-License-Identifier: Apache-2.0
// Inside engine/ only: what the three engines share (Core) and the interface by which they differ (Scheduler).
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>

#include "engine/engine.h"
#include "engine/failure.h"

namespace twibil::engine {

using Lock = std::unique_lock<std::mutex>;
using Condition = std::function<bool()>;  // asked with the lock held

/// Decides when and where ready tasks run.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// Takes a ready task. The lock is held and stays so.
  virtual void take(Task* ready) = 0;
  /// Called by push() after the lock has been given back; the naive engine runs its task here.
  virtual void pushed() {}
  /// Returns with the lock held when the condition is true. May throw what the poll hook throws.
  virtual void wait(Lock& lock, const Condition& condition) = 0;
  /// Before a fork: lets running tasks end (bounded time) and starts no others. Then in both processes, lock held.
  virtual void before_fork(Lock&) {}
  virtual void after_fork(bool /*child*/) {}
  virtual int64_t workers() const { return 0; }
};

std::unique_ptr<Scheduler> make_threaded();
std::unique_ptr<Scheduler> make_naive();
std::unique_ptr<Scheduler> make_simulated(const Simulation& simulation);

/// The engine's one object; leaked, so that workers may outlive static destructors.
struct Core {
  std::mutex mutex;  // the lock: guards dependencies and everything here that is not atomic
  std::unique_ptr<Scheduler> scheduler;
  Kind kind = Kind::threaded;
  Simulation simulation;
  Hooks hooks;
  FlightLimit limit;
  FailureLog failures;
  int64_t pending = 0, pending_bytes = 0;
  uint64_t sequence = 0;
  std::atomic<Task*> retired{nullptr};  // finished tasks; taken as a whole, and what is another thread's put back
};
Core& core();

/// Runs a ready task, without the lock, unless it inherits a failure. Returns what went wrong, or null. `fail` makes it
/// fail instead of running.
std::shared_ptr<Failure> execute(Task& task, bool fail = false);
/// With the lock held: ends the task's accesses and passes the tasks it frees to the scheduler.
void end(Task& task, const std::shared_ptr<Failure>& failure);
/// end(), then retires the task. Returns it if the caller shall delete it after giving back the lock, else null.
Task* finish(Task& task, const std::shared_ptr<Failure>& failure);
/// execute and finish, for schedulers that run tasks on the calling thread; gives the lock back meanwhile.
void run_unlocked(Lock& lock, Task& task, bool fail = false);

/// Sleeps on `changed` until the condition is true; the lock is held before and after. Runs the hooks.
void block(Lock& lock, std::condition_variable& changed, const Condition& condition);

/// Oldest first within a priority; for heaps.
struct RunsLater {
  bool operator()(const Task* a, const Task* b) const {
    return a->priority != b->priority ? a->priority < b->priority : a->sequence > b->sequence;
  }
};

}  // namespace twibil::engine
