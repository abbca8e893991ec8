// SPDX-License-Identifier: Apache-2.0
// What one thread owns: its free lists, its share of the memory figures, and the task that it runs. Reached through one
// initial-exec thread-local pointer: static TLS is scarce in a module that is loaded late, so nothing else stands
// there.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/poison.h"

namespace twibil {

/// Small blocks come in multiples of 64 bytes, the size of a cache line and of the widest vector.
inline constexpr size_t kBlockUnit = 64;
inline constexpr size_t kMaxSmall = 4096;
inline constexpr size_t kSmallClasses =
    (kMaxSmall + kRedzone) / kBlockUnit + 1;  // class c holds blocks of c * 64 bytes; 0 is unused

struct FreeBlocks {
  void* head = nullptr;  // the next pointer is the first word of a free block
  int32_t room = 0;      // blocks that may still be pushed before half of the list goes to the shared depot
};

struct ThreadState {
  FreeBlocks free[kSmallClasses];
  // Written by the owner only (plain moves, no locked instruction); atomic because memory_stats() reads them.
  std::atomic<int64_t> live{0};  // bytes allocated minus bytes freed here since the last flush; may be negative
  std::atomic<int64_t> high{0};  // the largest `live` since the last flush
  std::atomic<int64_t> allocations{0};
  std::atomic<bool> watched{false};  // a test wants to see every allocation: take the slow way
  void* task = nullptr;              // what the engine runs on this thread now; only the engine knows its type
  ThreadState* next = nullptr;       // the list of all states, under the depot's mutex
  ThreadState* previous = nullptr;
};

// constinit tells every user that no initialisation function has to be called before the read.
extern constinit thread_local ThreadState* t_thread_state __attribute__((tls_model("initial-exec")));
ThreadState& make_thread_state();  // the slow half of thread_state()

/// The calling thread's state, made at first use and taken apart when the thread ends.
inline ThreadState& thread_state() {
  ThreadState* state = t_thread_state;
  return state != nullptr ? *state : make_thread_state();
}

}  // namespace twibil
