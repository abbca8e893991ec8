// SPDX-License-Identifier: Apache-2.0
//   a  8 KiB  nodes 1 to 4        0        8       12 KiB
//   b  4 KiB  nodes 2 to 3   ->   | a ......|b|             a and b live together
//   c  8 KiB  nodes 5 to 6        | c ......|               c comes when both are gone
//
// Offsets in one arena for buffers that are known with their lives, so that buffers that live together never share
// bytes. Tries several orders and keeps the best; when it reaches the largest sum of bytes that live at once, nothing
// can be better.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace twibil::passes {

struct Lifetime {
  int64_t bytes;
  int first, last;  // both included
};
struct Packing {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;        // of the arena
  int64_t lower_bound = 0;  // the largest sum of what lives at once
};

inline constexpr int64_t kArenaAlignment = 64;  // of every offset: a cache line, the widest vector

/// `share` false: every buffer gets bytes of its own.
Packing pack_arena(std::span<const Lifetime> buffers, bool share = true);

}  // namespace twibil::passes
