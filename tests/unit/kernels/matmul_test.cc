// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/parallel.h"
#include "kernels/gemm.h"
#include "kernels/kernel_fixture.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

class Matmul : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(EachIsa, Matmul, testing::ValuesIn(kIsas), isa_of_test);

template <class T> void expect_product(MatmulShape s, bool accumulate, double tolerance) {
  const int64_t a_size = (s.rows - 1) * s.a_row + (s.depth - 1) * s.a_depth + 1;
  const int64_t b_size = (s.depth - 1) * s.b_depth + (s.columns - 1) * s.b_column + 1;
  const int64_t c_size = (s.rows - 1) * s.c_row + (s.columns - 1) * s.c_column + 1;
  const auto a = random_values<T>(a_size, 1), b = random_values<T>(b_size, 2);
  const auto before = random_values<T>(c_size, 3);
  auto c = before;
  std::vector<char> written(static_cast<size_t>(c_size));
  matmul(dtype_of<T>, s, a.data(), b.data(), c.data(), accumulate);
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      const int64_t at = i * s.c_row + j * s.c_column;
      double sum = accumulate ? in_double(before[at]) : 0;
      for (int64_t k = 0; k < s.depth; ++k) {
        sum += in_double(a[i * s.a_row + k * s.a_depth]) * in_double(b[k * s.b_depth + j * s.b_column]);
      }
      written[at] = 1;
      ASSERT_NEAR(in_double(c[at]), sum, tolerance * std::sqrt(1.0 + static_cast<double>(s.depth)))
          << s.rows << "x" << s.columns << "x" << s.depth << " at " << i << "," << j;
    }
  }
  for (int64_t i = 0; i < c_size; ++i) {
    if (written[i]) continue;
    ASSERT_EQ(std::memcmp(&c[i], &before[i], sizeof(T)), 0) << "wrote between the rows of C";
  }
}

TEST_P(Matmul, MatchesDoubleForEverySizeAndLayout) {
  const int64_t sizes[][3] = {{1, 1, 1},     {4, 8, 8},      {8, 8, 8},    {3, 5, 7},    {16, 16, 16},   {1, 100, 300},
                              {7, 33, 130},  {14, 32, 16},   {15, 33, 17}, {49, 65, 40}, {64, 64, 64},   {100, 10, 784},
                              {33, 47, 300}, {70, 90, 513},  {1, 10, 784}, {5, 128, 64}, {130, 1, 50},   {8, 200, 1},
                              {2, 9, 33},    {3, 101, 900},  {8, 70, 530}, {9, 41, 600}, {40, 50, 3000}, {300, 5, 70},
                              {60, 512, 20}, {260, 1030, 9}, {50, 50, 600}};
  for (const auto& [m, n, k] : sizes) {
    for (int layout = 0; layout < 8; ++layout) {
      MatmulShape s = row_major(m, n, k, layout & 1, layout & 2);
      if (layout & 4) s.c_row = 1, s.c_column = m;
      expect_product<float>(s, layout & 1, 1e-6);
      expect_product<double>(s, layout & 2, 1e-14);
    }
  }
}

TEST_P(Matmul, TakesAnyStrides) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{5, 6, 7}, {40, 50, 60}}) {
    MatmulShape s{.rows = m,
                  .columns = n,
                  .depth = k,
                  .a_row = 2 * k + 3,
                  .a_depth = 2,
                  .b_depth = 3 * n + 1,
                  .b_column = 3,
                  .c_row = 2 * n + 5,
                  .c_column = 2};
    expect_product<float>(s, false, 1e-6);
    expect_product<double>(s, true, 1e-14);
    s.c_row = n + 3;
    s.c_column = 1;
    expect_product<float>(s, true, 1e-6);
  }
}

TEST_P(Matmul, SameBitsForAnyNumberOfThreads) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{300, 200, 530}, {2, 3000, 900}, {200, 30, 4000}}) {
    for (bool transposed : {false, true}) {
      const auto a = random_values<float>(m * k, 1), b = random_values<float>(k * n, 2);
      std::vector<float> first(m * n), c(m * n);
      for (int threads : {1, 2, 3}) {
        set_num_threads(threads);
        auto& to = threads == 1 ? first : c;
        matmul(DType::float32, row_major(m, n, k, false, transposed), a.data(), b.data(), to.data());
        if (threads == 1) continue;
        ASSERT_EQ(std::memcmp(c.data(), first.data(), c.size() * sizeof(float)), 0) << threads;
      }
    }
  }
}

