// SPDX-License-Identifier: Apache-2.0
// Results do not depend on the order that an engine chooses.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/fixture.h"
#include "engine/random_graph.h"

namespace twibil::engine {
namespace {

TEST(EngineOrder, Names) {
  Engine engine(Kind::simulated, {.seed = 42});
  EXPECT_EQ(engine_name(), "simulated:42");
  EXPECT_EQ(engine_kind(), Kind::simulated);
}

TEST(EngineOrder, SimulatedOrdersEqualSerialOrder) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Engine engine(Kind::simulated, {.seed = seed, .delays = seed % 3 == 0 ? 0.3 : 0});
    ASSERT_EQ(difference(seed, seed % 2 ? 0.15 : 0), "");
  }
}

TEST(EngineOrder, ThreadedOrdersEqualSerialOrder) {
  Team team;
  Engine engine(Kind::threaded);
  for (uint64_t seed = 0; seed < 300; ++seed) ASSERT_EQ(difference(seed, seed % 2 ? 0.15 : 0), "");
}

TEST(EngineOrder, NaiveEqualsSerialOrder) {
  Engine engine(Kind::naive);
  for (uint64_t seed = 0; seed < 100; ++seed) ASSERT_EQ(difference(seed, seed % 2 ? 0.15 : 0), "");
}

TEST(EngineOrder, SameSeedSameOrder) {
  auto order = [](uint64_t seed) {
    Engine engine(Kind::simulated, {.seed = seed});
    std::vector<int> out;
    for (int i = 0; i < 20; ++i) push("note", {}, {}, [&out, i] { out.push_back(i); });
    EXPECT_TRUE(out.empty());
    wait_all();
    return out;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(EngineOrder, WriterWaitsForReadersAndReadersShare) {
  Team team;
  Engine engine(Kind::threaded);
  Variable v;
  int value = 1;
  std::atomic<int> together{0};
  for (int i = 0; i < 2; ++i)
    push("read", {&v}, {}, [&] {
      ++together;
      while (together < 2) std::this_thread::yield();  // ends only if both run at once
      EXPECT_EQ(value, 1);
    });
  push("write", {}, {&v}, [&] { value = 2; });
  EXPECT_FALSE(ready_to_read(&v));
  wait_to_read(&v);
  EXPECT_EQ(value, 2);
  EXPECT_TRUE(idle(&v));
}

TEST(EngineOrder, PendingReadersDoNotStopInlineReaders) {
  Engine engine(Kind::simulated);
  Variable v;
  push("read", {&v}, {}, [] {});
  EXPECT_TRUE(ready_to_read(&v));
  EXPECT_FALSE(ready_to_write(&v));
  EXPECT_FALSE(idle(&v));
  wait_to_read(&v);  // returns at once
  EXPECT_FALSE(idle(&v));
  wait_to_write(&v);
  EXPECT_TRUE(idle(&v));
}

TEST(EngineOrder, PriorityThenAge) {
  Team team;
  Engine engine(Kind::threaded);
  set_num_threads(1);  // one worker
  std::atomic<bool> go{false};
  std::vector<int> order;
  push("gate", {}, {}, [&] {
    while (!go) std::this_thread::yield();
  });
  for (int i = 0; i < 6; ++i) {
    auto body = [&order, i] { order.push_back(i); };
    auto task = std::make_unique<FunctionTask<decltype(body)>>("note", body);
    task->priority = i % 2;
    push(std::move(task), {}, {});
  }
  go = true;
  wait_all();
  EXPECT_EQ(counters().workers, 1);
  EXPECT_EQ(order, (std::vector<int>{1, 3, 5, 0, 2, 4}));
}

}  // namespace
}  // namespace twibil::engine
