// SPDX-License-Identifier: Apache-2.0
// Runs tasks in any order that keeps, for each variable, the order in which its readers and writers were pushed.
// All functions may be called from any thread, also from inside a task.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/task.h"
#include "engine/variable.h"

namespace twibil::engine {

// ---- work ----

/// Hands a task over; it runs when every earlier task that writes what it reads, and every earlier task that reads or
/// writes what it writes, has finished. Duplicates are allowed; a variable in both lists counts as written, and an
/// error it holds is inherited. A variable only in `writes` will be overwritten as a whole: success clears its error.
/// So a partial write names the variable in both lists. May block while too much is in flight (see set_flight_limit),
/// and then throw what the poll hook throws; in that case, and when memory runs out, the task is destroyed and never
/// runs.
void push(std::unique_ptr<Task> task, std::span<Variable* const> reads, std::span<Variable* const> writes);

/// The same for a callable.
template <class Body>
void push(const char* name, std::initializer_list<Variable*> reads, std::initializer_list<Variable*> writes,
          Body body) {
  push(std::make_unique<FunctionTask<Body>>(name, std::move(body)), std::span(reads.begin(), reads.size()),
       std::span(writes.begin(), writes.size()));
}

// ---- waiting ----
// A wait blocks the thread, calls the hooks below, destroys retired tasks, and may throw what the poll hook throws.

/// Returns when no pending task writes `v`. Throws the error that its last writer met or inherited, at every call.
/// Null, and what the calling task itself was pushed with: returns at once.
void wait_to_read(const Variable* v);
/// Returns when no pending task reads or writes `v`. Does not look at errors.
void wait_to_write(const Variable* v);
/// Returns when nothing is pending. If errors occurred that nobody has looked at, throws the first and forgets the
/// others (the variables stay poisoned). After it every finished task of this thread has been destroyed.
void wait_all();

/// Removes the error of a variable that inline work has just overwritten as a whole; it must be ready_to_write.
void clear_failure(Variable* v);
/// Poisons a variable that inline work failed to write; it must be ready_to_write. The error counts as not looked at.
void store_failure(Variable* v, std::exception_ptr error);
/// Gives `to`, which must be ready_to_write, the error of `from` if it has one: for views and copies made inline.
void inherit_failure(const Variable* from, Variable* to);

/// Waits until nothing is pending and destroys finished tasks, but throws no stored error. False when there was nothing
/// to do, or inside a task. The allocator calls it before it gives up: pending tasks hold arrays.
bool finish_pending();

/// Destroys finished tasks on this thread; cheap when there are none.
void drain_retired();
/// True inside Task::run().
bool in_task();

// ---- set-up ----

struct Hooks {
  /// Called about every 50 ms of a wait, with after_block in force: looks for signals; may throw, which ends the wait.
  void (*poll)() = nullptr;
  /// Around the time in which a thread sleeps: gives back the interpreter's lock and takes it again.
  void* (*before_block)() = nullptr;
  void (*after_block)(void* saved) = nullptr;
};
void set_hooks(const Hooks& hooks);

/// push() blocks while this many tasks, or this many bytes (Task::bytes) are pending. Starts as 512 tasks, 1 GiB.
/// A single task above the bytes is let through when nothing else is pending.
struct FlightLimit {
  int64_t tasks = 512;
  int64_t bytes = int64_t{1} << 30;
};
void set_flight_limit(FlightLimit limit);
FlightLimit flight_limit();

enum class Kind {
  threaded,   // a few workers; kernels split their loops over base/parallel
  naive,      // each task runs inside push(); errors are stored all the same
  simulated,  // one thread, only while somebody waits, in an order drawn from a seed
};
struct Simulation {
  uint64_t seed = 0;
  double failures = 0;  // share of tasks that fail instead of running
  double delays = 0;    // share of tasks that run only when nothing else can
};
/// Waits until nothing is pending, then changes engines; no other thread may use the engine meanwhile. At first it is
/// the one that TWIBIL_ENGINE names, else threaded.
void set_engine(Kind kind, const Simulation& simulation = {});
Kind engine_kind();
std::string engine_name();  // "threaded", "naive", "simulated:42"

/// Waits until nothing is pending, destroys retired tasks, writes errors that nobody looked at to standard error. A
/// front end calls it before it goes away; it also runs at exit. The engine stays usable.
void shutdown() noexcept;

/// For tests and reports.
struct Counters {
  int64_t pending;  // pushed and not finished
  int64_t workers;  // threads started
};
Counters counters();

}  // namespace twibil::engine
