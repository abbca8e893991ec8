// SPDX-License-Identifier: Apache-2.0
// Functions of one double that the C++ library lacks, used by the reference evaluation and by the float64 kernels.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace twibil {

double erfinv(double x);               // inverse of erf; +-infinity at +-1, NaN beyond
double digamma(double x);              // NaN at 0 (either sign gives -+infinity) and the negative integers
double polygamma(double n, double x);  // n-th derivative of digamma; NaN unless n is an integer >= 0
double gamma_of(double x);             // std::tgamma, with NaN at the negative integers and infinity at +-0
double lgamma_of(double x);            // log|gamma(x)|; thread-safe

/// NumPy's: the quotient rounded down, exact where the true quotient is (a / b alone is not).
template <class T> T floor_div_real(T a, T b) {
  if (b == 0) return a / b;
  T mod = std::fmod(a, b), quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  T down = std::floor(quotient);
  return quotient - down > T(0.5) ? down + 1 : down;
}
/// NumPy's: the remainder has the divisor's sign.
template <class T> T mod_real(T a, T b) {
  T mod = std::fmod(a, b);
  if (mod == 0) return std::copysign(T(0), b);  // NaN is not 0
  return (b < 0) != (mod < 0) ? mod + b : mod;
}
template <class T> T sign_real(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x; }
template <class T> T max_real(T a, T b) { return a != a ? a : (b != b || b > a) ? b : a; }
template <class T> T min_real(T a, T b) { return a != a ? a : (b != b || b < a) ? b : a; }

}  // namespace twibil
