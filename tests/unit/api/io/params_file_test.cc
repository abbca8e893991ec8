// SPDX-License-Identifier: Apache-2.0
// The files of MXNet itself are read by tests/python/test_params_files.py; here are the layouts, byte by byte.
#include "api/io/params_file.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "api/io/hostile_bytes.h"
#include "api/io/temporary_folder.h"
#include "base/error.h"

namespace twibil::io {
namespace {

const std::array<float, 6> kFloats{1, 2, 3, 4, 5, 6};
ByteView floats(size_t n) { return std::as_bytes(std::span(kFloats).first(n)); }

// Builds files by hand.
struct Builder {
  Bytes bytes;
  template <class T>
  requires std::is_arithmetic_v<T> Builder& operator<<(T value) {
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof value);
    return *this;
  }
  Builder& operator<<(ByteView view) {
    bytes.insert(bytes.end(), view.begin(), view.end());
    return *this;
  }
};
Builder begin_list(uint64_t count) {
  Builder b;
  b << uint64_t{0x112} << uint64_t{0} << count;
  return b;
}
std::string error_of(const Bytes& bytes) {
  try {
    parse_params(bytes, "f");
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

std::vector<ParamsEntry> sample() {
  return {{"arg:weight", DType::float32, {2, 3}, floats(6)}, {"aux:mean", DType::float64, {1}, floats(2)},
          {"scalar", DType::float32, {}, floats(1)},         {"empty", DType::int64, {3, 0}, {}},
          {"nothing", DType::float32, {}, {}, true},         {"flags", DType::bool_, {4}, floats(1)}};
}

TEST(ParamsFile, RoundTrip) {
  const TemporaryFolder folder;
  const auto entries = sample();
  write_params(folder / "a.params", entries);
  const ParamsFile file = read_params(folder / "a.params");
  EXPECT_TRUE(file.has_names);
  EXPECT_TRUE(file.has_checksum);
  ASSERT_EQ(file.entries.size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(file.entries[i].name, entries[i].name);
    EXPECT_EQ(file.entries[i].none, entries[i].none);
    EXPECT_TRUE(entries[i].none || file.entries[i].dtype == entries[i].dtype);
    EXPECT_EQ(file.entries[i].shape, entries[i].shape);
    EXPECT_EQ(text_of(file.entries[i].data), text_of(entries[i].data));
  }
  EXPECT_EQ(format_params(entries), read_file(folder / "a.params"));
}

TEST(ParamsFile, OldFormHasNoNumpyShapes) {
  std::vector<ParamsEntry> entries = sample();
  EXPECT_THROW(format_params(entries, ParamsForm::legacy), Error);
  entries.erase(entries.begin() + 2, entries.begin() + 4);
  const Bytes bytes = format_params(entries, ParamsForm::legacy);
  const ParamsFile file = parse_params(bytes);
  ASSERT_EQ(file.entries.size(), 4u);
  EXPECT_EQ(file.entries[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(file.entries[2].none);
  uint32_t magic;
  std::memcpy(&magic, bytes.data() + 24, sizeof magic);
  EXPECT_EQ(magic, 0xF993FAC9u);
}

TEST(ParamsFile, EmptyList) {
  const Bytes bytes = format_params({});
  const ParamsFile file = parse_params(bytes);
  EXPECT_TRUE(file.entries.empty());
  EXPECT_FALSE(file.has_names);
}

TEST(ParamsFile, OldLayouts) {
  Builder b = begin_list(3);
  b << uint32_t{2} << uint32_t{2} << uint32_t{3} << int32_t{1} << int32_t{0} << int32_t{0} << floats(6);         // V0
  b << uint32_t{0xF993FAC8} << int32_t{1} << int64_t{2} << int32_t{2} << int32_t{7} << int32_t{0} << floats(2);  // V1
  b << uint32_t{0};  // V0's "no array"
  b << uint64_t{0};
  const ParamsFile file = parse_params(b.bytes);
  ASSERT_EQ(file.entries.size(), 3u);
  EXPECT_FALSE(file.has_names);
  EXPECT_FALSE(file.has_checksum);
  EXPECT_EQ(file.entries[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(text_of(file.entries[0].data), text_of(floats(6)));
  EXPECT_EQ(file.entries[1].shape, (std::vector<int64_t>{2}));
  EXPECT_TRUE(file.entries[2].none);
}

TEST(ParamsFile, RefusalsSayWhereAndWhy) {
  EXPECT_EQ(error_of({}),
            "read_params: 'f' at offset 0: not an MXNet .params file: it must begin with 0x112 in 8 bytes");
  EXPECT_EQ(error_of((begin_list(0) << uint64_t{0} << uint8_t{1}).bytes),
            "read_params: 'f' at offset 32: 1 bytes follow the end. The file is damaged");
  EXPECT_EQ(error_of((begin_list(1000) << uint64_t{0}).bytes),
            "read_params: 'f' at offset 16: the number of arrays is 1000, more than the remaining bytes can hold. The "
            "file is truncated or damaged");
  Builder sparse = begin_list(1);
  sparse << uint32_t{0xF993FAC9} << int32_t{1} << uint64_t{0} << uint64_t{0};
  EXPECT_NE(error_of(sparse.bytes).find("row_sparse arrays are not supported; in MXNet, save array.tostype('default')"),
            std::string::npos);
  Builder huge = begin_list(1);
  huge << uint32_t{0xF993FACA} << int32_t{0} << int32_t{2} << (int64_t{1} << 40) << (int64_t{1} << 40) << int32_t{1}
       << int32_t{0} << int32_t{0};
  EXPECT_NE(error_of(huge.bytes).find("shape [1099511627776, 1099511627776] is too large"), std::string::npos);
  Builder dtype = begin_list(1);
  dtype << uint32_t{0xF993FACA} << int32_t{0} << int32_t{0} << int32_t{1} << int32_t{0} << int32_t{9};
  EXPECT_NE(error_of(dtype.bytes).find("arrays of dtype uint16 are not supported"), std::string::npos);
}

TEST(ParamsFile, WriterChecksNames) {
  EXPECT_THROW(format_params({{"a", DType::float32, {1}, floats(1)}, {"a", DType::float32, {1}, floats(1)}}), Error);
  EXPECT_THROW(format_params({{"a", DType::float32, {1}, floats(1)}, {"", DType::float32, {1}, floats(1)}}), Error);
}

TEST(ParamsFile, EveryDamageIsNoticed) {
  const Bytes valid = format_params(sample());
  const HostileCounts counts = feed_hostile_bytes(valid, 20000, 1, [](const Bytes& b) { parse_params(b); });
  // A flip in the tag itself makes a file without checksum, which may then be read; all else is refused. A flip that
  // is undone by a second one leaves the file as it was.
  EXPECT_LT(counts.read, 20000 * 5 * 4 / static_cast<int64_t>(valid.size()));
  EXPECT_GT(counts.refused, 15000);
}

TEST(ParamsFile, HostileBytesWithoutChecksum) {
  Bytes valid = format_params(sample());
  std::memset(valid.data() + 8, 0, 8);
  const HostileCounts counts = feed_hostile_bytes(valid, 20000, 2, [](const Bytes& b) { parse_params(b); });
  EXPECT_GE(counts.refused, static_cast<int64_t>(valid.size()));  // every prefix at least
  EXPECT_GT(counts.read, 0);
}

}  // namespace
}  // namespace twibil::io
