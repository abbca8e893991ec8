// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.h"

#include "kernels/kernel_cases.h"

namespace twibil::kernels {
namespace {

const Shape kShapes[] = {{}, {1}, {0}, {7}, {3, 0, 2}, {5, 9}, {1, 4, 1}, {2, 3, 4, 5}, {33, 65}, {2, 40, 3, 37}};

TEST(Copy, EveryLayoutToEveryLayout) {
  for (DType t : {DType::uint8, DType::bfloat16, DType::float32, DType::int64})
    for (const Shape& shape : kShapes)
      for (Layout from : kLayouts)
        for (Layout to : {Layout::contiguous, Layout::transposed, Layout::stepped, Layout::reversed}) {
          Strided src(t, shape, from), dst(t, shape, to);
          src.randomise(1, 0, 100);
          copy(t, shape, src.data(), src.strides, dst.data(), dst.strides);
          for (int64_t k = 0; k < src.size(); ++k)
            ASSERT_EQ(src.at(k), dst.at(k))
                << describe(t, shape, from) << " to " << static_cast<int>(to) << " at " << k;
        }
}

TEST(Copy, LargeIsTheSameForAnyThreads) {
  Strided src(DType::float32, {3, 211, 397}, Layout::transposed), dst(DType::float32, {3, 211, 397});
  src.randomise(2);
  expect_same_bits(dst.bytes, [&] { copy(src.dtype, src.shape, src.data(), src.strides, dst.data(), dst.strides); });
  for (int64_t k = 0; k < src.size(); ++k) ASSERT_EQ(src.at(k), dst.at(k));
  Strided flat(DType::float32, {200001}), back(DType::float32, {200001}, Layout::reversed);
  flat.randomise(3);
  copy(flat.dtype, flat.shape, flat.data(), flat.strides, back.data(), back.strides);
  for (int64_t k = 0; k < flat.size(); ++k) ASSERT_EQ(flat.at(k), back.at(k));
}

TEST(Convert, EveryPair) {
  const double values[] = {0, 1, -1, 2.75, -2.75, 100, 127, 1e-3};
  for (DType from : kAllDTypes)
    for (DType to : kAllDTypes)
      for (Layout layout : {Layout::contiguous, Layout::stepped}) {
        Strided src(from, {8}, layout), dst(to, {8});
        for (int k = 0; k < 8; ++k) src.set(k, values[k]);
        convert(from, to, src.shape, src.data(), src.strides, dst.data(), dst.strides);
        for (int k = 0; k < 8; ++k) {
          double v = src.at(k), want = v;
          if (to == DType::bool_) want = v != 0;
          else if (!is_floating(to)) want = std::trunc(v);
          if (to == DType::uint8 && want < 0) want += 256;
          if (to == DType::int8 && want > 127) want -= 256;  // from uint8
          EXPECT_TRUE(close(dst.at(k), want, epsilon_of(to))) << name_of(from) << " to " << name_of(to) << ": " << v;
        }
      }
}

TEST(Convert, OutOfRangeIsDefined) {
  EXPECT_EQ(INT32_MAX, convert_value<int32_t>(3e9f));
  EXPECT_EQ(INT32_MIN, convert_value<int32_t>(-3e9f));
  EXPECT_EQ(2147483647, convert_value<int32_t>(2147483647.5));
  EXPECT_EQ(INT64_MAX, convert_value<int64_t>(INFINITY));
  EXPECT_EQ(INT64_MIN, convert_value<int64_t>(-9.3e18));
  EXPECT_EQ(0, convert_value<int32_t>(NAN));
  EXPECT_EQ(44, convert_value<uint8_t>(300.f));
  EXPECT_EQ(255, convert_value<uint8_t>(-1.0));
  EXPECT_EQ(-128, convert_value<int8_t>(int64_t{128}));
  EXPECT_TRUE(convert_value<bool>(NAN));
  EXPECT_TRUE(std::isinf(static_cast<float>(convert_value<float16>(1e6))));
  const uint8_t odd[] = {0, 1, 2, 255};  // bytes of a bool that are neither 0 nor 1
  float out[4];
  convert_row(DType::bool_, DType::float32, odd, out, 4);
  EXPECT_EQ(1.f, out[2]);
  EXPECT_EQ(1.f, out[3]);
}

TEST(Fill, LayoutsAndTypes) {
  for (DType t : kAllDTypes)
    for (Layout layout : {Layout::contiguous, Layout::stepped, Layout::reversed, Layout::transposed}) {
      Strided dst(t, {3, 5}, layout);
      fill(t, dst.shape, dst.data(), dst.strides, Scalar(1));
      for (int k = 0; k < 15; ++k) EXPECT_EQ(1, dst.at(k));
      int64_t ones = 0;
      for (size_t i = 0; i < dst.bytes.size() / size_of(t); ++i) {
        Strided all(t, {static_cast<int64_t>(dst.bytes.size()) / size_of(t)});
        all.bytes = dst.bytes;
        ones += all.at(i) != 0;
      }
      EXPECT_EQ(15, ones) << "wrote between the elements";
    }
}

int64_t naive_pad(PadMode mode, int64_t i, int64_t n) {  // walks step by step, turning at the ends
  if (i >= 0 && i < n) return i;
  if (mode == PadMode::constant) return -1;
  if (mode == PadMode::edge) return i < 0 ? 0 : n - 1;
  if (mode == PadMode::wrap) return naive_pad(mode, i < 0 ? i + n : i - n, n);
  if (mode == PadMode::symmetric) return naive_pad(mode, i < 0 ? -1 - i : 2 * n - 1 - i, n);
  return n == 1 ? 0 : naive_pad(mode, i < 0 ? -i : 2 * (n - 1) - i, n);
}

TEST(Pad, EveryModeAgainstIndexWalk) {
  const Shape before = {1, 0, 7}, after = {2, 3, 5};
  for (PadMode mode : {PadMode::constant, PadMode::edge, PadMode::reflect, PadMode::symmetric, PadMode::wrap})
    for (Shape shape : {Shape{4, 3, 2}, Shape{1, 1, 1}, Shape{3, 2, 9}})
      for (Layout layout : kLayouts) {
        Strided src(DType::float32, shape, layout);
        src.randomise(5);
        Strided dst(DType::float32, {shape[0] + 3, shape[1] + 3, shape[2] + 12}, Layout::transposed);
        pad(src.dtype, shape, src.data(), src.strides, before, after, mode, Scalar(-7), dst.data(), dst.strides);
        for (int64_t k = 0; k < dst.size(); ++k) {
          int64_t rest = k, at[3];
          for (int i = 2; i >= 0; --i) {
            at[i] = naive_pad(mode, rest % dst.shape[i] - before[i], shape[i]);
            rest /= dst.shape[i];
          }
          double want =
              at[0] < 0 || at[1] < 0 || at[2] < 0 ? -7 : src.at((at[0] * shape[1] + at[1]) * shape[2] + at[2]);
          ASSERT_EQ(want, dst.at(k)) << static_cast<int>(mode) << " at " << k;
        }
      }
  int64_t map[7];
  pad_map(PadMode::reflect, 3, 2, 2, map);
  EXPECT_EQ((std::vector<int64_t>{2, 1, 0, 1, 2, 1, 0}), std::vector<int64_t>(map, map + 7));
}

TEST(Pad, EmptyConstant) {
  Strided src(DType::int32, {0, 2}), dst(DType::int32, {3, 4});
  pad(src.dtype, src.shape, src.data(), src.strides, Shape{1, 1}, Shape{2, 1}, PadMode::constant, Scalar(5), dst.data(),
      dst.strides);
  for (int k = 0; k < 12; ++k) EXPECT_EQ(5, dst.at(k));
}

TEST(TileRepeat, AgainstIndices) {
  Strided src(DType::int32, {2, 3}, Layout::reversed), tiled(DType::int32, {4, 9}), repeated(DType::int32, {2, 12});
  src.randomise(6);
  tile(src.dtype, src.shape, src.data(), src.strides, Shape{2, 3}, tiled.data(), tiled.strides);
  repeat(src.dtype, src.shape, src.data(), src.strides, 1, 4, repeated.data(), repeated.strides);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 9; ++j) EXPECT_EQ(src.at(i % 2 * 3 + j % 3), tiled.at(i * 9 + j));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 12; ++j) EXPECT_EQ(src.at(i * 3 + j / 4), repeated.at(i * 12 + j));
}

}  // namespace
}  // namespace twibil::kernels
