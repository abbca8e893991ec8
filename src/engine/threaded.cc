// SPDX-License-Identifier: Apache-2.0
// The engine for work: a few threads take the most urgent ready task. They start with the first push.
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "base/profile.h"
#include "engine/scheduler.h"

namespace twibil::engine {
namespace {

// Kernels split their own loops, so workers are only for independent operations; more would fight for the cores.
constexpr int kMaxWorkers = 4;
// A task that has not ended by then waits for something that the forking thread holds.
constexpr auto kForkPatience = std::chrono::seconds(10);

class Threaded final : public Scheduler {
 public:
  ~Threaded() override {
    {
      Lock lock(core().mutex);
      stop_ = true;
      work_.notify_all();
    }
    for (std::thread& t : threads_) t.join();
  }

  void take(Task* ready) override {
    ready_.push_back(ready);
    std::push_heap(ready_.begin(), ready_.end(), RunsLater());
    if (!finishing_) offer(1);
  }

  void wait(Lock& lock, const Condition& condition) override {
    offer(ready_.size());
    if (in_task() || threads_.empty()) return help(lock, condition);
    Waiting here(waiters_);
    block(lock, done_, condition);
  }

  void before_fork(Lock& lock) override {
    paused_ = true;
    size_t own = in_task() ? 1 : 0;
    Waiting here(waiters_);
    done_.wait_for(lock, kForkPatience, [&] { return running_.size() <= own; });
  }

  void after_fork(bool child) override {
    paused_ = false;
    if (child) forget_threads();
    else work_.notify_all();
  }

  int64_t workers() const override { return static_cast<int64_t>(threads_.size()); }

 private:
  struct Waiting {  // says that somebody listens to done_; entered and left with the lock held or by an exception
    explicit Waiting(std::atomic<int>& count) : count(count) { ++count; }
    ~Waiting() { --count; }
    std::atomic<int>& count;
  };

  /// Makes sure that up to n ready tasks find a thread.
  void offer(size_t n) {
    for (size_t i = std::min(n, idle_); i > 0; --i) work_.notify_one();
    if (n > idle_ && threads_.size() < static_cast<size_t>(std::min(kMaxWorkers, num_threads()))) start_thread();
  }

  void start_thread() {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // no more threads: go on with those there are, or with whoever waits
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }

  Task* pop() {
    std::pop_heap(ready_.begin(), ready_.end(), RunsLater());
    Task* task = ready_.back();
    ready_.pop_back();
    running_.push_back(task);
    offer(ready_.size());
    return task;
  }

  void run(Lock& lock, Task* task) {
    lock.unlock();
    auto failure = execute(*task);
    lock.lock();
    running_.erase(std::find(running_.begin(), running_.end(), task));
    finishing_ = true;
    Task* done = finish(*task, failure);
    finishing_ = false;
    if (waiters_ > 0) done_.notify_all();
    if (done == nullptr) return;
    lock.unlock();
    delete done;
    lock.lock();
  }

  void work() {
    profile::name_thread("engine worker");
    Lock lock(core().mutex);
    while (!stop_) {
      if (!ready_.empty() && !paused_) {
        run(lock, pop());
        continue;
      }
      ++idle_;
      work_.wait(lock);
      --idle_;
    }
  }

  /// A wait inside a task, or without workers: the thread runs other tasks meanwhile, or all workers might wait for
  /// each other.
  void help(Lock& lock, const Condition& condition) {
    while (!condition()) {
      if (!ready_.empty() && !paused_) {
        run(lock, pop());
      } else {
        Waiting here(waiters_);
        block(lock, done_, [&] { return condition() || (!ready_.empty() && !paused_); });
      }
    }
  }

  /// In a forked child: the workers are gone, and what they were running will never end.
  void forget_threads() {
    new (&threads_) std::vector<std::thread>;  // the old handles name threads of the parent
    new (&work_) std::condition_variable;      // their sleepers are gone
    new (&done_) std::condition_variable;
    idle_ = 0;
    waiters_ = 0;
    finishing_ = true;  // no thread starts before the fork is over
    for (Task* task : std::exchange(running_, {})) {
      if (in_task() && task == thread_state().task) {
        running_.push_back(task);
        continue;
      }
      Error lost(ErrorKind::runtime,
                 text(task->name, ": the process forked while this was running; its result is lost"));
      end(*task, std::make_shared<Failure>(std::make_exception_ptr(lost)));
    }
    finishing_ = false;
  }

  std::vector<Task*> ready_;  // a heap
  std::vector<Task*> running_;
  std::vector<std::thread> threads_;
  std::condition_variable work_, done_;
  size_t idle_ = 0;
  std::atomic<int> waiters_{0};
  bool finishing_ = false, paused_ = false, stop_ = false;
};

}  // namespace

std::unique_ptr<Scheduler> make_threaded() { return std::make_unique<Threaded>(); }

}  // namespace twibil::engine
