// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), the checksum of files that Twibil writes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace twibil::io {

/// Continues `crc` (0 at the start) over `bytes`: crc32c(b, crc32c(a)) is the checksum of a followed by b.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

/// The same by table, on any machine; crc32c uses the processor's instruction where there is one.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace twibil::io
