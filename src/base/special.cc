// SPDX-License-Identifier: Apache-2.0
#include "base/special.h"

#include <cmath>
#include <limits>

namespace twibil {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;

// B(2k) for k = 1..10: the coefficients of the asymptotic series below.
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                 -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

// The Hurwitz zeta function, the sum over k >= 0 of (x + k)^-s, for s > 1, x > 0: the first terms as they are, the rest
// by the Euler-Maclaurin formula.
double hurwitz_zeta(double s, double x) {
  double sum = 0;
  // Far enough out that the tenth correction is below the last bit, or that no further term counts: for a large s a
  // few are all, however far x is from s.
  while (x < s + 12) {
    const double term = std::pow(x, -s);
    sum += term;
    if (s > 2 && term <= sum * 0x1p-60) return sum;
    x += 1;
  }
  double power = std::pow(x, -s), term = s * power / x;
  sum += power * x / (s - 1) + power / 2;
  double factorial = 2;
  for (int k = 1; k <= 10; ++k) {
    sum += kBernoulli[k - 1] * term / factorial;
    term *= (s + 2 * k - 1) * (s + 2 * k) / (x * x);
    factorial *= (2 * k + 1) * (2 * k + 2);
  }
  return sum;
}

// pi times cot(pi x) and its derivatives, as polynomials in c = cot(pi x): d/dx c = -pi (1 + c^2). For reflection.
double cot_derivative(int n, double x) {
  double c = 1 / std::tan(kPi * (x - std::round(x)));
  double p[64] = {0, 1};  // the polynomial, lowest power first
  int degree = 1;
  for (int i = 0; i < n; ++i) {
    double q[64] = {};
    for (int j = 1; j <= degree; ++j) q[j - 1] -= j * p[j], q[j + 1] -= j * p[j];
    ++degree;
    for (int j = 0; j <= degree; ++j) p[j] = q[j];
  }
  double value = 0;
  for (int j = degree; j >= 0; --j) value = value * c + p[j];
  return value * std::pow(kPi, n + 1);
}

}  // namespace

double erfinv(double x) {
  if (!(std::fabs(x) < 1)) return x == 1 ? kInf : x == -1 ? -kInf : kNan;
  if (x == 0) return x;
  // A start of about three digits (Winitzki), then Halley's iteration on erf, or on erfc where erf has no digits left.
  double a = std::fabs(x), l = std::log1p(-a * a), t = 2 / (kPi * 0.147) + l / 2;
  double y = std::sqrt(std::sqrt(t * t - l / 0.147) - t);
  if (a < 1e-8) return x * 0.88622692545275801365;
  for (int i = 0; i < 3; ++i) {
    double error = a < 0.5 ? std::erf(y) - a : (1 - a) - std::erfc(y);
    double step = error / (1.12837916709551257390 * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    return digamma(1 - x) - cot_derivative(0, x);
  }
  double sum = 0;
  while (x < 12) sum -= 1 / x, x += 1;
  if (x == kInf) return x;
  double inverse = 1 / (x * x), power = inverse, series = 0;
  for (int k = 1; k <= 8; ++k, power *= inverse) series += kBernoulli[k - 1] / (2 * k) * power;
  return sum + std::log(x) - 0.5 / x - series;
}

double polygamma(double order, double x) {
  if (!(order >= 0) || order != std::floor(order)) return kNan;
  if (order == 0) return digamma(x);
  if (x != x) return x;
  const double sign = std::fmod(order, 2) == 0 ? -1 : 1;
  if (x == 0) return sign > 0 ? kInf : std::copysign(kInf, -x);
  if (x < 0) {
    if (x == std::floor(x)) return sign > 0 ? kInf : kNan;
    if (order > 60) return kNan;
    // digamma(1 - x) - digamma(x) = pi cot(pi x), differentiated.
    return -sign * polygamma(order, 1 - x) - cot_derivative(static_cast<int>(order), x);
  }
  if (x == kInf) return sign > 0 ? 0.0 : -0.0;
  return sign * std::tgamma(order + 1) * hurwitz_zeta(order + 1, x);
}

double gamma_of(double x) {
  if (x < 0 && x == std::floor(x)) return kNan;
  if (x == 0) return std::copysign(kInf, x);
  return std::tgamma(x);
}

double lgamma_of(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

}  // namespace twibil
