// SPDX-License-Identifier: Apache-2.0
// The one table of environment variables. Each part asks for its own entry at first use; nothing else calls getenv.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace twibil {

enum class Setting { num_threads, isa, engine, memory_limit, allocator, seed, home, fuse_rows_bytes, exact };
inline constexpr int kSettingCount = 9;

/// The value found in the environment now; nullopt when the variable is unset or empty.
std::optional<std::string> setting(Setting which);
/// The same as a whole number of at least `least`; `fallback` when unset. Throws a value error that names the variable.
int64_t setting_integer(Setting which, int64_t fallback, int64_t least = 0);
/// The same as bytes: a number with an optional suffix K, M, G or T (powers of 1024).
int64_t setting_bytes(Setting which, int64_t fallback);
/// The directory for downloaded data and caches: TWIBIL_HOME, else ~/.twibil, else ./.twibil.
std::string home_directory();

const char* name_of(Setting which);
/// The table as text: name, value (or what holds when unset), meaning; then any TWIBIL_ variable that is not in it.
std::string describe_settings();

}  // namespace twibil
