// SPDX-License-Identifier: Apache-2.0
#include "api/io/params_file.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "api/io/byte_cursor.h"
#include "api/io/checksum.h"
#include "base/checked.h"

namespace twibil::io {
namespace {

constexpr uint64_t kListMagic = 0x112;
constexpr uint32_t kMagicV1 = 0xF993FAC8;      // 64-bit sizes; before it the first word is the rank, with 32-bit sizes
constexpr uint32_t kMagicV2 = 0xF993FAC9;      // storage types
constexpr uint32_t kMagicV3 = 0xF993FACA;      // NumPy's shapes: rank 0 and zero sizes are values
constexpr uint32_t kChecksumTag = 0x43335754;  // "TW3C", the reserved word's upper half
constexpr int64_t kReservedOffset = 8;
constexpr int64_t kHeaderBytes = 16;
constexpr int64_t kMaxRank = 32;  // as NumPy's arrays; MXNet's operators stop at 6
constexpr int32_t kDense = 0;
constexpr int32_t kCpu = 1;

// Our dtypes in the order of DType, by MXNet's numbers.
constexpr int32_t kTypeFlags[kDTypeCount] = {7, 5, 3, 4, 6, 2, 12, 0, 1};
constexpr const char* kTypeNames[] = {"float32", "float64", "float16", "uint8",  "int32",  "int8",    "int64",
                                      "bool",    "int16",   "uint16",  "uint32", "uint64", "bfloat16"};

DType dtype_of_flag(const ByteCursor& in, int32_t flag) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kTypeFlags[i] == flag) return static_cast<DType>(i);
  }
  const bool known = flag >= 0 && flag < static_cast<int32_t>(std::size(kTypeNames));
  if (known) in.fail("arrays of dtype ", kTypeNames[flag], " are not supported");
  in.fail("dtype number ", flag, " is unknown. The file is damaged");
}

template <class Size> std::vector<int64_t> read_sizes(ByteCursor& in, int64_t rank) {
  if (rank > kMaxRank) in.fail("a rank of ", rank, " is above ", kMaxRank, ". The file is damaged");
  std::vector<int64_t> shape;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto size = static_cast<int64_t>(in.read<Size>("a size"));
    if (size < 0) in.fail("size ", size, " of axis ", axis, " is negative or unknown");
    shape.push_back(size);
  }
  return shape;
}

// Rank -1 stands for an unknown shape, that is for no array.
std::optional<std::vector<int64_t>> read_shape(ByteCursor& in) {
  const auto rank = in.read<int32_t>("a rank");
  if (rank == -1) return std::nullopt;
  if (rank < 0) in.fail("rank ", rank, " is negative. The file is damaged");
  return read_sizes<int64_t>(in, rank);
}

int64_t data_bytes(const ByteCursor& in, const ParamsEntry& entry) {
  int64_t bytes = size_of(entry.dtype);
  bool empty = false;
  for (int64_t size : entry.shape) {
    if (size == 0) empty = true;
    else if (__builtin_mul_overflow(bytes, size, &bytes))
      in.fail("shape ", std::span<const int64_t>(entry.shape), " is too large");
  }
  return empty ? 0 : bytes;
}

ParamsEntry read_array(ByteCursor& in) {
  ParamsEntry entry;
  const auto magic = in.read<uint32_t>("an array's first word");
  std::optional<std::vector<int64_t>> shape;
  if (magic == kMagicV2 || magic == kMagicV3) {
    const auto storage = in.read<int32_t>("a storage type");
    if (storage != kDense) {
      const bool sparse = storage == 1 || storage == 2;
      if (!sparse) in.fail("storage type ", storage, " is unknown. The file is damaged");
      in.fail(storage == 1 ? "row_sparse" : "csr",
              " arrays are not supported; in MXNet, save array.tostype('default')");
    }
    shape = read_shape(in);
  } else if (magic == kMagicV1) {
    shape = read_shape(in);
  } else {
    shape = read_sizes<uint32_t>(in, magic);
  }
  // Before V3, rank 0 was the shape of no array.
  if (!shape || (shape->empty() && magic != kMagicV3)) {
    entry.none = true;
    return entry;
  }
  entry.shape = *std::move(shape);
  in.take(8, "a device");
  entry.dtype = dtype_of_flag(in, in.read<int32_t>("a dtype"));
  entry.data = in.take(data_bytes(in, entry), "an array's data");
  return entry;
}

// Tag and checksum in one word: what the reserved word of our files holds.
uint64_t checksum_word(ByteView header, ByteView rest) {
  return uint64_t{kChecksumTag} << 32 | crc32c(rest, crc32c(header));
}

class Writer {
 public:
  explicit Writer(AtomicFile* file) : file_(file) {}

  template <class T> void field(T value) {
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    pending_.insert(pending_.end(), p, p + sizeof value);
  }
  void data(ByteView bytes) {
    if (file_ == nullptr) {
      pending_.insert(pending_.end(), bytes.begin(), bytes.end());
      return;
    }
    flush();
    send(bytes);
  }
  /// Puts the checksum into the header; returns the bytes when there is no file.
  Bytes finish() {
    if (file_ != nullptr) {
      flush();
      const uint64_t word = uint64_t{kChecksumTag} << 32 | crc_;
      file_->write_at(kReservedOffset, std::as_bytes(std::span(&word, 1)));
      return {};
    }
    const ByteView all(pending_);
    const uint64_t word = checksum_word(all.first(kReservedOffset), all.subspan(kHeaderBytes));
    std::memcpy(pending_.data() + kReservedOffset, &word, sizeof word);
    return std::move(pending_);
  }

