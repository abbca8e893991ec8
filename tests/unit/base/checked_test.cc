// SPDX-License-Identifier: Apache-2.0
// Size arithmetic reports overflow, also when a zero hides it.
#include "base/checked.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace twibil {
namespace {

TEST(Checked, ProductOfAShape) {
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_EQ(checked_product(std::array<int64_t, 3>{2, 3, 4}), 24);
  EXPECT_EQ(checked_product(std::array<int64_t, 3>{2, 0, 4}), 0);
}

TEST(Checked, OverflowIsAnErrorEvenNextToZero) {
  constexpr int64_t kBig = int64_t{1} << 40;
  EXPECT_THROW(checked_mul(kBig, kBig), Error);
  EXPECT_THROW(checked_add(INT64_MAX, 1), Error);
  EXPECT_THROW(checked_product(std::array<int64_t, 3>{kBig, 0, kBig}), Error);
}

}  // namespace
}  // namespace twibil
