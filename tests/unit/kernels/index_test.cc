// SPDX-License-Identifier: Apache-2.0
#include "kernels/index.h"

#include <map>

#include "kernels/kernel_cases.h"

namespace twibil::kernels {
namespace {

TEST(IndexOffsets, ModesAndTypes) {
  for (DType t : {DType::int8, DType::int32, DType::int64, DType::float32, DType::float64}) {
    Strided index(t, {5});
    const double values[] = {0, -1, 7, -9, 2};
    for (int k = 0; k < 5; ++k) index.set(k, values[k]);
    int64_t offsets[5];
    auto run = [&](IndexMode mode, int64_t size) {
      IndexTerm term{t, index.data(), index.strides, size, 10, mode};
      return index_offsets({&term, 1}, index.shape, offsets);
    };
    BadIndex bad = run(IndexMode::raise, 3);
    EXPECT_TRUE(bad && bad.term == 0 && bad.position == 2 && bad.value == 7);
    EXPECT_FALSE(run(IndexMode::clip, 3));
    EXPECT_EQ((std::vector<int64_t>{0, 0, 20, 0, 20}), std::vector<int64_t>(offsets, offsets + 5));
    EXPECT_FALSE(run(IndexMode::wrap, 3));
    EXPECT_EQ((std::vector<int64_t>{0, 20, 10, 0, 20}), std::vector<int64_t>(offsets, offsets + 5));
    EXPECT_FALSE(run(IndexMode::raise, 9));
    EXPECT_EQ((std::vector<int64_t>{0, 80, 70, 0, 20}), std::vector<int64_t>(offsets, offsets + 5));
    for (IndexMode mode : {IndexMode::raise, IndexMode::clip, IndexMode::wrap}) EXPECT_EQ(0, run(mode, 0).position);
  }
}

TEST(IndexOffsets, FirstBadOfMany) {
  std::vector<int64_t> index(200000, 1);
  index[70001] = 5, index[190000] = -7;
  std::vector<int64_t> offsets(index.size());
  const int64_t one[] = {1}, shape[] = {200000};
  IndexTerm terms[] = {{DType::int64, index.data(), one, 9, 1}, {DType::int64, index.data(), one, 5, 1}};
  BadIndex bad = index_offsets(terms, shape, offsets.data());
  EXPECT_EQ(1, bad.term);
  EXPECT_EQ(70001, bad.position);
  EXPECT_EQ(5, bad.value);
  EXPECT_FALSE(index_offsets(terms, Shape{0}, offsets.data()));
}

TEST(Gather, TakeAlongEveryAxis) {
  for (DType t : {DType::uint8, DType::float16, DType::float32, DType::int64})
    for (Layout layout : kLayouts)
      for (int axis = 0; axis < 3; ++axis) {
        Strided x(t, {4, 5, 17}, layout);
        x.randomise(1, 0, 100);
        Strided index(DType::int32, {2, 3}, Layout::reversed);
        index.randomise(2, -4, 4, true);
        std::vector<int64_t> offsets(6);
        IndexTerm term{DType::int32, index.data(), index.strides, x.shape[axis], x.strides[axis]};
        ASSERT_FALSE(index_offsets({&term, 1}, index.shape, offsets.data()));
        Shape out = x.shape, slice = x.shape, from = x.strides;
        out[axis] = 6;
        Strided y(t, out);
        Shape to = y.strides;
        slice.erase(slice.begin() + axis), from.erase(from.begin() + axis), to.erase(to.begin() + axis);
        gather(t, 6, offsets.data(), slice, x.data(), from, y.data(), y.strides[axis], to);
        for (int64_t k = 0; k < y.size(); ++k) {
          int64_t at[3] = {k / (out[1] * out[2]), k / out[2] % out[1], k % out[2]};
          int64_t i = static_cast<int64_t>(index.at(at[axis]));
          at[axis] = i < 0 ? i + x.shape[axis] : i;
          ASSERT_EQ(x.at((at[0] * 5 + at[1]) * 17 + at[2]), y.at(k))
              << describe(t, x.shape, layout) << " axis " << axis;
        }
      }
}

TEST(Scatter, LastStaysAndScalarBroadcasts) {
  int32_t x[6] = {}, v[] = {1, 2, 3}, nine = 9;
  const int64_t offsets[] = {4, 0, 4};
  scatter(DType::int32, 3, offsets, {}, v, 1, {}, x, {});
  EXPECT_EQ((std::vector<int32_t>{2, 0, 0, 0, 3, 0}), std::vector<int32_t>(x, x + 6));
  const int64_t slice[] = {2}, zero[] = {0}, one[] = {1};
  scatter(DType::int32, 2, offsets, slice, &nine, 0, zero, x, one);
  EXPECT_EQ((std::vector<int32_t>{9, 9, 0, 0, 9, 9}), std::vector<int32_t>(x, x + 6));
}

TEST(ScatterAdd, EveryDTypeAgainstLoop) {
  for (DType t : kAllDTypes)
    for (int64_t count : {int64_t{0}, int64_t{9}, int64_t{3000}})
      for (Layout layout : {Layout::contiguous, Layout::transposed}) {
        Strided dy(t, {count, 3, 9}, layout), dx(t, {7, 3, 9}, layout);
        dy.randomise(3, 0, 2, !is_half(t)), dx.randomise(4, 0, 2, true);
        std::mt19937 gen(5);
        std::vector<int64_t> offsets(count);
        std::vector<double> want(dx.size()), got(dx.size());
        for (int64_t k = 0; k < dx.size(); ++k) want[k] = dx.at(k);
        for (int64_t i = 0; i < count; ++i) {
          int64_t row = gen() % 7;
          offsets[i] = row * dx.strides[0];
          for (int k = 0; k < 27; ++k) want[row * 27 + k] += dy.at(i * 27 + k);
        }
        Shape slice = {3, 9}, from = {dy.strides[1], dy.strides[2]}, to = {dx.strides[1], dx.strides[2]};
        std::vector<char> before = dx.bytes;
        expect_same_bits(dx.bytes, [&] {
          dx.bytes = before;
          scatter_add(t, count, offsets.data(), slice, dy.data(), dy.strides[0], from, dx.data(), to);
        });
        for (int64_t k = 0; k < dx.size(); ++k) {
          double v = want[k];
          if (t == DType::bool_) v = v != 0;
          if (t == DType::int8) v = static_cast<int8_t>(static_cast<int64_t>(v));
          if (t == DType::uint8) v = static_cast<uint8_t>(static_cast<int64_t>(v));
          ASSERT_TRUE(close(dx.at(k), v, epsilon_of(t))) << name_of(t) << " " << count;
        }
      }
}

TEST(AlongAxis, PickAndTakeAlong) {
  for (Layout layout : kLayouts)
    for (int axis = 0; axis < 2; ++axis) {
      Strided x(DType::float32, {4, 6}, layout);
      x.randomise(1);
      Shape shape = {4, 6};
      shape[axis] = 1;
      Strided index(DType::float32, shape);
      index.randomise(2, -2, 9);
      std::vector<int64_t> offsets(index.size());
      ASSERT_FALSE(along_axis_offsets(shape, x.strides, axis, x.shape[axis], index.dtype, index.data(), index.strides,
                                      IndexMode::clip, offsets.data()));
      std::vector<float> y(index.size());
      gather(x.dtype, index.size(), offsets.data(), {}, x.data(), {}, y.data(), 1, {});
      for (int64_t k = 0; k < index.size(); ++k) {
        int64_t i = std::clamp<int64_t>(static_cast<int64_t>(index.at(k)), 0, x.shape[axis] - 1);
        EXPECT_EQ(x.at(axis == 0 ? i * 6 + k : k * 6 + i), y[k]);
      }
      index.set(1, 99);
      BadIndex bad = along_axis_offsets(shape, x.strides, axis, x.shape[axis], index.dtype, index.data(), index.strides,
                                        IndexMode::raise, offsets.data());
      EXPECT_TRUE(bad);
    }
}

TEST(Masks, NonzeroAndOffsets) {
  for (DType t : kAllDTypes)
    for (Layout layout : kLayouts)
      for (Shape shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 0}, Shape{3, 5, 2}}) {
        Strided m(t, shape, layout);
        m.randomise(9, 0, 2, true);
        if (is_floating(t) && m.size()) m.set(0, NAN);  // NaN is true
        std::vector<int64_t> flat;
        for (int64_t k = 0; k < m.size(); ++k)
          if (m.at(k) != 0) flat.push_back(k);
        int64_t count = flat.size(), rank = shape.size();
        ASSERT_EQ(count, count_nonzero(t, shape, m.data(), m.strides));
        std::vector<int64_t> where(count * rank), offsets(count);
        nonzero(t, shape, m.data(), m.strides, where.data(), 1, count);
        mask_offsets(t, shape, m.data(), m.strides, m.strides, offsets.data());
        for (int64_t i = 0; i < count; ++i) {
          int64_t k = 0;
          for (int64_t a = 0; a < rank; ++a) k = k * shape[a] + where[a * count + i];
          EXPECT_EQ(flat[i], k);
          EXPECT_EQ(m.offset(flat[i]) - m.first, offsets[i]);
        }
      }
}

TEST(OneHot, OutsideIsOff) {
  const float index[] = {1, -1, 3, 2};
  int32_t y[12];
  one_hot(DType::float32, 4, index, 3, DType::int32, Scalar(5), Scalar(2), y);
  EXPECT_EQ((std::vector<int32_t>{2, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 5}), std::vector<int32_t>(y, y + 12));
}

TEST(Where, LayoutsBroadcast) {
  for (DType c : {DType::bool_, DType::float32})
    for (DType t : {DType::uint8, DType::float32, DType::float64})
      for (Layout la : kLayouts)
        for (Layout lb : kLayouts) {
          Strided m(c, {3, 70}), a(t, {3, 70}, la), b(t, {3, 70}, lb), y(t, {3, 70});
          m.randomise(1, 0, 2, true), a.randomise(2, 0, 9), b.randomise(3, 0, 9);
          where(c, t, m.shape, m.data(), m.strides, a.data(), a.strides, b.data(), b.strides, y.data(), y.strides);
          for (int64_t k = 0; k < y.size(); ++k) ASSERT_EQ(m.at(k) != 0 ? a.at(k) : b.at(k), y.at(k));
        }
}

}  // namespace
}  // namespace twibil::kernels
