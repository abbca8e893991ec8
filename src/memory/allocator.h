// SPDX-License-Identifier: Apache-2.0
// The caching allocator. allocate_data() is for elements of arrays and counts in the figures; allocate_block() is for
// bookkeeping (headers, nodes, tasks) and does not. Up to 4 KiB both are a pop from the calling thread's free list.
// A block may be freed on any thread: it joins that thread's list, and long lists give half of themselves to a depot.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/poison.h"
#include "memory/thread_state.h"

namespace twibil {

struct MemoryStats {
  int64_t current_bytes;   // requested bytes of live array data: exact
  int64_t peak_bytes;      // its maximum since start or reset; exact with one thread, else within 64 KiB a thread
  int64_t reserved_bytes;  // taken from the system, cached blocks included
  int64_t limit_bytes;     // 0: none
  int64_t allocations;     // allocate_data() calls so far
};
MemoryStats memory_stats();
void reset_peak_memory();
/// Allocations that would lift current_bytes above the limit throw a memory error and change nothing. 0: no limit.
/// Starts as TWIBIL_MEMORY_LIMIT. From 256 MiB up threads may together overshoot by 64 KiB each; below by limit / 4096.
void set_memory_limit(int64_t bytes);
/// Gives cached large blocks back to the system; returns how many bytes. Also happens before the system says no.
int64_t trim_memory();
/// `release` runs on the allocating thread before a memory error is thrown; true means that a retry may succeed.
/// It must not allocate data. nullptr: none. Returns the callback before.
using PressureCallback = bool (*)();
PressureCallback set_memory_pressure_callback(PressureCallback release);

/// For tests: the n-th allocation from now (1 = the next; data and blocks, any thread) throws a memory error, once.
/// 0 switches it off. Returns how many allocations were still to go before the failure (0: it has happened or was off).
int64_t fail_allocation(int64_t n);

// ---- slow halves; use the functions below ----
void* refill(ThreadState& state, size_t size_class);
void spill(ThreadState& state, size_t size_class, void* block);
void raise_high(ThreadState& state, int64_t live, size_t bytes, void* block);
void lower_live(ThreadState& state);
void* allocate_large(size_t bytes);
void free_large(void* p, size_t bytes);
void* allocate_large_block(size_t bytes);
void free_large_block(void* p);
extern std::atomic<int64_t>
    g_flush_bytes;  // how far a thread's `live` may be from zero before the shared figure learns it

inline size_t small_class(size_t bytes) {
  return bytes + kRedzone == 0 ? 1 : (bytes + kRedzone + kBlockUnit - 1) / kBlockUnit;
}

inline void* pop_small(ThreadState& state, size_t bytes) {
  size_t size_class = small_class(bytes);
  FreeBlocks& list = state.free[size_class];
  void* p = list.head;
  if (p == nullptr || state.watched.load(std::memory_order_relaxed)) [[unlikely]]
    p = refill(state, size_class);
  else {
    TW_UNPOISON(p, sizeof(void*));
    list.head = *static_cast<void**>(p);
    ++list.room;
  }
  TW_UNPOISON(p, bytes);
  TW_POISON(static_cast<char*>(p) + bytes, bytes < sizeof(void*) ? sizeof(void*) - bytes : 0);  // the pointer's rest
  return p;
}
inline void push_small(ThreadState& state, void* p, size_t bytes) {
  size_t size_class = small_class(bytes);
  FreeBlocks& list = state.free[size_class];
  if (list.room <= 0) [[unlikely]]
    return spill(state, size_class, p);
  if (bytes < sizeof(void*))
    TW_UNPOISON(p, sizeof(void*));  // a larger block stays as it is, so that a double free is caught
  *static_cast<void**>(p) = list.head;
  list.head = p;
  --list.room;
  TW_POISON(p, size_class * kBlockUnit);
}

/// 64-byte aligned, uninitialised. Never null: throws a memory error.
inline void* allocate_block(size_t bytes) {
  return bytes <= kMaxSmall ? pop_small(thread_state(), bytes) : allocate_large_block(bytes);
}
/// `bytes` is what was asked for.
inline void free_block(void* p, size_t bytes) {
  if (bytes <= kMaxSmall) push_small(thread_state(), p, bytes);
  else free_large_block(p);
}

/// Counts data that needs no block of its own (elements stored inside a header): the same figures and limit as
/// allocate_data. `block`, when given, is freed if that throws.
inline void count_data(ThreadState& state, size_t bytes, void* block = nullptr) {
  int64_t live = state.live.load(std::memory_order_relaxed) + static_cast<int64_t>(bytes);
  state.live.store(live, std::memory_order_relaxed);
  state.allocations.store(state.allocations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (live > state.high.load(std::memory_order_relaxed)) raise_high(state, live, bytes, block);
}
inline void uncount_data(ThreadState& state, size_t bytes) {
  int64_t live = state.live.load(std::memory_order_relaxed) - static_cast<int64_t>(bytes);
  state.live.store(live, std::memory_order_relaxed);
  if (live < -g_flush_bytes.load(std::memory_order_relaxed)) [[unlikely]]
    lower_live(state);
}

/// 64-byte aligned, uninitialised; zero bytes give a pointer too. Never null: throws a memory error.
inline void* allocate_data(size_t bytes) {
  if (bytes > kMaxSmall) return allocate_large(bytes);
  ThreadState& state = thread_state();
  void* p = pop_small(state, bytes);
  count_data(state, bytes, p);
  return p;
}
inline void free_data(void* p, size_t bytes) {
  if (bytes > kMaxSmall) return free_large(p, bytes);
  ThreadState& state = thread_state();
  push_small(state, p, bytes);
  uncount_data(state, bytes);
}

/// An object in a bookkeeping block.
template <class T, class... Args> T* make_block(Args&&... args) {
  void* p = allocate_block(sizeof(T));
  try {
    return new (p) T(std::forward<Args>(args)...);
  } catch (...) {
    free_block(p, sizeof(T));
    throw;
  }
}
template <class T> void destroy_block(T* object) {
  object->~T();
  free_block(object, sizeof(T));
}

}  // namespace twibil
