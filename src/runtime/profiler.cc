// SPDX-License-Identifier: Apache-2.0
#include "runtime/profiler.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>

#include "engine/engine.h"
#include "memory/allocator.h"
#include "runtime/fast_path.h"
#include "runtime/launch.h"

namespace twibil::profiler {

namespace {

constexpr int64_t kSampleInterval = 20'000;  // ns
constexpr size_t kMostTexts = 4096;          // that a thread remembers

struct Switch {
  std::mutex mutex;
  State state = State::stopped;
  uint32_t parts = profile::kAllParts;
  int64_t start = 0;         // of the trace; 0: not begun
  int64_t process_peak = 0;  // when it began
};
std::atomic<int64_t> last_sample{0}, sampled_peak{0};

/// Makes the recorder and the fast paths do what the state says.
void apply(const Switch& s) {
  if (s.state == State::running) {
    close_fast_paths();
    profile::recorded_parts.store(s.parts);
  } else {
    profile::recorded_parts.store(0);
    open_fast_paths();
  }
}

Switch& the_switch();

// A forked child begins with an empty profiler that is off (base/profile.cc forgets the events).
void begin_child() {
  Switch& s = the_switch();
  new (&s.mutex) std::mutex;  // a thread that is gone may hold it
  s.state = State::stopped;
  s.start = 0;
  apply(s);
}

Switch& the_switch() {
  static Switch* s = [] {
    pthread_atfork(nullptr, nullptr, begin_child);
    return new Switch;
  }();
  return *s;
}

/// The signatures' bits, mixed: FNV-1a by words.
uint64_t hash_of(SigsIn in, SigsIn out) {
  uint64_t h = 0xcbf29ce484222325;
  auto mix = [&](uint64_t word) { h = (h ^ word) * 0x100000001b3 ^ (h >> 29); };
  for (SigsIn sigs : {in, out}) {
    mix(sigs.size());
    for (const Sig& s : sigs) {
      mix(static_cast<uint64_t>(s.dtype) << 8 | static_cast<uint64_t>(s.rank()));
      for (int64_t d : s.shape) mix(static_cast<uint64_t>(d));
    }
  }
  return h;
}

void append(std::string& to, SigsIn sigs) {
  for (size_t i = 0; i < sigs.size(); ++i) {
    if (i) to += ", ";
    if (sigs[i].present()) append_part(to, sigs[i]);
    else to += "none";
  }
}

}  // namespace

State state() {
  Switch& s = the_switch();
  std::lock_guard lock(s.mutex);
  return s.state;
}

void set_parts(uint32_t parts) {
  Switch& s = the_switch();
  std::lock_guard lock(s.mutex);
  s.parts = parts;
  apply(s);
}

void start() {
  Switch& s = the_switch();
  std::lock_guard lock(s.mutex);
  if (s.state == State::running) return;
  if (s.start == 0) {
    s.start = profile::now();
    s.process_peak = memory_stats().peak_bytes;
    sampled_peak.store(memory_stats().current_bytes);
  }
  s.state = State::running;
  apply(s);
}

void stop() {
  if (state() == State::stopped) return;
  struct Stop {
    ~Stop() {
      Switch& s = the_switch();
      std::lock_guard lock(s.mutex);
      s.state = State::stopped;
      apply(s);
    }
  } at_end;  // also when Ctrl-C ends the wait
  engine::finish_pending();
}

void pause() {
  Switch& s = the_switch();
  std::lock_guard lock(s.mutex);
  if (s.state != State::running) return;
  s.state = State::paused;
  apply(s);
}

void resume() {
  Switch& s = the_switch();
  std::lock_guard lock(s.mutex);
  if (s.state != State::paused) return;
  s.state = State::running;
  apply(s);
}

void clear() {
  Switch& s = the_switch();
  std::lock_guard lock(s.mutex);
  profile::clear_events();
  profile::clear_statistics();
  s.start = s.state == State::stopped ? 0 : profile::now();
  s.process_peak = memory_stats().peak_bytes;
  sampled_peak.store(memory_stats().current_bytes);
}

int64_t start_time() {
  Switch& s = the_switch();
  std::lock_guard lock(s.mutex);
  return s.start;
}

int64_t peak_bytes() {
  Switch& s = the_switch();
  std::lock_guard lock(s.mutex);
  const int64_t peak = memory_stats().peak_bytes;
  return s.state != State::stopped && peak > s.process_peak ? peak : sampled_peak.load();
}

void sample_memory(int64_t now) noexcept {
  if (!profile::on(profile::kMemory)) return;
  int64_t last = last_sample.load(std::memory_order_relaxed);
  if (now - last < kSampleInterval || !last_sample.compare_exchange_strong(last, now)) return;
  const int64_t bytes = memory_stats().current_bytes;
  profile::Event e{.kind = profile::Kind::memory, .begin = now, .end = now, .name = "bytes of arrays"};
  e.number = bytes;
  profile::record(e);
  int64_t peak = sampled_peak.load(std::memory_order_relaxed);
  while (bytes > peak && !sampled_peak.compare_exchange_weak(peak, bytes)) {
  }
}

CallTimer::Sample::~Sample() { sample_memory(profile::now()); }

const char* signatures(SigsIn in, SigsIn out) noexcept {
  try {
    // Most calls have been seen before; two signatures of one hash would show the wrong text, no more.
    thread_local std::unordered_map<uint64_t, const char*> known;
    const char*& text = known[hash_of(in, out)];
    if (text) return text;
    std::string s;
    append(s, in);
    s += " -> ";
    append(s, out);
    text = profile::intern(s);
    const char* result = text;
    if (known.size() > kMostTexts) known.clear();
    return result;
  } catch (...) {
    return "";
  }
}

void record_kernel(profile::Event& e, const Launch& l) noexcept {
  try {
    std::vector<Sig> in, out;
    for (size_t i = 0; i < l.in.size(); ++i) {
      const Value* v = l.in[i];
      in.push_back(v ? v->sig() : Sig());
      if (v && !v->has(kGhost) && !l.op.shape_only(static_cast<int>(i))) e.number += v->size() * size_of(v->dtype());
    }
    for (const Value* v : l.out) {
      out.push_back(v ? v->sig() : Sig());
      if (v) e.number += v->size() * size_of(v->dtype());
    }
    if (l.op.cost) e.operations = l.op.cost(l.attrs, in, out);
    e.detail = signatures(in, out);
  } catch (...) {  // no memory: less is known of the kernel
  }
  profile::record(e);
  sample_memory(e.end);
}

}  // namespace twibil::profiler
