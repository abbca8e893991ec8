// SPDX-License-Identifier: Apache-2.0
#include "api/io/idx_file.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "api/io/hostile_bytes.h"
#include "api/io/image_file.h"
#include "api/io/temporary_folder.h"
#include "base/error.h"

namespace twibil::io {
namespace {

Bytes bytes_from(std::initializer_list<int> values) {
  Bytes bytes;
  for (int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}
const Bytes kSmall = bytes_from({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6});
// kSmall, compressed: gzip -9n.
const Bytes kSmallGzip = bytes_from({31, 139, 8,  0,  0,   0,  0,  0,  2, 3,  99,  96, 224, 96, 98, 96, 96, 0,
                                     97, 102, 70, 38, 102, 22, 86, 54, 0, 72, 148, 62, 229, 18, 0,  0,  0});

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(IdxFile, ReadsBytes) {
  const IdxArray array = parse_idx(kSmall);
  EXPECT_EQ(array.dtype, DType::uint8);
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(array.data, bytes_from({1, 2, 3, 4, 5, 6}));
}

TEST(IdxFile, TurnsBytesOfLargerNumbers) {
  const IdxArray array = parse_idx(bytes_from({0, 0, 0x0d, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}));
  float value;
  std::memcpy(&value, array.data.data(), sizeof value);
  EXPECT_EQ(array.dtype, DType::float32);
  EXPECT_EQ(value, 1.5f);
}

TEST(IdxFile, ReadsCompressedFiles) {
  if (!has_image_codecs()) GTEST_SKIP() << "built without zlib";
  const TemporaryFolder folder;
  write_atomic(folder / "a", kSmallGzip);
  EXPECT_EQ(read_idx(folder / "a").data, parse_idx(kSmall).data);
  Bytes twice = kSmallGzip;
  twice.insert(twice.end(), kSmallGzip.begin(), kSmallGzip.end());
  EXPECT_EQ(inflate_gzip(twice, 100).size(), 2 * kSmall.size());
  EXPECT_EQ(error_of([&] { inflate_gzip(kSmallGzip, 17, "f"); }), "inflate_gzip: 'f' inflates to more than 17 bytes");
  Bytes half(kSmallGzip.begin(), kSmallGzip.begin() + 20);
  EXPECT_EQ(error_of([&] { inflate_gzip(half, 100, "f"); }), "inflate_gzip: 'f' is truncated at offset 20");
}

TEST(IdxFile, RefusalsSayWhy) {
  EXPECT_EQ(error_of([] {
              parse_idx(bytes_from({1, 0, 8, 1}));
            }),
            "read_idx: '<bytes>' at offset 4: not an IDX file: it must begin with two zero bytes");
  EXPECT_NE(error_of([] {
              parse_idx(bytes_from({0, 0, 0x0b, 1}));
            }).find("int16 are not supported"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              parse_idx(bytes_from({0, 0, 8, 0}));
            }).find("the rank must be 1 to 8; got 0"),
            std::string::npos);
  Bytes longer = kSmall;
  longer.push_back(std::byte{7});
  EXPECT_NE(error_of([&] { parse_idx(longer); }).find("shape [2, 3] needs 6 bytes; 7 follow"), std::string::npos);
  Bytes huge = bytes_from({0, 0, 0x0e, 8});
  huge.resize(4 + 32, std::byte{0xff});
  EXPECT_NE(error_of([&] { parse_idx(huge); }).find("the shape is too large"), std::string::npos);
}

TEST(IdxFile, HostileBytes) {
  EXPECT_GT(feed_hostile_bytes(kSmall, 20000, 5, [](const Bytes& b) { parse_idx(b); }).refused, 10000);
  if (!has_image_codecs()) return;
  const auto read = [](const Bytes& b) { parse_idx(inflate_gzip(b, 1 << 16)); };
  EXPECT_GT(feed_hostile_bytes(kSmallGzip, 20000, 6, read).refused, 10000);
}

}  // namespace
}  // namespace twibil::io
