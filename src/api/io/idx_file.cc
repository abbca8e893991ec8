// SPDX-License-Identifier: Apache-2.0
#include "api/io/idx_file.h"

#ifdef TWIBIL_CODECS
#include <zlib.h>
#endif

#include <algorithm>

#include "api/io/byte_cursor.h"

namespace twibil::io {
namespace {

constexpr int kMaxRank = 8;

// The third byte of the file. 0x0B, 16-bit integers, has no counterpart among our dtypes.
DType dtype_of_code(const ByteCursor& in, int code) {
  switch (code) {
    case 0x08: return DType::uint8;
    case 0x09: return DType::int8;
    case 0x0C: return DType::int32;
    case 0x0D: return DType::float32;
    case 0x0E: return DType::float64;
    case 0x0B: in.fail("arrays of dtype int16 are not supported");
    default: in.fail("dtype code ", code, " is unknown; not an IDX file, or a damaged one");
  }
}

int64_t read_size(ByteCursor& in) {
  const ByteView b = in.take(4, "a size");
  int64_t size = 0;
  for (std::byte byte : b) size = size << 8 | std::to_integer<int64_t>(byte);
  return size;
}

void swap_bytes(Bytes& data, int64_t width) {
  if (width == 1) return;
  for (auto at = data.begin(); at != data.end(); at += width) std::reverse(at, at + width);
}

}  // namespace

bool looks_like_gzip(ByteView bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

IdxArray parse_idx(ByteView bytes, const std::string& source) {
  ByteCursor in(bytes, "read_idx", source);
  const ByteView head = in.take(4, "the first word");
  if (head[0] != std::byte{0} || head[1] != std::byte{0}) in.fail("not an IDX file: it must begin with two zero bytes");
  IdxArray array;
  array.dtype = dtype_of_code(in, std::to_integer<int>(head[2]));
  const int rank = std::to_integer<int>(head[3]);
  if (rank < 1 || rank > kMaxRank) in.fail("the rank must be 1 to ", kMaxRank, "; got ", rank);
  int64_t count = size_of(array.dtype);
  for (int axis = 0; axis < rank; ++axis) {
    array.shape.push_back(read_size(in));
    if (__builtin_mul_overflow(count, array.shape.back(), &count)) in.fail("the shape is too large");
  }
  if (count != in.remaining()) {
    in.fail("shape ", std::span<const int64_t>(array.shape), " needs ", count, " bytes; ", in.remaining(), " follow");
  }
  const ByteView data = in.take(count, "the data");
  array.data.assign(data.begin(), data.end());
  swap_bytes(array.data, size_of(array.dtype));
  return array;
}

IdxArray read_idx(const std::string& path, int64_t max_bytes) {
  const Bytes bytes = read_file(path, max_bytes);
  if (!looks_like_gzip(bytes)) return parse_idx(bytes, path);
  return parse_idx(inflate_gzip(bytes, max_bytes, path), path);
}

#ifdef TWIBIL_CODECS

Bytes inflate_gzip(ByteView bytes, int64_t max_bytes, const std::string& source) {
  struct Stream : z_stream {
    Stream() : z_stream{} { TW_CHECK(inflateInit2(this, 15 + 16) == Z_OK, memory, "inflate_gzip: out of memory"); }
    ~Stream() { inflateEnd(this); }
  } stream;
  TW_CHECK(bytes.size() <= UINT32_MAX, value, "inflate_gzip: '", source, "' is larger than 4 GiB");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  Bytes out;
  Bytes chunk(size_t{1} << 15);
  int status = Z_OK;
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    const size_t got = chunk.size() - stream.avail_out;
    TW_CHECK(static_cast<int64_t>(out.size() + got) <= max_bytes, value, "inflate_gzip: '", source,
             "' inflates to more than ", max_bytes, " bytes");
    out.insert(out.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got));
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) return out;
      TW_CHECK(inflateReset(&stream) == Z_OK, value, "inflate_gzip: '", source, "' is damaged");  // the next member
    } else if (status != Z_OK) {
      break;
    }
  }
  const bool truncated = status == Z_BUF_ERROR && stream.avail_in == 0;
  throw_error(ErrorKind::value, text("inflate_gzip: '", source, "' is ",
                                     truncated               ? "truncated"
                                     : stream.msg != nullptr ? stream.msg
                                                             : "damaged",
                                     " at offset ", bytes.size() - stream.avail_in));
}

#else

Bytes inflate_gzip(ByteView, int64_t, const std::string& source) {
  throw_error(ErrorKind::not_implemented,
              text("inflate_gzip: '", source, "' is compressed, and this build has no zlib (TWIBIL_CODECS=OFF)"));
}

#endif

}  // namespace twibil::io
