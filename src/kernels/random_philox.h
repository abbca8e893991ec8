// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), one block at a time.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/random.h"

namespace twibil::kernels {

inline constexpr uint32_t kPhiloxM0 = 0xD2511F53u, kPhiloxM1 = 0xCD9E8D57u;  // multipliers
inline constexpr uint32_t kPhiloxW0 = 0x9E3779B9u, kPhiloxW1 = 0xBB67AE85u;  // key schedule

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox(PhiloxBlock c, uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; ++round, k0 += kPhiloxW0, k1 += kPhiloxW1) {
    uint64_t p0 = uint64_t{kPhiloxM0} * c[0], p1 = uint64_t{kPhiloxM1} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
  }
  return c;
}

/// Four words of a stream. Blocks go up to 2^48; `attempt` gives fresh words where a sample was rejected.
inline PhiloxBlock random_block(RandomStream s, uint64_t block, uint32_t attempt = 0) {
  return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32) | attempt << 16,
                 static_cast<uint32_t>(s.counter), static_cast<uint32_t>(s.counter >> 32)},
                static_cast<uint32_t>(s.key), static_cast<uint32_t>(s.key >> 32));
}

/// 53 random bits as a double in [0, 1).
inline double unit_double(uint32_t a, uint32_t b) { return ((a >> 5) * 67108864.0 + (b >> 6)) * 0x1p-53; }

}  // namespace twibil::kernels
