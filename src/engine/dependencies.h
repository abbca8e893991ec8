// SPDX-License-Identifier: Apache-2.0
// Inside engine/ only: who waits for whom. Each variable has a queue of accesses in push order; readers are granted
// together, a writer alone. A task is ready when all its accesses are granted. The caller holds the engine's lock.
#pragma once
#include <memory>
#include <span>

#include "engine/failure.h"
#include "engine/task.h"
#include "engine/variable.h"

namespace twibil::engine {

/// Gives the task room for its accesses; the only step that may throw, and without the lock.
void reserve_accesses(Task& task, size_t count);
/// Queues the task's accesses; true when the task is ready at once.
bool add_accesses(Task& task, std::span<Variable* const> reads, std::span<Variable* const> writes);
/// Ends the task's accesses: its written variables take `failure` (null: they are good) and waiting accesses are
/// granted. Returns the tasks that became ready, linked by `next`.
Task* end_accesses(Task& task, const std::shared_ptr<Failure>& failure);
/// The first failure among what a ready task reads, or null. Needs no lock: nobody may write those variables now.
std::shared_ptr<Failure> inherited_failure(const Task& task);
/// Sets or clears (null) the failure of a variable.
void set_failure(Variable& v, std::shared_ptr<Failure> failure);

}  // namespace twibil::engine
