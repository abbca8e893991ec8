// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocked_tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/error.h"
#include "kernels/kernel_fixture.h"

namespace twibil::kernels {
namespace {

class BlockedTileTest : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(EachIsa, BlockedTileTest, testing::ValuesIn(kIsas), isa_of_test);

constexpr float kUntouched = 123.25f;

/// One call with random sizes and steps, and the memory that it works on.
struct Case {
  std::mt19937 engine;
  BlockedTile t{};
  std::vector<int64_t> offsets;
  std::vector<float> a, b, c, bias, residual;

  int64_t pick(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(engine); }

  explicit Case(uint32_t seed) : engine(seed) {
    t.rows = pick(1, 45), t.columns = pick(1, kTileMaxColumns), t.blocks = pick(0, 5);
    t.a_row_step = pick(0, 1) ? kChannelBlock : kChannelBlock * pick(0, 3);
    t.c_row_step = kChannelBlock * pick(1, 3);
    const int64_t a_size = t.rows * t.a_row_step + 16 * 64, c_size = t.rows * t.c_row_step;
    for (int64_t i = 0; i < t.blocks; ++i) offsets.push_back(pick(0, 16 * 63));
    t.b_column_step = 256 * t.blocks + 16 * pick(0, 2);
    t.c_column_step = c_size + 16 * pick(0, 2);
    a = random_values<float>(a_size, seed + 1);
    b = random_values<float>(t.b_column_step * t.columns, seed + 2);
    c.assign(static_cast<size_t>(t.c_column_step * t.columns), kUntouched);
    residual = random_values<float>(t.c_column_step * t.columns, seed + 3);
    bias = random_values<float>(16 * t.columns, seed + 4);
    t.accumulate = pick(0, 1);
    if (pick(0, 1)) t.bias = bias.data();
    if (pick(0, 1)) t.residual = residual.data();
    if (pick(0, 1)) t.lower = 0;
    if (pick(0, 1)) t.upper = 1.5f;
    t.a = a.data(), t.a_offsets = offsets.data(), t.b = b.data(), t.c = c.data();
  }

  int64_t c_at(int64_t r, int64_t column, int64_t lane) const {
    return r * t.c_row_step + column * t.c_column_step + lane;
  }

  /// The result in double, with the sum of the absolute values of what was added.
  std::pair<double, double> expected(int64_t r, int64_t column, int64_t lane, double before) const {
    double sum = 0, scale = 0;
    const auto add = [&](double x) { sum += x, scale += std::abs(x); };
    for (int64_t i = 0; i < t.blocks; ++i) {
      for (int64_t k = 0; k < 16; ++k) {
        add(static_cast<double>(t.a[offsets[static_cast<size_t>(i)] + r * t.a_row_step + k]) *
            t.b[column * t.b_column_step + i * 256 + k * 16 + lane]);
      }
    }
    if (t.accumulate) add(before);
    if (t.bias) add(t.bias[column * 16 + lane]);
    if (t.residual) add(t.residual[c_at(r, column, lane)]);
    return {std::min<double>(std::max<double>(sum, t.lower), t.upper), scale};
  }
};

TEST_P(BlockedTileTest, AgreesWithDouble) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    Case test(seed);
    const BlockedTile& t = test.t;
    std::vector<bool> written(test.c.size());
    blocked_tiles().run(t);
    for (int64_t r = 0; r < t.rows; ++r) {
      for (int64_t column = 0; column < t.columns; ++column) {
        for (int64_t lane = 0; lane < 16; ++lane) {
          const size_t at = static_cast<size_t>(test.c_at(r, column, lane));
          written[at] = true;
          const auto [sum, scale] = test.expected(r, column, lane, kUntouched);
          ASSERT_NEAR(test.c[at], sum, 1e-6 * (1e-30 + scale))
              << "seed " << seed << " row " << r << " of " << t.rows << " column " << column << " lane " << lane;
        }
      }
    }
    for (size_t i = 0; i < written.size(); ++i) {
      if (written[i]) continue;
      ASSERT_EQ(test.c[i], kUntouched) << "seed " << seed << ": wrote beside its rows";
    }
  }
}

TEST_P(BlockedTileTest, TheResidualMayBeTheResult) {
  Case test(7);
  test.t.accumulate = false;
  test.t.residual = test.c.data();
  blocked_tiles().run(test.t);
  for (int64_t r = 0; r < test.t.rows; ++r) {
    test.residual.assign(test.c.size(), kUntouched);
    test.t.residual = test.residual.data();
    const auto [sum, scale] = test.expected(r, 0, 3, 0);
    ASSERT_NEAR(test.c[static_cast<size_t>(test.c_at(r, 0, 3))], sum, 1e-6 * scale);
  }
}

TEST_P(BlockedTileTest, ClampingKeepsNotANumber) {
  const std::vector<float> a(16 * 20, NAN), b(512, 1.0f);
  std::vector<float> c(16 * 20);
  const int64_t offset = 0;
  BlockedTile t{};
  t.a = a.data(), t.a_offsets = &offset, t.blocks = 1, t.b = b.data(), t.c = c.data();
  t.rows = 20, t.columns = 1, t.lower = 0, t.upper = 6;
  blocked_tiles().run(t);
  for (float x : c) ASSERT_TRUE(std::isnan(x));
}

TEST_P(BlockedTileTest, NoRowsAndNoBlocks) {
  Case test(3);
  test.t.rows = 0;
  blocked_tiles().run(test.t);
  for (float x : test.c) ASSERT_EQ(x, kUntouched);
}

}  // namespace
}  // namespace twibil::kernels
