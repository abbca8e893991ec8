// SPDX-License-Identifier: Apache-2.0
// Reads little-endian fields from bytes that nobody vouches for: every step is checked against the end, and an error
// names the source, the offset and the reason.
#pragma once
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "api/io/file.h"
#include "base/error.h"

namespace twibil::io {

static_assert(std::endian::native == std::endian::little, "the file formats are little endian");

class ByteCursor {
 public:
  ByteCursor(ByteView bytes, const char* op, const std::string& source) : bytes_(bytes), op_(op), source_(source) {}

  int64_t offset() const { return offset_; }
  int64_t remaining() const { return static_cast<int64_t>(bytes_.size()) - offset_; }

  template <class... Parts> [[noreturn]] void fail(const Parts&... parts) const {
    throw_error(ErrorKind::value, text(op_, ": '", source_, "' at offset ", offset_, ": ", parts...));
  }

  /// The next `count` bytes; `what` names them in the error.
  ByteView take(int64_t count, const char* what) {
    if (count < 0 || count > remaining()) {
      fail(what, " needs ", count, " bytes; ", remaining(), " are left. The file is truncated or damaged");
    }
    const ByteView part = bytes_.subspan(static_cast<size_t>(offset_), static_cast<size_t>(count));
    offset_ += count;
    return part;
  }

  template <class T> T read(const char* what) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  /// A count of things that take at least `bytes_each`, so that no damaged count makes us allocate more than the file.
  int64_t read_count(int64_t bytes_each, const char* what) {
    const int64_t at = offset_;
    const auto count = read<uint64_t>(what);
    if (count > static_cast<uint64_t>(remaining() / bytes_each)) {
      offset_ = at;
      fail(what, " is ", count, ", more than the remaining bytes can hold. The file is truncated or damaged");
    }
    return static_cast<int64_t>(count);
  }

 private:
  ByteView bytes_;
  const char* op_;
  const std::string& source_;
  int64_t offset_ = 0;
};

}  // namespace twibil::io
