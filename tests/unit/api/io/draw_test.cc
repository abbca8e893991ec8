// SPDX-License-Identifier: Apache-2.0
#include "api/io/draw.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace twibil::io {
namespace {

constexpr Color kWhite{255, 255, 255};

int64_t light(const Picture& picture) {
  return std::accumulate(picture.pixels.begin(), picture.pixels.end(), int64_t{0});
}

TEST(Draw, LineHasItsThicknessAndPlace) {
  Picture picture(9, 20, 1);
  draw_line(picture, 2, 4.5, 12, 4.5, kWhite, 3);
  for (int64_t x = 3; x < 11; ++x) {
    int64_t sum = 0;
    for (int64_t y = 0; y < 9; ++y) sum += *picture.at(y, x);
    EXPECT_EQ(sum, 3 * 255);
    EXPECT_EQ(*picture.at(4, x), 255);
  }
  EXPECT_EQ(*picture.at(4, 16), 0);
}

TEST(Draw, SlantedLineKeepsItsLight) {
  Picture picture(60, 60, 1);
  draw_line(picture, 10, 10, 40, 50, kWhite, 2);  // 50 long, and half a disc at each end
  EXPECT_NEAR(static_cast<double>(light(picture)) / 255, 50 * 2 + 3.14, 3);
}

TEST(Draw, NothingLeavesThePicture) {
  Picture picture(8, 8, 3);
  draw_line(picture, -1e9, -1e9, 1e9, 1e9, kWhite, 2);
  EXPECT_EQ(*picture.at(3, 3), 255);
  fill_rectangle(picture, -5, -5, 100, 2, {255, 0, 0});
  EXPECT_EQ(picture.at(1, 7)[0], 255);
  EXPECT_EQ(picture.at(1, 7)[1], 0);
  draw_text(picture, -3, 5, "edge\nof the picture \xc3\xa9", kWhite, 2);
  draw_box(picture, -1e12, -20, 50, 1e12, "label", palette_color(3));
  paste(picture, Picture(20, 20, 3), -4, -4);
  EXPECT_EQ(light(picture), 0);
  EXPECT_THROW(draw_line(picture, 0, 0, 1, 0.0 / 0.0, kWhite), Error);
  EXPECT_THROW(draw_box(picture, 0, 0, 9, 9, "a", kWhite, 1e300), Error);
  EXPECT_THROW(draw_box(picture, 0, 0, 9, 9, "a", kWhite, 2, int64_t{1} << 62), Error);
  EXPECT_THROW(paste(picture, Picture(1, 1, 1), 0, 0), Error);
}

TEST(Draw, LettersDifferAndScale) {
  for (char a = ' '; a <= '~'; ++a) {
    Picture one(9, 6, 1), two(18, 12, 1);
    draw_text(one, 0, 0, std::string_view(&a, 1), kWhite);
    draw_text(two, 0, 0, std::string_view(&a, 1), kWhite, 2);
    EXPECT_EQ(light(two), 4 * light(one));
    for (int64_t y = 0; y < 9; ++y) EXPECT_EQ(*one.at(y, 5), 0);  // the space to the next letter
    for (char b = ' '; b < a; ++b) {
      Picture other(9, 6, 1);
      draw_text(other, 0, 0, std::string_view(&b, 1), kWhite);
      EXPECT_NE(one.pixels, other.pixels) << a << " looks like " << b;
    }
  }
}

TEST(Draw, LabelStandsAboveOrInside) {
  Picture picture(60, 80, 3);
  draw_box(picture, 10, 20, 70, 50, "a", {0, 0, 255}, 2);
  EXPECT_EQ(picture.at(15, 11)[2], 255);
  EXPECT_EQ(picture.at(30, 40)[2], 0);
  Picture high(60, 80, 3);
  draw_box(high, 10, 2, 70, 50, "a", {0, 0, 255}, 2);
  EXPECT_EQ(high.at(4, 11)[2], 255);
}

TEST(Draw, OpacityMixes) {
  Picture picture(1, 1, 3);
  fill_rectangle(picture, 0, 0, 1, 1, {200, 100, 0}, 0.5);
  EXPECT_EQ(picture.pixels, (std::vector<uint8_t>{100, 50, 0}));
}

}  // namespace
}  // namespace twibil::io
