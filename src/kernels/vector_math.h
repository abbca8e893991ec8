// SPDX-License-Identifier: Apache-2.0
// Elementary functions of float32 vectors, at most 2 ULP on every instruction set
// (tests/unit/kernels/vector_math_test.cc sweeps them). Used by the direct functions, softmax, losses: include after
// "hwy/foreach_target.h", call vector_exp(d, v) with any tag d of float. NaN, infinities, zeros of both signs and
// subnormals are as in the C library.
//
// Polynomials are minimax fits of the named function on the named interval. Steps are written so that they hold without
// a fused multiply-add as well: constants that are multiplied by an exponent have trailing zeros, so the product is
// exact.
#include <cmath>

#include "hwy/highway.h"

#if defined(TWIBIL_KERNELS_VECTOR_MATH_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TWIBIL_KERNELS_VECTOR_MATH_H
#undef TWIBIL_KERNELS_VECTOR_MATH_H
#else
#define TWIBIL_KERNELS_VECTOR_MATH_H
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V> HWY_INLINE V horner(D, V, V sum) { return sum; }
// horner(d, x, sum, c1, c0): (sum * x + c1) * x + c0; the highest coefficient comes as the first sum.
template <class D, class V, class... Rest> HWY_INLINE V horner(D d, V x, V sum, hn::TFromD<D> next, Rest... rest) {
  return horner(d, x, hn::MulAdd(sum, x, hn::Set(d, next)), rest...);
}

// log(2) in two parts; the first has 9 bits, so that its product with any exponent is exact.
inline constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;

// Adding 1.5 * 2^23 rounds to a whole number; it stands in the low bits of the sum.
inline constexpr float kMagic = 0x1.8p23f;

// x = n * log(2) + r with |r| <= log(2) / 2, for |x| < 2^20.
template <class D, class V> HWY_INLINE void split_by_ln2(D d, V x, V& n, V& r) {
  const V magic = hn::Set(d, kMagic);
  n = hn::Sub(hn::MulAdd(x, hn::Set(d, 1.44269504f), magic), magic);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
}

// x * 2^n, rounded once; |n| <= 250 and whole.
template <class D, class V> HWY_INLINE V scale_by_exponent(D d, V x, V n) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(V) == 64) return V{_mm512_scalef_ps(x.raw, n.raw)};
#endif
  // In two steps, so that results below the normal range are rounded once and those above become infinite late.
  const hn::RebindToSigned<D> di;
  const auto whole = hn::Sub(hn::BitCast(di, hn::Add(n, hn::Set(d, kMagic))), hn::BitCast(di, hn::Set(d, kMagic)));
  const auto half = hn::ShiftRight<1>(whole), bias = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  return hn::Mul(hn::Mul(x, first), second);
}

// a / b for finite b >= 1, |a| <= 2. AVX-512 divides slowly; there a reciprocal of 14 bits and two corrections give the
// same to a half of the last place and a bit.
template <class D, class V> HWY_INLINE V divide(D d, V a, V b) {
#if HWY_TARGET == HWY_AVX3
  V r = hn::ApproximateReciprocal(b);
  r = hn::MulAdd(r, hn::NegMulAdd(r, b, hn::Set(d, 1.0f)), r);
  const V q = hn::Mul(a, r);
  return hn::MulAdd(r, hn::NegMulAdd(q, b, a), q);
#else
  static_cast<void>(d);
  return hn::Div(a, b);
#endif
}

// exp(r) - 1 on [-log(2) / 2, log(2) / 2].
template <class D, class V> HWY_INLINE V expm1_of_rest(D d, V r) {
  const V q = horner(d, r, hn::Set(d, 0x1.6beb4p-10f), 0x1.122c4p-7f, 0x1.55567ep-5f, 0x1.5554aap-3f, 0x1.fffffep-2f);
  return hn::MulAdd(hn::Mul(r, r), q, r);
}

// exp on [-104, 89].
template <class D, class V> HWY_INLINE V exp_in_range(D d, V x) {
  V n, r;
  split_by_ln2(d, x, n, r);
  const V q = horner(d, r, hn::Set(d, 0x1.6a1bc2p-10f), 0x1.123efap-7f, 0x1.555912p-5f, 0x1.55548ap-3f, 0x1.fffffcp-2f);
  const V p = hn::Add(hn::MulAdd(hn::Mul(r, r), q, r), hn::Set(d, 1.0f));
  return scale_by_exponent(d, p, n);
}

template <class D, class V> HWY_INLINE V vector_exp(D d, V x) {
  // The second operand of Min and Max comes through if it is NaN.
  return exp_in_range(d, hn::Min(hn::Set(d, 89.0f), hn::Max(hn::Set(d, -104.0f), x)));
}

