// SPDX-License-Identifier: Apache-2.0
// The team: a caller puts its region (the loop) into a slot, wakes sleeping workers and takes chunks itself; workers
// look through the slots, so that any number of callers, nested ones too, share the team without waiting for a turn.
#include "base/parallel.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "base/available_cpus.h"
#include "base/error.h"
#include "base/settings.h"

namespace twibil {
namespace {

// Long enough to bridge the gap between two kernels of a network, short enough not to be seen in a CPU profile.
constexpr int kSpinMicroseconds = 30;
constexpr int kSlots = 16;

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until done() or until the time is up; says whether done() came true.
template <class Done> bool spin_until(int microseconds, const Done& done) {
  if (done()) return true;
  if (microseconds == 0) return false;
  auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

/// One loop. Lives on its caller's stack, which does not return before every worker has left.
struct Region {
  Region(int64_t n, int64_t grain, const void* context, ChunkFunction run)
      : n(n), grain(grain), chunks((n - 1) / grain + 1), context(context), run(run) {}
  const int64_t n, grain, chunks;
  const void* const context;
  const ChunkFunction run;
  alignas(64) std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written once, by whoever set `failed`

  void take_chunks() {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
      int64_t begin = i * grain;
      try {
        run(context, begin, begin + std::min(grain, n - begin));
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        next.store(chunks, std::memory_order_relaxed);  // nobody needs the rest
      }
    }
  }
};

/// Where a caller shows its region. `users` counts workers that look at it; a region is gone from view (null) before
/// its caller waits for `users` to become zero, so each side sees the other (both are sequentially consistent).
struct alignas(64) Slot {
  std::atomic<bool> taken{false};
  std::atomic<Region*> region{nullptr};
  std::atomic<int> users{0};
};

class Team {
 public:
  void run(Region& region, int size);

 private:
  void grow(int workers);
  void work();
  bool scan();
  void leave(Slot& slot);
  void wake(int64_t wanted);
  void wait_for_users(Slot& slot);
  bool sleep(uint64_t seen);
  Slot* take_slot();

