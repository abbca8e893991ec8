// SPDX-License-Identifier: Apache-2.0
#include "runtime/random_state.h"

#include <unistd.h>

#include <mutex>
#include <random>

#include "base/settings.h"

namespace twibil {

namespace {
std::mutex mutex;
RandomKey state;
bool seeded = false;      // there is a state
bool by_entropy = false;  // nobody chose it
pid_t owner = 0;
thread_local RandomStream* stream = nullptr;  // in place of the process' one

// Processes that nobody seeded must differ, also those that were forked.
void prepare() {
  pid_t pid = getpid();
  if (seeded && (!by_entropy || owner == pid)) return;
  owner = pid;
  if (std::optional<std::string> given = setting(Setting::seed); given && !seeded) {
    state = {static_cast<uint64_t>(setting_integer(Setting::seed, 0)), 0};
  } else {
    std::random_device device;
    state = {(static_cast<uint64_t>(device()) << 32) | device(), 0};
    by_entropy = true;
  }
  seeded = true;
}
}  // namespace

RandomKey next_random_key() { return next_random_keys(1); }

RandomKey next_random_keys(int count) {
  if (stream) return stream->take(count);
  std::lock_guard lock(mutex);
  prepare();
  RandomKey key = state;
  state.counter += static_cast<uint64_t>(count);
  return key;
}

void seed_random(uint64_t seed) { set_random_state({seed, 0}); }

RandomKey random_state() {
  if (stream) return stream->state();
  std::lock_guard lock(mutex);
  prepare();
  return state;
}

void set_random_state(RandomKey s) {
  std::lock_guard lock(mutex);
  state = s;
  seeded = true;
  by_entropy = false;
}

RandomStream::RandomStream(bool drawn, RandomKey start) : outer_(stream), drawn_(drawn), start_(start), state_(start) {
  stream = this;
}
RandomStream::~RandomStream() { stream = outer_; }

RandomKey RandomStream::state() {
  if (!drawn_) {
    stream = outer_;
    RandomKey key = next_random_key();
    stream = this;
    // A stream of another seed: its keys are none of the outer one's.
    start_ = state_ = {key.seed ^ (key.counter + 1) * 0x9e3779b97f4a7c15u, 0};
    drawn_ = true;
  }
  return state_;
}
RandomKey RandomStream::take(int count) {
  RandomKey key = state();
  state_.counter += static_cast<uint64_t>(count);
  return key;
}

}  // namespace twibil
