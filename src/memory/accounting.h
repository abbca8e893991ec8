// SPDX-License-Identifier: Apache-2.0
// Inside memory/ only: the shared figures behind memory_stats(), the limit, the failure hook, and the list of threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "memory/thread_state.h"

namespace twibil::memory {

/// Adds live bytes for a large block; throws when the limit forbids them, with nothing changed. Once the block is there
/// keep_charge() lets the peak know; undo_charge() takes the bytes back without a trace.
void charge(ThreadState& state, size_t bytes);
void keep_charge(ThreadState& state);
void undo_charge(size_t bytes);
void discharge(ThreadState& state, size_t bytes);
/// Moves a thread's share into the shared figures.
void flush(ThreadState& state);
void add_reserved(int64_t bytes);
void add_ended_allocations(int64_t n);  // of a thread that ends
/// True when cached blocks of `cached` bytes in total may be kept for later.
/// TWIBIL_ALLOCATOR=system: blocks come from malloc one by one and are never kept, so that whoever watches malloc (the
/// sanitizers, valgrind) sees where each begins and ends, its use after the end, and leaks.
bool uses_system_blocks();
bool may_cache(int64_t cached);
/// True when taking `bytes` more from the system would pass the limit although the live data does not.
bool should_trim(size_t bytes);
/// The failure hook: every allocation of a watched thread comes here; throws when it is its turn.
void count_down(size_t bytes);
bool failure_armed();
[[noreturn]] void throw_out_of_memory(size_t bytes);
bool relieve_pressure();  // runs the callback of set_memory_pressure_callback
/// Reads TWIBIL_MEMORY_LIMIT once.
void read_limit_setting();

/// Guards the depot of small blocks and the list of thread states.
std::mutex& depot_mutex();
ThreadState* all_threads();  // the list's head; hold depot_mutex()
std::mutex& large_mutex();   // taken after depot_mutex() where both are

}  // namespace twibil::memory
