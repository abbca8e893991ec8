// SPDX-License-Identifier: Apache-2.0
// Every method is separable: a new pixel is a weighted sum of a few old ones along each axis. The weights of an axis
// are computed once, then rows are summed across and columns down, in float32.
#include "api/io/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/parallel.h"

namespace twibil::io {
namespace {

struct Axis {
  int64_t taps = 0;               // old pixels for each new one
  std::vector<int64_t> position;  // count x taps, inside the old picture
  std::vector<float> weight;
};

void push(Axis& axis, int64_t position, int64_t limit, double weight) {
  axis.position.push_back(std::clamp<int64_t>(position, 0, limit - 1));
  axis.weight.push_back(static_cast<float>(weight));
}

// Centres of pixels lie at halves, so a new centre falls at (i + 0.5) * scale - 0.5 among the old ones.
Axis bilinear_axis(int64_t from, int64_t to) {
  Axis axis{2, {}, {}};
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    const double x = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const double low = std::floor(x);
    push(axis, static_cast<int64_t>(low), from, 1 - (x - low));
    push(axis, static_cast<int64_t>(low) + 1, from, x - low);
  }
  return axis;
}

Axis bicubic_axis(int64_t from, int64_t to) {
  constexpr double a = -0.75;  // OpenCV's choice of Keys' parameter
  Axis axis{4, {}, {}};
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    const double x = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const double low = std::floor(x);
    for (int k = -1; k <= 2; ++k) {
      const double d = std::fabs(x - low - k);
      const double w = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((d - 5) * d + 8) * d * a - 4 * a;
      push(axis, static_cast<int64_t>(low) + k, from, w);
    }
  }
  return axis;
}

Axis area_axis(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  Axis axis{static_cast<int64_t>(std::ceil(scale)) + 1, {}, {}};
  for (int64_t i = 0; i < to; ++i) {
    const double begin = static_cast<double>(i) * scale, end = std::min(begin + scale, static_cast<double>(from));
    const auto first = static_cast<int64_t>(begin);
    for (int64_t k = 0; k < axis.taps; ++k) {
      const auto at = static_cast<double>(first + k);
      const double covered = std::min(end, at + 1) - std::max(begin, at);
      push(axis, first + k, from, std::max(0.0, covered) / (end - begin));
    }
  }
  return axis;
}

// What OpenCV does for `area` when the picture grows: between two old pixels only where a new one covers both.
Axis area_growing_axis(int64_t from, int64_t to) {
  Axis axis{2, {}, {}};
  const double scale = static_cast<double>(from) / static_cast<double>(to), inverse = 1 / scale;
  for (int64_t i = 0; i < to; ++i) {
    const double low = std::floor(static_cast<double>(i) * scale);
    const double reach = static_cast<double>(i + 1) - (low + 1) * inverse;
    const double part = reach <= 0 ? 0 : reach - std::floor(reach);
    push(axis, static_cast<int64_t>(low), from, 1 - part);
    push(axis, static_cast<int64_t>(low) + 1, from, part);
  }
  return axis;
}

Axis axis_of(Interpolation method, bool shrinks, int64_t from, int64_t to) {
  switch (method) {
    case Interpolation::bicubic: return bicubic_axis(from, to);
    case Interpolation::area: return shrinks ? area_axis(from, to) : area_growing_axis(from, to);
    default: return bilinear_axis(from, to);
  }
}

Picture resize_nearest(const Picture& picture, int64_t height, int64_t width) {
  Picture result(height, width, picture.channels);
  const double scale_y = static_cast<double>(picture.height) / static_cast<double>(height);
  const double scale_x = static_cast<double>(picture.width) / static_cast<double>(width);
  uint8_t* to = result.pixels.data();
  for (int64_t y = 0; y < height; ++y) {
    const auto from_y = std::min(static_cast<int64_t>(static_cast<double>(y) * scale_y), picture.height - 1);
    for (int64_t x = 0; x < width; ++x, to += picture.channels) {
      const auto from_x = std::min(static_cast<int64_t>(static_cast<double>(x) * scale_x), picture.width - 1);
      std::memcpy(to, picture.at(from_y, from_x), static_cast<size_t>(picture.channels));
    }
  }
  return result;
}

