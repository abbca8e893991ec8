// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fork_child.h"
#include "base/parallel.h"
#include "engine/random_graph.h"

namespace twibil::engine {
namespace {

using namespace std::chrono_literals;

struct Engine {  // an engine for one test
  explicit Engine(Kind kind, Simulation simulation = {}) { set_engine(kind, simulation); }
  ~Engine() {
    try {
      wait_all();
    } catch (...) {
    }
    set_engine(Kind::threaded);
  }
};

struct Team {  // enough threads for several workers, whatever the machine has
  Team() : before(num_threads()) { set_num_threads(4); }
  ~Team() { set_num_threads(before); }
  int before;
};

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.message();
  } catch (const std::exception& e) {
    return std::string("std: ") + e.what();
  }
  return "no error";
}

template <class F>
void on_all_engines(F&& body) {
  Team team;
  for (Kind kind : {Kind::naive, Kind::simulated, Kind::threaded}) {
    Engine engine(kind, {.seed = 3});
    SCOPED_TRACE(engine_name());
    body();
  }
}

TEST(Engine, Names) {
  Engine engine(Kind::simulated, {.seed = 42});
  EXPECT_EQ(engine_name(), "simulated:42");
  EXPECT_EQ(engine_kind(), Kind::simulated);
}

TEST(Engine, SimulatedOrdersEqualSerialOrder) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Engine engine(Kind::simulated, {.seed = seed, .delays = seed % 3 == 0 ? 0.3 : 0});
    ASSERT_EQ(difference(seed, seed % 2 ? 0.15 : 0), "");
  }
}

TEST(Engine, ThreadedOrdersEqualSerialOrder) {
  Team team;
  Engine engine(Kind::threaded);
  for (uint64_t seed = 0; seed < 300; ++seed) ASSERT_EQ(difference(seed, seed % 2 ? 0.15 : 0), "");
}

TEST(Engine, NaiveEqualsSerialOrder) {
  Engine engine(Kind::naive);
  for (uint64_t seed = 0; seed < 100; ++seed) ASSERT_EQ(difference(seed, seed % 2 ? 0.15 : 0), "");
}

TEST(Engine, SameSeedSameOrder) {
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

TEST(Engine, InjectedFailuresReachEveryDependant) {
  int failed = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Engine engine(Kind::simulated, {.seed = seed, .failures = 0.3});
    Variable a, b;
    int value = 0;
    push("make", {}, {&a}, [&] { value = 1; });
    push("use", {&a}, {&b}, [&] { value += 10; });
    std::string got = message_of([&] { wait_to_read(&b); });
    if (got == "no error") {
      EXPECT_EQ(value, 11);
    } else {
      ++failed;
      EXPECT_NE(got.find(": failed because the simulation asked for it"), std::string::npos);
      EXPECT_EQ(got == "make: failed because the simulation asked for it", value == 0);
    }
  }
  EXPECT_GT(failed, 10);
  EXPECT_LT(failed, 40);
}

TEST(Engine, ErrorTravelsToWhoeverLooks) {
  on_all_engines([] {
    Variable a, b, c;
    bool ran = false;
    struct Failing final : Task {
      Failing() : Task("divide") {}
      void run() override { throw_error(ErrorKind::value, "divide: must not be zero; got 0"); }
      std::string describe() const override { return " (called at train.py:12)"; }
    };
    Variable* out[] = {&a};
    push(std::make_unique<Failing>(), {}, out);
    push("use", {&a}, {&b}, [&] { ran = true; });
    push("good", {}, {&c}, [] {});
    const std::string expected = "divide: must not be zero; got 0 (called at train.py:12)";
    EXPECT_EQ(message_of([&] { wait_to_read(&c); }), "no error");
    for (int i = 0; i < 2; ++i) {  // at every look
      EXPECT_EQ(message_of([&] { wait_to_read(&b); }), expected);
      EXPECT_EQ(message_of([&] { wait_to_read(&a); }), expected);
    }
    EXPECT_FALSE(ran);
    EXPECT_FALSE(idle(&a));
    EXPECT_FALSE(ready_to_read(&a));
    EXPECT_TRUE(ready_to_write(&a));
    EXPECT_EQ(message_of([] { wait_all(); }), "no error");  // it has been looked at
  });
}

