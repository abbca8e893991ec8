// SPDX-License-Identifier: Apache-2.0
#include "api/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/error.h"

namespace twibil::io {
namespace {

[[noreturn]] void throw_os(std::string_view op, const char* action, const std::string& path, int error) {
  throw_error(ErrorKind::os, text(op, ": cannot ", action, " '", path, "': ", std::generic_category().message(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A link is followed, so that saving through a link replaces the file it points to and not the link.
std::string resolved(const std::string& path) {
  std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? std::string(real.get()) : path;
}

int open_new(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }

template <class Call> auto retry_interrupted(Call call) {
  decltype(call()) result;
  do result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

FileCalls& file_calls() {
  static FileCalls calls{open_new, ::write, ::pwrite, ::fsync, ::close, ::rename};
  return calls;
}

Bytes read_file(const std::string& path, int64_t max_bytes) {
  TW_CHECK(path.find('\0') == std::string::npos, value, "read_file: a path must not contain a zero byte");
  const Descriptor file(retry_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (file.value() < 0) throw_os("read_file", "open", path, errno);
  struct stat info;
  if (::fstat(file.value(), &info) != 0) throw_os("read_file", "examine", path, errno);
  TW_CHECK(S_ISREG(info.st_mode), os, "read_file: '", path, "' must be a regular file; it is ",
           S_ISDIR(info.st_mode) ? "a folder" : "a device, pipe or socket");
  TW_CHECK(info.st_size <= max_bytes, value, "read_file: '", path, "' must have at most ", max_bytes, " bytes; it has ",
           int64_t{info.st_size});
  Bytes bytes(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t want = std::min(bytes.size() - done, size_t{1} << 30);
    const ssize_t got = retry_interrupted([&] { return ::read(file.value(), bytes.data() + done, want); });
    if (got < 0) throw_os("read_file", "read", path, errno);
    TW_CHECK(got > 0, os, "read_file: '", path, "' became shorter while it was read: ", done, " of ", bytes.size(),
             " bytes");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

AtomicFile::AtomicFile(const std::string& path) : path_(resolved(path)) {
  TW_CHECK(!path.empty() && path.find('\0') == std::string::npos, value,
           "write: a path must not be empty or contain a zero byte");
  struct stat old;
  const bool replaces = ::stat(path_.c_str(), &old) == 0;
  TW_CHECK(!replaces || S_ISREG(old.st_mode), os, "write: '", path_, "' must be a regular file or not exist; it is ",
           S_ISDIR(old.st_mode) ? "a folder" : "a device, pipe or socket");
  static std::atomic<uint32_t> counter{0};
  // Another process may have left a file of this name behind when it was killed: take the next number then.
  for (int attempt = 0; attempt < 100 && descriptor_ < 0; ++attempt) {
    temporary_ = text(path_, ".tmp-", static_cast<int64_t>(::getpid()), "-", counter.fetch_add(1));
    descriptor_ = retry_interrupted([&] {
      return file_calls().open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    });
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail("create", error);
  }
  if (replaces) (void)::fchmod(descriptor_, old.st_mode & 07777);  // keeps the mode where the file system has one
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor_ >= 0) file_calls().close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  descriptor_ = -1;
  temporary_.clear();
}

void AtomicFile::fail(const char* action, int error) {
  discard();
  throw_os("write", action, path_, error);
}

void AtomicFile::write(ByteView bytes) {
  TW_ASSERT(descriptor_ >= 0);
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t want = std::min(bytes.size() - done, size_t{1} << 30);
    const ssize_t got = retry_interrupted([&] { return file_calls().write(descriptor_, bytes.data() + done, want); });
    if (got <= 0) fail("write", got < 0 ? errno : EIO);
    done += static_cast<size_t>(got);
  }
  size_ += static_cast<int64_t>(bytes.size());
}

void AtomicFile::write_at(int64_t offset, ByteView bytes) {
  TW_ASSERT(descriptor_ >= 0 && offset >= 0 && offset + static_cast<int64_t>(bytes.size()) <= size_);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = retry_interrupted([&] {
      return file_calls().pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                 offset + static_cast<off_t>(done));
    });
    if (got <= 0) fail("write", got < 0 ? errno : EIO);
    done += static_cast<size_t>(got);
  }
}

void AtomicFile::commit() {
  TW_ASSERT(descriptor_ >= 0);
  auto& calls = file_calls();
  if (retry_interrupted([&] { return calls.sync(descriptor_); }) != 0) fail("flush", errno);
  const int descriptor = descriptor_;
  descriptor_ = -1;  // Linux frees the descriptor also when close reports an error
  if (calls.close(descriptor) != 0 && errno != EINTR) fail("close", errno);
  if (calls.rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace", errno);
  temporary_.clear();
  // The new name lives in the folder: it survives a power failure only once the folder is flushed, too.
  const std::string folder = folder_of(path_);
  const Descriptor holder(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (holder.value() < 0) {
    if (errno == EACCES) return;  // a folder that may be written but not read
    throw_os("write", "flush the folder of", path_, errno);
  }
  if (retry_interrupted([&] { return calls.sync(holder.value()); }) != 0 && errno != EINVAL && errno != EROFS) {
    throw_os("write", "flush the folder of", path_, errno);
  }
}

void write_atomic(const std::string& path, ByteView bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace twibil::io
