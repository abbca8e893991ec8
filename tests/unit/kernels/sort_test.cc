// SPDX-License-Identifier: Apache-2.0
#include "kernels/sort.h"

#include <algorithm>
#include <numeric>

#include "kernels/kernel_cases.h"

namespace twibil::kernels {
namespace {

bool before(double a, double b, bool descending) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return descending ? a > b : a < b;
}

std::vector<int64_t> naive_order(const Strided& x, int64_t first, int64_t n, int64_t step, bool descending) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return before(x.at(first + a * step), x.at(first + b * step), descending);
  });
  return order;
}

const int64_t kShapes[][3] = {{1, 1, 1}, {2, 0, 3}, {3, 40, 1}, {1, 700, 1}, {2, 5, 4}, {1, 300, 3}};

TEST(Sort, StableInEveryTypeAndDirection) {
  for (DType t : kAllDTypes)
    for (auto [outer, n, inner] : kShapes)
      for (bool descending : {false, true}) {
        Strided x(t, {outer, n, inner}), y(t, x.shape);
        x.randomise(1, -20, 20, n % 2 == 0);
        if (is_floating(t) && n > 4)
          x.set(1, NAN), x.set(3, INFINITY), x.set(2, -INFINITY), x.set(4, -0.0), x.set(n - 1, 0.0);
        std::vector<int64_t> index(x.size());
        sort(t, outer, n, inner, descending, x.data(), y.data(), index.data());
        for (int64_t o = 0; o < outer; ++o)
          for (int64_t i = 0; i < inner; ++i) {
            int64_t first = o * n * inner + i;
            auto want = naive_order(x, first, n, inner, descending);
            for (int64_t j = 0; j < n; ++j) {
              ASSERT_EQ(want[j], index[first + j * inner]) << describe(t, x.shape, Layout::contiguous) << j;
              ASSERT_TRUE(close(y.at(first + j * inner), x.at(first + want[j] * inner), 0));
            }
          }
      }
}

TEST(Sort, KeepsIntegersBeyondDoubles) {
  const int64_t x[] = {INT64_MAX, INT64_MIN, INT64_MAX - 1, 0, -1};
  int64_t y[5];
  sort(DType::int64, 1, 5, 1, false, x, y, nullptr);
  EXPECT_EQ((std::vector<int64_t>{INT64_MIN, -1, 0, INT64_MAX - 1, INT64_MAX}), std::vector<int64_t>(y, y + 5));
}

TEST(TopK, ValuesIndicesMask) {
  for (DType t : {DType::int32, DType::float16, DType::float32, DType::float64})
    for (auto [outer, n, inner] : kShapes)
      for (int64_t k : {int64_t{0}, std::min<int64_t>(n, 2), n})
        for (bool largest : {false, true}) {
          Strided x(t, {outer, n, inner}), values(t, {outer, k, inner});
          x.randomise(2, -5, 5, true);
          std::vector<int64_t> index(values.size());
          std::vector<uint8_t> mask(x.size(), 7);
          topk(t, outer, n, inner, k, largest, x.data(), values.data(), index.data(), mask.data());
          for (int64_t o = 0; o < outer; ++o)
            for (int64_t i = 0; i < inner; ++i) {
              int64_t first = o * n * inner + i, to = o * k * inner + i;
              auto want = naive_order(x, first, n, inner, largest);
              for (int64_t j = 0; j < n; ++j) {
                ASSERT_EQ(j < k, mask[first + want[j] * inner] == 1);
                if (j >= k) continue;
                ASSERT_EQ(want[j], index[to + j * inner]);
                ASSERT_EQ(x.at(first + want[j] * inner), values.at(to + j * inner));
              }
            }
        }
}

TEST(Unique, EverythingAsked) {
  Strided x(DType::float32, {7}), values(DType::float32, {7});
  const double data[] = {3, NAN, 1, 3, NAN, -0.0, 0};
  for (int k = 0; k < 7; ++k) x.set(k, data[k]);
  int64_t first[7], inverse[7], counts[7];
  ASSERT_EQ(4, unique(x.dtype, 7, x.data(), values.data(), first, inverse, counts));
  EXPECT_EQ((std::vector<int64_t>{5, 2, 0, 1}), std::vector<int64_t>(first, first + 4));
  EXPECT_EQ((std::vector<int64_t>{2, 1, 2, 2}), std::vector<int64_t>(counts, counts + 4));
  EXPECT_EQ((std::vector<int64_t>{2, 3, 1, 2, 3, 0, 0}), std::vector<int64_t>(inverse, inverse + 7));
  EXPECT_EQ(1, values.at(1));
  EXPECT_TRUE(std::isnan(values.at(3)));
  EXPECT_EQ(0, unique(x.dtype, 0, nullptr, nullptr, nullptr, nullptr, nullptr));
}

TEST(SearchSorted, LeftAndRight) {
  const int32_t a[] = {1, 3, 3, 5}, v[] = {0, 3, 6, 5};
  int64_t y[4];
  search_sorted(DType::int32, 4, a, 4, v, false, y);
  EXPECT_EQ((std::vector<int64_t>{0, 1, 4, 3}), std::vector<int64_t>(y, y + 4));
  search_sorted(DType::int32, 4, a, 4, v, true, y);
  EXPECT_EQ((std::vector<int64_t>{0, 3, 4, 4}), std::vector<int64_t>(y, y + 4));
}

TEST(Sort, SameBitsForThreads) {
  Strided x(DType::float32, {300, 500}), index(DType::int64, x.shape);
  x.randomise(1, -4, 4, true);
  expect_same_bits(index.bytes,
                   [&] { sort(x.dtype, 300, 500, 1, true, x.data(), nullptr, static_cast<int64_t*>(index.data())); });
}

}  // namespace
}  // namespace twibil::kernels
