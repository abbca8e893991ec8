// SPDX-License-Identifier: Apache-2.0
// JPEG (libjpeg-turbo) and PNG (libpng) pictures, from and to bytes. A picture's sides are checked before memory is
// taken for it, and a damaged or truncated file is an error that names the reason; nothing is filled in silently.
#pragma once
#include <string>

#include "api/io/file.h"
#include "api/io/picture.h"

namespace twibil::io {

enum class ColorMode {
  color,      // 3 channels: grey is spread, transparency is dropped, as OpenCV's default
  grey,       // 1 channel
  unchanged,  // what the file has: 1, 3 or, with transparency, 4
};

struct ImageLimits {
  int64_t max_side = 65500;               // libjpeg's own limit
  int64_t max_pixels = int64_t{1} << 28;  // 768 MiB in color
};

enum class ImageFormat { unknown, jpeg, png };
ImageFormat image_format_of(ByteView bytes);

/// Decodes by what the bytes are, whatever the file's name says.
Picture decode_image(ByteView bytes, ColorMode mode = ColorMode::color, const ImageLimits& limits = {},
                     const std::string& source = "<bytes>");
Picture read_image(const std::string& path, ColorMode mode = ColorMode::color, const ImageLimits& limits = {});

/// `quality` is 1 to 100. A picture with transparency cannot be a JPEG.
Bytes encode_jpeg(const Picture& picture, int quality = 95);
/// `level` is zlib's: 0 (none) to 9 (small and slow).
Bytes encode_png(const Picture& picture, int level = 6);
/// Writes the format that the path's ending asks for: .png, .jpg or .jpeg.
void write_image(const std::string& path, const Picture& picture);

/// Whether this build has the codecs (TWIBIL_CODECS); without them the functions above throw not_implemented.
bool has_image_codecs();

namespace codecs {  // one format each; called by decode_image
Picture decode_jpeg(ByteView bytes, ColorMode mode, const ImageLimits& limits, const std::string& source);
Picture decode_png(ByteView bytes, ColorMode mode, const ImageLimits& limits, const std::string& source);
void check_limits(const char* op, int64_t height, int64_t width, const ImageLimits& limits, const std::string& source);
}  // namespace codecs

}  // namespace twibil::io
