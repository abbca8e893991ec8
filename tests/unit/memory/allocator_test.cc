// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fork_child.h"
#include "base/settings.h"
#include "memory/arena.h"

namespace twibil {
namespace {

int64_t current() { return memory_stats().current_bytes; }
int64_t peak() { return memory_stats().peak_bytes; }

struct Limit {  // a memory limit for one test
  explicit Limit(int64_t bytes) { set_memory_limit(bytes); }
  ~Limit() { set_memory_limit(0); }
};

#define SKIP_WITHOUT_CACHE() \
  if (setting(Setting::allocator) == "system") GTEST_SKIP() << "blocks are not kept"

ErrorKind kind_of_failure(size_t bytes) {
  try {
    free_data(allocate_data(bytes), bytes);
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "an allocation of " << bytes << " bytes went through";
  return ErrorKind::runtime;
}

TEST(Allocator, CountsRequestedBytesExactly) {
  int64_t before = current();
  std::vector<void*> arrays;
  for (int i = 0; i < 4; ++i) arrays.push_back(allocate_data(10 * sizeof(double)));
  EXPECT_EQ(current() - before, 320);
  for (void* p : arrays) free_data(p, 80);
  EXPECT_EQ(current(), before);
}

TEST(Allocator, PeakIsExactWithOneThread) {
  int64_t before = current();
  reset_peak_memory();
  EXPECT_EQ(peak(), before);
  free_data(allocate_data(1000), 1000);
  EXPECT_EQ(peak(), before + 1000);
  void* large = allocate_data(100000);
  EXPECT_EQ(peak(), before + 100000);
  free_data(allocate_data(500), 500);
  EXPECT_EQ(peak(), before + 100500);
  free_data(large, 100000);
  std::vector<void*> many;  // passes the distance at which a thread tells the shared figure
  for (int i = 0; i < 100; ++i) many.push_back(allocate_data(4000));
  EXPECT_EQ(peak(), before + 400000);
  for (void* p : many) free_data(p, 4000);
  free_data(allocate_data(3000), 3000);
  EXPECT_EQ(peak(), before + 400000);
  EXPECT_EQ(current(), before);
}

TEST(Allocator, EverySizeIsAlignedAndItsOwn) {
  std::mt19937 random(1);
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t bytes = 0; bytes < 300000; bytes = bytes * 5 / 4 + 1) {
    auto* p = static_cast<unsigned char*>(allocate_data(bytes));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u) << bytes;
    std::memset(p, static_cast<int>(blocks.size()), bytes);
    blocks.emplace_back(p, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    for (size_t k = 0; k < blocks[i].second; ++k) ASSERT_EQ(blocks[i].first[k], static_cast<unsigned char>(i));
  for (auto [p, bytes] : blocks) free_data(p, bytes);
}

TEST(Allocator, SmallBlocksComeBackAtOnce) {
  SKIP_WITHOUT_CACHE();
  void* a = allocate_data(80);
  free_data(a, 80);
  EXPECT_EQ(allocate_data(120), a);  // the same class of 128 bytes
  free_data(a, 120);
}

TEST(Allocator, LargeBlocksAreReusedAcrossSizes) {
  SKIP_WITHOUT_CACHE();
  trim_memory();
  void* a = allocate_data(1000000);
  free_data(a, 1000000);
  int64_t reserved = memory_stats().reserved_bytes;
  void* b = allocate_data(900000);
  EXPECT_EQ(b, a);  // a quarter larger is close enough
  void* c = allocate_data(400000);
  EXPECT_NE(c, a);
  free_data(b, 900000);
  free_data(c, 400000);
  void* d = allocate_data(600000);  // the cached 1,000,000 is too large for it
  EXPECT_NE(d, a);
  free_data(d, 600000);
  EXPECT_GT(memory_stats().reserved_bytes, reserved);
  EXPECT_GT(trim_memory(), 1000000);
  EXPECT_LT(memory_stats().reserved_bytes, reserved);
}

TEST(Allocator, HugeRequestFailsCleanly) {
  MemoryStats before = memory_stats();
  EXPECT_EQ(kind_of_failure(size_t{1} << 62), ErrorKind::memory);
  EXPECT_EQ(kind_of_failure(size_t{1} << 46), ErrorKind::memory);  // passes our own check, not the system's
  EXPECT_EQ(kind_of_failure(SIZE_MAX), ErrorKind::memory);
  MemoryStats after = memory_stats();
  EXPECT_EQ(after.current_bytes, before.current_bytes);
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(after.allocations, before.allocations);
}

TEST(Allocator, LimitKeepsStateAndRetryWorks) {
  int64_t base = current();
  reset_peak_memory();
  Limit limit(base + 400);
  std::vector<void*> arrays;
  for (int i = 0; i < 5; ++i) arrays.push_back(allocate_data(80));
  MemoryStats before = memory_stats();
  try {
    allocate_data(80);
    FAIL() << "over the limit";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::memory);
    EXPECT_EQ(e.message(), text("memory: live array data must stay within the limit of ", base + 400,
                                " bytes; got a request for 80 with ", base + 400, " in use (peak ", base + 400,
                                "). Release arrays, use smaller batches or raise TWIBIL_MEMORY_LIMIT"));
  }
  EXPECT_EQ(kind_of_failure(5000), ErrorKind::memory);
  MemoryStats after = memory_stats();
  EXPECT_EQ(after.current_bytes, before.current_bytes);
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(after.allocations, before.allocations);
  free_data(arrays.back(), 80);
  arrays.back() = allocate_data(80);
  for (void* p : arrays) free_data(p, 80);
}

TEST(Allocator, LimitHoldsForAThreadThatFreedWhatOthersTook) {
  void* blocks[10];
  std::thread([&] {
    for (void*& p : blocks) p = allocate_data(1000);
  }).join();
  for (void* p : blocks) free_data(p, 1000);
  Limit limit(current() + 100);
  EXPECT_EQ(kind_of_failure(200), ErrorKind::memory);
  void* p = allocate_data(80);
  free_data(p, 80);
}

TEST(Allocator, LimitSeesWhatOtherThreadsFreed) {
  void* blocks[4];
  for (void*& p : blocks) p = allocate_data(1000);
  Limit limit(current() + 100);
  std::thread([&] {
    for (void* p : blocks) free_data(p, 1000);
  }).join();
  void* p = allocate_data(4000);
  free_data(p, 4000);
}

TEST(Allocator, PressureCallbackGivesASecondChance) {
  static void* hoard;
  hoard = allocate_data(50000);
  Limit limit(current() + 10);
  PressureCallback before = set_memory_pressure_callback([] {
    if (hoard == nullptr) return false;
    free_data(hoard, 50000);
    hoard = nullptr;
    return true;
  });
  void* p = allocate_data(40000);
  EXPECT_EQ(hoard, nullptr);
  EXPECT_EQ(kind_of_failure(40000), ErrorKind::memory);
  set_memory_pressure_callback(before);
  free_data(p, 40000);
}

TEST(Allocator, NthAllocationFailsOnce) {
  for (size_t bytes : {80, 5000}) {
    fail_allocation(3);
    free_data(allocate_data(bytes), bytes);
    free_block(allocate_block(bytes), bytes);
    EXPECT_EQ(kind_of_failure(bytes), ErrorKind::memory);
    free_data(allocate_data(bytes), bytes);
    EXPECT_EQ(fail_allocation(0), 0);
  }
  fail_allocation(5);
  free_data(allocate_data(80), 80);
  EXPECT_EQ(fail_allocation(0), 4);
}

TEST(Allocator, OneThreadAllocatesAnotherFrees) {
  constexpr int kRounds = 200, kBlocks = 1000;
  int64_t before = current(), reserved = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < kBlocks; ++i) blocks.push_back(allocate_data(256));
    std::thread([&] {
      for (void* p : blocks) free_data(p, 256);
    }).join();
    if (round == 2) reserved = memory_stats().reserved_bytes;
  }
  EXPECT_EQ(current(), before);
  EXPECT_EQ(memory_stats().reserved_bytes, reserved);
}

