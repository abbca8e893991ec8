// SPDX-License-Identifier: Apache-2.0
// Switches the profiler on and off, and tells it about kernels. What it records: base/profile.h. What becomes of that:
// api/profiler.cc.
#pragma once
#include "base/profile.h"
#include "ir/op.h"

namespace twibil {
struct Launch;
}

namespace twibil::profiler {

enum class State { stopped, running, paused };
State state();
/// Which parts (profile::Part) are recorded while it runs; at once, if it does.
void set_parts(uint32_t parts);
/// Starts recording, or goes on. While it runs already: nothing happens.
void start();
/// Waits for queued work, so that its events are there, then stops. What was recorded stays.
void stop();
/// Records nothing until resume(); without effect while stopped.
void pause();
void resume();
/// Forgets all events and statistics, and starts the clock of traces anew.
void clear();

/// profile::now() when the oldest event may have begun.
int64_t start_time();
/// The most bytes of arrays that lived at once while it was running. Exact if it was the most since the process
/// began, else the most of the samples.
int64_t peak_bytes();

/// Records the call of an operator from here to the end of the scope, then the memory in use.
class CallTimer {
 public:
  explicit CallTimer(const char* name) : timer_(profile::kApi, profile::Kind::call, name) {}

 private:
  struct Sample {
    ~Sample();
  } sample_;  // after the timer has ended
  profile::Timer timer_;
};
/// Completes and records the event of a kernel that has run.
void record_kernel(profile::Event& e, const Launch& launch) noexcept;
/// "float32[2, 3], float32[3] -> float32[2, 3]", a text that lives for ever.
const char* signatures(SigsIn in, SigsIn out) noexcept;
/// Records the bytes of arrays, if some time has passed since the last time.
void sample_memory(int64_t now) noexcept;

}  // namespace twibil::profiler
