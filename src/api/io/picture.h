// SPDX-License-Identifier: Apache-2.0
// A decoded picture: bytes, row by row, the channels of a pixel side by side. What the codecs give and take.
#pragma once
#include <cstdint>
#include <vector>

#include "base/checked.h"

namespace twibil::io {

struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 3;  // 1: grey, 3: red, green, blue, 4: with alpha
  std::vector<uint8_t> pixels;

  Picture() = default;
  Picture(int64_t height, int64_t width, int64_t channels)
      : height(height),
        width(width),
        channels(channels),
        pixels(static_cast<size_t>(checked_mul(checked_mul(height, width), channels))) {}

  const uint8_t* at(int64_t y, int64_t x) const { return pixels.data() + (y * width + x) * channels; }
  uint8_t* at(int64_t y, int64_t x) { return pixels.data() + (y * width + x) * channels; }
};

/// One channel: the brightness of red, green and blue as JPEG and television weigh them.
Picture to_grey(const Picture& picture);

}  // namespace twibil::io
