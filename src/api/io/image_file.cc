// SPDX-License-Identifier: Apache-2.0
// Chooses the codec; jpeg_codec.cc and png_codec.cc do the work.
#include "api/io/image_file.h"

#include <array>

#include "base/error.h"

namespace twibil::io {
namespace {

bool begins_with(ByteView bytes, std::span<const unsigned char> signature) {
  if (bytes.size() < signature.size()) return false;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (bytes[i] != std::byte{signature[i]}) return false;
  }
  return true;
}

bool ends_with(const std::string& path, std::string_view ending) {
  if (path.size() < ending.size()) return false;
  for (size_t i = 0; i < ending.size(); ++i) {
    const char c = path[path.size() - ending.size() + i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != ending[i]) return false;
  }
  return true;
}

}  // namespace

ImageFormat image_format_of(ByteView bytes) {
  constexpr std::array<unsigned char, 8> kPng{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  constexpr std::array<unsigned char, 3> kJpeg{0xff, 0xd8, 0xff};
  if (begins_with(bytes, kPng)) return ImageFormat::png;
  if (begins_with(bytes, kJpeg)) return ImageFormat::jpeg;
  return ImageFormat::unknown;
}

Picture decode_image(ByteView bytes, ColorMode mode, const ImageLimits& limits, const std::string& source) {
  switch (image_format_of(bytes)) {
    case ImageFormat::jpeg: return codecs::decode_jpeg(bytes, mode, limits, source);
    case ImageFormat::png: return codecs::decode_png(bytes, mode, limits, source);
    case ImageFormat::unknown: break;
  }
  throw_error(ErrorKind::value, text("decode_image: '", source, "' must be a JPEG or PNG picture; it is ",
                                     bytes.empty() ? "empty" : "something else"));
}

Picture read_image(const std::string& path, ColorMode mode, const ImageLimits& limits) {
  return decode_image(read_file(path, int64_t{1} << 32), mode, limits, path);
}

void write_image(const std::string& path, const Picture& picture) {
  const bool png = ends_with(path, ".png"), jpeg = ends_with(path, ".jpg") || ends_with(path, ".jpeg");
  TW_CHECK(png || jpeg, value, "write_image: the path must end in .png, .jpg or .jpeg; got '", path, "'");
  write_atomic(path, png ? encode_png(picture) : encode_jpeg(picture));
}

Picture to_grey(const Picture& picture) {
  Picture grey(picture.height, picture.width, 1);
  const uint8_t* from = picture.pixels.data();
  for (uint8_t& to : grey.pixels) {
    to = static_cast<uint8_t>((from[0] * 299 + from[1] * 587 + from[2] * 114 + 500) / 1000);
    from += picture.channels;
  }
  return grey;
}

void codecs::check_limits(const char* op, int64_t height, int64_t width, const ImageLimits& limits,
                          const std::string& source) {
  TW_CHECK(height > 0 && width > 0, value, op, ": '", source, "' has no pixels: ", height, " x ", width);
  TW_CHECK(height <= limits.max_side && width <= limits.max_side, value, op, ": '", source,
           "' must have sides of at most ", limits.max_side, " pixels; it has ", height, " x ", width);
  TW_CHECK(height * width <= limits.max_pixels, value, op, ": '", source, "' must have at most ", limits.max_pixels,
           " pixels; it has ", height, " x ", width);
}

#ifdef TWIBIL_CODECS

bool has_image_codecs() { return true; }

#else

namespace {
[[noreturn]] void throw_no_codecs() {
  throw_error(ErrorKind::not_implemented, "image: this build has no JPEG and PNG codecs (TWIBIL_CODECS=OFF)");
}
}  // namespace

bool has_image_codecs() { return false; }
Picture codecs::decode_jpeg(ByteView, ColorMode, const ImageLimits&, const std::string&) { throw_no_codecs(); }
Picture codecs::decode_png(ByteView, ColorMode, const ImageLimits&, const std::string&) { throw_no_codecs(); }
Bytes encode_jpeg(const Picture&, int) { throw_no_codecs(); }
Bytes encode_png(const Picture&, int) { throw_no_codecs(); }

#endif

}  // namespace twibil::io
