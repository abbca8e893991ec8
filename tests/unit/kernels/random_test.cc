// SPDX-License-Identifier: Apache-2.0
#include "kernels/random.h"

#include <algorithm>

#include "kernels/isa.h"
#include "kernels/kernel_cases.h"
#include "kernels/random_philox.h"

namespace twibil::kernels {
namespace {

constexpr RandomStream kStream{42, 7};

TEST(Philox, PublishedVectors) {  // known answers of the Random123 distribution
  EXPECT_EQ((PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}), philox({0, 0, 0, 0}, 0, 0));
  uint32_t f = 0xffffffff;
  EXPECT_EQ((PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}), philox({f, f, f, f}, f, f));
  EXPECT_EQ((PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}),
            philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0));
}

TEST(Philox, GroupsAreBlocks) {
  std::vector<uint32_t> words(1000);
  random_bits(kStream, 1000, words.data());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(random_block(kStream, i / 64 * 16 + i % 16)[i % 64 / 16], words[i]) << i;
}

struct Moments {
  double mean = 0, deviation = 0, low = 1e300, high = -1e300;
};
Moments moments(const Strided& x) {
  Moments m;
  for (int64_t k = 0; k < x.size(); ++k) {
    double v = x.at(k);
    m.mean += v, m.deviation += v * v, m.low = std::min(m.low, v), m.high = std::max(m.high, v);
  }
  m.mean /= x.size();
  m.deviation = std::sqrt(m.deviation / x.size() - m.mean * m.mean);
  return m;
}

constexpr DType kReals[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};

TEST(Uniform, RangeMomentsAndPrefix) {
  for (DType t : kReals) {
    Strided x(t, {100003}), y(t, {77}), z(t, {100003});
    random_uniform(kStream, t, x.size(), x.data());
    random_uniform(kStream, t, y.size(), y.data());
    Moments m = moments(x);
    EXPECT_GE(m.low, 0);
    EXPECT_LT(m.high, 1);
    EXPECT_NEAR(m.mean, 0.5, 0.005);
    EXPECT_NEAR(m.deviation, std::sqrt(1 / 12.), 0.005);
    for (int k = 0; k < 77; ++k) EXPECT_EQ(x.at(k), y.at(k));
    random_uniform({42, 8}, t, z.size(), z.data());
    EXPECT_NE(x.bytes, z.bytes);
    random_uniform(kStream, t, z.size(), z.data(), -3, 5);
    m = moments(z);
    EXPECT_NEAR(m.mean, 1, 0.05);
    EXPECT_TRUE(m.low >= -3 && m.high <= 5);
  }
}

TEST(Uniform, UsesEveryBit) {
  std::vector<float> x(1 << 16);
  random_uniform(kStream, DType::float32, x.size(), x.data());
  uint32_t seen = 0;
  for (float v : x) seen |= static_cast<uint32_t>(v * 0x1p24f);
  EXPECT_EQ((1u << 24) - 1, seen);
  std::vector<double> d(1 << 16);
  random_uniform(kStream, DType::float64, d.size(), d.data());
  uint64_t bits = 0;
  for (double v : d) bits |= static_cast<uint64_t>(v * 0x1p53);
  EXPECT_EQ((1ull << 53) - 1, bits);
}

TEST(Normal, DistributionAgainstErf) {
  for (DType t : kReals) {
    Strided x(t, {200001});
    random_normal(kStream, t, x.size(), x.data());
    Moments m = moments(x);
    EXPECT_NEAR(m.mean, 0, 0.008);
    EXPECT_NEAR(m.deviation, 1, 0.008);
    std::vector<double> v(x.size());
    for (int64_t k = 0; k < x.size(); ++k) v[k] = x.at(k);
    std::sort(v.begin(), v.end());
    double worst = 0;  // Kolmogorov-Smirnov distance
    for (size_t k = 0; k < v.size(); ++k)
      worst = std::max(worst, std::abs((k + 0.5) / v.size() - 0.5 * std::erfc(-v[k] / std::sqrt(2.))));
    EXPECT_LT(worst, t == DType::bfloat16 ? 0.006 : 0.004) << name_of(t);
    double product = 0;  // neighbours in a pair are 16 apart
    for (int64_t k = 0; k + 16 < x.size(); ++k) product += x.at(k) * x.at(k + 16);
    EXPECT_NEAR(product / x.size(), 0, 0.01);
  }
}

TEST(Normal, FloatFollowsDouble) {  // the fast logarithm and sine against the C library's
  std::vector<float> x(64 * 100);
  random_normal(kStream, DType::float32, x.size(), x.data());
  for (size_t i = 0; i < x.size(); ++i) {
    PhiloxBlock w = random_block(kStream, i / 64 * 16 + i % 16);
    int word = i % 64 / 16, pair = word / 2 * 2;
    double radius = std::sqrt(-2 * std::log((w[pair] + 1.0) * 0x1p-32)), angle = 2 * M_PI * w[pair + 1] * 0x1p-32;
    EXPECT_NEAR(x[i], radius * (word % 2 ? std::sin(angle) : std::cos(angle)), 3e-6);
  }
}

