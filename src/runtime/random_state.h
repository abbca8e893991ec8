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

}  // namespace twibil
