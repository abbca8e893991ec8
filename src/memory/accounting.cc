// SPDX-License-Identifier: Apache-2.0
#include "memory/accounting.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/settings.h"
#include "memory/allocator.h"

namespace twibil {

std::atomic<int64_t> g_flush_bytes{64 * 1024};

namespace {

std::atomic<int64_t> g_live{0};  // without what threads have not flushed
std::atomic<int64_t> g_peak{0};
std::atomic<int64_t> g_reserved{0};
std::atomic<int64_t> g_limit{0};
std::atomic<int64_t> g_ended_allocations{0};  // by threads that have ended
std::atomic<int64_t> g_fail_after{0};
std::atomic<PressureCallback> g_release{nullptr};

void raise_peak(int64_t candidate) {
  int64_t peak = g_peak.load(std::memory_order_relaxed);
  while (candidate > peak && !g_peak.compare_exchange_weak(peak, candidate, std::memory_order_relaxed)) {
  }
}

int64_t unflushed() {
  std::lock_guard lock(memory::depot_mutex());
  int64_t sum = 0;
  for (ThreadState* s = memory::all_threads(); s != nullptr; s = s->next)
    sum += s->live.load(std::memory_order_relaxed);
  return sum;
}

[[noreturn]] void throw_limit(size_t bytes) {
  MemoryStats now = memory_stats();
  throw_error(ErrorKind::memory,
              text("memory: live array data must stay within the limit of ", now.limit_bytes,
                   " bytes; got a request for ", bytes, " with ", now.current_bytes, " in use (peak ", now.peak_bytes,
                   "). Release arrays, use smaller batches or raise TWIBIL_MEMORY_LIMIT"));
}

/// Takes `bytes` into the shared figure. `own` is the part of this thread that the shared figure does not know.
bool try_charge(int64_t bytes, int64_t own) {
  int64_t total = g_live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t limit = g_limit.load(std::memory_order_relaxed);
  if (limit > 0 && total + own > limit && total + unflushed() > limit) {
    g_live.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  return true;
}

/// Brings the peak up to date and starts a new stretch of `high`: needed whenever the shared figure moves.
void note_peak(ThreadState& state) {
  raise_peak(g_live.load(std::memory_order_relaxed) + state.high.load(std::memory_order_relaxed));
  state.high.store(state.live.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace

void raise_high(ThreadState& state, int64_t live, size_t bytes, void* block) {
  // What a thread freed for others is no credit beyond the usual distance: the limit may be younger.
  const int64_t before = live - static_cast<int64_t>(bytes), distance = g_flush_bytes.load(std::memory_order_relaxed);
  if (live <= distance && before >= -distance) {
    state.high.store(live, std::memory_order_relaxed);
    return;
  }
  state.live.store(before, std::memory_order_relaxed);
  memory::flush(state);
  auto give_back = [&] {
    state.allocations.store(state.allocations.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    if (block != nullptr) push_small(state, block, bytes);
  };
  if (!try_charge(static_cast<int64_t>(bytes), 0)) {
    bool relieved = false;
    try {
      relieved = memory::relieve_pressure();  // may wait, and a wait may be interrupted
    } catch (...) {
      give_back();
      throw;
    }
    if (!relieved || !try_charge(static_cast<int64_t>(bytes), state.live.load(std::memory_order_relaxed))) {
      give_back();
      throw_limit(bytes);
    }
  }
  note_peak(state);
}

void lower_live(ThreadState& state) { memory::flush(state); }

namespace memory {

void flush(ThreadState& state) {
  note_peak(state);
  g_live.fetch_add(state.live.load(std::memory_order_relaxed), std::memory_order_relaxed);
  state.live.store(0, std::memory_order_relaxed);
  state.high.store(0, std::memory_order_relaxed);
}

void charge(ThreadState& state, size_t bytes) {
  note_peak(state);
  auto attempt = [&] { return try_charge(static_cast<int64_t>(bytes), state.live.load(std::memory_order_relaxed)); };
  if (!attempt() && !(relieve_pressure() && attempt())) throw_limit(bytes);
}

void keep_charge(ThreadState& state) {
  note_peak(state);
  state.allocations.store(state.allocations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void undo_charge(size_t bytes) { g_live.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed); }

void discharge(ThreadState& state, size_t bytes) {
  note_peak(state);
  g_live.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

void add_reserved(int64_t bytes) { g_reserved.fetch_add(bytes, std::memory_order_relaxed); }

bool uses_system_blocks() {
  static const bool system = [] {
    const std::string value = setting(Setting::allocator).value_or("caching");
    TW_CHECK(value == "caching" || value == "system", value, "TWIBIL_ALLOCATOR: must be caching or system; got `",
             value, "`");
    return value == "system";
  }();
  return system;
}

bool may_cache(int64_t cached) {
  if (uses_system_blocks()) return false;
  // A training step frees and takes again about what its peak is; more than that is left over from something else.
  return cached <= std::max<int64_t>(int64_t{256} << 20, g_peak.load(std::memory_order_relaxed));
}

bool should_trim(size_t bytes) {
  int64_t limit = g_limit.load(std::memory_order_relaxed);
  return limit > 0 && g_reserved.load(std::memory_order_relaxed) + static_cast<int64_t>(bytes) > limit + limit / 8;
}

bool failure_armed() { return g_fail_after.load(std::memory_order_relaxed) > 0; }

void count_down(size_t bytes) {
  if (!failure_armed() || g_fail_after.fetch_sub(1) != 1) return;
  throw_error(ErrorKind::memory, text("memory: an allocation of ", bytes, " bytes failed because a test asked for it"));
}

void throw_out_of_memory(size_t bytes) {
  MemoryStats now = memory_stats();
  throw_error(ErrorKind::memory,
              text("memory: the system must provide ", bytes, " bytes; got none, with ", now.current_bytes,
                   " bytes of live data (peak ", now.peak_bytes, "). Release arrays or use smaller batches"));
}

bool relieve_pressure() {
  PressureCallback release = g_release.load();
  return release != nullptr && release();
}

void read_limit_setting() {
  static const bool once = [] {
    if (int64_t limit = setting_bytes(Setting::memory_limit, 0); limit > 0) set_memory_limit(limit);
    return true;
  }();
  (void)once;
}

}  // namespace memory

MemoryStats memory_stats() {
  ThreadState& self = thread_state();
  int64_t allocations = g_ended_allocations.load(std::memory_order_relaxed), others = 0;
  {
    std::lock_guard lock(memory::depot_mutex());
    for (ThreadState* s = memory::all_threads(); s != nullptr; s = s->next) {
      allocations += s->allocations.load(std::memory_order_relaxed);
      if (s != &self) others += s->live.load(std::memory_order_relaxed);
    }
  }
  int64_t base = g_live.load(std::memory_order_relaxed) + others;
  raise_peak(base + self.high.load(std::memory_order_relaxed));
  return {base + self.live.load(std::memory_order_relaxed), g_peak.load(std::memory_order_relaxed),
          g_reserved.load(std::memory_order_relaxed), g_limit.load(std::memory_order_relaxed), allocations};
}

void reset_peak_memory() {
  ThreadState& self = thread_state();
  self.high.store(self.live.load(std::memory_order_relaxed), std::memory_order_relaxed);
  g_peak.store(g_live.load(std::memory_order_relaxed) + unflushed(), std::memory_order_relaxed);
}

void set_memory_limit(int64_t bytes) {
  TW_CHECK(bytes >= 0, value, "set_memory_limit: bytes must be at least 0 (0: no limit); got ", bytes);
  constexpr int64_t kFlush = 64 * 1024;
  bool small = bytes > 0 && bytes / 4096 < kFlush;
  g_limit.store(bytes, std::memory_order_relaxed);
  g_flush_bytes.store(!small ? kFlush : bytes < (int64_t{1} << 20) ? 0 : bytes / 4096, std::memory_order_relaxed);
  // Every thread shall ask again at its next allocation: what `high` allows was agreed under the old limit.
  std::lock_guard lock(memory::depot_mutex());
  for (ThreadState* s = memory::all_threads(); s != nullptr; s = s->next)
    s->high.store(s->live.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

PressureCallback set_memory_pressure_callback(PressureCallback release) { return g_release.exchange(release); }

int64_t fail_allocation(int64_t n) {
  thread_state();
  std::lock_guard lock(memory::depot_mutex());
  int64_t left = std::max<int64_t>(0, g_fail_after.exchange(n));
  for (ThreadState* s = memory::all_threads(); s != nullptr; s = s->next)
    s->watched.store(n > 0, std::memory_order_relaxed);
  return left;
}

namespace memory {
void add_ended_allocations(int64_t n) { g_ended_allocations.fetch_add(n, std::memory_order_relaxed); }
}  // namespace memory

}  // namespace twibil
