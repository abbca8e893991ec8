// SPDX-License-Identifier: Apache-2.0
// One piece of work for the engine. Derive, put what run() needs into members, hand it to push().
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "memory/allocator.h"

namespace twibil::engine {

struct Variable;
class Task;

/// One task's interest in one variable.
struct Access {
  Variable* variable;
  Task* task;
  Access* next;  // in the variable's queue
  bool read, write;
};

class Task {
 public:
  /// `operator_name` must outlive the task (a literal, or the name in an OpDef).
  explicit Task(const char* operator_name) : name(operator_name) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  /// Runs on the thread that pushed the task, in push(), a wait or drain_retired(); on any such thread when that one
  /// has ended or a front end serialises them all (Hooks::before_block). Never on a worker (unless release_on_worker).
  /// So dropping the handles that a task holds meets no other thread. Not run after a process forked in the middle of
  /// run().
  virtual ~Task() {
    if (accesses != nullptr) free_block(accesses, capacity * sizeof(Access));
  }

  /// The work; on any thread. What it throws poisons the written variables. An Error gets describe() appended.
  virtual void run() = 0;
  /// More about the call for error messages, e.g. " (inputs float32 [2, 3]; called at train.py:12)". On any thread,
  /// once, only after a failure. Must not throw.
  virtual std::string describe() const { return {}; }

  static void* operator new(size_t bytes) { return allocate_block(bytes); }
  static void operator delete(void* p, size_t bytes) { free_block(p, bytes); }

  const char* name;
  int priority = 0;                // among ready tasks the highest runs first, then the oldest
  int64_t bytes = 0;               // memory that the pending task holds; bounds how much is in flight
  bool release_on_worker = false;  // the destructor may run on a worker, right after run()

  // ---- the engine's own ----
  Access* accesses = nullptr;
  uint32_t count = 0, capacity = 0;  // of accesses
  uint32_t blocked = 0;              // accesses not granted yet
  uint64_t sequence = 0;
  int64_t pushed_at = 0, ready_at = 0;       // while the profiler records: base/profile.h's now(); else 0
  int32_t pushed_by = -1;                    // and the thread's number
  std::shared_ptr<std::atomic<bool>> owner;  // says whether the thread that shall destroy it lives; null: any thread
  Task* next = nullptr;                      // in a list of ready or retired tasks
};

/// A task made of a callable.
template <class Body> class FunctionTask final : public Task {
 public:
  FunctionTask(const char* operator_name, Body body) : Task(operator_name), body_(std::move(body)) {}
  void run() override { body_(); }

 private:
  Body body_;
};

}  // namespace twibil::engine
