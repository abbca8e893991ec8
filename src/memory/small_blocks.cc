// SPDX-License-Identifier: Apache-2.0
// Thread states and the depot behind their free lists: chains of blocks that one thread had too many of and another
// takes whole, so that the depot's lock is paid once for a chain.
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/error.h"
#include "memory/accounting.h"
#include "memory/allocator.h"

namespace twibil {

constinit thread_local ThreadState* t_thread_state = nullptr;

namespace {

using memory::depot_mutex;

constexpr size_t kSlabBytes = 256 * 1024;

// A free block's words: the next block of its chain, and in a chain's first block also the next chain and the length.
struct Chain {
  void* next_block;
  Chain* next_chain;
  int64_t length;
};

struct Depot {
  Chain* chains[kSmallClasses] = {};
  char* slab = nullptr;  // what is not cut yet
  size_t slab_left = 0;
  ThreadState* threads = nullptr;
} g_depot;

int32_t list_length(size_t size_class) {
  return static_cast<int32_t>(std::clamp<size_t>(128 * 1024 / (size_class * kBlockUnit), 16, 512));
}

void* next_of(void* block) {
  TW_UNPOISON(block, sizeof(void*));
  void* next = *static_cast<void**>(block);
  TW_POISON(block, sizeof(void*));
  return next;
}
void set_next(void* block, void* next) {
  TW_UNPOISON(block, sizeof(void*));
  *static_cast<void**>(block) = next;
  TW_POISON(block, sizeof(void*));
}

void* take_from_system(size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kBlockUnit, bytes) != 0) return nullptr;
  memory::add_reserved(static_cast<int64_t>(bytes));
  TW_POISON(block, bytes);
  return block;
}
void give_to_system(void* block, size_t bytes) {
  TW_UNPOISON(block, bytes);
  std::free(block);
  memory::add_reserved(-static_cast<int64_t>(bytes));
}

void give_chain(size_t size_class, void* first, int64_t length) {
  TW_UNPOISON(first, sizeof(Chain));
  auto* chain = static_cast<Chain*>(first);
  chain->length = length;
  std::lock_guard lock(depot_mutex());
  chain->next_chain = g_depot.chains[size_class];
  g_depot.chains[size_class] = chain;
}

/// Cuts a few blocks from the slab: cutting all that a list can hold would touch pages that may never be used.
Chain* cut_chain(size_t size_class) {
  size_t bytes = size_class * kBlockUnit;
  if (g_depot.slab_left < bytes) {
    void* slab = nullptr;
    if (posix_memalign(&slab, kBlockUnit, kSlabBytes) != 0) return nullptr;
    memory::add_reserved(kSlabBytes);
    g_depot.slab = static_cast<char*>(slab);
    g_depot.slab_left = kSlabBytes;
  }
  size_t count = std::min(std::clamp<size_t>(8192 / bytes, 2, 64), g_depot.slab_left / bytes);
  char* first = g_depot.slab;
  for (size_t i = 0; i < count; ++i)
    *reinterpret_cast<void**>(first + i * bytes) = i + 1 < count ? first + (i + 1) * bytes : nullptr;
  TW_POISON(first + bytes, (count - 1) * bytes);
  auto* chain = reinterpret_cast<Chain*>(first);
  chain->length = static_cast<int64_t>(count);
  g_depot.slab += count * bytes;
  g_depot.slab_left -= count * bytes;
  return chain;
}

Chain* take_chain(size_t size_class) {
  std::lock_guard lock(depot_mutex());
  Chain* chain = g_depot.chains[size_class];
  if (chain == nullptr) return cut_chain(size_class);
  g_depot.chains[size_class] = chain->next_chain;
  return chain;
}

void end_thread(void* pointer) {
  auto* state = static_cast<ThreadState*>(pointer);
  for (size_t c = 1; c < kSmallClasses; ++c)
    if (void* head = state->free[c].head) give_chain(c, head, list_length(c) - state->free[c].room);
  memory::flush(*state);
  memory::add_ended_allocations(state->allocations.load(std::memory_order_relaxed));
  {
    std::lock_guard lock(depot_mutex());
    if (state->previous != nullptr) state->previous->next = state->next;
    else g_depot.threads = state->next;
    if (state->next != nullptr) state->next->previous = state->previous;
  }
  t_thread_state = nullptr;
  delete state;
}

// A forked child must find the depot whole, so forking waits for whoever is inside.
void lock_for_fork() {
  depot_mutex().lock();
  memory::large_mutex().lock();
}
void unlock_after_fork() {
  memory::large_mutex().unlock();
  depot_mutex().unlock();
}

pthread_key_t thread_end_key() {
  static const pthread_key_t key = [] {
    pthread_key_t k;
    TW_ASSERT(pthread_key_create(&k, end_thread) == 0);
    TW_ASSERT(pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork) == 0);
    return k;
  }();
  return key;
}

}  // namespace

namespace memory {
std::mutex& depot_mutex() {
  static constinit std::mutex mutex;
  return mutex;
}
ThreadState* all_threads() { return g_depot.threads; }
}  // namespace memory

ThreadState& make_thread_state() {
  pthread_key_t key = thread_end_key();
  memory::read_limit_setting();
  auto* state = new ThreadState;
  if (!memory::uses_system_blocks())  // lists without room send every block to spill()
    for (size_t c = 1; c < kSmallClasses; ++c) state->free[c].room = list_length(c);
  {
    std::lock_guard lock(depot_mutex());
    state->watched = memory::failure_armed();
    state->next = g_depot.threads;
    if (state->next != nullptr) state->next->previous = state;
    g_depot.threads = state;
  }
  pthread_setspecific(key, state);
  t_thread_state = state;
  return *state;
}

void* refill(ThreadState& state, size_t size_class) {
  size_t bytes = size_class * kBlockUnit;
  if (state.watched.load(std::memory_order_relaxed)) memory::count_down(bytes);
  if (memory::uses_system_blocks()) {
    void* block = take_from_system(bytes);
    if (block == nullptr) memory::throw_out_of_memory(bytes);
    return block;
  }
  FreeBlocks& list = state.free[size_class];
  if (list.head == nullptr) {
    Chain* chain = take_chain(size_class);
    if (chain == nullptr) memory::throw_out_of_memory(bytes);
    list.room -= static_cast<int32_t>(chain->length);
    list.head = chain;
    TW_POISON(chain, bytes);
  }
  void* block = list.head;
  list.head = next_of(block);
  ++list.room;
  return block;
}

/// The list is full: the newer half, still in this core's cache, stays; the rest goes to the depot as one chain.
void spill(ThreadState& state, size_t size_class, void* block) {
  if (memory::uses_system_blocks()) return give_to_system(block, size_class * kBlockUnit);
  TW_UNPOISON(block, sizeof(void*));  // the end of a block smaller than the pointer that is written now
  FreeBlocks& list = state.free[size_class];
  int32_t length = list_length(size_class), kept = length / 2;
  void* last = list.head;
  for (int32_t i = 1; i < kept; ++i) last = next_of(last);
  void* rest = next_of(last);
  set_next(last, nullptr);
  list.room += length - kept;
  give_chain(size_class, rest, length - kept);
  push_small(state, block, size_class * kBlockUnit - kRedzone);
}

}  // namespace twibil
