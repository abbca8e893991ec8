// SPDX-License-Identifier: Apache-2.0
// The matrices of Winograd's minimal filtering F(m, r), made exactly from a list of points (Cook and Toom):
//   y = A^T [ (G w) * (B^T d) ]     m outputs y[k] = sum over j of w[j] d[k + j], n = m + r - 1 inputs and products
// With the points p_0 ... p_(n-2) and infinity:
//   A^T[k][i] = p_i^k                             infinity: 1 for the last k
//   G[i][j]   = p_i^j / product of (p_i - p_l)    infinity: 1 for the last j
//   B^T[i]    = coefficients of the product of (x - p_l) over the other points, lowest power first
// G's and B^T's parts of a point may be scaled against each other; here B^T has whole leading coefficients.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace twibil::kernels::winograd {

/// A fraction in lowest terms. In a constant expression an overflow does not compile.
struct Rational {
  int64_t over = 0, under = 1;

  constexpr Rational() = default;
  constexpr Rational(int64_t whole) : over(whole) {}
  constexpr Rational(int64_t a, int64_t b) {
    const int64_t common = (b < 0 ? -1 : 1) * std::gcd(a, b);
    over = a / common;
    under = b / common;
  }
  constexpr Rational operator-() const { return {-over, under}; }
  friend constexpr Rational operator+(Rational a, Rational b) {
    const int64_t common = std::gcd(a.under, b.under);
    return {a.over * (b.under / common) + b.over * (a.under / common), a.under / common * b.under};
  }
  friend constexpr Rational operator-(Rational a, Rational b) { return a + -b; }
  friend constexpr Rational operator*(Rational a, Rational b) {
    const Rational left(a.over, b.under), right(b.over, a.under);  // shortened first: smaller products
    Rational product;
    product.over = left.over * right.over;
    product.under = left.under * right.under;
    return product;
  }
  friend constexpr Rational operator/(Rational a, Rational b) { return a * Rational(b.under, b.over); }
  friend constexpr bool operator==(Rational a, Rational b) = default;
  constexpr explicit operator double() const { return static_cast<double>(over) / static_cast<double>(under); }
};

template <int M, int R> struct Matrices {
  static constexpr int m = M, r = R, n = M + R - 1;
  std::array<std::array<Rational, n>, m> output;  // A^T
  std::array<std::array<Rational, r>, n> weight;  // G
  std::array<std::array<Rational, n>, n> input;   // B^T
};

template <int M, int R> constexpr Matrices<M, R> cook_toom(const std::array<Rational, M + R - 2>& points) {
  constexpr size_t m = M, r = R, n = M + R - 1;
  Matrices<M, R> f;
  const auto product_without = [&](size_t skipped) {  // of (x - p) over all points but one
    std::array<Rational, n> c{};
    c[0] = 1;
    for (size_t l = 0; l + 1 < n; ++l) {
      if (l == skipped) continue;
      for (size_t k = n - 1; k > 0; --k) c[k] = c[k - 1] - points[l] * c[k];
      c[0] = -points[l] * c[0];
    }
    return c;
  };
  for (size_t i = 0; i + 1 < n; ++i) {
    f.input[i] = product_without(i);
    Rational distances = 1, power = 1;
    for (size_t l = 0; l + 1 < n; ++l) {
      if (l != i) distances = distances * (points[i] - points[l]);
    }
    for (size_t k = 0; k < m || k < r; ++k, power = power * points[i]) {
      if (k < m) f.output[k][i] = power;
      if (k < r) f.weight[i][k] = power / distances;
    }
  }
  f.input[n - 1] = product_without(n - 1);
  f.output[m - 1][n - 1] = 1;
  f.weight[n - 1][r - 1] = 1;
  return f;
}

/// The n - 1 points p, -p, ... of `pairs`, behind the point 0 if n is even.
template <size_t P, size_t N>
constexpr std::array<Rational, N - 1> with_opposites(const std::array<Rational, P>& pairs) {
  static_assert(P == (N - 1) / 2);
  std::array<Rational, N - 1> points{};
  size_t i = (N - 1) % 2;
  for (const Rational& p : pairs) points[i++] = p, points[i++] = -p;
  return points;
}

/// F(m, r) with the points of this library: chosen by measured error among small fractions, with pairs of opposite sign
/// side by side from kFirstPair on, whose transforms share their work. F(1, 1) is a product and needs no points.
template <int M, int R> struct Form {
  static constexpr int m = M, r = R, n = M + R - 1;
  static constexpr int kFirstPair = (n - 1) % 2;
  static constexpr auto pairs() {
    using Q = Rational;
    if constexpr (n == 1) return std::array<Q, 0>{};
    else if constexpr (n == 4) return std::array{Q(1)};
    else if constexpr (n == 5) return std::array{Q(1, 2), Q(3, 2)};
    else if constexpr (n == 6) return std::array{Q(2, 3), Q(3, 2)};
    else if constexpr (n == 8) return std::array{Q(1, 2), Q(1), Q(2)};
    else if constexpr (n == 9) return std::array{Q(1, 4), Q(2, 3), Q(1), Q(2)};
  }
  static constexpr Matrices<M, R> matrices = cook_toom<M, R>(with_opposites<pairs().size(), n>(pairs()));
};

/// In double, for loops.
template <size_t A, size_t B>
constexpr std::array<std::array<double, B>, A> in_double(const std::array<std::array<Rational, B>, A>& exact) {
  std::array<std::array<double, B>, A> x{};
  for (size_t i = 0; i < A; ++i) {
    for (size_t j = 0; j < B; ++j) x[i][j] = static_cast<double>(exact[i][j]);
  }
  return x;
}

}  // namespace twibil::kernels::winograd