void sum_across(const uint8_t* row, const Axis& columns, int64_t channels, std::vector<float>& to) {
  const int64_t count = static_cast<int64_t>(to.size()) / channels;
  for (int64_t x = 0; x < count; ++x) {
    for (int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (int64_t k = x * columns.taps; k < (x + 1) * columns.taps; ++k) {
        sum += columns.weight[static_cast<size_t>(k)] * row[columns.position[static_cast<size_t>(k)] * channels + c];
      }
      to[static_cast<size_t>(x * channels + c)] = sum;
    }
  }
}

// Rows begin to end of the result. Old rows, summed across, are kept while the next new row may need them.
void resize_rows(const Picture& picture, const Axis& rows, const Axis& columns, Picture& result, int64_t begin,
                 int64_t end) {
  const auto length = static_cast<size_t>(result.width * result.channels);
  std::vector<std::vector<float>> kept(static_cast<size_t>(rows.taps), std::vector<float>(length));
  std::vector<int64_t> kept_row(static_cast<size_t>(rows.taps), -1);
  std::vector<float> sum(length);
  for (int64_t y = begin; y < end; ++y) {
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (int64_t k = y * rows.taps; k < (y + 1) * rows.taps; ++k) {
      const float weight = rows.weight[static_cast<size_t>(k)];
      if (weight == 0) continue;
      const int64_t row = rows.position[static_cast<size_t>(k)];
      const auto slot = static_cast<size_t>(row % rows.taps);
      if (kept_row[slot] != row) {
        sum_across(picture.at(row, 0), columns, picture.channels, kept[slot]);
        kept_row[slot] = row;
      }
      for (size_t i = 0; i < length; ++i) sum[i] += weight * kept[slot][i];
    }
    uint8_t* to = result.at(y, 0);
    for (size_t i = 0; i < length; ++i) to[i] = static_cast<uint8_t>(std::clamp(sum[i], 0.0f, 255.0f) + 0.5f);
  }
}

}  // namespace

Picture resize(const Picture& picture, int64_t height, int64_t width, Interpolation method) {
  TW_CHECK(height > 0 && width > 0, value, "resize: the new size must be positive; got ", height, " x ", width);
  TW_CHECK(picture.height > 0 && picture.width > 0, value, "resize: the picture must have pixels; it is ",
           picture.height, " x ", picture.width);
  if (method == Interpolation::nearest) return resize_nearest(picture, height, width);
  const bool shrinks = height <= picture.height && width <= picture.width;
  const Axis rows = axis_of(method, shrinks, picture.height, height);
  const Axis columns = axis_of(method, shrinks, picture.width, width);
  Picture result(height, width, picture.channels);
  parallel_for(height, 64,
               [&](int64_t begin, int64_t end) { resize_rows(picture, rows, columns, result, begin, end); });
  return result;
}

Picture crop(const Picture& picture, int64_t top, int64_t left, int64_t height, int64_t width) {
  const bool inside = top >= 0 && left >= 0 && height >= 0 && width >= 0 && height <= picture.height - top &&
                      width <= picture.width - left;
  TW_CHECK(inside, value, "crop: the part must lie inside the picture of ", picture.height, " x ", picture.width,
           "; got ", height, " x ", width, " at (", top, ", ", left, ")");
  Picture result(height, width, picture.channels);
  for (int64_t y = 0; y < height && width > 0; ++y) {
    std::memcpy(result.at(y, 0), picture.at(top + y, left), static_cast<size_t>(width * picture.channels));
  }
  return result;
}

}  // namespace twibil::io
