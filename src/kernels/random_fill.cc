// SPDX-License-Identifier: Apache-2.0
// Uniform, normal and Bernoulli fills, 16 Philox blocks at a time. Such a group makes 64 words; word w of block b is
// element 16 * w + b of the group, which keeps words in the order in which the lanes compute them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random_fill.cc"
// clang-format off
#include "kernels/isa.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <bit>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "kernels/copy_convert.h"
#include "kernels/random_philox.h"

#ifndef TWIBIL_RANDOM_JOB
#define TWIBIL_RANDOM_JOB
namespace twibil::kernels {
enum class RandomKind : uint8_t { bits, uniform, normal, bernoulli };
struct RandomJob {
  RandomKind kind;
  DType dtype;
  RandomStream stream;
  int64_t n;
  void* dst;
  double offset = 0, factor = 1;      // of uniform and normal
  uint64_t threshold = 0, value = 0;  // of bernoulli: words below it become these bits
};
inline constexpr int64_t kGroup = 64;  // words of a group
}  // namespace twibil::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace {

constexpr int kLane = 16;
using Words = uint32_t[4][kLane];

namespace hn = hwy::HWY_NAMESPACE;

// The 64-bit products of 32-bit lanes with a constant, as separate high and low halves.
template <class D, class V> HWY_INLINE void wide_multiply(D d, V x, V by, V& high, V& low) {
  hn::Repartition<uint64_t, D> wide;
  auto even = hn::MulEven(x, by);
  auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), by);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

void philox_group(RandomStream s, uint64_t group, Words& w) {
  const hn::CappedTag<uint32_t, kLane> d;
  const auto m0 = hn::Set(d, kPhiloxM0), m1 = hn::Set(d, kPhiloxM1);
  uint64_t first = group * kLane;  // a multiple of 16: the sum below has no carry
  for (size_t j = 0; j < kLane; j += hn::Lanes(d)) {
    auto c0 = hn::Iota(d, static_cast<uint32_t>(first) + static_cast<uint32_t>(j));
    auto c1 = hn::Set(d, static_cast<uint32_t>(first >> 32));
    auto c2 = hn::Set(d, static_cast<uint32_t>(s.counter)), c3 = hn::Set(d, static_cast<uint32_t>(s.counter >> 32));
    uint32_t k0 = static_cast<uint32_t>(s.key), k1 = static_cast<uint32_t>(s.key >> 32);
    for (int round = 0; round < 10; ++round, k0 += kPhiloxW0, k1 += kPhiloxW1) {
      auto high0 = c0, low0 = c0, high1 = c0, low1 = c0;
      wide_multiply(d, c0, m0, high0, low0);
      wide_multiply(d, c2, m1, high1, low1);
      c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
      c1 = low1;
      c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
      c3 = low0;
    }
    hn::StoreU(c0, d, w[0] + j);
    hn::StoreU(c1, d, w[1] + j);
    hn::StoreU(c2, d, w[2] + j);
    hn::StoreU(c3, d, w[3] + j);
  }
}

// log of x in (0, 1], to 1 ULP or so: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), polynomial of Cephes' logf.
inline HWY_ATTR float log_unit(float x) {
  int32_t bits = std::bit_cast<int32_t>(x) - 0x3f3504f3;
  float e = static_cast<float>(bits >> 23);
  float f = std::bit_cast<float>((bits & 0x7fffff) + 0x3f3504f3) - 1.0f, z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  float y = f * z * p - 2.12194440e-4f * e - 0.5f * z;
  return f + y + 0.693359375f * e;
}

// Two independent normals from two words: radius from the first, angle (whole turn = 2^32) from the second.
inline HWY_ATTR void box_muller(uint32_t a, uint32_t b, float& x, float& y) {
  float high = static_cast<float>(static_cast<int32_t>(a >> 16)),
        low = static_cast<float>(static_cast<int32_t>(a & 0xffff));
  float radius = std::sqrt(-2.0f * log_unit((high * 65536.0f + (low + 1.0f)) * 0x1p-32f));
  uint32_t quarter = (b + 0x20000000u) >> 30;
  float t = static_cast<float>(static_cast<int32_t>(b - (quarter << 30))) * 1.46291807926715968e-9f, z = t * t;
  float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * t + t;
  float c = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
  bool swap = quarter & 1;
  float sine = swap ? c : s, cosine = swap ? s : c;
  y = radius * (quarter & 2 ? -sine : sine);
  x = radius * ((quarter + 1) & 2 ? -cosine : cosine);
}

