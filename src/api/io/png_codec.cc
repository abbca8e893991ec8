// SPDX-License-Identifier: Apache-2.0
// libpng reports errors by a callback that must not return, so it jumps (longjmp). Everything with a destructor lives
// outside the functions that are jumped out of.
#ifdef TWIBIL_CODECS
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <new>

#include "api/io/image_file.h"
#include "base/error.h"

namespace twibil::io {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = 8 << 20;  // of text, profiles and the like, which nobody reads here

struct Problem {
  std::jmp_buf target;
  char message[256] = "unknown problem";
};

[[noreturn]] void jump(png_structp png, png_const_charp message) {
  auto* problem = static_cast<Problem*>(png_get_error_ptr(png));
  std::strncpy(problem->message, message, sizeof problem->message - 1);
  std::longjmp(problem->target, 1);
}
void ignore_warning(png_structp, png_const_charp) {}

struct Decoder {
  Problem problem;
  png_structp png = nullptr;
  png_infop info = nullptr;
  ByteView rest;
  Decoder() {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &problem, jump, ignore_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, &info, nullptr);
      throw std::bad_alloc();
    }
  }
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

void give_bytes(png_structp png, png_bytep to, size_t count) {
  auto* rest = static_cast<ByteView*>(png_get_io_ptr(png));
  if (count > rest->size()) png_error(png, "the file is truncated");
  std::memcpy(to, rest->data(), count);
  *rest = rest->subspan(count);
}

bool read_header(Decoder& d, const ImageLimits& limits) {
  if (setjmp(d.problem.target) != 0) return false;
  png_set_read_fn(d.png, &d.rest, give_bytes);
  // One above the limit, so that our own check gets to say what the limit is.
  png_set_user_limits(d.png, static_cast<png_uint_32>(std::min<int64_t>(limits.max_side + 1, 0x7fffffff)) | 0x10000,
                      static_cast<png_uint_32>(std::min<int64_t>(limits.max_side + 1, 0x7fffffff)) | 0x10000);
  png_set_chunk_malloc_max(d.png, kMaxChunkBytes);
  png_set_chunk_cache_max(d.png, 64);
  png_read_info(d.png, d.info);
  return true;
}

// Asks for 8 bits a channel: grey, color or either with transparency, and returns the channels of a pixel.
bool choose_form(Decoder& d, ColorMode mode, int* channels) {
  if (setjmp(d.problem.target) != 0) return false;
  const int type = png_get_color_type(d.png, d.info);
  const bool transparent = (type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(d.png, d.info, PNG_INFO_tRNS) != 0;
  png_set_strip_16(d.png);
  png_set_packing(d.png);
  png_set_expand(d.png);
  const bool keep_alpha = mode == ColorMode::unchanged && transparent;
  if (!keep_alpha) png_set_strip_alpha(d.png);
  if (mode == ColorMode::color || keep_alpha) png_set_gray_to_rgb(d.png);
  png_set_interlace_handling(d.png);
  png_read_update_info(d.png, d.info);
  *channels = png_get_channels(d.png, d.info);
  return true;
}

bool read_rows(Decoder& d, Picture* picture) {
  if (setjmp(d.problem.target) != 0) return false;
  const int passes = png_get_interlace_type(d.png, d.info) == PNG_INTERLACE_NONE ? 1 : 7;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < picture->height; ++y) png_read_row(d.png, picture->at(y, 0), nullptr);
  }
  png_read_end(d.png, nullptr);
  return true;
}

struct Encoder {
  Problem problem;
  png_structp png = nullptr;
  png_infop info = nullptr;
  Bytes bytes;
  Encoder() {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &problem, jump, ignore_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_write_struct(&png, &info);
      throw std::bad_alloc();
    }
  }
  ~Encoder() { png_destroy_write_struct(&png, &info); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
};

bool append(Bytes& to, const png_byte* from, size_t count) noexcept {
  try {
    const auto* begin = reinterpret_cast<const std::byte*>(from);
    to.insert(to.end(), begin, begin + count);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}
void take_bytes(png_structp png, png_bytep from, size_t count) {
  if (!append(*static_cast<Bytes*>(png_get_io_ptr(png)), from, count)) png_error(png, "out of memory");
}

bool write_rows(Encoder& e, const Picture& picture, int level) {
  if (setjmp(e.problem.target) != 0) return false;
  constexpr int kTypes[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA};
  png_set_write_fn(e.png, &e.bytes, take_bytes, [](png_structp) {});
  png_set_compression_level(e.png, level);
  png_set_IHDR(e.png, e.info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height), 8,
               kTypes[picture.channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(e.png, e.info);
  for (int64_t y = 0; y < picture.height; ++y) png_write_row(e.png, picture.at(y, 0));
  png_write_end(e.png, nullptr);
  return true;
}

}  // namespace

Picture codecs::decode_png(ByteView bytes, ColorMode mode, const ImageLimits& limits, const std::string& source) {
  const char* op = "decode_png";
  Decoder d;
  d.rest = bytes;
  const auto fail = [&] {
    throw_error(ErrorKind::value, text(op, ": '", source, "' is damaged near offset ", bytes.size() - d.rest.size(),
                                       ": ", d.problem.message));
  };
  if (!read_header(d, limits)) fail();
  const int64_t height = png_get_image_height(d.png, d.info), width = png_get_image_width(d.png, d.info);
  check_limits(op, height, width, limits, source);
  int channels = 0;
  if (!choose_form(d, mode, &channels)) fail();
  TW_ASSERT(static_cast<int64_t>(png_get_rowbytes(d.png, d.info)) == width * channels);
  Picture picture(height, width, channels);
  if (!read_rows(d, &picture)) fail();
  return mode == ColorMode::grey && channels == 3 ? to_grey(picture) : picture;
}

Bytes encode_png(const Picture& picture, int level) {
  TW_CHECK(level >= 0 && level <= 9, value, "encode_png: level must be 0 to 9; got ", level);
  TW_CHECK(picture.channels >= 1 && picture.channels <= 4, value, "encode_png: a PNG has 1 to 4 channels; got ",
           picture.channels);
  codecs::check_limits("encode_png", picture.height, picture.width, {}, "picture");
  Encoder e;
  if (!write_rows(e, picture, level)) throw_error(ErrorKind::value, text("encode_png: ", e.problem.message));
  return std::move(e.bytes);
}

}  // namespace twibil::io
#endif
