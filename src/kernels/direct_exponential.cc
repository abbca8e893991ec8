// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, powers, hyperbolic functions.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/direct_exponential.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "kernels/direct_loops.h"
#include "kernels/vector_math.h"
// clang-format on

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

HWY_INLINE double sigmoid_of(double a) {
  const double z = std::exp(-std::fabs(a));
  return (a < 0 ? z : 1) / (1 + z);
}

TW_OP_BY_VECTOR(exp, std::exp);
TW_OP_BY_VECTOR(expm1, std::expm1);
TW_OP_BY_VECTOR(log, std::log);
TW_OP_BY_VECTOR(log1p, std::log1p);
TW_OP_BY_VECTOR(tanh, std::tanh);
TW_OP_BY_VECTOR(sigmoid, sigmoid_of);
template <> struct Op<Prim::exp2> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::exp2(a); }
};
template <> struct Op<Prim::log2> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::log2(a); }
};
template <> struct Op<Prim::log10> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::log10(a); }
};
template <> struct Op<Prim::sinh> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::sinh(a); }
};
template <> struct Op<Prim::cosh> {
  template <class T> static HWY_INLINE T scalar(T a) { return std::cosh(a); }
};
template <> struct Op<Prim::power> {
  template <class T> static HWY_INLINE T scalar(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      if (b < 0) return a == 1 ? T(1) : a == static_cast<T>(-1) ? (b % 2 == 0 ? T(1) : a) : T(0);
      using U = std::make_unsigned_t<T>;
      U result = 1, base = static_cast<U>(a);
      for (; b != 0; b = static_cast<T>(b >> 1), base = static_cast<U>(base * base))
        if (b & 1) result = static_cast<U>(result * base);
      return static_cast<T>(result);
    }
  }
};

/// Everyday exponents need no logarithm.
template <class T> void power_by_number(void* out, const void* a, const void* b, int64_t n) {
  const auto* x = static_cast<const T*>(a);
  auto* o = static_cast<T*>(out);
  auto fill = [&](auto value) {
    TW_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) o[i] = value(x[i]);
  };
  const T exponent = *static_cast<const T*>(b);
  if (exponent == 2) fill([](T v) { return v * v; });
  else if (exponent == 3) fill([](T v) { return v * v * v; });
  else if (exponent == -1) fill([](T v) { return 1 / v; });
  else binary_loop<Prim::power, T, Mode::vector_scalar>(out, a, b, n);
}

void fill_exponential(DirectTable& table) {
  enter<Prim::exp, Prim::exp2, Prim::expm1, Prim::log, Prim::log2, Prim::log10, Prim::log1p, Prim::sigmoid, Prim::sinh,
        Prim::cosh, Prim::tanh, Prim::power>(table);
  table.at(Prim::power, DType::float32, Mode::vector_scalar) = power_by_number<float>;
  table.at(Prim::power, DType::float64, Mode::vector_scalar) = power_by_number<double>;
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_exponential);
/// Everyday exponents need no logarithm.
template <class T> void power_by_number(void* out, const void* a, const void* b, int64_t n) {
  const auto* x = static_cast<const T*>(a);
  auto* o = static_cast<T*>(out);
  auto fill = [&](auto value) {
    TW_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) o[i] = value(x[i]);
  };
  const T exponent = *static_cast<const T*>(b);
  if (exponent == 2) fill([](T v) { return v * v; });
  else if (exponent == 3) fill([](T v) { return v * v * v; });
  else if (exponent == -1) fill([](T v) { return 1 / v; });
  else binary_loop<Prim::power, T, Mode::vector_scalar>(out, a, b, n);
}

void fill_exponential(DirectTable& table) { TW_DISPATCH(fill_exponential)(table); }
}  // namespace twibil::kernels
#endif