TEST(Allocator, ListsOfALivingThreadStayBounded) {
  // A consumer that never allocates must not collect what the producer needs.
  std::atomic<void*> mail{nullptr};
  std::atomic<bool> stop{false};
  std::thread consumer([&] {
    while (!stop)
      if (void* p = mail.exchange(nullptr)) free_data(p, 4000);
      else std::this_thread::yield();
  });
  auto send = [&](int n) {
    for (int i = 0; i < n; ++i) {
      void* p = allocate_data(4000);
      void* empty = nullptr;
      while (!mail.compare_exchange_weak(empty, p)) {
        empty = nullptr;
        std::this_thread::yield();
      }
    }
  };
  send(500);
  int64_t reserved = memory_stats().reserved_bytes;
  send(5000);
  EXPECT_LE(memory_stats().reserved_bytes, reserved + 256 * 1024);
  while (mail != nullptr) std::this_thread::yield();
  stop = true;
  consumer.join();
}

TEST(Allocator, ManyThreadsMixed) {
  int64_t before = current();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      std::mt19937 random(t);
      std::vector<std::pair<unsigned char*, size_t>> mine;
      for (int i = 0; i < 4000; ++i) {
        if (mine.size() > 100 || (!mine.empty() && random() % 2 == 0)) {
          size_t k = random() % mine.size();
          auto [p, bytes] = mine[k];
          ASSERT_EQ(p[0], static_cast<unsigned char>(bytes));
          ASSERT_EQ(p[bytes - 1], static_cast<unsigned char>(bytes));
          free_data(p, bytes);
          mine[k] = mine.back();
          mine.pop_back();
        } else {
          size_t bytes = 1 + random() % (random() % 8 == 0 ? 100000 : 4096);
          auto* p = static_cast<unsigned char*>(allocate_data(bytes));
          p[0] = p[bytes - 1] = static_cast<unsigned char>(bytes);
          mine.emplace_back(p, bytes);
        }
      }
      for (auto [p, bytes] : mine) free_data(p, bytes);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(current(), before);
}

