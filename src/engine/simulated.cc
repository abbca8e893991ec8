// SPDX-License-Identifier: Apache-2.0
// The engine for tests of order: keeps tasks until somebody waits, then runs ready ones one by one in an order drawn
// from a seed. The same seed and the same pushes give the same order, so a failing schedule can be replayed.
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/scheduler.h"

namespace twibil::engine {
namespace {

class Simulated final : public Scheduler {
 public:
  explicit Simulated(const Simulation& simulation) : options_(simulation), random_(simulation.seed) {}

  void take(Task* ready) override { (chance(options_.delays) ? delayed_ : ready_).push_back(ready); }

  void wait(Lock& lock, const Condition& condition) override {
    while (!condition()) {
      auto& from = ready_.empty() ? delayed_ : ready_;
      if (from.empty()) {
        wait_for_others(lock, condition);
        continue;
      }
      std::swap(from[random_() % from.size()], from.back());
      Task* task = from.back();
      from.pop_back();
      ++running_;
      run_unlocked(lock, *task, chance(options_.failures));
      --running_;
      changed_.notify_all();
    }
  }

  void after_fork(bool child) override {
    if (!child) return;
    new (&changed_) std::condition_variable;
    running_ = in_task() ? 1 : 0;
  }

 private:
  bool chance(double share) { return share > 0 && static_cast<double>(random_() >> 11) * 0x1p-53 < share; }

  /// Nothing is ready: only a task that another thread is running can help.
  void wait_for_others(Lock& lock, const Condition& condition) {
    TW_ASSERT(running_ > (in_task() ? 1 : 0));
    block(lock, changed_, [&] { return condition() || !ready_.empty() || !delayed_.empty(); });
  }

  const Simulation options_;
  std::mt19937_64 random_;
  std::vector<Task*> ready_, delayed_;
  int running_ = 0;
  std::condition_variable changed_;
};

}  // namespace

std::unique_ptr<Scheduler> make_simulated(const Simulation& simulation) {
  return std::make_unique<Simulated>(simulation);
}

}  // namespace twibil::engine
