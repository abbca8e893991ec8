// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"

extern char** environ;

namespace twibil {
namespace {

struct Entry {
  const char* name;
  const char* when_unset;
  const char* meaning;
};

constexpr Entry kTable[kSettingCount] = {
    {"TWIBIL_NUM_THREADS", "what affinity and cgroup allow", "threads that one operation may use, the caller included"},
    {"TWIBIL_ISA", "the best the CPU has", "instruction set of the kernels: baseline, avx2, avx512"},
    {"TWIBIL_ENGINE", "threaded", "who runs operations: threaded, naive, or simulated[:seed]"},
    {"TWIBIL_MEMORY_LIMIT", "none", "bytes of array data that may be live, e.g. 512M or 8G"},
    {"TWIBIL_ALLOCATOR", "caching", "system: every block comes from malloc and goes back, for memory checkers"},
    {"TWIBIL_SEED", "0", "seed of the random generator at start"},
    {"TWIBIL_HOME", "~/.twibil", "directory for downloaded data and caches"},
    {"TWIBIL_FUSE_ROWS_BYTES", "1M",
     "bytes from which on a compiled graph runs operators together a few rows at a time"},
    {"TWIBIL_EXACT", "0", "1: compiled graphs take only algorithms that sum products as they stand, no Winograd"},
};

const Entry& entry(Setting which) { return kTable[static_cast<int>(which)]; }

[[noreturn]] void bad_value(Setting which, const std::string& value, std::string_view wanted) {
  throw_error(ErrorKind::value, text(entry(which).name, ": must be ", wanted, "; got `", value, "`"));
}

void pad(std::string& to, size_t column) { to.append(to.size() < column ? column - to.size() : 1, ' '); }

bool is_listed(std::string_view name) {
  for (const Entry& e : kTable)
    if (e.name == name) return true;
  return false;
}

}  // namespace

const char* name_of(Setting which) { return entry(which).name; }

std::optional<std::string> setting(Setting which) {
  const char* value = std::getenv(entry(which).name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

int64_t setting_integer(Setting which, int64_t fallback, int64_t least) {
  auto value = setting(which);
  if (!value) return fallback;
  int64_t number = 0;
  const char* end = value->data() + value->size();
  auto [stop, code] = std::from_chars(value->data(), end, number);
  if (code != std::errc() || stop != end || number < least)
    bad_value(which, *value, text("a whole number of at least ", least));
  return number;
}

int64_t setting_bytes(Setting which, int64_t fallback) {
  auto value = setting(which);
  if (!value) return fallback;
  int64_t number = 0;
  const char* end = value->data() + value->size();
  auto [stop, code] = std::from_chars(value->data(), end, number);
  std::string_view suffix(stop, static_cast<size_t>(end - stop));
  constexpr std::string_view kSuffixes = "KMGT";
  size_t power = suffix.size() == 1 ? kSuffixes.find(suffix[0]) : std::string_view::npos;
  if (code != std::errc() || number < 0 || (!suffix.empty() && power == std::string_view::npos))
    bad_value(which, *value, "a number of bytes such as 1048576, 512M or 8G");
  if (suffix.empty()) return number;
  return checked_mul(number, int64_t{1} << (10 * (power + 1)));
}

std::string home_directory() {
  if (auto value = setting(Setting::home)) return *value;
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? text(home, "/.twibil") : std::string(".twibil");
}

std::string describe_settings() {
  std::string out;
  for (int i = 0; i < kSettingCount; ++i) {
    auto value = setting(static_cast<Setting>(i));
    std::string line = kTable[i].name;
    pad(line, 22);
    line += value ? *value : text("(", kTable[i].when_unset, ")");
    pad(line, 56);
    out += line + kTable[i].meaning + "\n";
  }
  for (char** p = environ; p != nullptr && *p != nullptr; ++p) {
    std::string_view name(*p);
    name = name.substr(0, name.find('='));
    if (name.starts_with("TWIBIL_") && !is_listed(name)) out += text(name, " is set, but no such setting exists\n");
  }
  return out;
}

}  // namespace twibil
