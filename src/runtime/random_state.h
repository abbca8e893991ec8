// SPDX-License-Identifier: Apache-2.0
// The process-wide stream of random keys. Every random operator takes one; the numbers depend on the key alone.
#pragma once
#include <cstdint>

#include "ir/op.h"

namespace twibil {

RandomKey next_random_key();
/// The first of `count` keys in a row, for a graph that runs many operators at once.
RandomKey next_random_keys(int count);
void seed_random(uint64_t seed);
/// For checkpoints: where the stream stands.
RandomKey random_state();
void set_random_state(RandomKey state);

/// While one lives, this thread takes its keys from a stream of its own: one that continues from `start`, or one of a
/// single key of the stream before, taken when the first random number is asked for. So that what ran once can run
/// again with the same numbers. They nest.
class RandomStream {
 public:
  RandomStream() : RandomStream(false, {}) {}
  explicit RandomStream(RandomKey start) : RandomStream(true, start) {}
  ~RandomStream();
  RandomStream(const RandomStream&) = delete;
  RandomStream& operator=(const RandomStream&) = delete;

  bool drawn() const { return drawn_; }
  RandomKey start() const { return start_; }
  RandomKey take(int count);
  RandomKey state();

 private:
  RandomStream(bool drawn, RandomKey start);
  RandomStream* outer_;
  bool drawn_;
  RandomKey start_, state_;
};

}  // namespace twibil
