// SPDX-License-Identifier: Apache-2.0
// Inside api/profiler/ only: what becomes of recorded events.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "twibil/profiler.h"

namespace twibil::profiler {

/// The trace in Chrome's JSON format, in pieces of about 64 KiB.
void write_trace(const std::function<void(std::string_view)>& write);
/// The statistics for people, and for programs: in MXNet's form, with what it lacks added.
std::string statistics_table(const TableOptions& options);
std::string statistics_json(const TableOptions& options);

/// A text as a JSON string, with its quotes.
void append_json_string(std::string& to, std::string_view s);

}  // namespace twibil::profiler
