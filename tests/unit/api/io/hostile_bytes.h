// SPDX-License-Identifier: Apache-2.0
// Feeds a reader every prefix of a valid file and thousands of damaged copies: each must be read or refused with an
// Error, never crash, hang or allocate without bound. Run under the address sanitizer this is a small fuzzer.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "api/io/file.h"
#include "base/error.h"

namespace twibil::io {

struct HostileCounts {
  int64_t read = 0;
  int64_t refused = 0;
};

/// `repair` may put right what the format itself would notice, as a checksum, so that the damage gets further.
template <class Reader>
HostileCounts feed_hostile_bytes(
    const Bytes& valid, int64_t flips, uint64_t seed, Reader reader, void (*repair)(Bytes&) = [](Bytes&) {}) {
  HostileCounts counts;
  const auto feed = [&](const Bytes& bytes) {
    try {
      reader(bytes);
      ++counts.read;
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::runtime) << error.what();  // a bug of ours, not a refusal
      EXPECT_FALSE(error.message().empty());
      ++counts.refused;
    }
  };
  for (size_t size = 0; size < valid.size(); ++size) {
    feed(Bytes(valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < flips; ++i) {
    Bytes damaged = valid;
    const int times = 1 + static_cast<int>(random() % 3);
    for (int k = 0; k < times; ++k) {
      damaged[random() % damaged.size()] ^= static_cast<std::byte>(1 << (random() % 8));
    }
    // Fields full of ones are the sizes that overflow.
    if (i % 8 == 0) {
      const size_t at = random() % damaged.size();
      for (size_t k = at; k < std::min(at + 8, damaged.size()); ++k) damaged[k] = std::byte{0xff};
    }
    // Parts that are missing, or there twice.
    if (i % 8 == 4) {
      const size_t at = random() % damaged.size(), n = std::min<size_t>(1 + random() % 16, damaged.size() - at);
      const auto from = damaged.begin() + static_cast<std::ptrdiff_t>(at), to = from + static_cast<std::ptrdiff_t>(n);
      if (random() % 2 == 0) {
        damaged.erase(from, to);
      } else {
        const Bytes part(from, to);
        damaged.insert(from, part.begin(), part.end());
      }
    }
    repair(damaged);
    feed(damaged);
  }
  return counts;
}

}  // namespace twibil::io
