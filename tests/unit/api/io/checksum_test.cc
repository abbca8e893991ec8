// SPDX-License-Identifier: Apache-2.0
#include "api/io/checksum.h"

#include <gtest/gtest.h>

#include "api/io/file.h"

namespace twibil::io {
namespace {

// RFC 3720, appendix B.4.
TEST(Checksum, KnownValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c({}), 0u);
  const Bytes zeros(32, std::byte{0});
  const Bytes ones(32, std::byte{0xff});
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAu);
  EXPECT_EQ(crc32c(ones), 0x62A8AB43u);
}

TEST(Checksum, TableAgreesWithInstructionAndParts) {
  Bytes bytes(100);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const ByteView part = ByteView(bytes).first(size);
    EXPECT_EQ(crc32c(part), crc32c_portable(part));
    const size_t half = size / 3;
    EXPECT_EQ(crc32c(part.subspan(half), crc32c(part.first(half))), crc32c(part));
  }
}

}  // namespace
}  // namespace twibil::io
