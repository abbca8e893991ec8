// SPDX-License-Identifier: Apache-2.0
// Garments here are plain shapes, so that what a picture must show is known.
#include "api/io/fashion_scenes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"

namespace twibil::io {
namespace {

// Label 3: rectangles of 20 rows and 10 columns. Label 5: squares of 12 with a black hole of 4 x 4.
struct Wardrobe {
  IdxArray images{DType::uint8, {4, 28, 28}, Bytes(4 * 784)};
  IdxArray labels{DType::uint8, {4}, {std::byte{3}, std::byte{5}, std::byte{3}, std::byte{9}}};
  Wardrobe() {
    fill(0, 4, 24, 9, 19, 255), fill(2, 4, 24, 9, 19, 200), fill(3, 4, 24, 9, 19, 255);
    fill(1, 8, 20, 8, 20, 255), fill(1, 12, 16, 12, 16, 0);
  }
  void fill(size_t image, size_t top, size_t bottom, size_t left, size_t right, int value) {
    for (size_t y = top; y < bottom; ++y) {
      for (size_t x = left; x < right; ++x) images.data[image * 784 + y * 28 + x] = static_cast<std::byte>(value);
    }
  }
};

FashionScenes scenes(SceneOptions options, uint8_t background = 0) {
  const Wardrobe wardrobe;
  Picture photo(40, 60, 3);
  std::fill(photo.pixels.begin(), photo.pixels.end(), background);
  return FashionScenes(wardrobe.images, wardrobe.labels, {photo}, options);
}

TEST(FashionScenes, BoxesFitWhatIsPainted) {
  const FashionScenes s = scenes({.side = 96, .classes = {3, 5}, .min_garments = 1, .max_garments = 1});
  EXPECT_EQ(s.count_garments(), 3);
  int seen[2] = {0, 0};
  for (int64_t i = 0; i < 40; ++i) {
    std::vector<uint8_t> pixels(96 * 96 * 3);
    float label[5];
    s.render(i, pixels.data(), label);
    ASSERT_TRUE(label[0] == 0 || label[0] == 1);
    ++seen[static_cast<int>(label[0])];
    int64_t left = 96, top = 96, right = 0, bottom = 0;
    for (int64_t at = 0; at < 96 * 96; ++at) {
      if (std::max({pixels[at * 3], pixels[at * 3 + 1], pixels[at * 3 + 2]}) < 30) continue;
      left = std::min(left, at % 96), right = std::max(right, at % 96 + 1);
      top = std::min(top, at / 96), bottom = std::max(bottom, at / 96 + 1);
    }
    EXPECT_NEAR(static_cast<double>(left), label[1] * 96, 2.5);
    EXPECT_NEAR(static_cast<double>(top), label[2] * 96, 2.5);
    EXPECT_NEAR(static_cast<double>(right), label[3] * 96, 2.5);
    EXPECT_NEAR(static_cast<double>(bottom), label[4] * 96, 2.5);
    const double height = label[4] - label[2], width = label[3] - label[1];
    EXPECT_NEAR(height / width, label[0] == 0 ? 2.0 : 1.0, 1e-4);
    EXPECT_GE(height, 0.3 - 1e-5);
    EXPECT_LE(height, 0.7 + 1e-5);
    if (label[0] == 1) {  // the photograph shows through the hole
      const auto y = static_cast<int64_t>((label[2] + label[4]) * 48),
                 x = static_cast<int64_t>((label[1] + label[3]) * 48);
      EXPECT_LT(pixels[static_cast<size_t>((y * 96 + x) * 3)], 30);
    }
  }
  EXPECT_GT(seen[0], 5);
  EXPECT_GT(seen[1], 5);
}

TEST(FashionScenes, SamePictureWhateverTheOrderAndThreads) {
  const FashionScenes s = scenes({.side = 64, .classes = {3, 5}, .seed = 7}, 90);
  const int64_t bytes = 64 * 64 * 3, floats = 3 * kLabelColumns;
  std::vector<uint8_t> all(10 * bytes), one(bytes), other(bytes);
  std::vector<float> labels(10 * floats), label(floats);
  s.render_many(5, 10, all.data(), labels.data());
  for (int64_t i = 9; i >= 0; --i) {
    s.render(5 + i, one.data(), label.data());
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + i * bytes));
    EXPECT_TRUE(std::equal(label.begin(), label.end(), labels.begin() + i * floats));
  }
  scenes({.side = 64, .classes = {3, 5}, .seed = 8}, 90).render(5, other.data(), label.data());
  EXPECT_NE(one, other);
}

TEST(FashionScenes, GarmentsHardlyOverlap) {
  const SceneOptions options{.side = 32, .classes = {3, 5}, .min_garments = 2, .max_garments = 4, .max_overlap = 0.1f};
  const FashionScenes s = scenes(options);
  std::vector<uint8_t> pixels(32 * 32 * 3);
  std::vector<float> rows(4 * kLabelColumns);
  int64_t pairs = 0;
  for (int64_t i = 0; i < 200; ++i) {
    s.render(i, pixels.data(), rows.data());
    for (int a = 0; a < 4; ++a) {
      for (int b = 0; b < a; ++b) {
        const float *p = &rows[a * 5], *q = &rows[b * 5];
        if (p[0] < 0 || q[0] < 0) continue;
        const float w = std::min(p[3], q[3]) - std::max(p[1], q[1]), h = std::min(p[4], q[4]) - std::max(p[2], q[2]);
        const float smaller = std::min((p[3] - p[1]) * (p[4] - p[2]), (q[3] - q[1]) * (q[4] - q[2]));
        EXPECT_LE(std::max(w, 0.0f) * std::max(h, 0.0f), 0.1001f * smaller);
        ++pairs;
      }
    }
  }
  EXPECT_GT(pairs, 100);
}

TEST(FashionScenes, RefusesWhatItCannotUse) {
  const Wardrobe wardrobe;
  const auto make = [&](SceneOptions options, std::vector<Picture> photos) {
    return FashionScenes(wardrobe.images, wardrobe.labels, std::move(photos), options).count_garments();
  };
  const std::vector<Picture> photos{Picture(40, 60, 3)};
  EXPECT_EQ(make({.classes = {3}}, photos), 2);
  EXPECT_THROW(make({.classes = {4}}, photos), Error);  // no such garment
  EXPECT_THROW(make({.classes = {}}, photos), Error);
  EXPECT_THROW(make({.classes = {3}}, {}), Error);
  EXPECT_THROW(make({.classes = {3}}, {Picture(40, 60, 1)}), Error);
  EXPECT_THROW(make({.side = 1, .classes = {3}}, photos), Error);
  EXPECT_THROW(make({.classes = {3}, .min_garments = 3, .max_garments = 2}, photos), Error);
  EXPECT_THROW(make({.classes = {3}, .min_size = 0.8f}, photos), Error);
  EXPECT_THROW(FashionScenes(wardrobe.labels, wardrobe.labels, photos, {.classes = {3}}), Error);
  EXPECT_EQ(FashionScenes::class_name(9), "ankle boot");
  EXPECT_THROW(FashionScenes::class_name(10), Error);
}

}  // namespace
}  // namespace twibil::io
