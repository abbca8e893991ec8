// SPDX-License-Identifier: Apache-2.0
// Helpers of the kernel tests: small strided arrays in every layout, with a plain way to read them.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/copy_convert.h"

namespace twibil::kernels {

using Shape = std::vector<int64_t>;
enum class Layout { contiguous, transposed, stepped, reversed, broadcast };
inline constexpr Layout kLayouts[] = {Layout::contiguous, Layout::transposed, Layout::stepped, Layout::reversed,
                                      Layout::broadcast};
inline constexpr DType kAllDTypes[] = {DType::bool_,   DType::int8,     DType::uint8,   DType::int32,  DType::int64,
                                       DType::float16, DType::bfloat16, DType::float32, DType::float64};

inline int64_t count(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

/// An array with a layout; element k in C order of its shape is at(k).
struct Strided {
  DType dtype;
  Shape shape, strides;
  std::vector<char> bytes;
  int64_t first = 0;

  Strided(DType t, Shape s, Layout layout = Layout::contiguous) : dtype(t), shape(std::move(s)), strides(shape.size()) {
    int64_t step = layout == Layout::stepped ? 2 : 1, rank = static_cast<int64_t>(shape.size());
    for (int64_t j = 0; j < rank; ++j) {
      int64_t i = layout == Layout::transposed ? j : rank - 1 - j;
      bool flat = layout == Layout::broadcast && i == rank / 2;
      strides[i] = flat ? 0 : layout == Layout::reversed ? -step : step;
      if (layout == Layout::reversed) first += (shape[i] - 1) * step;
      if (!flat) step *= std::max<int64_t>(shape[i], 1) + (layout == Layout::stepped ? 1 : 0);
    }
    first = std::max<int64_t>(first, 0);
    bytes.resize((step + 1) * size_of(t));
  }
  int64_t size() const { return count(shape); }
  int64_t offset(int64_t k) const {
    int64_t at = first;
    for (size_t i = shape.size(); i-- > 0;) {
      at += k % shape[i] * strides[i];
      k /= shape[i];
    }
    return at;
  }
  void* data() { return bytes.data() + first * size_of(dtype); }
  const void* data() const { return bytes.data() + first * size_of(dtype); }
  double at(int64_t k) const {
    double v = 0;
    dispatch(dtype,
             [&]<class T>() { v = static_cast<double>(load(reinterpret_cast<const T*>(bytes.data()), offset(k))); });
    return v;
  }
  void set(int64_t k, double v) {
    dispatch(dtype, [&]<class T>() { store(reinterpret_cast<T*>(bytes.data()), offset(k), v); });
  }
  void randomise(uint32_t seed, double low = -9, double high = 9, bool whole = false) {
    std::mt19937 gen(seed);
    std::uniform_real_distribution<double> u(low, high);
    for (int64_t k = 0; k < size(); ++k) {
      double v = u(gen);
      set(k, whole ? std::floor(v) : v);
    }
  }
};

inline std::string describe(DType t, const Shape& shape, Layout layout) {
  return text(name_of(t), " ", std::span<const int64_t>(shape), " layout ", static_cast<int>(layout));
}

/// True when both are NaN, equal, or close.
inline bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}
inline double epsilon_of(DType t) {
  switch (t) {
    case DType::float16: return 1e-3;
    case DType::bfloat16: return 8e-3;
    case DType::float32: return 1.2e-7;
    case DType::float64: return 2.3e-16;
    default: return 0;
  }
}

/// Runs the body with 1, 2 and 3 threads and expects the same bytes in `out` each time.
template <class Body> void expect_same_bits(std::vector<char>& out, const Body& body) {
  int before = num_threads();
  std::vector<char> first;
  for (int n : {1, 2, 3}) {
    set_num_threads(n);
    std::fill(out.begin(), out.end(), char{0});
    body();
    if (n == 1) first = out;
    else EXPECT_EQ(0, std::memcmp(first.data(), out.data(), out.size())) << n << " threads";
  }
  set_num_threads(before);
}

}  // namespace twibil::kernels
