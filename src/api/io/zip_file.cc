// SPDX-License-Identifier: Apache-2.0
// The archive's directory stands at its end: its end record (with 64-bit numbers in another one before it) tells where
// it begins, each entry of it where the member's own header is.
#include "api/io/zip_file.h"

#include <algorithm>
#include <array>

#include "api/io/byte_cursor.h"

namespace twibil::io {
namespace {

constexpr const char* kWho = "zip archive";
constexpr uint32_t kEndMagic = 0x06054b50, kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr uint32_t kEntryMagic = 0x02014b50, kMemberMagic = 0x04034b50;
constexpr int64_t kEndBytes = 22, kLocatorBytes = 20, kEntryBytes = 46;
constexpr uint32_t kIn64 = 0xffffffff;  // the number stands in a 64-bit field elsewhere

// Eight tables: eight bytes a step.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
    t[0][i] = c;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
  return t;
}();

struct Directory {
  uint64_t count, bytes, offset;
};

ByteCursor at(ByteView bytes, uint64_t offset, const std::string& source) {
  ByteCursor in(bytes, kWho, source);
  if (offset > bytes.size()) in.fail("it points to byte ", offset, " of ", bytes.size(), ". The file is damaged");
  in.take(static_cast<int64_t>(offset), "the part before");
  return in;
}

Directory find_directory(ByteView bytes, const std::string& source) {
  auto size = static_cast<int64_t>(bytes.size());
  int64_t lowest = std::max<int64_t>(0, size - kEndBytes - 65535);  // a comment may follow the end record
  for (int64_t offset = size - kEndBytes; offset >= lowest; --offset) {
    ByteCursor in = at(bytes, static_cast<uint64_t>(offset), source);
    if (in.read<uint32_t>("the end record") != kEndMagic) continue;
    in.take(6, "the end record");
    uint64_t count = in.read<uint16_t>("a count");
    uint64_t length = in.read<uint32_t>("a length"), begin = in.read<uint32_t>("an offset");
    if (count != 0xffff && length != kIn64 && begin != kIn64) return {count, length, begin};
    if (offset < kLocatorBytes) break;
    ByteCursor locator = at(bytes, static_cast<uint64_t>(offset - kLocatorBytes), source);
    if (locator.read<uint32_t>("the locator") != kLocator64Magic) break;
    locator.take(4, "the locator");
    ByteCursor end = at(bytes, locator.read<uint64_t>("an offset"), source);
    if (end.read<uint32_t>("the 64-bit end record") != kEnd64Magic) break;
    end.take(28, "the 64-bit end record");
    count = end.read<uint64_t>("a count");
    length = end.read<uint64_t>("a length");
    return {count, length, end.read<uint64_t>("an offset")};
  }
  ByteCursor(bytes, kWho, source).fail("there is no directory at the end. The file is truncated or damaged");
}

struct Entry {
  std::string name;
  uint16_t flags, method;
  uint32_t crc;
  uint64_t stored, whole, offset;
};

/// The 64-bit numbers of an entry whose 32-bit ones are full, in this order.
void read_extra(ByteCursor& in, int64_t length, Entry& e) {
  ByteView extra = in.take(length, "an entry's extra field");
  std::string source = "extra field";
  ByteCursor part(extra, kWho, source);
  while (part.remaining() >= 4) {
    auto id = part.read<uint16_t>("a number");
    int64_t size = part.read<uint16_t>("a length");
    if (size > part.remaining()) in.fail("an entry's extra field is damaged");
    ByteView field = part.take(size, "a field");
    if (id != 1) continue;
    ByteCursor numbers(field, kWho, source);
    for (uint64_t* n : {&e.whole, &e.stored, &e.offset})
      if (*n == kIn64) {
        if (numbers.remaining() < 8) in.fail("an entry's extra field is damaged");
        *n = numbers.read<uint64_t>("a number");
      }
  }
}

Entry read_entry(ByteCursor& in) {
  if (in.read<uint32_t>("an entry") != kEntryMagic) in.fail("an entry of the directory is damaged");
  Entry e;
  in.take(4, "an entry");
  e.flags = in.read<uint16_t>("an entry");
  e.method = in.read<uint16_t>("an entry");
  in.take(4, "an entry");
  e.crc = in.read<uint32_t>("an entry");
  e.stored = in.read<uint32_t>("an entry");
  e.whole = in.read<uint32_t>("an entry");
  int64_t name = in.read<uint16_t>("an entry"), extra = in.read<uint16_t>("an entry");
  int64_t comment = in.read<uint16_t>("an entry");
  in.take(8, "an entry");
  e.offset = in.read<uint32_t>("an entry");
  e.name = text_of(in.take(name, "a member's name"));
  read_extra(in, extra, e);
  in.take(comment, "a comment");
  return e;
}

ByteView read_member(ByteView bytes, const Entry& e, const std::string& source) {
  ByteCursor in = at(bytes, e.offset, source);
  if (in.read<uint32_t>("a member's header") != kMemberMagic) in.fail("the header of ", e.name, " is damaged");
  if (e.method != 0 || (e.flags & 1) != 0)
    in.fail(e.name, " is ", (e.flags & 1) != 0 ? "encrypted" : "compressed", "; PyTorch stores its members plainly");
  if (e.stored != e.whole) in.fail("the sizes of ", e.name, " contradict each other. The file is damaged");
  in.take(22, "a member's header");
  int64_t name = in.read<uint16_t>("a length"), extra = in.read<uint16_t>("a length");
  in.take(name + extra, "a member's name");
  if (e.stored > static_cast<uint64_t>(in.remaining()))
    in.fail(e.name, " needs ", e.stored, " bytes; ", in.remaining(), " are left. The file is truncated or damaged");
  ByteView data = in.take(static_cast<int64_t>(e.stored), "a member");
  if (crc32(data) != e.crc) in.fail("the checksum of ", e.name, " is wrong. The file is damaged");
  return data;
}

}  // namespace

uint32_t crc32(ByteView bytes) {
  uint32_t crc = 0xffffffff;
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 255];
    bytes = bytes.subspan(8);
  }
  for (std::byte b : bytes) crc = crc >> 8 ^ kTables[0][(crc ^ std::to_integer<uint32_t>(b)) & 255];
  return ~crc;
}

std::map<std::string, ByteView> parse_stored_zip(ByteView bytes, const std::string& source) {
  Directory d = find_directory(bytes, source);
  ByteCursor in = at(bytes, d.offset, source);
  if (d.bytes > static_cast<uint64_t>(in.remaining()) || d.count > d.bytes / kEntryBytes)
    in.fail("the directory of ", d.count, " members does not fit. The file is damaged");
  std::map<std::string, ByteView> members;
  uint64_t left = bytes.size();
  for (uint64_t i = 0; i < d.count; ++i) {
    Entry e = read_entry(in);
    if (e.stored > left) in.fail("the members are larger than the file. The file is damaged");
    left -= e.stored;  // members that overlap would be a way to make much of little
    if (!members.emplace(e.name, read_member(bytes, e, source)).second) in.fail("there are two members ", e.name);
  }
  return members;
}

}  // namespace twibil::io
