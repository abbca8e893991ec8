// SPDX-License-Identifier: Apache-2.0
#include "base/profile.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/fork_child.h"

namespace twibil::profile {
namespace {

class Profile : public testing::Test {
 protected:
  void SetUp() override {
    clear_events();
    clear_statistics();
    recorded_parts.store(kAllParts);
  }
  void TearDown() override {
    recorded_parts.store(0);
    set_room(1 << 20);
    clear_events();
    clear_statistics();
  }
};

Event event(const char* name, int64_t begin, int64_t end) {
  return {.kind = Kind::call, .begin = begin, .end = end, .name = name};
}

size_t events() {
  size_t n = 0;
  for (const Log& log : logs()) n += log.events.size();
  return n;
}

TEST_F(Profile, StatisticsAreSums) {
  record(event("a", 10, 15));
  record(event("a", 20, 22));
  record(event("b", 0, 100));
  std::vector<Stats> all = statistics();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_STREQ(all[0].name, "a");
  EXPECT_EQ(all[0].count, 2);
  EXPECT_EQ(all[0].total, 7);
  EXPECT_EQ(all[0].least, 2);
  EXPECT_EQ(all[0].most, 5);
  EXPECT_EQ(all[1].total, 100);
}

TEST_F(Profile, CountersKeepTheNewestValueOfAllThreads) {
  auto count = [](int64_t at, int64_t value) {
    Event e{.kind = Kind::counter, .begin = at, .end = at, .name = "n", .detail = "d"};
    e.number = value;
    record(e);
  };
  count(5, 50);
  std::thread([&] {
    count(3, 30);
    count(9, 90);
  }).join();
  count(7, -7);
  std::vector<Stats> all = statistics();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].total, 90);
  EXPECT_EQ(all[0].least, -7);
  EXPECT_EQ(all[0].most, 90);
  EXPECT_EQ(all[0].count, 4);
}

TEST_F(Profile, RoomIsForAllThreadsTogether) {
  clear_events();
  set_room(10);
  auto fill = [] {
    for (int i = 0; i < 8; ++i) record(event("x", i, i + 1));
  };
  std::thread(fill).join();
  fill();
  EXPECT_EQ(events(), 10u);
  EXPECT_EQ(left_out(), 6);
  EXPECT_EQ(statistics().at(0).count, 16);
  clear_events();
  EXPECT_EQ(left_out(), 0);
  fill();
  EXPECT_EQ(events(), 8u);
}

TEST_F(Profile, ThreadsRecordWhileOthersRead) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 2000; ++i) Timer timer(kApi, Kind::call, intern(i % 2 ? "odd" : "even"));
    });
  int64_t seen = 0;
  while (seen < 8000) {
    seen = 0;
    for (const Stats& s : statistics()) seen += s.count;
    (void)logs();
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(events(), 8000u);
}

TEST_F(Profile, EqualNamesAreOneText) {
  std::string s = "a name";
  EXPECT_EQ(intern(s), intern("a name"));
  EXPECT_NE(intern(s), s.c_str());
}

TEST_F(Profile, TimersAreSilentWhileOff) {
  recorded_parts.store(kMemory);
  { Timer timer(kApi, Kind::call, "x"); }
  EXPECT_EQ(events(), 0u);
}

TEST_F(Profile, AChildBeginsEmptyAndOff) {
  SKIP_WITHOUT_FORK();
  record(event("parent", 0, 1));
  EXPECT_EQ(0, status_of_child([] {
              if (on(kAllParts) || !logs().empty()) return 1;
              recorded_parts.store(kAllParts);
              record(event("child", 0, 1));
              return logs().size() == 1 && std::string_view(logs()[0].events[0].name) == "child" ? 0 : 2;
            }));
  EXPECT_EQ(events(), 1u);
}

}  // namespace
}  // namespace twibil::profile