TEST_P(Matmul, InfinityAndNanStayInTheirRowsAndColumns) {
  const int64_t m = 37, n = 45, k = 19;
  auto a = random_values<float>(m * k, 1), b = random_values<float>(k * n, 2);
  a[3 * k + 18] = INFINITY;
  b[18 * n + 44] = NAN;
  std::vector<float> c(m * n);
  matmul(DType::float32, row_major(m, n, k), a.data(), b.data(), c.data());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) EXPECT_EQ(std::isfinite(c[i * n + j]), i != 3 && j != 44) << i << "," << j;
  }
}

TEST_P(Matmul, DenseAddsTheBiasOfEachUnit) {
  for (const auto& [rows, units, depth] :
       {std::array<int64_t, 3>{1, 10, 64}, {3, 37, 100}, {32, 10, 300}, {200, 70, 600}, {6, 5, 0}}) {
    const auto x = random_values<float>(rows * depth, 1), w = random_values<float>(units * depth, 2);
    const auto bias = random_values<float>(units, 3);
    std::vector<float> y(rows * units, 7.f);
    dense(DType::float32, rows, units, depth, x.data(), w.data(), {.bias = bias.data()}, y.data());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < units; ++j) {
        double sum = bias[j];
        for (int64_t k = 0; k < depth; ++k) sum += static_cast<double>(x[i * depth + k]) * w[j * depth + k];
        ASSERT_NEAR(y[i * units + j], sum, 3e-5) << i << "," << j;
      }
    }
  }
}

template <class T> void expect_clamped(int64_t rows, int64_t units, int64_t depth, double tolerance) {
  auto x = random_values<T>(rows * depth, 1), w = random_values<T>(units * depth, 2), bias = random_values<T>(units, 3);
  if (rows > 1) x[depth] = static_cast<T>(NAN);
  std::vector<T> y(rows * units), plain(rows * units);
  dense(dtype_of<T>, rows, units, depth, x.data(), w.data(), {.bias = bias.data()}, plain.data());
  dense(dtype_of<T>, rows, units, depth, x.data(), w.data(), {.bias = bias.data(), .lower = 0, .upper = 1.5}, y.data());
  for (int64_t i = 0; i < rows * units; ++i) {
    const double expected = std::clamp(in_double(plain[i]), 0.0, 1.5);
    if (i / units == 1) ASSERT_TRUE(std::isnan(in_double(y[i]))) << "what is not a number stays so";
    else ASSERT_NEAR(in_double(y[i]), expected, tolerance) << rows << "x" << units << "x" << depth << " at " << i;
  }
}

TEST_P(Matmul, DenseClampsWhatItWrites) {
  for (const auto& [rows, units, depth] :
       {std::array<int64_t, 3>{1, 13, 64}, {3, 37, 100}, {12, 37, 100}, {32, 9, 4000}, {200, 70, 600}, {90, 3, 300}}) {
    expect_clamped<float>(rows, units, depth, 0);
    expect_clamped<double>(rows, units, depth, 0);
    expect_clamped<bfloat16>(rows, units, depth, 2e-2);
  }
}

// Memory that ends where the matrices end: whatever a kernel reads behind them ends the program.
TEST_P(Matmul, ReadsNothingBehindTheMatrices) {
  const int64_t page = 4096;
  const auto guarded = [&](int64_t n) {
    const int64_t bytes = (n * 4 + page - 1) / page * page;
    auto* p =
        static_cast<char*>(mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(p + bytes, page, PROT_NONE);
    return reinterpret_cast<float*>(p + bytes - n * 4);  // never unmapped: a few pages of a test
  };
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 9, 37}, {5, 21, 70}, {20, 37, 50}, {70, 67, 43}}) {
    const float *a = guarded(m * k), *b = guarded(k * n);
    float* c = guarded(m * n);
    for (bool transposed : {false, true}) matmul(DType::float32, row_major(m, n, k, false, transposed), a, b, c);
    EXPECT_EQ(c[m * n - 1], 0);
  }
}