template <int kBits> void uniform_tile(const Words& w, float* tile) {
  constexpr float kScale = 1.0f / (1u << kBits);
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < kLane; ++j)
      tile[k * kLane + j] = static_cast<float>(static_cast<int32_t>(w[k][j] >> (32 - kBits))) * kScale;
}
void uniform_tile(const Words& w, double* tile) {
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < kLane; ++j) tile[k * kLane + j] = unit_double(w[2 * k][j], w[2 * k + 1][j]);
}
void normal_tile(const Words& w, float* tile) {
  for (int k = 0; k < 4; k += 2)
    for (int j = 0; j < kLane; ++j) box_muller(w[k][j], w[k + 1][j], tile[k * kLane + j], tile[(k + 1) * kLane + j]);
}
void normal_tile(const Words& w, double* tile) {
  for (int j = 0; j < kLane; ++j) {
    double radius = std::sqrt(-2 * std::log(1 - unit_double(w[0][j], w[1][j])));
    double angle = 6.283185307179586 * unit_double(w[2][j], w[3][j]);
    tile[j] = radius * std::cos(angle), tile[kLane + j] = radius * std::sin(angle);
  }
}

template <class T> void fill_real(const RandomJob& job, int64_t group, const Words& w) {
  using A = native_t<T>;
  constexpr int64_t kCount = std::is_same_v<T, double> ? 32 : 64;
  alignas(64) A tile[kCount];
  if (job.kind == RandomKind::normal) normal_tile(w, tile);
  else if constexpr (std::is_same_v<T, double>) uniform_tile(w, tile);
  else uniform_tile<std::is_same_v<T, float16> ? 11 : std::is_same_v<T, bfloat16> ? 8 : 24>(w, tile);
  A offset = static_cast<A>(job.offset), factor = static_cast<A>(job.factor);
  for (int64_t j = 0; j < kCount; ++j) tile[j] = offset + factor * tile[j];
  T* to = static_cast<T*>(job.dst) + group * kCount;
  int64_t count = std::min(kCount, job.n - group * kCount);
  for (int64_t j = 0; j < count; ++j) store(to, j, tile[j]);
}

template <class U> void fill_bits(const RandomJob& job, int64_t group, const Words& w) {
  U* to = static_cast<U*>(job.dst) + group * kGroup;
  int64_t count = std::min(kGroup, job.n - group * kGroup);
  const uint32_t* words = &w[0][0];
  if (job.kind == RandomKind::bits) std::memcpy(to, words, count * 4);
  else if (job.threshold >> 32) std::fill_n(to, count, static_cast<U>(job.value));
  else {
    uint32_t below = static_cast<uint32_t>(job.threshold);
    U value = static_cast<U>(job.value);
    for (int64_t j = 0; j < count; ++j) to[j] = words[j] < below ? value : U{0};
  }
}

void fill_group(const RandomJob& job, int64_t group) {
  alignas(64) Words w;
  philox_group(job.stream, static_cast<uint64_t>(group), w);
  if (job.kind == RandomKind::bits || job.kind == RandomKind::bernoulli)
    return dispatch_width(job.dtype, [&]<class U>() { fill_bits<U>(job, group, w); });
  switch (job.dtype) {
    case DType::float16: return fill_real<float16>(job, group, w);
    case DType::bfloat16: return fill_real<bfloat16>(job, group, w);
    case DType::float32: return fill_real<float>(job, group, w);
    default: return fill_real<double>(job, group, w);
  }
}

}  // namespace

void fill_random_groups(const RandomJob& job, int64_t begin, int64_t end) {
  for (int64_t g = begin; g < end; ++g) fill_group(job, g);
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(fill_random_groups);
namespace {

void fill_random(const RandomJob& job) {
  bool real = job.kind == RandomKind::uniform || job.kind == RandomKind::normal;
  int64_t per_group = real && job.dtype == DType::float64 ? kGroup / 2 : kGroup;
  parallel_for((job.n + per_group - 1) / per_group, 256, [&](int64_t begin, int64_t end) {
    TW_DISPATCH(fill_random_groups)(job, begin, end);
  });
}

}  // namespace

void random_bits(RandomStream stream, int64_t n, uint32_t* dst) {
  fill_random({.kind = RandomKind::bits, .dtype = DType::int32, .stream = stream, .n = n, .dst = dst});
}
void random_uniform(RandomStream stream, DType dtype, int64_t n, void* dst, double low, double high) {
  TW_ASSERT(is_floating(dtype));
  fill_random({RandomKind::uniform, dtype, stream, n, dst, low, high - low});
}
void random_normal(RandomStream stream, DType dtype, int64_t n, void* dst, double mean, double deviation) {
  TW_ASSERT(is_floating(dtype));
  fill_random({RandomKind::normal, dtype, stream, n, dst, mean, deviation});
}
void random_bernoulli(RandomStream stream, double p, DType dtype, int64_t n, void* dst, const Scalar& value) {
  RandomJob job{.kind = RandomKind::bernoulli, .dtype = dtype, .stream = stream, .n = n, .dst = dst};
  job.threshold = p > 0 ? static_cast<uint64_t>(std::min(p, 1.0) * 4294967296.0) : 0;
  dispatch(dtype, [&]<class T>() {
    T v = scalar_as<T>(value);
    std::memcpy(&job.value, &v, sizeof v);
  });
  fill_random(job);
}

}  // namespace twibil::kernels
#endif
