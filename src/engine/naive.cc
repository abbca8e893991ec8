// SPDX-License-Identifier: Apache-2.0
// The engine for debugging: push() runs the task on the spot, so a debugger's stack shows who asked for it.
#include <atomic>
#include <deque>

#include "engine/scheduler.h"

namespace twibil::engine {
namespace {

class Naive final : public Scheduler {
 public:
  void take(Task* ready) override { ready_.push_back(ready); }

  /// The list holds the task just pushed, unless a thread that pushed something before it is still busy: then that
  /// thread runs it when its own has finished.
  void pushed() override {
    Lock lock(core().mutex);
    while (!ready_.empty()) run_next(lock);
  }

  void wait(Lock& lock, const Condition& condition) override {
    while (!condition()) {
      if (!ready_.empty()) run_next(lock);
      else block(lock, changed_, [&] { return condition() || !ready_.empty(); });
    }
  }

  void after_fork(bool child) override {
    if (child) new (&changed_) std::condition_variable;
  }

 private:
  void run_next(Lock& lock) {
    Task* task = ready_.front();
    ready_.pop_front();
    run_unlocked(lock, *task);
    changed_.notify_all();
  }

  std::deque<Task*> ready_;
  std::condition_variable changed_;
};

}  // namespace

std::unique_ptr<Scheduler> make_naive() { return std::make_unique<Naive>(); }

}  // namespace twibil::engine
