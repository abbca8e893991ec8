// SPDX-License-Identifier: Apache-2.0
// Threads, bounds, hooks and forks around the engine.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fork_child.h"
#include "base/parallel.h"
#include "engine/fixture.h"
#include "memory/allocator.h"

namespace twibil::engine {
namespace {

using namespace std::chrono_literals;

TEST(EngineThreads, TasksAreDestroyedOnTheCallersThread) {
  on_all_engines([] {
    struct Witness {
      std::thread::id* destroyed_on;
      explicit Witness(std::thread::id* p) : destroyed_on(p) {}
      Witness(Witness&& o) : destroyed_on(std::exchange(o.destroyed_on, nullptr)) {}
      ~Witness() {
        if (destroyed_on != nullptr) *destroyed_on = std::this_thread::get_id();
      }
    };
    std::vector<std::thread::id> where(100);
    for (auto& id : where) push("hold", {}, {}, [w = Witness(&id)] {});
    wait_all();
    for (auto& id : where) EXPECT_EQ(id, std::this_thread::get_id());
  });
}

TEST(EngineThreads, ATaskIsDestroyedByTheThreadThatPushedIt) {
  Team team;
  Engine engine(Kind::threaded);
  static std::atomic<int> destroyed{0};
  struct Witness {
    bool counts = true;
    Witness() = default;
    Witness(Witness&& o) : counts(std::exchange(o.counts, false)) {}
    ~Witness() { destroyed += counts; }
  };
  const auto push_one = [] { push("hold", {}, {}, [w = Witness()] {}); };
  std::thread([&] {
    push_one();
    std::thread(wait_all).join();  // another thread sees the end, but does not destroy what it did not push
    EXPECT_EQ(destroyed, 0);
    push_one();
    wait_all();
    EXPECT_EQ(destroyed, 2);
    push_one();
  }).join();
  wait_all();  // whoever pushed the third has ended
  EXPECT_EQ(destroyed, 3);
}

TEST(EngineThreads, ReleaseOnWorkerNeedsNoCaller) {
  Engine engine(Kind::threaded);
  static std::atomic<bool> gone{false};
  struct Task1 final : Task {
    Task1() : Task("t") { release_on_worker = true; }
    ~Task1() override { gone = true; }
    void run() override {}
  };
  push(std::make_unique<Task1>(), {}, {});
  for (int i = 0; i < 2000 && !gone; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(gone);
}

TEST(EngineThreads, FlightIsBounded) {
  Team team;
  Engine engine(Kind::threaded);
  FlightLimit before = flight_limit();
  set_flight_limit({.tasks = 10, .bytes = 1000});
  std::atomic<int> most{0};
  for (int i = 0; i < 200; ++i) {
    push("slow", {}, {}, [] { std::this_thread::sleep_for(20us); });
    most = std::max<int>(most, static_cast<int>(counters().pending));
  }
  EXPECT_LE(most, 10);
  wait_all();
  for (int i = 0; i < 20; ++i) {
    auto body = [] { std::this_thread::sleep_for(20us); };
    auto task = std::make_unique<FunctionTask<decltype(body)>>("big", body);
    task->bytes = i % 5 == 0 ? 5000 : 400;  // the first kind only fits alone
    push(std::move(task), {}, {});
    ASSERT_LE(counters().pending, 2);
  }
  wait_all();
  set_flight_limit(before);
  EXPECT_THROW(set_flight_limit({.tasks = 0}), Error);
}

TEST(EngineThreads, PendingTasksGiveTheirMemoryBackBeforeAnAllocationFails) {
  Engine engine(Kind::simulated);
  struct Block {  // an array that only its task holds
    Block() : data(allocate_data(50000)) {}
    Block(Block&& o) : data(std::exchange(o.data, nullptr)) {}
    ~Block() {
      if (data != nullptr) free_data(data, 50000);
    }
    void* data;
  };
  push("hold", {}, {}, [b = Block()] {});
  set_memory_limit(memory_stats().current_bytes + 1000);
  void* p = nullptr;
  EXPECT_NO_THROW(p = allocate_data(40000));
  EXPECT_EQ(counters().pending, 0);
  EXPECT_THROW(allocate_data(40000), Error);
  set_memory_limit(0);
  if (p != nullptr) free_data(p, 40000);
}

TEST(EngineThreads, HooksRunAroundSleepAndPollMayThrow) {
  Team team;
  Engine engine(Kind::threaded);
  static std::atomic<int> blocked{0}, polls{0};
  static bool interrupt;
  blocked = polls = 0;
  interrupt = false;
  set_hooks({.poll =
                 [] {
                   EXPECT_EQ(blocked, 0);
                   ++polls;
                   if (interrupt) throw std::runtime_error("interrupted");
                 },
             .before_block = []() -> void* {
               ++blocked;
               return &blocked;
             },
             .after_block =
                 [](void* saved) {
                   EXPECT_EQ(saved, &blocked);
                   --blocked;
                 }});
  Variable v;
  auto slow = [] { std::this_thread::sleep_for(180ms); };
  push("slow", {}, {&v}, slow);
  wait_to_read(&v);
  EXPECT_GE(polls, 1);
  EXPECT_EQ(blocked, 0);
  interrupt = true;
  push("slow", {}, {&v}, slow);
  EXPECT_THROW(wait_to_read(&v), std::runtime_error);
  interrupt = false;
  wait_to_read(&v);  // the engine is as before
  set_hooks({});
}

TEST(EngineThreads, PushAndWaitInsideATask) {
  on_all_engines([] {
    Variable outer[6], inner[6];
    int values[6] = {};
    for (int i = 0; i < 6; ++i)  // more than there are workers
      push("outer", {}, {&outer[i]}, [&, i] {
        EXPECT_TRUE(in_task());
        push("inner", {}, {&inner[i]}, [&, i] { values[i] = i + 1; });
        wait_to_read(&inner[i]);
        wait_to_read(&outer[i]);  // our own: returns at once
        values[i] *= 2;
      });
    wait_all();
    for (int i = 0; i < 6; ++i) EXPECT_EQ(values[i], 2 * (i + 1));
    EXPECT_FALSE(in_task());
  });
}

TEST(EngineThreads, ManyCallers) {
  Team team;
  Engine engine(Kind::threaded);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([] {
      Variable v;
      int64_t value = 0;
      for (int i = 0; i < 500; ++i) {
        push("add", {&v}, {&v}, [&] { ++value; });
        if (i % 50 == 0) {
          wait_to_read(&v);
          ASSERT_EQ(value, i + 1);
        }
      }
      wait_to_read(&v);
      ASSERT_EQ(value, 500);
      drain_retired();
    });
  for (auto& c : callers) c.join();
}

TEST(EngineThreads, KernelsInTasksUseTheTeam) {
  Team team;
  Engine engine(Kind::threaded);
  Variable v[8];
  std::atomic<int64_t> sums[8] = {};
  for (int i = 0; i < 8; ++i)
    push("sum", {}, {&v[i]}, [&, i] {
      parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) sums[i] += k;
      });
    });
  wait_all();
  for (auto& s : sums) EXPECT_EQ(s, 499500);
}