template <class D, class V> HWY_INLINE V vector_expm1(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V size = hn::Abs(x);
  V n, r;
  split_by_ln2(d, hn::Min(hn::Set(d, 89.0f), hn::Max(hn::Set(d, -20.0f), x)), n, r);
  const V e = expm1_of_rest(d, r);
  // 2^n * (e + 1) - 1, as 2 * (s * e + (s - 1/2)) with s = 2^(n - 1), which is finite for every n.
  const V s = scale_by_exponent(d, hn::Set(d, 0.5f), n);
  const V y = hn::MulAdd(s, e, hn::Sub(s, hn::Set(d, 0.5f)));
  // Below, x is its own result; above would lose the sign of zero.
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0x1p-25f)), x, hn::Mul(hn::Add(one, one), y));
}

// log(x) + correction for x = 2^(e + offset) * (1 + f), normal and finite, f in [sqrt(1/2) - 1, sqrt(2) - 1].
template <class D, class V> HWY_INLINE V log_of_normal(D d, V x, V correction, V offset) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));  // from sqrt(1/2)
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
  const V e = hn::Add(hn::ConvertTo(d, exponent), offset);
  const V p = horner(d, f, hn::Set(d, 0x1.14c9a4p-4f), -0x1.deffd2p-4f, 0x1.e728b8p-4f, -0x1.fc07ccp-4f, 0x1.23322ap-3f,
                     -0x1.555cccp-3f, 0x1.99a4f6p-3f, -0x1.000006p-2f, 0x1.555546p-2f);
  const V square = hn::Mul(f, f);
  V low = hn::MulAdd(e, hn::Set(d, kLn2Low), correction);
  low = hn::MulAdd(hn::Mul(square, f), p, low);
  low = hn::NegMulAdd(square, hn::Set(d, 0.5f), low);
  return hn::MulAdd(e, hn::Set(d, kLn2High), hn::Add(f, low));
}

// The same for any x: subnormal, 0, infinite, negative, NaN.
template <class D, class V> HWY_NOINLINE V log_of_any(D d, V x, V correction) {
  const V inf = hn::Set(d, HUGE_VALF), zero = hn::Zero(d);
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V y = log_of_normal(d, hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p23f)), x), correction,
                            hn::IfThenElseZero(subnormal, hn::Set(d, -23.0f)));
  const V other = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), hn::IfThenElse(hn::Eq(x, inf), inf, hn::Set(d, NAN)));
  return hn::IfThenElse(hn::And(hn::Gt(x, zero), hn::Lt(x, inf)), y, other);
}

template <class D, class V> HWY_INLINE V log_of(D d, V x, V correction) {
  if (HWY_LIKELY(hn::AllTrue(d, hn::And(hn::Ge(x, hn::Set(d, 0x1p-126f)), hn::Lt(x, hn::Set(d, HUGE_VALF))))))
    return log_of_normal(d, x, correction, hn::Zero(d));
  return log_of_any(d, x, correction);
}

template <class D, class V> HWY_INLINE V vector_log(D d, V x) { return log_of(d, x, hn::Zero(d)); }

template <class D, class V> HWY_INLINE V vector_log1p(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(x, one);
  // What the sum lost: x - (u - 1) for small x, 1 - (u - x) for large.
  const V lost = hn::IfThenElse(hn::Lt(x, one), hn::Sub(x, hn::Sub(u, one)), hn::Sub(one, hn::Sub(u, x)));
  const V y = log_of(d, u, hn::Div(lost, u));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-25f)), x, y);
}

template <class D, class V> HWY_INLINE V vector_sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f), z = exp_in_range(d, hn::Max(hn::Set(d, -104.0f), hn::Neg(hn::Abs(x))));
  const auto negative = hn::Lt(x, hn::Zero(d));
  const V y = divide(d, hn::IfThenElse(negative, z, one), hn::Add(one, z));
  // For small z the rounding of 1 + z would count fully in z / (1 + z), but not in the equal z - z * y.
  return hn::IfThenElse(hn::And(negative, hn::Lt(z, hn::Set(d, 0.35f))), hn::NegMulAdd(z, y, z), y);
}

template <class D, class V> HWY_INLINE V vector_tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f), size = hn::Abs(x), square = hn::Mul(x, x);
  const V p =
      horner(d, square, hn::Set(d, -0x1.75e1a8p-8f), 0x1.522692p-6f, -0x1.b83c58p-5f, 0x1.110726p-3f, -0x1.555532p-2f);
  const V small = hn::MulAdd(hn::Mul(square, x), p, x);
  const V a = hn::Min(hn::Set(d, 10.0f), size);  // beyond, the result is 1; a NaN comes through
  const V e = exp_in_range(d, hn::Add(a, a));
  const V large = hn::Sub(one, divide(d, hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625f)), small, large), x);
}

