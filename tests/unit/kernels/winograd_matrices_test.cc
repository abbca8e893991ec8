// SPDX-License-Identifier: Apache-2.0
#include "kernels/winograd_matrices.h"

#include <gtest/gtest.h>

namespace twibil::kernels::winograd {
namespace {

/// y[k] = sum over j of w[j] d[k + j] for all w and d: the sum over the products of A^T[k][i] G[i][j] B^T[i][t] is one
/// where t = k + j, and zero elsewhere.
template <class F> void expect_identity() {
  constexpr auto& f = F::matrices;
  for (size_t k = 0; k < F::m; ++k) {
    for (size_t j = 0; j < F::r; ++j) {
      for (size_t t = 0; t < F::n; ++t) {
        Rational sum = 0;
        for (size_t i = 0; i < F::n; ++i) sum = sum + f.output[k][i] * f.weight[i][j] * f.input[i][t];
        EXPECT_EQ(sum, Rational(t == k + j)) << "F(" << F::m << ", " << F::r << ") at " << k << ' ' << j << ' ' << t;
      }
    }
  }
}

TEST(WinogradMatrices, AreExact) {
  expect_identity<Form<1, 1>>();
  expect_identity<Form<2, 3>>();
  expect_identity<Form<3, 3>>();
  expect_identity<Form<4, 3>>();
  expect_identity<Form<6, 3>>();
  expect_identity<Form<3, 4>>();  // gradient of the weights
  expect_identity<Form<2, 5>>();
  expect_identity<Form<2, 7>>();
  expect_identity<Form<3, 7>>();
}

TEST(WinogradMatrices, HaveTheirPairsSideBySide) {
  using F = Form<4, 3>;
  for (size_t i = F::kFirstPair; i + 2 < F::n; i += 2) {
    for (size_t k = 0; k < F::m; ++k) {
      EXPECT_EQ(F::matrices.output[k][i], k % 2 ? -F::matrices.output[k][i + 1] : F::matrices.output[k][i + 1]);
    }
  }
}

TEST(Rational, IsInLowestTerms) {
  EXPECT_EQ(Rational(6, -4), Rational(-3, 2));
  EXPECT_EQ(Rational(1, 6) + Rational(1, 3), Rational(1, 2));
  EXPECT_EQ(Rational(1, 2) - Rational(1, 2), Rational(0));
  EXPECT_EQ(Rational(2, 3) * Rational(3, 2), Rational(1));
  EXPECT_EQ(Rational(2, 3) / Rational(-4, 9), Rational(-3, 2));
}

}  // namespace
}  // namespace twibil::kernels::winograd