TEST(Random, SameBitsForThreadsAndInstructionSets) {
  Isa before = isa();
  for (DType t : kReals)
    for (bool normal : {false, true}) {
      Strided x(t, {100001});
      std::vector<char> first;
      for (Isa i : kIsas) {
        if (!isa_available(i)) continue;
        set_isa(i);
        expect_same_bits(x.bytes,
                         [&] { (normal ? random_normal : random_uniform)(kStream, t, x.size(), x.data(), 0, 1); });
        if (first.empty()) first = x.bytes;
        EXPECT_EQ(first, x.bytes) << name_of(i) << " " << name_of(t) << (normal ? " normal" : "");
      }
    }
  set_isa(before);
}

TEST(Bernoulli, ShareAndValue) {
  for (DType t : kAllDTypes) {
    Strided x(t, {40001});
    for (double p : {0., 0.3, 1.}) {
      random_bernoulli(kStream, p, t, x.size(), x.data(), is_floating(t) ? Scalar(2.) : Scalar(1));
      double ones = 0;
      for (int64_t k = 0; k < x.size(); ++k) {
        if (x.at(k) == 0) continue;
        EXPECT_EQ(is_floating(t) ? 2 : 1, x.at(k));
        ++ones;
      }
      EXPECT_NEAR(p, ones / x.size(), p == 0.3 ? 0.01 : 0);
    }
  }
}

TEST(Integers, EveryValueOfSmallAndHugeRanges) {
  std::vector<int64_t> x(60000), count(6);
  random_integers(kStream, -2, 3, DType::int64, x.size(), x.data());
  for (int64_t v : x) {
    ASSERT_TRUE(v >= -2 && v <= 3);
    ++count[v + 2];
  }
  for (int64_t c : count) EXPECT_NEAR(10000, c, 500);
  random_integers(kStream, INT64_MIN, INT64_MAX, DType::int64, x.size(), x.data());
  int64_t negative = std::count_if(x.begin(), x.end(), [](int64_t v) { return v < 0; });
  EXPECT_NEAR(30000, negative, 600);
  int64_t third = INT64_MAX / 3 * 2, below = 0;  // modulo would favour the lower half here
  random_integers(kStream, 0, third + third / 2, DType::int64, x.size(), x.data());
  for (int64_t v : x) below += v < third / 2;
  EXPECT_NEAR(20000, below, 600);
  int8_t small[100];
  random_integers(kStream, 5, 5, DType::int8, 100, small);
  EXPECT_EQ(100, std::count(small, small + 100, 5));
}

TEST(Samples, GammaBetaExponential) {
  constexpr int64_t kCount = 100000;
  for (double alpha : {0.3, 1.0, 4.5}) {
    Strided x(DType::float64, {kCount});
    random_gamma(kStream, x.dtype, kCount, &alpha, 0, 2, x.data());
    Moments m = moments(x);
    EXPECT_NEAR(m.mean, 2 * alpha, 0.05 * (1 + alpha));
    EXPECT_NEAR(m.deviation, 2 * std::sqrt(alpha), 0.06 * (1 + alpha));
    double b = 2;
    random_beta(kStream, x.dtype, kCount, &alpha, 0, &b, 0, x.data());
    EXPECT_NEAR(moments(x).mean, alpha / (alpha + 2), 0.01);
  }
  Strided x(DType::float32, {kCount});
  random_exponential(kStream, x.dtype, kCount, x.data(), 3);
  EXPECT_NEAR(moments(x).mean, 3, 0.05);
  EXPECT_NEAR(moments(x).deviation, 3, 0.08);
  double zero = 0, y;
  random_gamma(kStream, DType::float64, 1, &zero, 0, 1, &y);
  EXPECT_TRUE(std::isnan(y));
}

TEST(Samples, MultinomialAndCategorical) {
  const double p[] = {0.2, 0, 0.5, 0.3};
  int64_t counts[12], total[4] = {};
  random_multinomial(kStream, 10000, p, 3, counts);
  for (int e = 0; e < 3; ++e) {
    int64_t sum = 0;
    for (int c = 0; c < 4; ++c) sum += counts[e * 4 + c], total[c] += counts[e * 4 + c];
    EXPECT_EQ(10000, sum);
  }
  for (int c = 0; c < 4; ++c) EXPECT_NEAR(30000 * p[c], total[c], p[c] == 0 ? 0 : 400);
  const float weights[] = {1, 3, 0, 0, 0, 7};
  std::vector<int64_t> draws(2 * 5000);
  random_categorical(kStream, 2, 3, DType::float32, weights, 5000, draws.data());
  EXPECT_NEAR(3750, std::count(draws.begin(), draws.begin() + 5000, 1), 150);
  EXPECT_EQ(0, std::count(draws.begin(), draws.begin() + 5000, 2));
  EXPECT_EQ(5000, std::count(draws.begin() + 5000, draws.end(), 2));
}

TEST(Samples, PermutationIsOne) {
  std::vector<int64_t> p(1000), first(6);
  random_permutation(kStream, 1000, p.data());
  EXPECT_FALSE(std::is_sorted(p.begin(), p.end()));
  std::sort(p.begin(), p.end());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(i, p[i]);
  for (uint64_t c = 0; c < 6000; ++c) {  // all 6 orders of 3 about equally often
    int64_t q[3];
    random_permutation({1, c}, 3, q);
    ++first[q[0] * 2 + (q[1] > q[2])];
  }
  for (int64_t n : first) EXPECT_NEAR(1000, n, 150);
  random_permutation(kStream, 0, nullptr);
}

}  // namespace
}  // namespace twibil::kernels
