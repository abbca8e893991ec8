// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/available_cpus.h"
#include "base/error.h"
#include "base/fork_child.h"

namespace twibil {
namespace {

struct Threads {  // a number of threads for one test
  explicit Threads(int n) : before(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

int64_t sum_to(int64_t n, int64_t grain) {
  std::atomic<int64_t> sum{0};
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    int64_t part = 0;
    for (int64_t i = begin; i < end; ++i) part += i;
    sum += part;
  });
  return sum;
}

TEST(Parallel, EveryIndexOnce) {
  for (int threads : {1, 2, 5}) {
    Threads t(threads);
    for (int64_t n : {0, 1, 7, 64, 1000, 4097})
      for (int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        parallel_for(n, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LE(end - begin, grain);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](auto& s) { return s == 1; })) << n << " " << grain;
      }
  }
}

TEST(Parallel, ChunksDoNotDependOnThreads) {
  auto chunks = [] {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> all;
    parallel_for(1003, 10, [&](int64_t begin, int64_t end) {
      std::lock_guard lock(mutex);
      all.emplace(begin, end);
    });
    return all;
  };
  Threads one(1);
  auto expected = chunks();
  Threads four(4);
  EXPECT_EQ(chunks(), expected);
}

TEST(Parallel, UsesSeveralThreads) {
  Threads t(3);
  std::atomic<int> arrived{0};
  // Each chunk waits for the other two: this returns only if three threads run at once.
  parallel_for(3, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST(Parallel, NestedAndConcurrentCallers) {
  Threads t(4);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 20; ++c)  // more than there are slots
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        std::atomic<int64_t> total{0};
        parallel_for(8, 1, [&](int64_t, int64_t) { total += sum_to(100, 7); });
        if (total != 8 * 4950) ++wrong;
      }
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Parallel, FirstExceptionReachesCallerAndTeamSurvives) {
  Threads t(3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(parallel_for(64, 1,
                              [&](int64_t begin, int64_t) {
                                if (begin % 2 == 1) throw std::out_of_range("chunk");
                              }),
                 std::out_of_range);
    EXPECT_EQ(sum_to(1000, 10), 499500);
  }
}

TEST(Parallel, NumberOfThreadsMayChange) {
  for (int n : {1, 6, 2, 4, 1, 3}) {
    Threads t(n);
    EXPECT_EQ(num_threads(), n);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(sum_to(5000, 9), 12497500);
  }
  EXPECT_THROW(set_num_threads(0), Error);
}

TEST(Parallel, ForkUnderLoad) {
  SKIP_WITHOUT_FORK();
  Threads t(3);
  std::atomic<bool> stop{false};
  std::thread load([&] {
    while (!stop) sum_to(2000, 5);
  });
  for (int i = 0; i < 30; ++i) EXPECT_EQ(status_of_child([] { return sum_to(5000, 9) == 12497500 ? 0 : 1; }), 0);
  stop = true;
  load.join();
  EXPECT_EQ(sum_to(5000, 9), 12497500);
}

TEST(Parallel, AtLeastOneCpu) { EXPECT_GE(available_cpus(), 1); }

}  // namespace
}  // namespace twibil
