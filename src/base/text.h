// SPDX-License-Identifier: Apache-2.0
// Builds message text from parts: numbers, strings and lists, in the one form that errors and reprs use.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/export.h"

namespace twibil {

TW_API std::string shortest(double value);  // the shortest decimal form that reads back as the same double

inline void append_part(std::string& to, std::string_view s) { to += s; }
inline void append_part(std::string& to, const char* s) { to += s; }
inline void append_part(std::string& to, const std::string& s) { to += s; }
inline void append_part(std::string& to, char c) { to += c; }
inline void append_part(std::string& to, bool b) { to += b ? "true" : "false"; }
template <class T>
requires std::is_arithmetic_v<T>
void append_part(std::string& to, T v) {
  if constexpr (std::is_floating_point_v<T>) to += shortest(static_cast<double>(v));
  else to += std::to_string(v);
}
inline void append_part(std::string& to, std::span<const int64_t> list) {
  to += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) to += ", ";
    to += std::to_string(list[i]);
  }
  to += ']';
}

/// text("axis ", 3, " of ", span) -> "axis 3 of [2, 5]".
template <class... Parts> std::string text(const Parts&... parts) {
  std::string to;
  (append_part(to, parts), ...);
  return to;
}

}  // namespace twibil
