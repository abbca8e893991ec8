// SPDX-License-Identifier: Apache-2.0
#include "base/profile.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <tuple>
#include <unordered_set>

namespace twibil::profile {

constinit std::atomic<uint32_t> recorded_parts{0};

namespace {

constexpr size_t kMostNames = 1 << 16;
constexpr size_t kMostStatistics = 1 << 14;  // of a thread
constexpr int64_t kRoom = 1 << 20;           // events: about 70 MB at most

/// One thread's events. Its lock is free but for the moment in which a report copies them.
struct ThreadLog {
  std::mutex mutex;
  int thread = 0;
  std::string name;
  std::vector<Event> events;
  std::map<std::tuple<Kind, const char*, const char*>, Stats> statistics;
};

/// All logs, also of threads that have ended. Leaked: threads may record until the process ends.
struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadLog>> logs;
  int threads = 0;
  std::mutex names_mutex;
  std::unordered_set<std::string> names;
};

constinit std::atomic<Registry*> current{nullptr};
constinit std::atomic<int64_t> room{kRoom}, room_at_start{kRoom}, dropped{0};
constinit std::atomic<uint64_t> last_id{0};
constinit thread_local const char* thread_label = nullptr;

// In a forked child the locks may be held by threads that are gone, so it begins with fresh ones, and switched off.
// What it had stays allocated: events of the parent are not its own, but names are still pointed to.
void begin_child() {
  recorded_parts.store(0);
  room.store(room_at_start.load());
  dropped.store(0);
  auto* fresh = new (std::nothrow) Registry;
  if (fresh) current.store(fresh, std::memory_order_release);
}

Registry& registry() {
  static const bool made = [] {
    current.store(new Registry, std::memory_order_release);
    pthread_atfork(nullptr, nullptr, begin_child);
    return true;
  }();
  (void)made;
  return *current.load(std::memory_order_acquire);
}

std::string label_of_thread(int thread) {
  if (thread_label) return thread_label;
  if (syscall(SYS_gettid) == getpid()) return "main thread";
  return "thread " + std::to_string(thread);
}

ThreadLog& log_of_thread() {
  struct Own {
    Registry* registry = nullptr;
    std::shared_ptr<ThreadLog> log;
  };
  thread_local Own own;
  Registry& r = registry();
  if (own.registry != &r) {
    auto log = std::make_shared<ThreadLog>();
    std::lock_guard lock(r.mutex);
    log->thread = r.threads++;
    log->name = label_of_thread(log->thread);
    r.logs.push_back(log);
    if (own.registry) new (&own.log) std::shared_ptr<ThreadLog>;  // the parent process's, kept as it was
    own.log = std::move(log);
    own.registry = &r;
  }
  return *own.log;
}

void add(Stats& s, const Event& e) {
  const int64_t value = e.kind == Kind::counter || e.kind == Kind::memory ? e.number : e.end - e.begin;
  if (s.count == 0) s = {.kind = e.kind, .name = e.name, .detail = s.detail, .least = value, .most = value};
  ++s.count;
  s.least = std::min(s.least, value);
  s.most = std::max(s.most, value);
  if (e.kind == Kind::counter || e.kind == Kind::memory) {
    s.total = value;
    s.last_at = e.begin;
  } else {
    s.total += value;
  }
  if (e.kind == Kind::queue) s.blocked += e.number;
  if (e.kind == Kind::kernel) {
    s.bytes += static_cast<double>(e.number);
    s.operations += e.operations;
  }
}

bool has_domain(Kind kind) { return kind == Kind::span || kind == Kind::counter || kind == Kind::marker; }

void append(const Event& e) {
  ThreadLog& log = log_of_thread();
  std::lock_guard lock(log.mutex);
  const char* domain = has_domain(e.kind) ? e.detail : nullptr;
  if (log.statistics.size() < kMostStatistics || log.statistics.contains({e.kind, e.name, domain})) {
    Stats& s = log.statistics[{e.kind, e.name, domain}];
    s.detail = domain;
    add(s, e);
  }
  if (room.fetch_sub(1, std::memory_order_relaxed) > 0) {
    log.events.push_back(e);
  } else {
    room.fetch_add(1, std::memory_order_relaxed);
    dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

std::vector<std::shared_ptr<ThreadLog>> all_logs() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  return r.logs;
}

/// Of threads that have ended, logs without content are of no more use.
void drop_empty_logs() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::erase_if(r.logs, [](const std::shared_ptr<ThreadLog>& log) {
    if (log.use_count() > 1) return false;
    std::lock_guard its_lock(log->mutex);
    return log->events.empty() && log->statistics.empty();
  });
}

}  // namespace

void record(const Event& event) noexcept {
  try {
    append(event);
  } catch (...) {
    dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

const char* intern(std::string_view s) noexcept {
  try {
    Registry& r = registry();
    std::lock_guard lock(r.names_mutex);
    if (r.names.size() < kMostNames) return r.names.emplace(s).first->c_str();
    auto known = r.names.find(std::string(s));
    if (known != r.names.end()) return known->c_str();
  } catch (...) {  // no memory
  }
  return "(more names)";
}

uint64_t next_id() noexcept { return last_id.fetch_add(1, std::memory_order_relaxed) + 1; }

int32_t thread_number() noexcept {
  try {
    return log_of_thread().thread;
  } catch (...) {
    return -1;
  }
}

void name_thread(const char* name) noexcept { thread_label = name; }

std::vector<Log> logs() {
  std::vector<Log> copies;
  for (const auto& log : all_logs()) {
    std::lock_guard lock(log->mutex);
    if (!log->events.empty()) copies.push_back({log->thread, log->name, log->events});
  }
  return copies;
}

std::vector<Stats> statistics() {
  // By text: equal names may stand in two places.
  std::map<std::tuple<Kind, std::string_view, std::string_view>, Stats> sum;
  for (const auto& log : all_logs()) {
    std::lock_guard lock(log->mutex);
    for (const auto& [key, s] : log->statistics) {
      Stats& to = sum[{s.kind, s.name, s.detail ? s.detail : ""}];
      if (to.count == 0) {
        to = s;
        continue;
      }
      to.count += s.count;
      to.least = std::min(to.least, s.least);
      to.most = std::max(to.most, s.most);
      if (s.kind != Kind::counter && s.kind != Kind::memory) to.total += s.total;
      else if (s.last_at >= to.last_at) to.total = s.total, to.last_at = s.last_at;
      to.blocked += s.blocked;
      to.bytes += s.bytes;
      to.operations += s.operations;
    }
  }
  std::vector<Stats> all;
  for (const auto& [key, s] : sum) all.push_back(s);
  return all;
}

int64_t left_out() { return dropped.load(std::memory_order_relaxed); }

void clear_events() {
  for (const auto& log : all_logs()) {
    std::lock_guard lock(log->mutex);
    std::vector<Event>().swap(log->events);
  }
  room.store(room_at_start.load());
  dropped.store(0);
  drop_empty_logs();
}

void clear_statistics() {
  for (const auto& log : all_logs()) {
    std::lock_guard lock(log->mutex);
    log->statistics.clear();
  }
  drop_empty_logs();
}

void set_room(int64_t events) { room.fetch_add(events - room_at_start.exchange(events), std::memory_order_relaxed); }

}  // namespace twibil::profile
