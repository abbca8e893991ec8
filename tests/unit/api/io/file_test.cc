// SPDX-License-Identifier: Apache-2.0
#include "api/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "api/io/temporary_folder.h"
#include "base/error.h"

namespace twibil::io {
namespace {

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

std::string contents(const std::string& path) { return std::string(text_of(read_file(path))); }

TEST(File, WritesAndReplaces) {
  const TemporaryFolder folder;
  write_atomic(folder / "a", bytes_of("one"));
  EXPECT_EQ(contents(folder / "a"), "one");
  ::chmod((folder / "a").c_str(), 0640);
  write_atomic(folder / "a", bytes_of("two and more"));
  EXPECT_EQ(contents(folder / "a"), "two and more");
  struct stat info;
  ASSERT_EQ(::stat((folder / "a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_EQ(folder.count_files(), 1);
}

TEST(File, FollowsLinks) {
  const TemporaryFolder folder;
  write_atomic(folder / "a", bytes_of("one"));
  ASSERT_EQ(::symlink((folder / "a").c_str(), (folder / "link").c_str()), 0);
  write_atomic(folder / "link", bytes_of("two"));
  EXPECT_EQ(contents(folder / "a"), "two");
}

TEST(File, WithoutCommitNothingChanges) {
  const TemporaryFolder folder;
  write_atomic(folder / "a", bytes_of("one"));
  {
    AtomicFile file(folder / "a");
    file.write(bytes_of("half"));
  }
  EXPECT_EQ(contents(folder / "a"), "one");
  EXPECT_EQ(folder.count_files(), 1);
}

TEST(File, Refusals) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of([&] { read_file(folder / "x"); }),
            "read_file: cannot open '" + folder / "x" + "': No such file or directory");
  EXPECT_EQ(message_of([&] { read_file(folder / "."); }),
            "read_file: '" + folder / "." + "' must be a regular file; it is a folder");
  EXPECT_NE(message_of([&] { read_file("/dev/zero"); }).find("a device, pipe or socket"), std::string::npos);
  write_atomic(folder / "a", bytes_of("12345"));
  EXPECT_EQ(message_of([&] { read_file(folder / "a", 4); }),
            "read_file: '" + folder / "a" + "' must have at most 4 bytes; it has 5");
  EXPECT_NE(message_of([&] { write_atomic(folder / "no/such", {}); }).find("cannot create"), std::string::npos);
  EXPECT_NE(message_of([&] { write_atomic("/dev/null", {}); }).find("must be a regular file"), std::string::npos);
}

// Lets the n-th call fail, for every n until a whole write succeeds.
int g_calls_left;
int g_error;
bool fails() {
  if (g_calls_left-- != 0) return false;
  errno = g_error;
  return true;
}
FileCalls g_real;

class FileFaults : public testing::TestWithParam<int> {
 protected:
  FileFaults() {
    g_real = file_calls();
    file_calls() = {
        [](const char* path, int flags, mode_t mode) { return fails() ? -1 : g_real.open(path, flags, mode); },
        [](int descriptor, const void* bytes, size_t count) {
          return fails() ? -1 : g_real.write(descriptor, bytes, std::min<size_t>(count, 3));  // short writes
        },
        [](int descriptor, const void* bytes, size_t count, off_t offset) {
          return fails() ? -1 : g_real.pwrite(descriptor, bytes, count, offset);
        },
        [](int descriptor) { return fails() ? -1 : g_real.sync(descriptor); },
        [](int descriptor) {
          const int result = g_real.close(descriptor);
          return fails() ? -1 : result;
        },
        [](const char* from, const char* to) { return fails() ? -1 : g_real.rename(from, to); },
    };
  }
  ~FileFaults() override { file_calls() = g_real; }
};

TEST_P(FileFaults, OldOrNewFileNeverAMixture) {
  const TemporaryFolder folder;
  g_error = GetParam();
  int failures = 0;
  for (int n = 0;; ++n) {
    g_calls_left = -1;
    write_atomic(folder / "a", bytes_of("the old version"));
    g_calls_left = n;
    bool failed = false;
    try {
      AtomicFile file(folder / "a");
      file.write(bytes_of("a newer version"));
      file.write_at(0, bytes_of("the"));
      file.commit();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::os);
      failed = true;
    }
    const bool reached = g_calls_left < 0;
    g_calls_left = -1;
    const std::string now = contents(folder / "a");
    EXPECT_TRUE(now == "the old version" || now == "theewer version") << now;
    if (!failed) {
      EXPECT_EQ(now, "theewer version");
    }
    EXPECT_EQ(folder.count_files(), 1) << "temporary file left after failure " << n;
    failures += failed;
    if (!reached) break;
  }
  if (g_error == EINTR) EXPECT_EQ(failures, 1);  // only rename, which Linux never interrupts, is not tried again
  else EXPECT_GE(failures, 8);
}

INSTANTIATE_TEST_SUITE_P(Errors, FileFaults, testing::Values(ENOSPC, EIO, EINTR));

}  // namespace
}  // namespace twibil::io