TEST(Engine, FirstErrorIsInherited) {
  on_all_engines([] {
    Variable a, b, c;
    push("first", {}, {&a}, [] { throw_error(ErrorKind::value, "first"); });
    push("second", {}, {&b}, [] { throw_error(ErrorKind::value, "second"); });
    push("both", {&b, &a}, {&c}, [] {});
    EXPECT_EQ(message_of([&] { wait_to_read(&c); }), "second");  // first in the order of the operands
    EXPECT_EQ(message_of([] { wait_all(); }), "first");          // unseen so far
    EXPECT_EQ(message_of([] { wait_all(); }), "no error");       // thrown once
    EXPECT_EQ(message_of([&] { wait_to_read(&a); }), "first");   // but the value stays poisoned
  });
}

TEST(Engine, OverwritingClearsTheError) {
  on_all_engines([] {
    Variable a;
    auto poison = [&] { push("bad", {}, {&a}, [] { throw_error(ErrorKind::value, "bad"); }); };
    poison();
    push("part", {&a}, {&a}, [] { ADD_FAILURE() << "a partial write of a failed value ran"; });
    EXPECT_EQ(message_of([&] { wait_to_read(&a); }), "bad");
    push("whole", {}, {&a}, [] {});
    EXPECT_EQ(message_of([&] { wait_to_read(&a); }), "no error");
    poison();
    wait_to_write(&a);
    clear_failure(&a);
    EXPECT_TRUE(idle(&a));
    EXPECT_EQ(message_of([] { wait_all(); }), "bad");
  });
}

TEST(Engine, InlineFailures) {
  Variable a, b;
  store_failure(&a, std::make_exception_ptr(Error(ErrorKind::index, "inline")));
  inherit_failure(&a, &b);
  EXPECT_EQ(message_of([&] { wait_to_read(&b); }), "inline");
  EXPECT_EQ(message_of([] { wait_all(); }), "no error");
}

TEST(Engine, ForeignExceptionsPassUntouched) {
  on_all_engines([] {
    Variable a, b;
    push("foreign", {}, {&a}, [] { throw std::out_of_range("theirs"); });
    push("memory", {}, {&b}, [] { throw std::bad_alloc(); });
    EXPECT_THROW(wait_to_read(&a), std::out_of_range);
    EXPECT_EQ(message_of([&] { wait_to_read(&b); }), "memory: the system has no more memory");
  });
}

TEST(Engine, WriterWaitsForReadersAndReadersShare) {
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

TEST(Engine, PendingReadersDoNotStopInlineReaders) {
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

TEST(Engine, PriorityThenAge) {
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

TEST(Engine, TasksAreDestroyedOnTheCallersThread) {
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

TEST(Engine, ReleaseOnWorkerNeedsNoCaller) {
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

TEST(Engine, FlightIsBounded) {
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

TEST(Engine, HooksRunAroundSleepAndPollMayThrow) {
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

TEST(Engine, PushAndWaitInsideATask) {
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

TEST(Engine, ManyCallers) {
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

TEST(Engine, KernelsInTasksUseTheTeam) {
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

TEST(Engine, ForkUnderLoad) {
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

TEST(Engine, ForkOnOtherEngines) {
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

TEST(Engine, UnreadErrorsAreWrittenAtShutdown) {
  Variable a, b;
  push("bad", {}, {&a}, [] { throw_error(ErrorKind::value, "bad: nobody looks at this"); });
  push("worse", {}, {&b}, [] { throw_error(ErrorKind::value, "worse: somebody does"); });
  EXPECT_THROW(wait_to_read(&b), Error);
  testing::internal::CaptureStderr();
  shutdown();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "twibil: an operation failed and nobody looked at its result: bad: nobody looks at this\n");
  testing::internal::CaptureStderr();
  shutdown();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Engine, NothingAllocatedFails) {
  // Every allocation of push() fails once; the task then never runs and the engine is as before.
  Engine engine(Kind::naive);
  Variable v;
  int ran = 0;
  push("warm", {}, {&v}, [&] { ++ran; });
  for (int n = 1; n < 10; ++n) {
    fail_allocation(n);
    bool thrown = false;
    try {
      push("counted", {}, {&v}, [&] { ++ran; });
    } catch (const Error& e) {
      thrown = true;
      EXPECT_EQ(e.kind(), ErrorKind::memory);
    }
    int64_t left = fail_allocation(0);
    if (!thrown) {
      EXPECT_GT(left, 0);
      EXPECT_EQ(n, 3);  // the task and its accesses
      break;
    }
    EXPECT_TRUE(idle(&v));
  }
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace twibil::engine