template <class D, class V> HWY_INLINE V vector_erf(D d, V x) {
  const V size = hn::Abs(x), square = hn::Mul(x, x);
  const V p = horner(d, square, hn::Set(d, 0x1.5f9534p-14f), -0x1.ab105ap-11f, 0x1.54df1ap-8f, -0x1.b810e8p-6f,
                     0x1.ce2e24p-4f, -0x1.812744p-2f, 0x1.06eba8p-3f);
  const V small = hn::MulAdd(x, p, x);
  // 1 - exp(-g), where g = -log(1 - erf) on [0.9, 3.95]; beyond, the result is 1.
  const V a = hn::Min(hn::Set(d, 3.95f), size);
  const V g = horner(d, a, hn::Set(d, -0x1.9fb2eap-13f), 0x1.91cd18p-9f, -0x1.6d9ceep-6f, 0x1.aa732cp-4f,
                     0x1.4621b8p-1f, 0x1.20b752p+0f, 0x1.5d0c7p-13f);
  const V large = hn::Sub(hn::Set(d, 1.0f), exp_in_range(d, hn::Neg(g)));
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.91f)), small, hn::CopySign(large, x));
}

// Circular functions go through double, where the reduction by multiples of pi/2 is exact enough up to a million; lanes
// beyond are left to the C library.
enum class Circular { sin, cos, tan };
inline constexpr double kHalfPiHigh = 0x1.921fb544p+0, kHalfPiLow = 6.0771005065061922493e-11;
// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2, on [-pi / 4, pi / 4].
inline constexpr double kSin[] = {-0.16666666641370956, 0.0083333293557479766, -0.00019839325012164897,
                                  2.7182168455362351e-06};
inline constexpr double kCos[] = {0.041666666622379493, -0.0013888883714097996, 2.4799509487137986e-05,
                                  -2.720935767247577e-07};

template <Circular which, class DD, class VD> HWY_INLINE VD circular_double(DD d, VD x) {
  // Adding 1.5 * 2^52 rounds to a whole number, whose lowest bits are those of the sum.
  const VD magic = hn::Set(d, 0x1.8p52);
  const VD sum = hn::MulAdd(x, hn::Set(d, 0.63661977236758138243), magic);
  const VD n = hn::Sub(sum, magic);
  VD r = hn::NegMulAdd(n, hn::Set(d, kHalfPiHigh), x);  // 33 bits times 20: exact
  r = hn::NegMulAdd(n, hn::Set(d, kHalfPiLow), r);
  const VD z = hn::Mul(r, r);
  const VD s = hn::MulAdd(hn::Mul(r, z), horner(d, z, hn::Set(d, kSin[3]), kSin[2], kSin[1], kSin[0]), r);
  VD c = hn::MulAdd(z, horner(d, z, hn::Set(d, kCos[3]), kCos[2], kCos[1], kCos[0]), hn::Set(d, -0.5));
  c = hn::MulAdd(z, c, hn::Set(d, 1.0));
  const hn::RebindToUnsigned<DD> du;
  const auto bits = hn::BitCast(du, sum);
  const auto odd = hn::MaskFromVec(hn::BitCast(d, hn::Sub(hn::Zero(du), hn::And(bits, hn::Set(du, 1)))));
  if (which == Circular::tan) return hn::IfThenElse(odd, hn::Div(hn::Neg(c), s), hn::Div(s, c));
  // Quadrants: sin is s, c, -s, -c; cos is one quadrant ahead.
  const auto quadrant = which == Circular::cos ? hn::Add(bits, hn::Set(du, 1)) : bits;
  const VD sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(quadrant, hn::Set(du, 2))));
  return hn::Xor(which == Circular::cos ? hn::IfThenElse(odd, s, c) : hn::IfThenElse(odd, c, s), sign);
}

template <Circular which, class D, class V> HWY_NOINLINE V circular_far(D d, V x, V y) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)], results[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, lanes);
  hn::Store(y, d, results);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    const double wide = lanes[i];
    if (std::fabs(wide) < 1e6) continue;
    const double y_wide = which == Circular::sin   ? std::sin(wide)
                          : which == Circular::cos ? std::cos(wide)
                                                   : std::tan(wide);
    results[i] = static_cast<float>(y_wide);
  }
  return hn::Load(d, results);
}

template <Circular which, class D, class V> HWY_INLINE V circular(D d, V x) {
  const hn::Half<D> dh;
  const hn::Rebind<double, decltype(dh)> dd;
  const auto low = circular_double<which>(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, x)));
  const auto high = circular_double<which>(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, x)));
  V y = hn::Combine(d, hn::DemoteTo(dh, high), hn::DemoteTo(dh, low));
  if (which != Circular::cos) y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // -0
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 1e6f))))) return circular_far<which>(d, x, y);
  return y;
}

template <class D, class V> HWY_INLINE V vector_sin(D d, V x) { return circular<Circular::sin>(d, x); }
template <class D, class V> HWY_INLINE V vector_cos(D d, V x) { return circular<Circular::cos>(d, x); }
template <class D, class V> HWY_INLINE V vector_tan(D d, V x) { return circular<Circular::tan>(d, x); }

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
