// SPDX-License-Identifier: Apache-2.0
// Every primitive, dtype, mode and instruction set against the reference evaluation; the edges of integers; in place.
#include "kernels/direct.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "ir/formula.h"
#include "kernels/cast.h"
#include "kernels/isa.h"

namespace twibil::kernels {
namespace {

constexpr DType kDTypes[] = {DType::bool_,   DType::int8,     DType::uint8,   DType::int32,  DType::int64,
                             DType::float16, DType::bfloat16, DType::float32, DType::float64};

class OnEveryIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!isa_available(GetParam())) GTEST_SKIP() << "this processor has no " << name_of(GetParam());
    set_isa(GetParam());
  }
  void TearDown() override { set_isa(before_); }

 private:
  Isa before_ = isa();
};
using Direct = OnEveryIsa;
INSTANTIATE_TEST_SUITE_P(Isa, Direct, ::testing::ValuesIn(kIsas),
                         [](const auto& info) { return std::string(name_of(info.param)); });

Program program_of(Prim prim) {
  formula::Recorder r;
  formula::Id o[3] = {formula::kNoId, formula::kNoId, formula::kNoId};
  for (int i = 0; i < info_of(prim).arity; ++i) o[i] = r.argument((info_of(prim).mask_operands >> i & 1) != 0);
  // An identity is no node of a recording, but comes back when an argument is the result.
  return r.finish(prim == Prim::identity ? o[0] : r.emit(prim, o[0], o[1], o[2]));
}

struct Column {  // elements of a dtype, and their values
  DType dtype;
  std::vector<double> values;
  std::vector<char> bytes;
  Column(DType t, std::vector<double> v) : dtype(t), values(std::move(v)), bytes(values.size() * size_of(t) + 64) {
    cast(values.data(), DType::float64, bytes.data(), t, static_cast<int64_t>(values.size()));
    cast(bytes.data(), t, values.data(), DType::float64, static_cast<int64_t>(values.size()));
  }
};

Column sample(DType t, size_t n, unsigned seed) {
  const double reals[] = {0.5, -1.25, 3, -0.0, 0.75, -2, 1, 0.125, 2.5, -0.5, 6.25, -3.5, 0, 1.5, 4, -7};
  const double wholes[] = {5, -3, 0, 7, 1, -1, 2, 11, -8, 4, 3, -6, 10, 0, 9, -2};
  std::vector<double> v(n);
  for (size_t i = 0; i < n; ++i) {
    double x = is_floating(t) ? reals[(i * 7 + seed) % 16] : wholes[(i * 5 + seed) % 16];
    v[i] = t == DType::bool_ ? x > 0 : t == DType::uint8 ? std::fabs(x) : x;
  }
  return {t, v};
}

// What the double result of an integer primitive is in the dtype: the low bits.
double in_dtype(double x, DType t) {
  if (!is_integer(t) && t != DType::bool_) return x;
  if (t == DType::bool_) return x != 0;
  double out;
  int64_t whole = static_cast<int64_t>(x);
  dispatch(t, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) out = static_cast<double>(static_cast<T>(whole));
  });
  return out;
}

double expected(Prim prim, const Program& p, DType t, std::initializer_list<double> in) {
  const double* v = in.begin();
  if (t == DType::bool_ && prim == Prim::bit_not) return v[0] == 0;
  if (!is_floating(t) && t != DType::bool_) {
    if (prim == Prim::floor_div || prim == Prim::mod || prim == Prim::fmod)
      if (v[1] == 0) return 0;
    if (prim == Prim::power && v[1] < 0) return v[0] == 1 ? 1 : v[0] == -1 ? (std::fmod(v[1], 2) == 0 ? 1 : -1) : 0;
    if (t == DType::uint8 && prim == Prim::sign) return v[0] > 0;
    if (prim == Prim::shift_left || prim == Prim::shift_right) {
      const double bits = 8.0 * static_cast<double>(size_of(t));
      if (v[1] < 0 || v[1] >= bits) return prim == Prim::shift_right && v[0] < 0 ? -1 : 0;
    }
    if (prim == Prim::power) {  // modulo 2^64, where doubles are not exact
      uint64_t r = 1;
      for (int i = 0; i < v[1]; ++i) r *= static_cast<uint64_t>(static_cast<int64_t>(v[0]));
      double out = 0;
      dispatch(t, [&]<class T>() {
        if constexpr (std::is_integral_v<T>) out = static_cast<double>(static_cast<T>(r));
      });
      return out;
    }
  }
  return in_dtype(evaluate(p, std::span(in.begin(), p.input_count)), t);
}

