// SPDX-License-Identifier: Apache-2.0
// Inside engine/ only: an error on its way to whoever looks at a value, and the list of those nobody has looked at.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace twibil::engine {

class Task;

/// Shared by all variables that one failed task poisoned, directly or through dependants.
struct Failure {
  explicit Failure(std::exception_ptr e) : error(std::move(e)) {}
  std::exception_ptr error;
  std::atomic<bool> seen{false};
};

/// The exception being handled, with the task's description, as a failure. Call inside a catch block.
std::shared_ptr<Failure> failure_of_current_exception(const Task& task);
/// Marks it as seen and throws it. An Error is thrown as a copy: several threads may add context to theirs.
[[noreturn]] void throw_failure(Failure& failure);

/// Guarded by the engine's lock.
class FailureLog {
 public:
  void add(std::shared_ptr<Failure> failure);
  /// The first one that nobody has looked at, or null; forgets all.
  std::shared_ptr<Failure> take();
  /// Writes what nobody has looked at to standard error and forgets it.
  void report();

 private:
  std::vector<std::shared_ptr<Failure>> unseen_;
  int64_t more_ = 0;  // beyond what the list keeps
};

}  // namespace twibil::engine
