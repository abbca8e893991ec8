// SPDX-License-Identifier: Apache-2.0
#include "api/io/image_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "api/io/hostile_bytes.h"
#include "api/io/sample_pictures.h"
#include "api/io/temporary_folder.h"
#include "base/error.h"

namespace twibil::io {
namespace {

class ImageFile : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_image_codecs()) GTEST_SKIP() << "built without codecs";
  }
};

Picture gradient(int64_t height, int64_t width, int64_t channels) {
  Picture picture(height, width, channels);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t values[] = {30 * x, 40 * y, 15 * (x + y), 255 - 20 * x};
      for (int64_t c = 0; c < channels; ++c) picture.at(y, x)[c] = static_cast<uint8_t>(values[c]);
    }
  }
  return picture;
}

template <size_t n> ByteView view(const std::array<unsigned char, n>& bytes) { return std::as_bytes(std::span(bytes)); }

int largest_difference(const Picture& a, const Picture& b) {
  if (a.height != b.height || a.width != b.width || a.channels != b.channels) return 1000;
  int largest = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST_F(ImageFile, PngKeepsEveryByte) {
  for (int64_t channels : {1, 3, 4}) {
    const Picture picture = gradient(6, 8, channels);
    const Picture back = decode_image(encode_png(picture), ColorMode::unchanged);
    EXPECT_EQ(back.channels, channels);
    EXPECT_EQ(back.pixels, picture.pixels);
  }
}

TEST_F(ImageFile, JpegIsClose) {
  for (int64_t channels : {1, 3}) {
    Picture picture = gradient(6, 8, channels);
    const Picture back = decode_image(encode_jpeg(picture, 100), ColorMode::unchanged);
    EXPECT_LE(largest_difference(back, picture), channels == 1 ? 2 : 24);  // color is stored at half resolution
  }
}

TEST_F(ImageFile, ModesOfColor) {
  const Bytes grey = encode_png(gradient(6, 8, 1)), color = encode_png(gradient(6, 8, 3));
  const Bytes transparent = encode_png(gradient(6, 8, 4));
  EXPECT_EQ(decode_image(grey).channels, 3);
  EXPECT_EQ(decode_image(grey).pixels[3], decode_image(grey).pixels[5]);
  EXPECT_EQ(decode_image(transparent).pixels, gradient(6, 8, 3).pixels);
  EXPECT_EQ(decode_image(color, ColorMode::grey).pixels, to_grey(gradient(6, 8, 3)).pixels);
  EXPECT_EQ(decode_image(transparent, ColorMode::grey).channels, 1);
  EXPECT_LE(largest_difference(decode_image(encode_jpeg(gradient(6, 8, 3), 100), ColorMode::grey),
                               to_grey(gradient(6, 8, 3))),
            2);
}

TEST_F(ImageFile, FilesOfOtherKinds) {
  const Picture expected = gradient(6, 8, 3);
  EXPECT_LE(largest_difference(decode_image(view(samples::kPaletteTransparent)), expected), 60);
  EXPECT_EQ(decode_image(view(samples::kPaletteTransparent), ColorMode::unchanged).channels, 4);
  const Picture deep = decode_image(view(samples::kDeepInterlacedAlpha), ColorMode::unchanged);
  EXPECT_EQ(deep.channels, 4);
  EXPECT_EQ(deep.at(5, 7)[3], 56000 >> 8);
  EXPECT_EQ(decode_image(view(samples::kDeepInterlacedAlpha)).pixels, expected.pixels);
  EXPECT_LE(largest_difference(decode_image(view(samples::kProgressive)), expected), 12);
  EXPECT_LE(largest_difference(decode_image(view(samples::kGreyJpeg), ColorMode::unchanged), to_grey(expected)), 4);
  EXPECT_LE(largest_difference(decode_image(view(samples::kInks)), expected), 12);
  EXPECT_EQ(decode_image(view(samples::kInks), ColorMode::grey).channels, 1);
  const Picture chess = decode_image(view(samples::kGreyOneBit), ColorMode::unchanged);
  ASSERT_EQ(chess.channels, 1);
  for (int64_t y = 0; y < 6; ++y) {
    for (int64_t x = 0; x < 8; ++x) EXPECT_EQ(*chess.at(y, x), (x + y) % 2 * 255);
  }
}

TEST_F(ImageFile, SizesAreCheckedBeforeMemoryIsTaken) {
  const Bytes wide = encode_png(Picture(2, 3000, 1));
  EXPECT_EQ(error_of([&] { decode_image(wide, ColorMode::color, {.max_side = 2999}); }),
            "decode_png: '<bytes>' must have sides of at most 2999 pixels; it has 2 x 3000");
  EXPECT_EQ(error_of([&] { decode_image(wide, ColorMode::color, {.max_pixels = 5999}); }),
            "decode_png: '<bytes>' must have at most 5999 pixels; it has 2 x 3000");
  Bytes jpeg = encode_jpeg(gradient(6, 8, 3));
  for (size_t i = 0; i + 9 < jpeg.size(); ++i) {
    if (jpeg[i] != std::byte{0xff} || jpeg[i + 1] != std::byte{0xc0}) continue;
    for (size_t k = 5; k < 9; ++k) jpeg[i + k] = std::byte{0xfa};  // 64,250 x 64,250
  }
  EXPECT_NE(error_of([&] { decode_image(jpeg); }).find("must have at most 268435456 pixels; it has 64250 x 64250"),
            std::string::npos);
}

TEST_F(ImageFile, RefusalsSayWhy) {
  EXPECT_EQ(error_of([] { decode_image({}); }), "decode_image: '<bytes>' must be a JPEG or PNG picture; it is empty");
  EXPECT_EQ(error_of([] { decode_image(bytes_of("GIF89a")); }),
            "decode_image: '<bytes>' must be a JPEG or PNG picture; it is something else");
  Bytes jpeg = encode_jpeg(gradient(64, 64, 3));
  jpeg.resize(jpeg.size() / 2);
  EXPECT_EQ(error_of([&] { decode_image(jpeg); }), "decode_jpeg: '<bytes>' is damaged: Premature end of JPEG file");
  Bytes png = encode_png(gradient(6, 8, 3));
  png[png.size() - 14] ^= std::byte{1};
  EXPECT_NE(error_of([&] { decode_image(png); }).find("CRC error"), std::string::npos);
  png.resize(60);
  EXPECT_NE(error_of([&] { decode_image(png); }).find("the file is truncated"), std::string::npos);
  EXPECT_THROW(encode_jpeg(gradient(6, 8, 4)), Error);
  EXPECT_THROW(encode_jpeg(gradient(6, 8, 3), 0), Error);
  EXPECT_THROW(encode_png(Picture()), Error);
}

TEST_F(ImageFile, WritesByTheEnding) {
  const TemporaryFolder folder;
  write_image(folder / "a.PNG", gradient(6, 8, 3));
  write_image(folder / "a.jpg", gradient(6, 8, 3));
  EXPECT_EQ(image_format_of(read_file(folder / "a.PNG")), ImageFormat::png);
  EXPECT_EQ(image_format_of(read_file(folder / "a.jpg")), ImageFormat::jpeg);
  EXPECT_EQ(read_image(folder / "a.PNG").pixels, gradient(6, 8, 3).pixels);
  EXPECT_THROW(write_image(folder / "a.gif", gradient(6, 8, 3)), Error);
}

TEST_F(ImageFile, HostilePng) {
  const auto read = [](const Bytes& bytes) { decode_image(bytes, ColorMode::unchanged, {.max_pixels = 1 << 20}); };
  for (ByteView sample : {view(samples::kPaletteTransparent), view(samples::kDeepInterlacedAlpha)}) {
    const HostileCounts counts = feed_hostile_bytes(Bytes(sample.begin(), sample.end()), 10000, 3, read);
    EXPECT_GT(counts.refused, 5000);
  }
}

/// Gives every chunk the checksum of what it holds now: the decoder then believes what the damage says.
void repair_png(Bytes& bytes) {
  const auto word = [&](size_t at) {
    uint32_t value = 0;
    for (size_t k = 0; k < 4; ++k) value = value << 8 | std::to_integer<uint32_t>(bytes[at + k]);
    return value;
  };
  for (size_t at = 8; at + 12 <= bytes.size();) {
    const size_t length = word(at), end = at + 8 + length;
    if (length > bytes.size() || end + 4 > bytes.size()) return;
    uint32_t crc = 0xffffffffu;
    for (size_t i = at + 4; i < end; ++i) {
      crc ^= std::to_integer<uint32_t>(bytes[i]);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    for (size_t k = 0; k < 4; ++k) bytes[end + k] = static_cast<std::byte>(~crc >> (24 - 8 * k));
    at = end + 4;
  }
}

TEST_F(ImageFile, HostilePngWithRightChecksums) {
  for (ColorMode mode : {ColorMode::unchanged, ColorMode::color, ColorMode::grey}) {
    const auto read = [&](const Bytes& bytes) { decode_image(bytes, mode, {.max_pixels = 1 << 16}); };
    for (ByteView sample :
         {view(samples::kPaletteTransparent), view(samples::kDeepInterlacedAlpha), view(samples::kGreyOneBit)}) {
      const HostileCounts counts = feed_hostile_bytes(Bytes(sample.begin(), sample.end()), 2500, 8, read, repair_png);
      EXPECT_GT(counts.read, 50);  // other colors and other sizes
      EXPECT_GT(counts.refused, 500);
    }
  }
}

TEST_F(ImageFile, HostileJpeg) {
  const auto read = [](const Bytes& bytes) { decode_image(bytes, ColorMode::color, {.max_pixels = 1 << 16}); };
  for (ByteView sample : {view(samples::kProgressive), view(samples::kInks), view(samples::kGreyJpeg)}) {
    const HostileCounts counts = feed_hostile_bytes(Bytes(sample.begin(), sample.end()), 7000, 4, read);
    EXPECT_GT(counts.refused, static_cast<int64_t>(sample.size()) / 2);
    EXPECT_GT(counts.read, 0);  // a flipped bit in the picture data is just another picture
  }
}

}  // namespace
}  // namespace twibil::io