 private:
  void flush() {
    send(pending_);
    pending_.clear();
  }
  void send(ByteView bytes) {
    if (file_->size() == 0) {  // the first bytes contain the header, whose reserved word is left out of the sum
      crc_ = crc32c(bytes.subspan(kHeaderBytes), crc32c(bytes.first(kReservedOffset)));
    } else {
      crc_ = crc32c(bytes, crc_);
    }
    file_->write(bytes);
  }

  AtomicFile* file_;
  Bytes pending_;
  uint32_t crc_ = 0;
};

void write_array(Writer& out, const ParamsEntry& entry, ParamsForm form) {
  const bool numpy = form == ParamsForm::numpy;
  out.field(numpy ? kMagicV3 : kMagicV2);
  out.field(kDense);
  if (entry.none) {
    out.field(int32_t{numpy ? -1 : 0});
    return;
  }
  out.field(static_cast<int32_t>(entry.shape.size()));
  for (int64_t size : entry.shape) out.field(size);
  out.field(kCpu), out.field(int32_t{0});
  out.field(kTypeFlags[static_cast<int>(entry.dtype)]);
  out.data(entry.data);
}

void check_entries(const std::vector<ParamsEntry>& entries, ParamsForm form) {
  std::unordered_set<std::string_view> names;
  for (const ParamsEntry& entry : entries) {
    TW_CHECK(entry.name.empty() == entries[0].name.empty(), value,
             "write_params: either all arrays have a name or none has");
    TW_CHECK(entry.name.empty() || names.insert(entry.name).second, value, "write_params: names must differ; got '",
             entry.name, "' twice");
    if (entry.none) continue;
    TW_CHECK(static_cast<int64_t>(entry.shape.size()) <= kMaxRank, value, "write_params: '", entry.name,
             "' must have at most ", kMaxRank, " axes; it has ", entry.shape.size());
    const bool has_zero = std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();
    TW_CHECK(form == ParamsForm::numpy || !(entry.shape.empty() || has_zero), value, "write_params: '", entry.name,
             "' of shape ", std::span<const int64_t>(entry.shape),
             " cannot be written in MXNet's old form; call npx.set_np() first");
    const int64_t bytes = checked_mul(checked_product(entry.shape), size_of(entry.dtype));
    TW_ASSERT(bytes == static_cast<int64_t>(entry.data.size()));
  }
}

Bytes write_list(const std::vector<ParamsEntry>& entries, ParamsForm form, AtomicFile* file) {
  Writer out(file);
  out.field(kListMagic), out.field(uint64_t{0});
  out.field(static_cast<uint64_t>(entries.size()));
  for (const ParamsEntry& entry : entries) write_array(out, entry, form);
  const bool named = !entries.empty() && !entries[0].name.empty();
  out.field(static_cast<uint64_t>(named ? entries.size() : 0));
  for (const ParamsEntry& entry : entries) {
    if (!named) break;
    out.field(static_cast<uint64_t>(entry.name.size()));
    out.data(bytes_of(entry.name));
  }
  return out.finish();
}

}  // namespace

bool looks_like_params(ByteView bytes) {
  uint64_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kListMagic;
}

ParamsFile parse_params(ByteView bytes, const std::string& source) {
  ByteCursor in(bytes, "read_params", source);
  ParamsFile file;
  if (!looks_like_params(bytes)) in.fail("not an MXNet .params file: it must begin with 0x112 in 8 bytes");
  in.take(8, "the first word");
  const auto reserved = in.read<uint64_t>("the reserved word");
  if (reserved >> 32 == kChecksumTag) {
    file.has_checksum = true;
    if (reserved != checksum_word(bytes.first(kReservedOffset), bytes.subspan(kHeaderBytes))) {
      in.fail("the checksum is wrong. The file was damaged after it was written, or is truncated");
    }
  }
  const int64_t count = in.read_count(sizeof(uint32_t), "the number of arrays");
  for (int64_t i = 0; i < count; ++i) file.entries.push_back(read_array(in));
  const int64_t names = in.read_count(sizeof(uint64_t), "the number of names");
  if (names != 0 && names != count) in.fail(count, " arrays have ", names, " names. The file is damaged");
  file.has_names = names != 0;
  for (int64_t i = 0; i < names; ++i) {
    const int64_t length = in.read_count(1, "the length of a name");
    file.entries[static_cast<size_t>(i)].name = text_of(in.take(length, "a name"));
  }
  if (in.remaining() != 0) in.fail(in.remaining(), " bytes follow the end. The file is damaged");
  return file;
}

ParamsFile read_params(const std::string& path, int64_t max_bytes) {
  Bytes bytes = read_file(path, max_bytes);
  ParamsFile file = parse_params(bytes, path);
  file.bytes = std::move(bytes);  // moving a vector keeps its memory, so the entries still point into it
  return file;
}

void write_params(const std::string& path, const std::vector<ParamsEntry>& entries, ParamsForm form) {
  check_entries(entries, form);
  AtomicFile file(path);
  write_list(entries, form, &file);
  file.commit();
}

Bytes format_params(const std::vector<ParamsEntry>& entries, ParamsForm form) {
  check_entries(entries, form);
  return write_list(entries, form, nullptr);
}

}  // namespace twibil::io
