// SPDX-License-Identifier: Apache-2.0
#include "twibil/profiler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "twibil/array.h"
#include "twibil/ops.h"

namespace twibil {
namespace {

class Profiler : public testing::Test {
 protected:
  void SetUp() override {
    profiler::stop();
    profiler::set_config({});
    profiler::clear();
  }
  void TearDown() override { SetUp(); }
};

size_t count(const std::string& whole, const std::string& part) {
  size_t n = 0;
  for (size_t at = whole.find(part); at != std::string::npos; at = whole.find(part, at + 1)) ++n;
  return n;
}

TEST_F(Profiler, KernelsAndCallsAreThere) {
  Array a = Array::ones({4});
  profiler::run();
  {
    profiler::Scope scope("part");
    a = a + a;
    Array big = Array::ones({400, 400});
    op::dot(big, big);
  }
  profiler::stop();
  std::string trace = profiler::trace();
  EXPECT_EQ(count(trace, "\"cat\": \"operator\", \"name\": \"add\""), 1u);
  EXPECT_EQ(count(trace, "\"cat\": \"call\", \"name\": \"dot\""), 1u);
  EXPECT_EQ(count(trace, "\"cat\": \"scope\", \"name\": \"part\""), 1u);
  EXPECT_EQ(count(trace, "\"operations\": "), 1u);
  std::string table = profiler::dumps();
  EXPECT_NE(table.find("GFLOP/s"), std::string::npos);
  EXPECT_NE(table.find("\nadd "), std::string::npos);
}

TEST_F(Profiler, ResultsDoNotDependOnIt) {
  Array a = Array::ones({1000}) * 3;
  std::vector<float> off = op::softmax(a * a + a).to_vector<float>();
  profiler::run();
  std::vector<float> on = op::softmax(a * a + a).to_vector<float>();
  profiler::pause();
  EXPECT_EQ(off, on);
  EXPECT_EQ(off, op::softmax(a * a + a).to_vector<float>());
}

TEST_F(Profiler, TheFirstErrorOfTheConfigurationChangesNothing) {
  EXPECT_THROW(profiler::set_config({.filename = ""}), Error);
  EXPECT_THROW(profiler::set_config({.max_events = -1}), Error);
  EXPECT_EQ(profiler::config().filename, "profile.json");
  profiler::set_config({.filename = "/no such folder/x.json"});
  profiler::run();
  EXPECT_THROW(profiler::dump(), Error);
}

TEST_F(Profiler, SwitchesWhileOthersWork) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    Array a = Array::ones({100});
    while (!done) {
      a = a * 0.5 + 1;
      profiler::Scope scope("other");
    }
  });
  for (int i = 0; i < 200; ++i) {
    profiler::run();
    Array a = Array::ones({10}) + 1;
    if (i % 20 == 0) (void)profiler::dumps();
    if (i % 50 == 0) profiler::clear();
    profiler::pause();
    profiler::resume();
    profiler::stop();
  }
  done = true;
  other.join();
  EXPECT_NE(profiler::dumps({.json = true}).find("\"ones\""), std::string::npos);
}

}  // namespace
}  // namespace twibil
