// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <charconv>
#include <cmath>

namespace twibil {

void throw_error(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

void throw_bug(const char* condition, const char* file, int line) {
  throw Error(ErrorKind::runtime,
              text("this is a bug in twibil, please report it: `", condition, "` does not hold at ", file, ":", line));
}

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string s(buffer, end);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

}  // namespace twibil
