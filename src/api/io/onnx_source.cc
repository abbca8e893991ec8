// SPDX-License-Identifier: Apache-2.0
#include "api/io/onnx_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <protozero/varint.hpp>

#include "base/error.h"

namespace twibil::io {

OnnxSource::OnnxSource(const std::string& path) : name_(path) {
  do descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (descriptor_ < 0 && errno == EINTR);
  TW_CHECK(descriptor_ >= 0, os, "onnx: cannot open '", path, "': ", std::strerror(errno));
  struct stat s {};
  bool regular = ::fstat(descriptor_, &s) == 0 && S_ISREG(s.st_mode);
  if (!regular) {
    ::close(descriptor_);
    throw_error(ErrorKind::os, text("onnx: '", path, "' must be a regular file"));
  }
  size_ = s.st_size;
}

OnnxSource::OnnxSource(ByteView bytes, const std::string& name, int64_t offset)
    : name_(name), bytes_(bytes), size_(static_cast<int64_t>(bytes.size())), base_(offset) {}

OnnxSource::~OnnxSource() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OnnxSource::read(int64_t offset, int64_t count, void* to) const {
  TW_ASSERT(offset >= 0 && count >= 0 && count <= size_ - offset);
  if (descriptor_ < 0) {
    if (count) std::memcpy(to, bytes_.data() + offset, static_cast<size_t>(count));
    return;
  }
  auto* place = static_cast<char*>(to);
  while (count > 0) {
    ssize_t n = ::pread(descriptor_, place, static_cast<size_t>(std::min<int64_t>(count, 1 << 30)), offset);
    if (n < 0 && errno == EINTR) continue;
    TW_CHECK(n > 0, os, "onnx: cannot read '", name_, "' at offset ", offset, ": ",
             n == 0 ? "the file became shorter" : std::strerror(errno));
    place += n, offset += n, count -= n;
  }
}

void OnnxFields::fail(const char* what) const {
  throw_error(ErrorKind::value, text("offset ", source_.base() + at_, ": ", what,
                                     "; the file is no ONNX model, or it is truncated or damaged"));
}

unsigned char OnnxFields::next_byte(const char* what) {
  if (at_ >= end_) fail(what);
  if (at_ < buffer_begin_ || at_ >= buffer_begin_ + buffer_size_) {
    buffer_begin_ = at_;
    buffer_size_ = std::min<int64_t>(kBuffer, end_ - at_);
    source_.read(at_, buffer_size_, buffer_);
  }
  return buffer_[at_++ - buffer_begin_];
}

uint64_t OnnxFields::read_varint(const char* what) {
  char bytes[protozero::max_varint_length];
  size_t n = 0;
  do {
    if (n == sizeof(bytes)) fail("a number is longer than 64 bits");
    bytes[n] = static_cast<char>(next_byte(what));
  } while (bytes[n++] & 0x80);
  const char* from = bytes;
  return protozero::decode_varint(&from, bytes + n);
}

bool OnnxFields::next() {
  if (at_ >= end_) return false;
  uint64_t key = read_varint("a field begins and does not end");
  number_ = static_cast<uint32_t>(key >> 3);
  type_ = static_cast<uint32_t>(key & 7);
  if (key >> 32 || number_ == 0) fail("there is no such field");
  int64_t skip = 0;
  begin_ = length_ = 0;
  if (type_ == 0) varint_ = read_varint("a number ends early");
  else if (type_ == 1) skip = 8;
  else if (type_ == 5) skip = 4;
  else if (type_ == 2) {
    uint64_t n = read_varint("a length ends early");
    if (n > static_cast<uint64_t>(end_ - at_)) fail("a field is longer than what contains it");
    begin_ = at_, length_ = skip = static_cast<int64_t>(n);
  } else {
    fail("a field has an unknown type");
  }
  if (skip > end_ - at_) fail("a field ends early");
  at_ += skip;
  return true;
}

std::string OnnxFields::contents() const {
  std::string s(static_cast<size_t>(length_), '\0');
  source_.read(begin_, length_, s.data());
  return s;
}

}  // namespace twibil::io
