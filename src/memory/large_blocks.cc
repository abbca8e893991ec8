// SPDX-License-Identifier: Apache-2.0
// Blocks above 4 KiB: sizes are rounded to eight steps a doubling, freed blocks wait in one bin a step, and a request
// takes from its own bin or the next ones as long as the block is at most a quarter larger.
#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#include "memory/accounting.h"
#include "memory/allocator.h"

namespace twibil {
namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMaxBytes = size_t{1} << 47;  // more than an address space holds
constexpr size_t kBins = 48 * 8;

/// Stands in the 64 bytes before the data.
struct LargeBlock {
  size_t capacity;
  size_t mapped;  // bytes of an mmap of its own; 0: from malloc
  LargeBlock* next;
};

struct Cache {
  LargeBlock* bins[kBins] = {};
  int64_t bytes = 0;
} g_cache;

size_t bin_of(size_t bytes) {
  int shift = std::bit_width(bytes - 1) - 4;
  size_t steps = ((bytes - 1) >> shift) + 1;  // 9 to 16
  return static_cast<size_t>(shift) * 8 + steps - 9;
}
size_t capacity_of(size_t bin) { return (bin % 8 + 9) << (bin / 8); }

// Where the block's memory ends; behind `capacity` there is a part of a page in mappings.
[[maybe_unused]] char* end_of(LargeBlock* block) {
  return block->mapped > 0 ? reinterpret_cast<char*>(block) + block->mapped
                           : reinterpret_cast<char*>(block) + kHeaderBytes + block->capacity;
}
void* data_of(LargeBlock* block) { return reinterpret_cast<char*>(block) + kHeaderBytes; }
LargeBlock* block_of(void* data) { return reinterpret_cast<LargeBlock*>(static_cast<char*>(data) - kHeaderBytes); }

/// An own mapping on a huge page's boundary: 512 times fewer page faults.
void* map_huge(size_t& bytes) {
  bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* raw = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto start = reinterpret_cast<uintptr_t>(raw), aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > start) munmap(raw, aligned - start);
  if (size_t tail = start + kHugePage - aligned) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

LargeBlock* take_from_system(size_t capacity) {
  size_t bytes = capacity + kHeaderBytes, mapped = 0;
  void* raw = nullptr;
  if (bytes >= kHugePage && !memory::uses_system_blocks()) {
    raw = map_huge(bytes);
    mapped = bytes;
  } else if (posix_memalign(&raw, kBlockUnit, bytes) != 0) {
    raw = nullptr;
  }
  if (raw == nullptr) return nullptr;
  memory::add_reserved(static_cast<int64_t>(bytes));
  return new (raw) LargeBlock{capacity, mapped, nullptr};
}

/// Under AddressSanitizer only the bytes asked for are open, not the rest of the header and not what rounding added.
void open_bytes([[maybe_unused]] LargeBlock* block, [[maybe_unused]] size_t bytes) {
  [[maybe_unused]] char* data = static_cast<char*>(data_of(block));
  TW_UNPOISON(data, bytes);
  TW_POISON(block + 1, data - reinterpret_cast<char*>(block + 1));
  TW_POISON(data + bytes, end_of(block) - (data + bytes));
}

int64_t give_to_system(LargeBlock* block) {
  size_t bytes = block->mapped > 0 ? block->mapped : block->capacity + kHeaderBytes;
  TW_UNPOISON(block, bytes);
  if (block->mapped > 0) munmap(block, block->mapped);
  else std::free(block);
  memory::add_reserved(-static_cast<int64_t>(bytes));
  return static_cast<int64_t>(bytes);
}

LargeBlock* take_from_cache(size_t bytes) {
  std::lock_guard lock(memory::large_mutex());
  size_t first = bin_of(bytes);
  for (size_t bin = first; bin < first + 3; ++bin) {
    LargeBlock* block = g_cache.bins[bin];
    if (block == nullptr) continue;
    if (block->capacity > bytes + bytes / 4) break;
    g_cache.bins[bin] = block->next;
    g_cache.bytes -= static_cast<int64_t>(block->capacity);
    return block;
  }
  return nullptr;
}

LargeBlock* take(size_t bytes) {
  if (LargeBlock* block = take_from_cache(bytes)) return block;
  size_t capacity = capacity_of(bin_of(bytes));
  if (memory::should_trim(capacity)) trim_memory();
  if (LargeBlock* block = take_from_system(capacity)) return block;
  trim_memory();
  if (LargeBlock* block = take_from_system(capacity)) return block;
  return memory::relieve_pressure() ? take_from_system(capacity) : nullptr;
}

}  // namespace

namespace memory {
std::mutex& large_mutex() {
  static constinit std::mutex mutex;
  return mutex;
}
}  // namespace memory

void* allocate_large(size_t bytes) {
  ThreadState& state = thread_state();
  if (state.watched.load(std::memory_order_relaxed)) memory::count_down(bytes);
  if (bytes > kMaxBytes) memory::throw_out_of_memory(bytes);
  memory::charge(state, bytes);
  LargeBlock* block = nullptr;
  try {
    block = take(bytes);  // may wait for work that holds memory, and a wait may be interrupted
  } catch (...) {
    memory::undo_charge(bytes);
    throw;
  }
  if (block == nullptr) {
    memory::undo_charge(bytes);
    memory::throw_out_of_memory(bytes);
  }
  memory::keep_charge(state);
  open_bytes(block, bytes);
  return data_of(block);
}

void free_large(void* p, size_t bytes) {
  memory::discharge(thread_state(), bytes);
  LargeBlock* block = block_of(p);
  TW_POISON(p, block->capacity);
  {
    std::lock_guard lock(memory::large_mutex());
    if (memory::may_cache(g_cache.bytes + static_cast<int64_t>(block->capacity))) {
      size_t bin = bin_of(block->capacity);
      block->next = g_cache.bins[bin];
      g_cache.bins[bin] = block;
      g_cache.bytes += static_cast<int64_t>(block->capacity);
      return;
    }
  }
  give_to_system(block);
}

void* allocate_large_block(size_t bytes) {
  ThreadState& state = thread_state();
  if (state.watched.load(std::memory_order_relaxed)) memory::count_down(bytes);
  void* p = nullptr;
  if (bytes > kMaxBytes || posix_memalign(&p, kBlockUnit, bytes) != 0) memory::throw_out_of_memory(bytes);
  return p;
}
void free_large_block(void* p) { std::free(p); }

int64_t trim_memory() {
  LargeBlock* all = nullptr;
  {
    std::lock_guard lock(memory::large_mutex());
    for (LargeBlock*& bin : g_cache.bins)
      while (LargeBlock* block = bin) {
        bin = block->next;
        block->next = all;
        all = block;
      }
    g_cache.bytes = 0;
  }
  int64_t given = 0;
  while (LargeBlock* block = all) {
    all = block->next;
    given += give_to_system(block);
  }
  return given;
}

}  // namespace twibil