TEST_P(Matmul, HalvesComputeInFloat) {
  expect_product<float16>(row_major(20, 30, 40), false, 4e-3);
  expect_product<bfloat16>(row_major(20, 30, 40, true, true), true, 3e-2);
}

template <class T> void expect_wraps() {
  const int64_t m = 5, n = 70, k = 9;
  std::mt19937_64 engine(5);
  std::vector<T> a(m * k), b(k * n), c(m * n, T(3));
  for (T& x : a) x = static_cast<T>(engine());
  for (T& x : b) x = static_cast<T>(engine());
  for (bool accumulate : {false, true}) {
    const auto before = c;
    matmul(dtype_of<T>, row_major(m, n, k), a.data(), b.data(), c.data(), accumulate);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        uint64_t sum = accumulate ? static_cast<uint64_t>(before[i * n + j]) : 0;
        for (int64_t d = 0; d < k; ++d)
          sum += static_cast<uint64_t>(a[i * k + d]) * static_cast<uint64_t>(b[d * n + j]);
        ASSERT_EQ(c[i * n + j], static_cast<T>(sum));
      }
    }
  }
}
TEST(MatmulIntegers, WrapAround) {
  expect_wraps<int8_t>();
  expect_wraps<uint8_t>();
  expect_wraps<int32_t>();
  expect_wraps<int64_t>();
}

TEST(MatmulIntegers, BoolIsAnyOfAll) {
  const bool a[] = {true, false, false, false}, b[] = {false, true, true, true};
  bool c[4];
  matmul(DType::bool_, row_major(2, 2, 2), a, b, c);
  EXPECT_EQ(std::vector<bool>(c, c + 4), (std::vector<bool>{false, true, false, false}));
}

TEST(MatmulBatch, SharesOperandsWithStepZero) {
  const int64_t m = 4, n = 8, k = 8, count = 50;
  const auto a = random_values<float>(count * m * k, 1), b = random_values<float>(k * n, 2);
  std::vector<float> c(count * m * n), one(m * n);
  matmul(DType::float32, row_major(m, n, k), MatmulBatch{count, m * k, 0, m * n}, a.data(), b.data(), c.data());
  for (int64_t i = 0; i < count; ++i) {
    matmul(DType::float32, row_major(m, n, k), a.data() + i * m * k, b.data(), one.data());
    ASSERT_EQ(std::memcmp(one.data(), c.data() + i * m * n, one.size() * sizeof(float)), 0);
  }
}

TEST(Matmul0, EmptySizes) {
  float c[4] = {1, 2, 3, 4};
  matmul(DType::float32, row_major(0, 2, 2), nullptr, nullptr, c);
  EXPECT_EQ(c[0], 1);
  matmul(DType::float32, row_major(2, 2, 0), nullptr, nullptr, c, true);
  EXPECT_EQ(c[3], 4);
  matmul(DType::float32, row_major(2, 2, 0), nullptr, nullptr, c);
  EXPECT_EQ(c[0], 0);
  EXPECT_EQ(c[3], 0);
}

TEST(Scratch, FramesNestAndKeepTheirMemory) {
  ScratchFrame outer;
  float* first = outer.take<float>(10);
  first[0] = 1;
  double* large = nullptr;
  {
    ScratchFrame inner;
    large = inner.take<double>(10'000'000);
    large[9'999'999] = 2;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 64, 0u);
  }
  ScratchFrame again;
  EXPECT_EQ(again.take<double>(10'000'000), large);
  EXPECT_EQ(first[0], 1);
  EXPECT_GE(scratch_bytes(), 80'000'000);
  EXPECT_THROW(again.take<double>(int64_t{1} << 62), Error);
}

TEST(EvenSplit, PiecesDifferByOneAtMost) {
  const EvenSplit split(49, 14);
  EXPECT_EQ(split.pieces, 4);
  for (int64_t i = 0, expected[] = {0, 13, 25, 37, 49}; i <= 4; ++i) EXPECT_EQ(split.begin(i), expected[i]);
}

}  // namespace
}  // namespace twibil::kernels