TEST(EngineThreads, ForkUnderLoad) {
  SKIP_WITHOUT_FORK();
  Team team;
  Engine engine(Kind::threaded);
  Variable v;
  std::atomic<int64_t> value{0};
  int64_t pushed = 0;
  for (int i = 0; i < 30; ++i) {
    for (int k = 0; k < 50; ++k, ++pushed) push("add", {&v}, {&v}, [&] { ++value; });
    int status = status_of_child([&] {  // what was pending before the fork ends in the child too
      wait_to_read(&v);
      if (value != pushed) return 1;
      Variable other;
      int x = 0;
      push("set", {}, {&other}, [&] { x = 5; });
      wait_to_read(&other);
      return x == 5 ? 0 : 2;
    });
    EXPECT_EQ(status, 0);
  }
  wait_all();
  EXPECT_EQ(value, pushed);
}

TEST(EngineThreads, ForkOnOtherEngines) {
  SKIP_WITHOUT_FORK();
  on_all_engines([] {
    Variable v;
    int value = 0;
    push("one", {}, {&v}, [&] { value += 1; });
    EXPECT_EQ(status_of_child([&] {
                push("two", {&v}, {&v}, [&] { value += 2; });
                wait_to_read(&v);
                return value;
              }),
              3);
    wait_to_read(&v);
    EXPECT_EQ(value, 1);
  });
}

}  // namespace
}  // namespace twibil::engine
