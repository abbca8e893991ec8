// SPDX-License-Identifier: Apache-2.0
// Whole files in and out. A file is read completely or not at all; a file is replaced completely or stays as it was,
// also when the disk is full or the power fails half-way. Every format's reader and writer stands on these.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace twibil::io {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView bytes_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }
inline std::string_view text_of(ByteView b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

inline constexpr int64_t kMaxFileBytes = int64_t{1} << 40;

/// Reads a regular file; more than `max_bytes` is refused before anything is allocated.
Bytes read_file(const std::string& path, int64_t max_bytes = kMaxFileBytes);

/// A new version of a file, written beside it and put in its place by commit(). Destroyed without commit(), or after
/// an error, it leaves the old version untouched and removes its temporary file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(ByteView bytes);
  /// Overwrites bytes written before, for headers that are known only at the end.
  void write_at(int64_t offset, ByteView bytes);
  /// Flushes to the disk and takes the place of the old version.
  void commit();
  int64_t size() const { return size_; }

 private:
  [[noreturn]] void fail(const char* action, int error);
  void discard();

  std::string path_;       // where the caller wants it, symbolic links resolved
  std::string temporary_;  // in the same folder, so that the rename stays inside one file system
  int descriptor_ = -1;
  int64_t size_ = 0;
};

void write_atomic(const std::string& path, ByteView bytes);

/// The system calls that AtomicFile makes. Tests replace them to let the n-th one fail.
struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int descriptor, const void* bytes, size_t count);
  ssize_t (*pwrite)(int descriptor, const void* bytes, size_t count, off_t offset);
  int (*sync)(int descriptor);
  int (*close)(int descriptor);
  int (*rename)(const char* from, const char* to);
};
FileCalls& file_calls();

}  // namespace twibil::io
