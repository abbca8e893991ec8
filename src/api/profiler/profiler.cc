// SPDX-License-Identifier: Apache-2.0
// The public profiler: what it is told, and its files.
#include "twibil/profiler.h"

#include <mutex>
#include <utility>

#include "api/io/file.h"
#include "api/profiler/report.h"
#include "base/error.h"
#include "engine/engine.h"
#include "runtime/profiler.h"

namespace twibil::profiler {

namespace {

struct Settings {
  std::mutex mutex;
  Config config;
  bool finished = false;  // the trace was written; the next run() begins a new one
};
Settings& settings() {
  static auto* s = new Settings;
  return *s;
}

}  // namespace

void set_config(const Config& c) {
  TW_CHECK(!c.filename.empty(), value, "profiler.set_config: filename must not be empty");
  TW_CHECK(c.max_events >= 0, value, "profiler.set_config: max_events must not be negative; got ", c.max_events);
  Settings& s = settings();
  std::lock_guard lock(s.mutex);
  s.config = c;
  profile::set_room(c.max_events);
  set_parts(profile::kUser | (c.imperative ? profile::kImperative : 0u) | (c.symbolic ? profile::kSymbolic : 0u) |
            (c.memory ? profile::kMemory : 0u) | (c.api ? profile::kApi : 0u));
}

Config config() {
  Settings& s = settings();
  std::lock_guard lock(s.mutex);
  return s.config;
}

void run() {
  bool fresh = false;
  {
    Settings& s = settings();
    std::lock_guard lock(s.mutex);
    fresh = std::exchange(s.finished, false);
  }
  if (fresh) clear();
  start();
}

std::string trace() {
  engine::finish_pending();
  std::string whole;
  write_trace([&](std::string_view part) { whole += part; });
  return whole;
}

void dump(bool finished) {
  if (finished) stop();
  else engine::finish_pending();
  io::AtomicFile file(config().filename);
  write_trace([&](std::string_view part) { file.write(io::bytes_of(part)); });
  file.commit();
  if (!finished) return;
  Settings& s = settings();
  std::lock_guard lock(s.mutex);
  s.finished = true;
}

std::string dumps(const TableOptions& options) {
  engine::finish_pending();
  std::string s = options.json ? statistics_json(options) : statistics_table(options);
  if (options.reset) profile::clear_statistics();
  return s;
}

Scope::Scope(std::string_view name) {
  if (!profile::on(profile::kUser)) return;
  name_ = profile::intern(name);
  begin_ = profile::now();
}

Scope::~Scope() {
  if (!name_) return;
  profile::record({.kind = profile::Kind::scope, .begin = begin_, .end = profile::now(), .name = name_});
}

}  // namespace twibil::profiler
