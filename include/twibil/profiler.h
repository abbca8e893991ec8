// SPDX-License-Identifier: Apache-2.0
// Shows where time goes: a trace for chrome://tracing or Perfetto, and a table of operators.
//
//   profiler::run();
//   train();
//   profiler::dump();                    // profile.json
//   std::cout << profiler::dumps();      // the table
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace twibil::profiler {

struct Config {
  std::string filename = "profile.json";
  bool imperative = true;          // kernels of operators called one by one
  bool symbolic = true;            // kernels of compiled graphs
  bool memory = true;              // bytes of arrays over time
  bool api = true;                 // calls of the library, and waits
  int64_t max_events = 1'000'000;  // of the trace, 80 bytes each; later ones count in the table only
};
/// Takes effect at once, also while the profiler runs.
void set_config(const Config& config);
Config config();

void run();     // starts recording, or goes on
void stop();    // waits for queued work, then records nothing more
void pause();   // records nothing until resume()
void resume();  // without effect unless paused
void clear();   // forgets what was recorded

/// Writes the trace to the file of the configuration. `finished` stops the profiler first, and its next start begins a
/// new trace; else it goes on, and a later dump() writes this and what is to come. The file is replaced as a whole.
void dump(bool finished = true);
/// What dump() writes.
std::string trace();

enum class SortBy { total, average, least, most, count };
struct TableOptions {
  bool reset = false;  // forget the statistics afterwards
  bool json = false;
  SortBy sort_by = SortBy::total;
  bool ascending = false;
};
/// Statistics by name, as a table or as JSON. Waits for queued work.
std::string dumps(const TableOptions& options = {});

/// A part of the program: from its construction to its end, in traces and in the table.
class Scope {
 public:
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;

 private:
  const char* name_ = nullptr;
  int64_t begin_ = 0;
};

}  // namespace twibil::profiler
