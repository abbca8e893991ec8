// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors by a callback that must not return, so it jumps (longjmp). Everything with a destructor lives
// outside the functions that are jumped out of.
#ifdef TWIBIL_CODECS
// clang-format off
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it first
#include <cstdlib>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "api/io/image_file.h"
#include "base/error.h"

namespace twibil::io {
namespace {

constexpr int kMaxScans = 256;  // a small progressive file can ask for thousands of passes over a large picture

struct JumpingErrors : jpeg_error_mgr {
  std::jmp_buf target;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void jump(j_common_ptr info) {
  auto* errors = static_cast<JumpingErrors*>(info->err);
  errors->format_message(info, errors->message);
  std::longjmp(errors->target, 1);
}

// libjpeg fills in what is missing and only warns. Warnings about missing or wrong picture data are errors here;
// those about harmless surplus are not.
void judge_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR) jump(info);
}

void limit_scans(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number > kMaxScans) {
    info->err->msg_code = JERR_EMPTY_IMAGE;
    auto* errors = static_cast<JumpingErrors*>(info->err);
    std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMaxScans);
    std::longjmp(errors->target, 1);
  }
}

void install(JumpingErrors& errors) {
  jpeg_std_error(&errors);
  errors.error_exit = jump;
  errors.emit_message = judge_message;
  errors.output_message = [](j_common_ptr) {};
  errors.message[0] = 0;
}

struct Decoder {
  jpeg_decompress_struct info{};
  JumpingErrors errors{};
  jpeg_progress_mgr progress{};
  Decoder() {
    info.err = &errors;
    install(errors);
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

bool read_header(Decoder& d, ByteView bytes) {
  if (setjmp(d.errors.target) != 0) return false;
  jpeg_create_decompress(&d.info);
  d.progress.progress_monitor = limit_scans;
  d.info.progress = &d.progress;
  jpeg_mem_src(&d.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&d.info, TRUE);
  return true;
}

bool read_rows(Decoder& d, uint8_t* pixels, size_t stride) {
  if (setjmp(d.errors.target) != 0) return false;
  jpeg_start_decompress(&d.info);
  while (d.info.output_scanline < d.info.output_height) {
    JSAMPROW row = pixels + d.info.output_scanline * stride;
    jpeg_read_scanlines(&d.info, &row, 1);
  }
  jpeg_finish_decompress(&d.info);
  return true;
}

// Adobe's programs store inverted ink: 255 is no ink. Then a color is its ink's light times black's.
Picture from_cmyk(const Picture& inks, bool inverted, ColorMode mode) {
  Picture picture(inks.height, inks.width, mode == ColorMode::grey ? 1 : 3);
  const uint8_t* ink = inks.pixels.data();
  uint8_t* to = picture.pixels.data();
  for (int64_t i = 0; i < inks.height * inks.width; ++i, ink += 4) {
    int rgb[3];
    for (int c = 0; c < 3; ++c) {
      const int light = inverted ? ink[c] : 255 - ink[c], black = inverted ? ink[3] : 255 - ink[3];
      rgb[c] = (light * black + 127) / 255;
    }
    if (mode == ColorMode::grey) {
      *to++ = static_cast<uint8_t>((rgb[0] * 299 + rgb[1] * 587 + rgb[2] * 114 + 500) / 1000);
    } else {
      for (int c = 0; c < 3; ++c) *to++ = static_cast<uint8_t>(rgb[c]);
    }
  }
  return picture;
}

struct Encoder {
  jpeg_compress_struct info{};
  JumpingErrors errors{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  Encoder() {
    info.err = &errors;
    install(errors);
  }
  ~Encoder() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
};

bool write_rows(Encoder& e, const Picture& picture, int quality) {
  if (setjmp(e.errors.target) != 0) return false;
  jpeg_create_compress(&e.info);
  jpeg_mem_dest(&e.info, &e.bytes, &e.size);
  e.info.image_width = static_cast<JDIMENSION>(picture.width);
  e.info.image_height = static_cast<JDIMENSION>(picture.height);
  e.info.input_components = static_cast<int>(picture.channels);
  e.info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&e.info);
  jpeg_set_quality(&e.info, quality, TRUE);
  jpeg_start_compress(&e.info, TRUE);
  while (e.info.next_scanline < e.info.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.at(e.info.next_scanline, 0));
    jpeg_write_scanlines(&e.info, &row, 1);
  }
  jpeg_finish_compress(&e.info);
  return true;
}

}  // namespace

Picture codecs::decode_jpeg(ByteView bytes, ColorMode mode, const ImageLimits& limits, const std::string& source) {
  const char* op = "decode_jpeg";
  Decoder d;
  const auto fail = [&] { throw_error(ErrorKind::value, text(op, ": '", source, "' is damaged: ", d.errors.message)); };
  if (!read_header(d, bytes)) fail();
  check_limits(op, d.info.image_height, d.info.image_width, limits, source);
  const bool inks = d.info.jpeg_color_space == JCS_CMYK || d.info.jpeg_color_space == JCS_YCCK;
  const bool grey = mode == ColorMode::grey || (mode == ColorMode::unchanged && d.info.num_components == 1);
  d.info.out_color_space = inks ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
  // libjpeg takes grey from the luminance but cannot make it of a file that stores red, green and blue.
  const bool own_grey = grey && d.info.jpeg_color_space == JCS_RGB;
  if (own_grey) d.info.out_color_space = JCS_RGB;
  Picture picture(d.info.image_height, d.info.image_width, inks ? 4 : grey && !own_grey ? 1 : 3);
  if (!read_rows(d, picture.pixels.data(), static_cast<size_t>(picture.width * picture.channels))) fail();
  if (inks) return from_cmyk(picture, d.info.saw_Adobe_marker, grey ? ColorMode::grey : ColorMode::color);
  return own_grey ? to_grey(picture) : picture;
}

Bytes encode_jpeg(const Picture& picture, int quality) {
  TW_CHECK(quality >= 1 && quality <= 100, value, "encode_jpeg: quality must be 1 to 100; got ", quality);
  TW_CHECK(picture.channels == 1 || picture.channels == 3, value, "encode_jpeg: a JPEG has 1 or 3 channels; got ",
           picture.channels, ". Write a PNG to keep transparency");
  codecs::check_limits("encode_jpeg", picture.height, picture.width, {}, "picture");
  Encoder e;
  if (!write_rows(e, picture, quality)) throw_error(ErrorKind::value, text("encode_jpeg: ", e.errors.message));
  const auto* begin = reinterpret_cast<const std::byte*>(e.bytes);
  return Bytes(begin, begin + e.size);
}

}  // namespace twibil::io
#endif
