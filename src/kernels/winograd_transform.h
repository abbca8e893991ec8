// SPDX-License-Identifier: Apache-2.0
// The transforms of winograd_matrices.h as straight-line vector code: include after "hwy/foreach_target.h", call
// transform_input<Form>(d, v) on n vectors.
//
// A pair of opposite points p, -p has rows of B^T and G that agree in the powers of one parity and differ in sign in
// the other: both come from one sum and one difference. In A^T it has columns of that kind. For F(4, 3) that makes 12
// operations each way.
#include "hwy/highway.h"
#include "kernels/winograd_matrices.h"

#if defined(TWIBIL_KERNELS_WINOGRAD_TRANSFORM_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TWIBIL_KERNELS_WINOGRAD_TRANSFORM_H
#undef TWIBIL_KERNELS_WINOGRAD_TRANSFORM_H
#else
#define TWIBIL_KERNELS_WINOGRAD_TRANSFORM_H
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE::winograd_vectors {
namespace hn = hwy::HWY_NAMESPACE;
using winograd::Rational;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

template <size_t N> using Coefficients = std::array<Rational, N>;

template <size_t N> constexpr size_t first_term(const Coefficients<N>& c) {  // one that needs no product, if any
  size_t best = N;
  for (size_t j = N; j-- > 0;) {
    if (c[j] == Rational(1)) return j;
    if (c[j] != Rational(0)) best = j;
  }
  return best;
}

/// Get::value(): the coefficients, a constant.
template <class Get, size_t J> HWY_INLINE void add_term(const Vector* x, Vector& sum) {
  constexpr auto c = Get::value();
  if constexpr (J == first_term(c) || c[J] == Rational(0)) return;
  else if constexpr (c[J] == Rational(1)) sum = hn::Add(sum, x[J]);
  else if constexpr (c[J] == Rational(-1)) sum = hn::Sub(sum, x[J]);
  else if constexpr (c[J].over < 0) sum = hn::NegMulAdd(hn::Set(Tag(), static_cast<float>(double(-c[J]))), x[J], sum);
  else sum = hn::MulAdd(hn::Set(Tag(), static_cast<float>(double(c[J]))), x[J], sum);
}
template <class Get, size_t... J> HWY_INLINE Vector linear(const Vector* x, std::index_sequence<J...>) {
  constexpr auto c = Get::value();
  constexpr size_t first = first_term(c);
  static_assert(first < c.size());
  Vector sum = x[first];
  if constexpr (c[first] != Rational(1)) sum = hn::Mul(hn::Set(Tag(), static_cast<float>(double(c[first]))), sum);
  (add_term<Get, J>(x, sum), ...);
  return sum;
}
/// The sum of c[j] * x[j].
template <class Get> HWY_INLINE Vector linear(const Vector* x) {
  return linear<Get>(x, std::make_index_sequence<Get::value().size()>());
}

// ---- B^T d and G w --------------------------------------------------------------------------------------------------

template <class F> struct InputMatrix { static constexpr const auto& rows = F::matrices.input; };
template <class F> struct WeightMatrix { static constexpr const auto& rows = F::matrices.weight; };

template <class Matrix, size_t I> struct Row {
  static constexpr auto value() { return Matrix::rows[I]; }
};
/// What rows I and I + 1 have in common, or where they differ in sign, divided by its last coefficient.
template <class Matrix, size_t I, bool kCommon> struct RowPart {
  static constexpr bool in(size_t j) { return (Matrix::rows[I][j] == Matrix::rows[I + 1][j]) == kCommon; }
  static constexpr Rational scale() {
    Rational last = 1;
    for (size_t j = 0; j < Matrix::rows[I].size(); ++j) {
      if (!kCommon && in(j)) last = Matrix::rows[I][j];
    }
    return last;
  }
  static constexpr auto value() {
    auto c = Matrix::rows[I];
    for (size_t j = 0; j < c.size(); ++j) c[j] = in(j) ? c[j] / scale() : Rational(0);
    return c;
  }
};

template <class F, class Matrix, size_t I> HWY_INLINE void transform_rows(const Vector* x, Vector* v) {
  if constexpr (I < F::n) {
    if constexpr (I >= F::kFirstPair && I + 1 < F::n && F::n > 1) {
      constexpr Rational scale = RowPart<Matrix, I, false>::scale();
      const Vector common = linear<RowPart<Matrix, I, true>>(x), other = linear<RowPart<Matrix, I, false>>(x);
      if constexpr (scale == Rational(1)) {
        v[I] = hn::Add(common, other);
        v[I + 1] = hn::Sub(common, other);
      } else {
        const Vector factor = hn::Set(Tag(), static_cast<float>(double(scale)));
        v[I] = hn::MulAdd(factor, other, common);
        v[I + 1] = hn::NegMulAdd(factor, other, common);
      }
      transform_rows<F, Matrix, I + 2>(x, v);
    } else {
      v[I] = linear<Row<Matrix, I>>(x);
      transform_rows<F, Matrix, I + 1>(x, v);
    }
  }
}

/// v = B^T d, n vectors each.
template <class F> HWY_INLINE void transform_input(const Vector* d, Vector* v) {
  transform_rows<F, InputMatrix<F>, 0>(d, v);
}
/// u = G w, from r vectors to n.
template <class F> HWY_INLINE void transform_weight(const Vector* w, Vector* u) {
  transform_rows<F, WeightMatrix<F>, 0>(w, u);
}

// ---- A^T m ----------------------------------------------------------------------------------------------------------

/// Row K of A^T for sums (where a pair's first column stood) and differences (where its second stood).
template <class F, size_t K> struct OutputRow {
  static constexpr auto value() {
    auto c = F::matrices.output[K];
    for (size_t i = F::kFirstPair; i + 1 < F::n; i += 2) {
      if (K % 2 == 0) c[i + 1] = 0;
      else c[i + 1] = c[i], c[i] = 0;
    }
    return c;
  }
};

template <class F, size_t... K> HWY_INLINE void output_rows(const Vector* z, Vector* y, std::index_sequence<K...>) {
  ((y[K] = linear<OutputRow<F, K>>(z)), ...);
}

/// y = A^T m, from n vectors to m.
template <class F> HWY_INLINE void transform_output(const Vector* m, Vector* y) {
  Vector z[F::n];
  if constexpr (F::kFirstPair == 1) z[0] = m[0];
  z[F::n - 1] = m[F::n - 1];
#pragma GCC unroll 8
  for (int i = F::kFirstPair; i + 1 < F::n; i += 2) {
    z[i] = hn::Add(m[i], m[i + 1]);
    z[i + 1] = hn::Sub(m[i], m[i + 1]);
  }
  output_rows<F>(z, y, std::make_index_sequence<F::m>());
}

}  // namespace twibil::kernels::HWY_NAMESPACE::winograd_vectors
HWY_AFTER_NAMESPACE();
#endif