TEST(Allocator, BlocksDoNotCount) {
  MemoryStats before = memory_stats();
  for (size_t bytes : {1, 256, 320, 512, 5000}) free_block(allocate_block(bytes), bytes);
  struct Node {
    explicit Node(int v) : value(v) {
      if (v < 0) throw_error(ErrorKind::value, "negative");
    }
    int value;
  };
  Node* node = make_block<Node>(5);
  EXPECT_EQ(node->value, 5);
  destroy_block(node);
  EXPECT_THROW(make_block<Node>(-1), Error);
  MemoryStats after = memory_stats();
  EXPECT_EQ(after.current_bytes, before.current_bytes);
  EXPECT_EQ(after.allocations, before.allocations);
}

TEST(Allocator, CountedDataWithoutABlock) {
  int64_t before = current();
  count_data(thread_state(), 48);
  EXPECT_EQ(current(), before + 48);
  uncount_data(thread_state(), 48);
  Limit limit(before + 40);
  EXPECT_THROW(count_data(thread_state(), 48), Error);
  EXPECT_EQ(current(), before);
}

#ifdef TW_ASAN
TEST(Allocator, WhatIsBehindABlockIsClosed) {
  for (int round = 0; round < 2; ++round)  // fresh from the system, then from the cache
    for (size_t bytes : {0, 1, 8, 63, 64, 65, 128, 4032, 4095, 4096, 4097, 4608, 5000, 100000, 3 << 20, 5000000}) {
      auto* p = static_cast<char*>(allocate_data(bytes));
      EXPECT_FALSE(__asan_region_is_poisoned(p, bytes)) << bytes;
      for (size_t k : {0, 8, 32}) EXPECT_TRUE(__asan_address_is_poisoned(p + bytes + k)) << bytes << " + " << k;
      EXPECT_TRUE(__asan_address_is_poisoned(p - 1)) << bytes;
      free_data(p, bytes);
      EXPECT_TRUE(bytes == 0 || __asan_address_is_poisoned(p)) << bytes;
    }
  trim_memory();
}
#endif

TEST(Allocator, ForkUnderLoad) {
  SKIP_WITHOUT_FORK();
  // The load must not be inside malloc at the fork: AddressSanitizer's own is not safe there.
  auto churn = [] {
    static void* blocks[600];
    for (void*& p : blocks) p = allocate_data(2000);
    for (void* p : blocks) free_data(p, 2000);
    free_data(allocate_data(70000), 70000);
  };
  std::atomic<bool> stop{false}, warm{false};
  std::thread load([&] {
    for (int i = 0; i < 10 || !stop; ++i) {
      churn();
      if (i == 9) warm = true;
    }
  });
  while (!warm) std::this_thread::yield();
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(status_of_child([] {
                std::vector<void*> blocks;
                for (int k = 0; k < 1000; ++k) blocks.push_back(allocate_data(2000));
                for (void* p : blocks) free_data(p, 2000);
                free_data(allocate_data(70000), 70000);
                return 0;
              }),
              0);
  stop = true;
  load.join();
}

TEST(Arena, OffsetsAndBumps) {
  int64_t before = current();
  {
    Arena arena(1000);
    EXPECT_EQ(current(), before + 1000);
    char* base = static_cast<char*>(arena.at(0));
    EXPECT_EQ(arena.at(128), base + 128);
    EXPECT_EQ(arena.take(10), base);
    EXPECT_EQ(arena.take(100), base + 64);
    EXPECT_EQ(arena.used(), 164u);
    EXPECT_THROW(arena.take(900), Error);
    arena.reset();
    EXPECT_EQ(arena.take(1000), base);
    Arena other = std::move(arena);
    EXPECT_EQ(other.at(0), base);
    EXPECT_EQ(arena.size(), 0u);
  }
  EXPECT_EQ(current(), before);
}

}  // namespace
}  // namespace twibil
