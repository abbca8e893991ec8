// SPDX-License-Identifier: Apache-2.0
// Errors reach whoever looks, once where they must and always where they must.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "engine/fixture.h"
#include "memory/allocator.h"

namespace twibil::engine {
namespace {

TEST(EngineError, InjectedFailuresReachEveryDependant) {
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

TEST(EngineError, ErrorTravelsToWhoeverLooks) {
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

TEST(EngineError, FirstErrorIsInherited) {
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

TEST(EngineError, OverwritingClearsTheError) {
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

TEST(EngineError, InlineFailures) {
  Variable a, b;
  store_failure(&a, std::make_exception_ptr(Error(ErrorKind::index, "inline")));
  inherit_failure(&a, &b);
  EXPECT_EQ(message_of([&] { wait_to_read(&b); }), "inline");
  EXPECT_EQ(message_of([] { wait_all(); }), "no error");
}

TEST(EngineError, ForeignExceptionsPassUntouched) {
  on_all_engines([] {
    Variable a, b;
    push("foreign", {}, {&a}, [] { throw std::out_of_range("theirs"); });
    push("memory", {}, {&b}, [] { throw std::bad_alloc(); });
    EXPECT_THROW(wait_to_read(&a), std::out_of_range);
    EXPECT_EQ(message_of([&] { wait_to_read(&b); }), "memory: the system has no more memory");
  });
}

TEST(EngineError, UnreadErrorsAreWrittenAtShutdown) {
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

TEST(EngineError, NothingAllocatedFails) {
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
