// SPDX-License-Identifier: Apache-2.0
// Distributions that reject or search: integers, exponential, gamma, beta, multinomial, categorical, permutations.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/parallel.h"
#include "base/recycled.h"
#include "kernels/copy_convert.h"
#include "kernels/random_philox.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kGrain = 2048;

uint64_t join(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

// Unbiased integer in [0, range), range 0 meaning 2^64 (Lemire, "Fast random integer generation in an interval", 2019).
uint64_t bounded(RandomStream s, uint64_t i, uint64_t range) {
  for (uint32_t attempt = 0;; ++attempt) {
    PhiloxBlock w = random_block(s, i / 2, attempt);
    uint64_t x = i % 2 ? join(w[2], w[3]) : join(w[0], w[1]);
    if (range == 0) return x;
    unsigned __int128 m = static_cast<unsigned __int128>(x) * range;
    if (static_cast<uint64_t>(m) >= range || static_cast<uint64_t>(m) >= (0 - range) % range) return m >> 64;
  }
}

double uniform_at(RandomStream s, uint64_t i) {
  PhiloxBlock w = random_block(s, i / 2);
  return i % 2 ? unit_double(w[2], w[3]) : unit_double(w[0], w[1]);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. Attempt k of element i has blocks 2i,
// 2i+1.
double gamma_at(RandomStream s, uint64_t i, double alpha) {
  if (!(alpha > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(alpha)) return alpha;  // no attempt would be accepted
  double boost = 1;
  if (alpha < 1) {  // gamma(a) = gamma(a + 1) * u^(1/a)
    PhiloxBlock w = random_block(s, 2 * i + 1);
    boost = std::pow(1 - unit_double(w[2], w[3]), 1 / alpha);
    alpha += 1;
  }
  double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (uint32_t attempt = 0;; ++attempt) {
    PhiloxBlock a = random_block(s, 2 * i, attempt), b = random_block(s, 2 * i + 1, attempt);
    double x = std::sqrt(-2 * std::log(1 - unit_double(a[0], a[1]))) *
               std::cos(2 * std::numbers::pi * unit_double(a[2], a[3]));
    double t = 1 + c * x, v = t * t * t;
    if (v > 0 && std::log(1 - unit_double(b[0], b[1])) < x * x / 2 + d - d * v + d * std::log(v)) return d * v * boost;
  }
}

template <class Body> void dispatch_real(DType t, const Body& body) {
  dispatch(t, [&]<class T>() {
    if constexpr (kIsFloat<T>) body.template operator()<T>();
    else TW_ASSERT(false);
  });
}

// The first category whose cumulative weight exceeds u.
int64_t category(const Recycled<double>& cumulative, double u) {
  auto at = std::upper_bound(cumulative.begin(), cumulative.end(), u);
  return std::min<int64_t>(at - cumulative.begin(), static_cast<int64_t>(cumulative.size()) - 1);
}

}  // namespace

void random_integers(RandomStream stream, int64_t low, int64_t high, DType dtype, int64_t n, void* dst) {
  TW_ASSERT(low <= high);
  uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  dispatch(dtype, [&]<class T>() {
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        store(static_cast<T*>(dst), i, static_cast<int64_t>(static_cast<uint64_t>(low) + bounded(stream, i, range)));
    });
  });
}

void random_exponential(RandomStream stream, DType dtype, int64_t n, void* dst, double scale) {
  dispatch_real(dtype, [&]<class T>() {
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) store(static_cast<T*>(dst), i, -std::log1p(-uniform_at(stream, i)) * scale);
    });
  });
}

void random_gamma(RandomStream stream, DType dtype, int64_t n, const void* alpha, int64_t alpha_step, double scale,
                  void* dst) {
  dispatch_real(dtype, [&]<class T>() {
    const T* a = static_cast<const T*>(alpha);
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        store(static_cast<T*>(dst), i, gamma_at(stream, i, static_cast<double>(load(a, i * alpha_step))) * scale);
    });
  });
}

void random_beta(RandomStream stream, DType dtype, int64_t n, const void* a, int64_t a_step, const void* b,
                 int64_t b_step, void* dst) {
  dispatch_real(dtype, [&]<class T>() {
    const T *pa = static_cast<const T*>(a), *pb = static_cast<const T*>(b);
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double x = gamma_at(stream, 2 * i, static_cast<double>(load(pa, i * a_step)));
        double y = gamma_at(stream, 2 * i + 1, static_cast<double>(load(pb, i * b_step)));
        store(static_cast<T*>(dst), i, x / (x + y));
      }
    });
  });
}

void random_multinomial(RandomStream stream, int64_t trials, std::span<const double> p, int64_t experiments,
                        int64_t* counts) {
  int64_t k = static_cast<int64_t>(p.size());
  Recycled<double> cumulative(p.begin(), p.end());
  for (int64_t c = 1; c < k; ++c) cumulative[c] += cumulative[c - 1];
  if (k > 0) cumulative.back() = 1;
  std::fill_n(counts, k * experiments, int64_t{0});
  parallel_for(k > 0 ? experiments : 0, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, trials)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t e = begin; e < end; ++e)
                   for (int64_t t = 0; t < trials; ++t)
                     ++counts[e * k + category(cumulative, uniform_at(stream, e * trials + t))];
               });
}

void random_categorical(RandomStream stream, int64_t rows, int64_t k, DType dtype, const void* weights, int64_t samples,
                        int64_t* dst) {
  dispatch(dtype, [&]<class T>() {
    parallel_for(rows, std::max<int64_t>(1, kGrain / (samples + k)), [&](int64_t begin, int64_t end) {
      Recycled<double> cumulative(k);
      for (int64_t r = begin; r < end; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < k; ++c)
          cumulative[c] = sum += static_cast<double>(load(static_cast<const T*>(weights), r * k + c));
        for (int64_t s = 0; s < samples; ++s)
          dst[r * samples + s] = category(cumulative, uniform_at(stream, r * samples + s) * sum);
      }
    });
  });
}

void random_permutation(RandomStream stream, int64_t n, int64_t* dst) {
  for (int64_t i = 0; i < n; ++i) {  // Fisher-Yates, inside out
    int64_t j = static_cast<int64_t>(bounded(stream, i, i + 1));
    if (j != i) dst[i] = dst[j];
    dst[j] = i;
  }
}

}  // namespace twibil::kernels
