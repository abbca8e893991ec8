// SPDX-License-Identifier: Apache-2.0
// What the profiler records, and where: each thread appends to a log of its own. This file only keeps events; who
// switches it on and what becomes of the events is runtime/profiler.h's business. While it is off a place that could
// record pays one load and one branch.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/export.h"

namespace twibil::profile {

/// What may be recorded, as bits.
enum Part : uint32_t {
  kImperative = 1,  // kernels of operators called one by one, and the engine's tasks
  kSymbolic = 2,    // kernels of compiled graphs, and the engine's tasks
  kMemory = 4,      // bytes of arrays over time
  kApi = 8,         // calls of the library, and waits
  kUser = 16,       // scopes, tasks, counters and markers of the user's own
};
inline constexpr uint32_t kAllParts = 31;
inline constexpr uint32_t kKernels = kImperative | kSymbolic;
extern TW_API std::atomic<uint32_t> recorded_parts;  // 0: off

/// Whether any of these parts is recorded now.
inline bool on(uint32_t parts) { return (recorded_parts.load(std::memory_order_relaxed) & parts) != 0; }

enum class Kind : uint8_t {
  call,     // of the library, on the thread that called
  kernel,   // on the thread that ran it
  task,     // of the engine, from start to end
  queue,    // the same task from push to start
  wait,     // a thread that waits for the engine
  scope,    // of the user; nests on its thread
  span,     // of the user; may overlap others, and end on another thread
  counter,  // a value at `begin`
  marker,   // an instant
  memory,   // bytes of arrays at `begin`
};
inline constexpr int kKindCount = 10;

/// Texts must live for ever: literals, names of operators, or what intern() returns.
struct Event {
  Kind kind = Kind::call;
  int32_t from = -1;           // of a queue: the thread that pushed
  int64_t begin = 0, end = 0;  // of now()
  const char* name = nullptr;
  const char* detail = nullptr;  // signatures of a kernel's arrays; the domain of a span, counter or marker
  const char* node = nullptr;    // of a kernel in a compiled graph: its name there
  uint64_t id = 0;               // of a task, also of the call that queued it; of a span
  int64_t number = 0;     // kernel: bytes read and written. queue: ns until its inputs were ready. counter: value
  double operations = 0;  // kernel: arithmetic operations, where the declaration tells
};

/// Events of one name together. Kept for all events, also for those that the log has no room for.
struct Stats {
  Kind kind = Kind::call;
  const char* name = "";
  const char* detail = nullptr;                       // the domain
  int64_t count = 0, total = 0, least = 0, most = 0;  // ns; of counters: values, and `total` is the last one
  int64_t last_at = 0;                                // of counters: when that was
  int64_t blocked = 0;                                // of queues: ns of the total until inputs were ready
  double bytes = 0, operations = 0;
};

/// Nanoseconds of a clock that only goes forward.
inline int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Appends to the calling thread's log. Never throws; what finds no memory is counted as left out.
TW_API void record(const Event& event) noexcept;

/// A text that lives for ever, equal to s. When there are too many different ones: "(more names)".
TW_API const char* intern(std::string_view s) noexcept;

/// A number for a task or span that no other has.
uint64_t next_id() noexcept;

/// The number of the calling thread in logs().
int32_t thread_number() noexcept;

/// Names the calling thread in traces ("engine worker"). The text must live for ever.
void name_thread(const char* name) noexcept;

/// Records the time from here to the end of the scope, also when an exception ends it.
class Timer {
 public:
  Timer(uint32_t part, Kind kind, const char* name, uint64_t id = 0) noexcept : on_(on(part)) {
    if (on_) [[unlikely]]
      new (&event) Event{.kind = kind, .begin = now(), .name = name, .id = id};
  }
  ~Timer() {
    if (on_) [[unlikely]] {
      event.end = now();
      record(event);
    }
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  const bool on_;
  union {  // not even cleared while off
    Event event;
  };
};

// ---- for reports ----

struct Log {
  int thread = 0;  // from 0, in the order of the first event
  std::string thread_name;
  std::vector<Event> events;  // by time of their end
};
/// A copy of all events so far, one log a thread.
std::vector<Log> logs();
/// Statistics of all threads together.
std::vector<Stats> statistics();
int64_t left_out();
/// Forgets events, or statistics. Threads go on recording.
void clear_events();
void clear_statistics();
/// How many events all threads together may keep. Counts from the last clear_events().
void set_room(int64_t events);

}  // namespace twibil::profile