double tolerance(Prim prim, DType t, double want) {
  if (!is_floating(t)) return 0;
  const double eps = t == DType::float64   ? 0x1p-52
                     : t == DType::float32 ? 0x1p-23
                     : t == DType::float16 ? 0x1p-10
                                           : 0x1p-7;
  const double ulps = info_of(prim).dtypes == prim_detail::real ? 4 : 0.5;
  return ulps * eps * std::fabs(want) + (t == DType::float16 ? 0x1p-24 : 0);
}

void compare(Prim prim, DType t, double got, double want, const std::string& where) {
  if (std::isnan(want) && std::isnan(got)) return;
  if (std::isinf(want) && got == want) return;
  if (is_half(t) && std::fabs(want) > 60000) return;
  EXPECT_NEAR(got, want, tolerance(prim, t, want)) << name_of(prim) << " " << name_of(t) << " " << where;
}

TEST_P(Direct, EveryPrimitiveDTypeAndMode) {
  for (int k = 0; k < kPrimCount; ++k) {
    const Prim prim = static_cast<Prim>(k);
    const PrimInfo& info = info_of(prim);
    const Program p = program_of(prim);
    for (DType t : kDTypes) {
      if (!prim_has(prim, t) || info.arity == 3) continue;
      const DType operand = info.mask_operands ? DType::bool_ : t, result = info.mask_result ? DType::bool_ : t;
      for (int64_t n : {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 100, 300}) {
        Column a = sample(operand, 300, 1), b = sample(operand, 300, 4);
        for (int m = 0; m < kModeCount; ++m) {
          const Mode mode = static_cast<Mode>(m);
          if ((mode == Mode::unary) != (info.arity == 1)) continue;
          DirectFunction f = direct(prim, t, mode);
          ASSERT_TRUE(f) << name_of(prim) << " " << name_of(t);
          std::vector<char> out(300 * 8 + 64, 77);
          f(out.data(), a.bytes.data(), b.bytes.data(), n);
          EXPECT_EQ(out[static_cast<size_t>(n * size_of(result))], 77) << "wrote past the end";
          std::vector<double> got(300);
          cast(out.data(), result, got.data(), DType::float64, n);
          for (int64_t i = 0; i < n; ++i) {
            const double x = a.values[mode == Mode::scalar_vector ? 0 : static_cast<size_t>(i)];
            const double y = b.values[mode == Mode::vector_scalar ? 0 : static_cast<size_t>(i)];
            compare(prim, result == DType::bool_ ? result : t, got[static_cast<size_t>(i)],
                    expected(prim, p, t, {x, y}), text("n ", n, " at ", i, " of ", x, ", ", y));
          }
        }
      }
    }
  }
}

TEST_P(Direct, InPlace) {
  for (DType t : kDTypes) {
    for (int64_t n : {1, 7, 16, 19, 100}) {
      Column a = sample(t, 100, 1), b = sample(t, 100, 4), c = a, d = b;
      std::vector<char> out(1000);
      DirectFunction f = direct(Prim::max, t, Mode::vector_vector);
      f(out.data(), a.bytes.data(), b.bytes.data(), n);
      f(c.bytes.data(), c.bytes.data(), b.bytes.data(), n);
      f(d.bytes.data(), a.bytes.data(), d.bytes.data(), n);
      EXPECT_EQ(std::memcmp(out.data(), c.bytes.data(), static_cast<size_t>(n * size_of(t))), 0) << name_of(t);
      EXPECT_EQ(std::memcmp(out.data(), d.bytes.data(), static_cast<size_t>(n * size_of(t))), 0) << name_of(t);
    }
  }
}

