// SPDX-License-Identifier: Apache-2.0
// The bytes of a model, read where they are needed: large weights go from the file straight into their arrays, and the
// file is never held in memory as a whole.
#pragma once
#include <cstdint>
#include <string>

#include "api/io/file.h"

namespace twibil::io {

class OnnxSource {
 public:
  /// A regular file.
  explicit OnnxSource(const std::string& path);
  /// Bytes in memory, which must outlive this; `name` stands in errors, `offset` is what their first byte counts as.
  OnnxSource(ByteView bytes, const std::string& name, int64_t offset = 0);
  ~OnnxSource();
  OnnxSource(const OnnxSource&) = delete;

  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  /// What offsets in messages begin with.
  int64_t base() const { return base_; }
  /// Copies bytes that lie within the size; an error if the file has become shorter.
  void read(int64_t offset, int64_t count, void* to) const;

 private:
  std::string name_;
  ByteView bytes_;
  int64_t size_ = 0, base_ = 0;
  int descriptor_ = -1;
};

/// The fields of a message that lies in a source, one after the other, without their contents.
class OnnxFields {
 public:
  OnnxFields(const OnnxSource& source, int64_t begin, int64_t end) : source_(source), at_(begin), end_(end) {}
  /// Goes to the next field; false at the end. A value error where the bytes are no message.
  bool next();

  uint32_t number() const { return number_; }
  bool is_bytes() const { return type_ == 2; }
  int64_t begin() const { return begin_; }  // of the contents of a field of bytes
  int64_t length() const { return length_; }
  uint64_t varint() const { return varint_; }
  /// The contents of a field of bytes.
  std::string contents() const;

 private:
  [[noreturn]] void fail(const char* what) const;
  uint64_t read_varint(const char* what);
  unsigned char next_byte(const char* what);

  const OnnxSource& source_;
  int64_t at_, end_;
  uint32_t number_ = 0, type_ = 0;
  int64_t begin_ = 0, length_ = 0;
  uint64_t varint_ = 0;
  static constexpr int64_t kBuffer = 512;
  unsigned char buffer_[kBuffer];
  int64_t buffer_begin_ = 0, buffer_size_ = 0;
};

}  // namespace twibil::io
