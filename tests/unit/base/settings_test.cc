// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace twibil {
namespace {

struct Env {  // one variable for one test
  Env(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
  ~Env() { unsetenv(name); }
  const char* name;
};

std::string message_of(auto&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Settings, UnsetAndEmptyGiveTheFallback) {
  unsetenv("TWIBIL_SEED");
  EXPECT_EQ(setting_integer(Setting::seed, 7), 7);
  Env empty("TWIBIL_SEED", "");
  EXPECT_EQ(setting_integer(Setting::seed, 7), 7);
}

TEST(Settings, Numbers) {
  Env seed("TWIBIL_SEED", "42");
  EXPECT_EQ(setting_integer(Setting::seed, 7), 42);
  Env threads("TWIBIL_NUM_THREADS", "4x");
  EXPECT_EQ(message_of([] { setting_integer(Setting::num_threads, 1, 1); }),
            "TWIBIL_NUM_THREADS: must be a whole number of at least 1; got `4x`");
  Env zero("TWIBIL_NUM_THREADS", "0");
  EXPECT_THROW(setting_integer(Setting::num_threads, 1, 1), Error);
}

TEST(Settings, Bytes) {
  auto bytes = [](const char* value) {
    Env limit("TWIBIL_MEMORY_LIMIT", value);
    return setting_bytes(Setting::memory_limit, -1);
  };
  EXPECT_EQ(bytes("1000"), 1000);
  EXPECT_EQ(bytes("512M"), int64_t{512} << 20);
  EXPECT_EQ(bytes("3G"), int64_t{3} << 30);
  for (const char* bad : {"G", "-1", "1.5G", "8GB", "99999999999G", "lots"}) EXPECT_THROW(bytes(bad), Error) << bad;
}

TEST(Settings, TableShowsValuesAndStrangers) {
  Env home("TWIBIL_HOME", "/data/tw");
  Env stranger("TWIBIL_NUM_TREADS", "3");
  std::string table = describe_settings();
  EXPECT_NE(table.find("/data/tw"), std::string::npos);
  EXPECT_NE(table.find("TWIBIL_NUM_TREADS is set, but no such setting exists"), std::string::npos);
  EXPECT_EQ(home_directory(), "/data/tw");
}

}  // namespace
}  // namespace twibil
