// SPDX-License-Identifier: Apache-2.0
// Expected values come from OpenCV's definitions, worked out by hand; MXNet's imresize agreed to one level on
// photographs.
#include "api/io/resize.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace twibil::io {
namespace {

Picture row_of(std::vector<uint8_t> values) {
  Picture picture(1, static_cast<int64_t>(values.size()), 1);
  picture.pixels = std::move(values);
  return picture;
}
using Row = std::vector<uint8_t>;

TEST(Resize, Bilinear) {
  EXPECT_EQ(resize(row_of({0, 100}), 1, 4).pixels, (Row{0, 25, 75, 100}));
  EXPECT_EQ(resize(row_of({0, 100, 200, 40}), 1, 2).pixels, (Row{50, 120}));
}
TEST(Resize, Nearest) {
  EXPECT_EQ(resize(row_of({0, 100, 200}), 1, 6, Interpolation::nearest).pixels, (Row{0, 0, 100, 100, 200, 200}));
  EXPECT_EQ(resize(row_of({0, 100, 200, 40}), 1, 2, Interpolation::nearest).pixels, (Row{0, 200}));
}
TEST(Resize, Area) {
  EXPECT_EQ(resize(row_of({0, 90, 180, 30, 60, 90}), 1, 2, Interpolation::area).pixels, (Row{90, 60}));
  EXPECT_EQ(resize(row_of({30, 60, 90}), 1, 2, Interpolation::area).pixels, (Row{40, 80}));
}
TEST(Resize, Bicubic) {
  // At a quarter: weights -0.10546875, 0.87890625, 0.26171875, -0.03515625.
  EXPECT_EQ(resize(row_of({100, 100, 200, 200}), 1, 8, Interpolation::bicubic).pixels[4], 177);
  EXPECT_EQ(resize(row_of({7, 7, 7}), 1, 9, Interpolation::bicubic).pixels, Row(9, 7));
}
TEST(Resize, SameSizeChangesNothing) {
  Picture picture(7, 5, 3);
  for (size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<uint8_t>(i * 41);
  for (auto method : {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic, Interpolation::area}) {
    EXPECT_EQ(resize(picture, 7, 5, method).pixels, picture.pixels);
  }
}
TEST(Resize, TwoAxesAndChannels) {
  Picture picture(2, 2, 2);
  picture.pixels = {0, 10, 100, 10, 200, 10, 40, 10};
  const Picture half = resize(picture, 1, 1, Interpolation::area);
  EXPECT_EQ(half.pixels, (Row{85, 10}));
  EXPECT_EQ(resize(picture, 1, 1).pixels, half.pixels);
}
TEST(Resize, RowsDoNotDependOnTheChunkTheyFallIn) {
  Picture tall(300, 2, 1), wide(2, 300, 1);
  for (int64_t i = 0; i < 300; ++i) {
    for (int64_t k = 0; k < 2; ++k) *tall.at(i, k) = *wide.at(k, i) = static_cast<uint8_t>(i * i * 57 >> 2);
  }
  for (auto method : {Interpolation::bilinear, Interpolation::bicubic, Interpolation::area}) {
    const Picture down = resize(tall, 217, 2, method), across = resize(wide, 2, 217, method);
    for (int64_t i = 0; i < 217; ++i) EXPECT_NEAR(*down.at(i, 0), *across.at(0, i), 1);
  }
}
TEST(Resize, CropChecksItsPart) {
  Picture picture(3, 4, 1);
  picture.pixels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(crop(picture, 1, 2, 2, 2).pixels, (Row{6, 7, 10, 11}));
  EXPECT_THROW(crop(picture, 2, 2, 2, 2), Error);
  EXPECT_THROW(crop(picture, -1, 0, 1, 1), Error);
  EXPECT_THROW(resize(picture, 0, 3), Error);
}

}  // namespace
}  // namespace twibil::io