  Slot slots_[kSlots];
  alignas(64) std::atomic<uint64_t> epoch_{0};  // rises with each region shown
  std::atomic<int> sleepers_{0};
  std::atomic<int> started_{0};
  std::atomic<int> asked_{0};   // workers the last caller asked for
  std::atomic<int> wanted_{0};  // the same unless the system gave fewer; surplus workers end when they find no work
  std::atomic<int> spin_{0};    // microseconds
  std::mutex mutex_;
  std::condition_variable work_, done_;
};

std::atomic<int> g_num_threads{0};  // 0: not decided yet
std::atomic<Team*> g_team{nullptr};
std::atomic<uint32_t> g_forks{0};
std::mutex g_start_mutex;  // constant-initialised, trivially destroyed

/// A forked child has only the thread that forked: it leaves the parent's team behind, locks included, and starts its
/// own.
void forget_team_in_child() {
  g_team.store(nullptr);
  g_forks.fetch_add(1);
  new (&g_start_mutex) std::mutex;  // its owner may not exist here
}

Team& team() {
  if (Team* t = g_team.load(std::memory_order_acquire)) return *t;
  std::lock_guard lock(g_start_mutex);
  if (Team* t = g_team.load()) return *t;
  static bool registered = pthread_atfork(nullptr, nullptr, forget_team_in_child) == 0;
  TW_ASSERT(registered);
  Team* t = new Team;  // leaked: workers outlive static destructors
  g_team.store(t, std::memory_order_release);
  return *t;
}

void Team::grow(int workers) {
  std::lock_guard lock(mutex_);
  static const int cpus = available_cpus();
  spin_ = workers < cpus ? kSpinMicroseconds : 0;  // with more threads than CPUs spinning takes time from work
  asked_ = wanted_ = workers;
  if (started_ > workers) {
    epoch_.fetch_add(1);
    work_.notify_all();
    return;
  }
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
  while (started_ < workers) {
    try {
      std::thread([this] { work(); }).detach();
    } catch (const std::system_error&) {
      wanted_ = started_.load();  // the system gives no more threads: go on with fewer
      break;
    }
    ++started_;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Team::run(Region& region, int size) {
  if (size - 1 != asked_.load(std::memory_order_relaxed)) grow(size - 1);
  Slot* slot = take_slot();
  if (slot == nullptr) return region.take_chunks();  // more callers than slots: enough is running already
  uint32_t forks = g_forks.load(std::memory_order_relaxed);
  slot->region.store(&region);
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) wake(region.chunks - 1);
  region.take_chunks();
  slot->region.store(nullptr);
  TW_CHECK(forks == g_forks.load(std::memory_order_relaxed), runtime,
           "parallel_for: the process must not fork inside a parallel loop and carry on in the child");
  wait_for_users(*slot);
  slot->taken.store(false, std::memory_order_release);
}

Slot* Team::take_slot() {
  for (Slot& slot : slots_)
    if (!slot.taken.load(std::memory_order_relaxed) && !slot.taken.exchange(true, std::memory_order_acquire))
      return &slot;
  return nullptr;
}

void Team::wake(int64_t wanted) {
  std::lock_guard lock(mutex_);
  for (int64_t i = std::min<int64_t>(wanted, sleepers_); i > 0; --i) work_.notify_one();
}

void Team::wait_for_users(Slot& slot) {
  auto gone = [&] { return slot.users.load() == 0; };
  if (spin_until(spin_, gone)) return;
  std::unique_lock lock(mutex_);
  done_.wait(lock, gone);
}

void Team::leave(Slot& slot) {
  if (slot.users.fetch_sub(1) != 1 || slot.region.load() != nullptr) return;
  std::lock_guard lock(mutex_);
  done_.notify_all();
}

/// Helps every region it finds; says whether there was one.
bool Team::scan() {
  bool found = false;
  for (Slot& slot : slots_) {
    Region* seen = slot.region.load(std::memory_order_relaxed);
    if (seen == nullptr) continue;
    slot.users.fetch_add(1);
    if (Region* region = slot.region.load();
        region != nullptr && region->next.load(std::memory_order_relaxed) < region->chunks) {
      found = true;
      region->take_chunks();
    }
    leave(slot);
  }
  return found;
}

/// Sleeps until a region newer than `seen` is shown; false when this worker is surplus and shall end.
bool Team::sleep(uint64_t seen) {
  std::unique_lock lock(mutex_);
  if (started_ > wanted_) {
    --started_;
    return false;
  }
  sleepers_.fetch_add(1);
  work_.wait(lock, [&] { return epoch_.load() != seen; });
  sleepers_.fetch_sub(1);
  return true;
}

void Team::work() {
  for (;;) {
    uint64_t seen = epoch_.load();
    if (scan()) continue;
    if (spin_until(spin_, [&] { return epoch_.load(std::memory_order_relaxed) != seen; })) continue;
    if (!sleep(seen)) return;
  }
}

}  // namespace

void parallel_chunks(int64_t n, int64_t grain, const void* context, ChunkFunction run) {
  TW_ASSERT(grain > 0);
  if (n <= 0) return;
  Region region(n, grain, context, run);
  int size = num_threads();
  if (size == 1 || region.chunks == 1) region.take_chunks();
  else team().run(region, size);
  if (region.error) std::rethrow_exception(region.error);
}

int num_threads() {
  if (int n = g_num_threads.load(std::memory_order_relaxed)) return n;
  int n = static_cast<int>(std::min<int64_t>(1024, setting_integer(Setting::num_threads, available_cpus(), 1)));
  int undecided = 0;
  g_num_threads.compare_exchange_strong(undecided, n);
  return undecided == 0 ? n : undecided;
}

void set_num_threads(int n) {
  TW_CHECK(n >= 1, value, "set_num_threads: the number of threads must be at least 1; got ", n);
  g_num_threads = std::min(n, 1024);
}

}  // namespace twibil
