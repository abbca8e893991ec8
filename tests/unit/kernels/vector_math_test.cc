// SPDX-License-Identifier: Apache-2.0
// The accuracy of elementary functions: float32 over the whole line in steps of its bit pattern, float64 over samples,
// against the C library in a wider type, on every instruction set.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/special.h"
#include "kernels/direct.h"
#include "kernels/isa.h"

namespace twibil::kernels {
namespace {

struct Function {
  Prim prim;
  double (*reference)(double);
  double ulps;
  uint32_t step;  // of the bit pattern; odd, so that all low bits come
};

double rsqrt_of(double x) { return 1 / std::sqrt(x); }
double sigmoid_of(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

constexpr uint32_t kDense = 257, kSparse = 7919;
const Function kFunctions[] = {
    {Prim::exp, std::exp, 2, kDense},      {Prim::log, std::log, 2, kDense},      {Prim::tanh, std::tanh, 2, 521},
    {Prim::sigmoid, sigmoid_of, 2, 521},   {Prim::erf, std::erf, 2, 521},         {Prim::expm1, std::expm1, 2, 1543},
    {Prim::log1p, std::log1p, 2, 1543},    {Prim::sin, std::sin, 1, 1027},        {Prim::cos, std::cos, 1, 1027},
    {Prim::tan, std::tan, 1, 1027},        {Prim::exp2, std::exp2, 2, kSparse},   {Prim::log2, std::log2, 2, kSparse},
    {Prim::log10, std::log10, 2, kSparse}, {Prim::sqrt, std::sqrt, 0.5, kSparse}, {Prim::rsqrt, rsqrt_of, 2, kSparse},
    {Prim::cbrt, std::cbrt, 2, kSparse},   {Prim::asin, std::asin, 2, kSparse},   {Prim::acos, std::acos, 2, kSparse},
    {Prim::atan, std::atan, 2, kSparse},   {Prim::sinh, std::sinh, 2, kSparse},   {Prim::cosh, std::cosh, 2, kSparse},
    {Prim::asinh, std::asinh, 2, kSparse}, {Prim::acosh, std::acosh, 2, kSparse}, {Prim::atanh, std::atanh, 2, kSparse},
    {Prim::gamma, gamma_of, 1, kSparse},   {Prim::lgamma, lgamma_of, 1, kSparse}, {Prim::digamma, digamma, 1, kSparse},
    {Prim::erfinv, erfinv, 1, kSparse},
};

// The distance from the true value in units of float32's last place there; huge if one is NaN, or a zero has the wrong
// sign.
double error_in_ulps(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : 1e30;
  constexpr double kLimit = 0x1.ffffffp127;  // halfway from the largest float to the next
  if (std::isinf(got)) return std::fabs(want) >= kLimit * (1 - 0x1p-23) && (got > 0) == (want > 0) ? 0 : 1e30;
  if (std::isinf(want)) return 1e30;
  const int exponent = std::max(std::ilogb(want), -126);
  return std::fabs(got - want) / std::ldexp(1.0, exponent - 23);
}

TEST(VectorMath, Float32OverTheWholeLine) {
  const Isa before = isa();
  constexpr int64_t kPiece = 4096;
  std::vector<float> x(kPiece), y(kPiece);
  std::vector<double> want(kPiece);
  for (const Function& f : kFunctions) {
    double worst[3] = {};
    float where[3] = {};
    DirectFunction functions[3] = {};
    for (Isa i : kIsas) {
      if (!isa_available(i)) continue;
      set_isa(i);
      functions[static_cast<int>(i)] = direct(f.prim, DType::float32, Mode::unary);
    }
    for (uint64_t bits = 0; bits < uint64_t{1} << 32;) {
      int64_t n = 0;
      for (; n < kPiece && bits < uint64_t{1} << 32; ++n, bits += f.step)
        x[static_cast<size_t>(n)] = std::bit_cast<float>(static_cast<uint32_t>(bits));
      for (int64_t i = 0; i < n; ++i) want[static_cast<size_t>(i)] = f.reference(x[static_cast<size_t>(i)]);
      for (int k = 0; k < 3; ++k) {
        if (!functions[k]) continue;
        functions[k](y.data(), x.data(), nullptr, n);
        for (int64_t i = 0; i < n; ++i) {
          const double error = error_in_ulps(y[static_cast<size_t>(i)], want[static_cast<size_t>(i)]);
          if (error > worst[k]) worst[k] = error, where[k] = x[static_cast<size_t>(i)];
        }
      }
    }
    for (int k = 0; k < 3; ++k)
      EXPECT_LE(worst[k], f.ulps) << name_of(f.prim) << "(" << where[k] << ") on " << name_of(static_cast<Isa>(k));
    RecordProperty(std::string(name_of(f.prim)), text(worst[0], " ", worst[1], " ", worst[2]));
    if (std::getenv("TWIBIL_TEST_PRINT"))
      std::printf("%-10s %.3f %.3f %.3f\n", std::string(name_of(f.prim)).c_str(), worst[0], worst[1], worst[2]);
  }
  set_isa(before);
}

// Values that a sweep may step over.
TEST(VectorMath, SpecialValues) {
  const Isa before = isa();
  const float inf = HUGE_VALF, tiny = 0x1p-149f, least = 0x1p-126f;
  const float points[] = {
      0.0f,        -0.0f,       inf,        -inf,        NAN,        1,           -1,        tiny,    -tiny,
      least,       -least,      88.722836f, 88.72284f,   -87.33655f, -103.97208f, -104.5f,   0.625f,  -0.625f,
      0.91f,       3.95f,       10,         -10,         17.5f,      1e6f,        -1e6f,     1e20f,   0x1.fffffep127f,
      0.70710677f, 0.70710683f, 1.4142135f, 0.99999994f, 1.0000001f, 0x1p-25f,    -0x1p-25f, 0x1p24f, -0.99999994f,
      1.5707964f,  3.1415927f,  16384.0f};
  for (Isa i : kIsas) {
    if (!isa_available(i)) continue;
    set_isa(i);
    for (const Function& f : kFunctions)
      for (float x : points) {
        float y;
        direct(f.prim, DType::float32, Mode::unary)(&y, &x, nullptr, 1);
        EXPECT_LE(error_in_ulps(y, f.reference(x)), f.ulps)
            << name_of(f.prim) << "(" << x << ") = " << y << " on " << name_of(i);
      }
  }
  set_isa(before);
}

// erfinv and the gamma family against identities that hold to the last digits, since the C library has no second
// opinion.
TEST(VectorMath, SpecialFunctionsInDouble) {
  for (double x = -0.9995; x < 1; x += 0.0113) EXPECT_NEAR(std::erf(erfinv(x)), x, 4e-16) << x;
  for (double x = 1e-300; x < 1; x *= 10) EXPECT_NEAR(std::erf(erfinv(x)) / x, 1, 4e-16) << x;
  for (double c = 1e-3; c > 1e-16; c /= 7) EXPECT_NEAR(std::erfc(erfinv(1 - c)) / (1 - (1 - c)), 1, 2e-14) << c;
  for (double x : {-7.3, -2.5, -0.2, 0.1, 0.9, 1.4616, 2.0, 5.5, 30.0, 1e5}) {
    EXPECT_NEAR(digamma(x + 1), digamma(x) + 1 / x, 4e-15 * (1 + std::fabs(1 / x) + std::fabs(digamma(x)))) << x;
    for (double n : {1.0, 2.0, 3.0, 5.0}) {
      const double step = -(std::fmod(n, 2) == 0 ? -1 : 1) * std::tgamma(n + 1) * std::pow(x, -n - 1);
      EXPECT_NEAR(polygamma(n, x + 1), polygamma(n, x) + step, 1e-13 * (std::fabs(step) + std::fabs(polygamma(n, x))))
          << n << " " << x;
    }
  }
  EXPECT_DOUBLE_EQ(digamma(1), -0.57721566490153286061);
  EXPECT_DOUBLE_EQ(polygamma(1, 1), 1.64493406684822643647);
  EXPECT_DOUBLE_EQ(polygamma(3, 1), 6.49393940226682914910);
  EXPECT_TRUE(std::isnan(polygamma(0.5, 1)));
  EXPECT_TRUE(std::isnan(digamma(-3)));
}

}  // namespace
}  // namespace twibil::kernels
