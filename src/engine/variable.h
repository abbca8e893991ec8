// SPDX-License-Identifier: Apache-2.0
// The dependency state of one storage. An array's root makes one when its storage first meets a task; until then a null
// pointer means that nothing is pending. Inline work only loads one word.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

namespace twibil::engine {

struct Access;
struct Failure;

/// Belongs to the storage's owner (make_block<Variable>()), which must keep it until the tasks that name it have
/// retired: tasks hold handles of the arrays they touch. Everything but `state` is guarded by the engine's lock.
struct Variable {
  static constexpr uint64_t kWriter = 1;                  // bits 0-30 count pending tasks that write
  static constexpr uint64_t kReader = uint64_t{1} << 31;  // bits 31-62 count pending tasks that only read
  static constexpr uint64_t kWriters = kReader - 1;
  static constexpr uint64_t kFailed = uint64_t{1} << 63;  // the last write failed: `failure` says how

  std::atomic<uint64_t> state{0};  // changed under the lock, read by anybody
  Access* first = nullptr;         // accesses that wait, oldest first
  Access* last = nullptr;
  uint32_t readers = 0;  // accesses granted and not finished
  bool writer = false;
  Access* pushed = nullptr;  // scratch of push(): finds a variable that one task names twice
  std::shared_ptr<Failure> failure;
};

/// No task is pending and the value is good: inline work may read and write. A true answer also makes visible what the
/// finished tasks wrote. It excludes pending tasks, not another thread that pushes at this moment: as in NumPy, two
/// threads that write one array must agree between themselves.
inline bool idle(const Variable* v) { return v == nullptr || v->state.load(std::memory_order_acquire) == 0; }
/// No pending writer and a good value; tasks may still be reading it.
inline bool ready_to_read(const Variable* v) {
  return v == nullptr || (v->state.load(std::memory_order_acquire) & (Variable::kWriters | Variable::kFailed)) == 0;
}
/// No pending task at all; the old value may be a failed one (call clear_failure() after overwriting all of it).
inline bool ready_to_write(const Variable* v) {
  return v == nullptr || (v->state.load(std::memory_order_acquire) & ~Variable::kFailed) == 0;
}

}  // namespace twibil::engine
