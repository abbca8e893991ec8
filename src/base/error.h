// SPDX-License-Identifier: Apache-2.0
// The one exception type. A message reads `op: what must hold; got what. hint`; its kind is the Python class it
// becomes.
#pragma once
#include <exception>
#include <string>

#include "base/export.h"
#include "base/text.h"

namespace twibil {

enum class ErrorKind { value, type, index, key, memory, not_implemented, os, overflow, runtime, attribute };

class TW_API Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  /// Puts where it happened in front ("softmax: ") or behind; layers add context on the way up.
  void prefix(std::string_view where) { message_.insert(0, std::string(where)); }
  void suffix(std::string_view more) { message_ += more; }

 private:
  ErrorKind kind_;
  std::string message_;
};

[[noreturn]] TW_API void throw_error(ErrorKind kind, std::string message);
[[noreturn]] TW_API void throw_bug(const char* condition, const char* file, int line);

}  // namespace twibil

/// A user's mistake: throws Error(ErrorKind::kind, text(parts...)).
#define TW_CHECK(condition, kind, ...)                                               \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::twibil::throw_error(::twibil::ErrorKind::kind, ::twibil::text(__VA_ARGS__)); \
  } while (0)

/// Our own mistake: the message says so and asks for a report.
#define TW_ASSERT(condition)                               \
  do {                                                     \
    if (!(condition)) [[unlikely]]                         \
      ::twibil::throw_bug(#condition, __FILE__, __LINE__); \
  } while (0)