template <class T> T apply(Prim prim, T a, T b) {
  T out;
  direct(prim, dtype_of<T>, Mode::vector_vector)(&out, &a, &b, 1);
  return out;
}
template <class T> void integer_edges() {
  constexpr T low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max(), minus = static_cast<T>(-1);
  EXPECT_EQ(apply<T>(Prim::add, high, 1), low);
  EXPECT_EQ(apply<T>(Prim::sub, low, 1), high);
  EXPECT_EQ(apply<T>(Prim::mul, high, 2), static_cast<T>(-2));
  EXPECT_EQ(apply<T>(Prim::floor_div, high, 0), 0);
  EXPECT_EQ(apply<T>(Prim::mod, high, 0), 0);
  EXPECT_EQ(apply<T>(Prim::fmod, high, 0), 0);
  EXPECT_EQ(apply<T>(Prim::power, 2, 8 * sizeof(T)), 0);
  EXPECT_EQ(apply<T>(Prim::gcd, 12, 18), 6);
  EXPECT_EQ(apply<T>(Prim::gcd, 0, 0), 0);
  EXPECT_EQ(apply<T>(Prim::shift_left, 1, 8 * sizeof(T)), 0);
  EXPECT_EQ(apply<T>(Prim::shift_right, high, 100), 0);
  if (std::is_signed_v<T>) {
    EXPECT_EQ(apply<T>(Prim::floor_div, low, minus), low);
    EXPECT_EQ(apply<T>(Prim::mod, low, minus), 0);
    EXPECT_EQ(apply<T>(Prim::floor_div, -7, 2), -4);
    EXPECT_EQ(apply<T>(Prim::mod, -7, 2), 1);
    EXPECT_EQ(apply<T>(Prim::mod, 7, -2), minus);
    EXPECT_EQ(apply<T>(Prim::fmod, -7, 2), minus);
    EXPECT_EQ(apply<T>(Prim::power, 0, -1), 0);
    EXPECT_EQ(apply<T>(Prim::power, -1, -3), minus);
    EXPECT_EQ(apply<T>(Prim::shift_right, -5, 100), minus);
    EXPECT_EQ(apply<T>(Prim::shift_left, 1, -1), 0);
    T out, in = low;
    direct(Prim::neg, dtype_of<T>, Mode::unary)(&out, &in, nullptr, 1);
    EXPECT_EQ(out, low);
    direct(Prim::abs, dtype_of<T>, Mode::unary)(&out, &in, nullptr, 1);
    EXPECT_EQ(out, low);
  }
}
TEST_P(Direct, IntegerEdges) {
  integer_edges<int8_t>();
  integer_edges<uint8_t>();
  integer_edges<int32_t>();
  integer_edges<int64_t>();
}

// Comparisons with NaN are false, but for "not equal", in whole vectors as in their rest.
template <class T> void compare_nan() {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (size_t n : {1u, 5u, 8u, 37u}) {
    std::vector<T> x(n, nan), y(n, 1);
    std::vector<uint8_t> out(n);
    for (Prim prim : {Prim::eq, Prim::ne, Prim::lt, Prim::le, Prim::gt, Prim::ge})
      for (Mode mode : {Mode::vector_vector, Mode::vector_scalar, Mode::scalar_vector}) {
        direct(prim, dtype_of<T>, mode)(out.data(), x.data(), y.data(), static_cast<int64_t>(n));
        EXPECT_EQ(out, std::vector<uint8_t>(n, prim == Prim::ne)) << name_of(prim);
        direct(prim, dtype_of<T>, mode)(out.data(), y.data(), x.data(), static_cast<int64_t>(n));
        EXPECT_EQ(out, std::vector<uint8_t>(n, prim == Prim::ne)) << name_of(prim);
      }
  }
}

template <class T> void special_reals() {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (Prim prim : {Prim::max, Prim::min}) {
    EXPECT_TRUE(std::isnan(apply<T>(prim, nan, 1)));
    EXPECT_TRUE(std::isnan(apply<T>(prim, 1, nan)));
  }
  EXPECT_EQ(apply<T>(Prim::fmax, nan, 1), 1);
  EXPECT_EQ(apply<T>(Prim::fmin, 1, nan), 1);
  EXPECT_EQ(apply<T>(Prim::floor_div, 1, 0), inf);
  EXPECT_TRUE(std::isnan(apply<T>(Prim::mod, 1, 0)));
  EXPECT_EQ(apply<T>(Prim::mod, -1, 3), 2);
  EXPECT_EQ(apply<T>(Prim::floor_div, -1, 3), -1);
  auto unary = [](Prim prim, T x) {
    T out;
    direct(prim, dtype_of<T>, Mode::unary)(&out, &x, nullptr, 1);
    return out;
  };
  EXPECT_TRUE(std::isnan(unary(Prim::sign, nan)));
  EXPECT_FALSE(std::signbit(unary(Prim::sign, T(-0.0))));
  EXPECT_EQ(unary(Prim::round, T(0.5)), 1);
  EXPECT_EQ(unary(Prim::round, std::nextafter(T(0.5), T(0))), 0);
  EXPECT_EQ(unary(Prim::round, T(-2.5)), -3);
  EXPECT_EQ(unary(Prim::rint, T(2.5)), 2);
  EXPECT_EQ(unary(Prim::round, -inf), -inf);
  EXPECT_TRUE(std::isnan(unary(Prim::round, nan)));
}
TEST_P(Direct, SpecialReals) {
  compare_nan<float>();
  compare_nan<double>();
  special_reals<float>();
  special_reals<double>();
}

// Bool bytes from elsewhere may hold any value for true.
TEST_P(Direct, BoolBytesOtherThanOne) {
  const uint8_t a[] = {0, 2, 255, 4}, b[] = {0, 1, 2, 0};
  uint8_t out[4];
  direct(Prim::logical_and, DType::bool_, Mode::vector_vector)(out, a, b, 4);
  EXPECT_EQ(std::vector<int>(out, out + 4), (std::vector<int>{0, 1, 1, 0}));
  direct(Prim::eq, DType::bool_, Mode::vector_vector)(out, a, b, 4);
  EXPECT_EQ(std::vector<int>(out, out + 4), (std::vector<int>{1, 1, 1, 0}));
  direct(Prim::from_mask, DType::bool_, Mode::unary)(out, a, nullptr, 4);
  EXPECT_EQ(std::vector<int>(out, out + 4), (std::vector<int>{0, 1, 1, 1}));
}

// Multiply-add rounds once on every instruction set.
TEST_P(Direct, FmaRoundsOnce) {
  float a = 1 + 0x1p-12f, c = -1, out;
  direct_ternary(Prim::fma, DType::float32)(&out, &a, &a, &c, 1);
  EXPECT_EQ(out, std::fma(a, a, c));
  EXPECT_NE(out, 0x1p-11f);
}

TEST(DirectTable, WhatHasNoMeaningIsNull) {
  EXPECT_EQ(direct(Prim::exp, DType::int32, Mode::unary), nullptr);
  EXPECT_EQ(direct(Prim::add, DType::float32, Mode::unary), nullptr);
  EXPECT_EQ(direct(Prim::bit_and, DType::float64, Mode::vector_vector), nullptr);
}

}  // namespace
}  // namespace twibil::kernels
