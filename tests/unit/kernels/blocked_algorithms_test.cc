// SPDX-License-Identifier: Apache-2.0
// Every algorithm of the menu of convolutions on blocked channels against sums in double, on random shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/blocked.h"
#include "kernels/blocked_choice.h"
#include "kernels/kernel_fixture.h"

namespace twibil::kernels {
namespace {

class BlockedAlgorithms : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(EachIsa, BlockedAlgorithms, testing::ValuesIn(kIsas), isa_of_test);

constexpr float kBeside = 77.0F;  // behind the output, and in the input's lanes behind the last channel

std::string describe(const BlockedShape& s) {
  return text("batch ", s.batch, " channels ", s.in_channels, "->", s.out_channels, " groups ", s.groups, " in ",
              std::span(s.in), " out ", std::span(s.out), " kernel ", std::span(s.kernel), " stride ",
              std::span(s.stride), " dilation ", std::span(s.dilation), " pad ", std::span(s.pad));
}

/// A shape as networks have them: the kind says how channels and kernel are drawn.
BlockedShape random_shape(uint32_t seed) {
  std::mt19937 engine(seed);
  const auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine);
  };
  BlockedShape s;
  s.batch = pick(1, 3), s.in_channels = pick(1, 70), s.out_channels = pick(1, 70);
  // A kernel as networks have them, or whatever comes.
  const int64_t kind = seed % 8, line = pick(0, 1);
  const bool free = kind >= 6 || (kind >= 1 && kind <= 3 && pick(0, 1));
  switch (kind) {
    case 0:  // 3x3 of whole blocks
      s.in_channels = 16 * pick(1, 6), s.out_channels = 16 * pick(1, 5);
      break;
    case 1:  // the first layer
      s.in_channels = pick(1, 4);
      break;
    case 2:  // depthwise
      s.groups = s.out_channels = s.in_channels;
      break;
    case 3:  // groups
      s.groups = pick(2, 4), s.in_channels = s.groups * pick(1, 20), s.out_channels = s.groups * pick(1, 40);
      break;
    default: break;
  }
  const int64_t square = kind == 0 ? 3 : kind == 4 ? 5 : 2 * pick(0, 3) + 1, stride = pick(0, 4) == 0 ? 2 : 1;
  for (int axis = 0; axis < 2; ++axis) {
    s.kernel[axis] = free ? pick(1, 5) : kind != 5 ? square : axis == line ? 1 : 3 + 4 * (seed / 8 % 2);
    s.stride[axis] = free ? pick(1, 3) : kind == 4 || kind == 5 ? 1 : stride;
    s.dilation[axis] = free ? pick(1, 3) : 1;
    const int64_t extent = (s.kernel[axis] - 1) * s.dilation[axis];
    s.pad[axis] = free ? pick(0, extent + 1) : extent / 2;
    s.in[axis] = pick(1, 29);
    // What is behind may be more or less than what is in front.
    const int64_t behind = s.pad[axis] + (free ? pick(-1, 2) : 0);
    s.out[axis] = std::max<int64_t>(0, s.in[axis] + s.pad[axis] + behind - extent - 1) / s.stride[axis] + 1;
  }
  return s;
}

struct Case {
  BlockedShape s;
  std::vector<float> plain, x, w, bias, residual;
  std::vector<double> y;  // laid out as the blocked output, the lanes behind the last channel too
  double rms = 0;

  int64_t in() const { return s.in[0] * s.in[1]; }
  int64_t out() const { return s.out[0] * s.out[1]; }
  int64_t blocked(int64_t channel, int64_t image, int64_t size, int64_t pixel) const {
    return ((channel / 16 * s.batch + image) * size + pixel) * 16 + channel % 16;
  }

  Case(const BlockedShape& shape, uint32_t seed) : s(shape) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    const int64_t depth = s.in_channels / s.groups * s.kernel[0] * s.kernel[1];
    plain.resize(static_cast<size_t>(s.batch * s.in_channels * in()));
    for (float& v : plain) v = std::max(0.0F, normal(engine));
    w.resize(static_cast<size_t>(s.out_channels * depth));
    for (float& v : w) v = normal(engine) * std::sqrt(2 / static_cast<float>(depth));
    x.assign(static_cast<size_t>(channel_blocks(s.in_channels) * 16 * s.batch * in()), kBeside);
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t c = 0; c < s.in_channels; ++c) {
        for (int64_t p = 0; p < in(); ++p) {
          x[static_cast<size_t>(blocked(c, n, in(), p))] =
              plain[static_cast<size_t>((n * s.in_channels + c) * in() + p)];
        }
      }
    }
    bias.assign(static_cast<size_t>(channel_blocks(s.out_channels) * 16), 0.0F);
    for (int64_t o = 0; o < s.out_channels; ++o) bias[static_cast<size_t>(o)] = normal(engine);
    residual.resize(static_cast<size_t>(channel_blocks(s.out_channels) * 16 * s.batch * out()));
    for (float& v : residual) v = normal(engine);
    sum();
  }

  void sum() {
    y.resize(residual.size());
    const int64_t c = s.in_channels / s.groups, o_group = s.out_channels / s.groups;
    double squares = 0;
    for (int64_t o = 0; o < s.out_channels; ++o) {
      for (int64_t n = 0; n < s.batch; ++n) {
        for (int64_t p = 0; p < out(); ++p) {
          double total = 0;
          for (int64_t ky = 0; ky < s.kernel[0]; ++ky) {
            const int64_t py = p / s.out[1] * s.stride[0] + ky * s.dilation[0] - s.pad[0];
            if (py < 0 || py >= s.in[0]) continue;
            for (int64_t kx = 0; kx < s.kernel[1]; ++kx) {
              const int64_t px = p % s.out[1] * s.stride[1] + kx * s.dilation[1] - s.pad[1];
              if (px < 0 || px >= s.in[1]) continue;
              const float* from =
                  &plain[static_cast<size_t>((n * s.in_channels + o / o_group * c) * in() + py * s.in[1] + px)];
              const float* weights = &w[static_cast<size_t>(o * c * s.kernel[0] * s.kernel[1] + ky * s.kernel[1] + kx)];
              for (int64_t i = 0; i < c; ++i) {
                total += static_cast<double>(from[i * in()]) * weights[i * s.kernel[0] * s.kernel[1]];
              }
            }
          }
          y[static_cast<size_t>(blocked(o, n, out(), p))] = total;
          squares += total * total;
        }
      }
    }
    rms = std::sqrt(squares / static_cast<double>(s.out_channels * s.batch * out())) + 1e-3;
  }

  struct Variant {
    bool bias, residual, clamp;
  };
  std::vector<float> run(const BlockedAlgorithm& a, const std::vector<float>& packed, const Variant& v) const {
    std::vector<float> result(y.size() + 64, kBeside);
    BlockedEpilogue e;
    if (v.bias) e.bias = bias.data();
    if (v.residual) e.residual = residual.data();
    if (v.clamp) e.lower = 0, e.upper = 1;
    a.run(s, a.plain_input ? plain.data() : x.data(), packed.data(), e, result.data());
    return result;
  }

  double expected(int64_t o, int64_t at, const Variant& v) const {
    double sum = y[static_cast<size_t>(at)];
    if (v.bias) sum += bias[static_cast<size_t>(o)];
    if (v.residual) sum += residual[static_cast<size_t>(at)];
    return v.clamp ? std::min(std::max(sum, 0.0), 1.0) : sum;
  }
};

/// Errors over the output's root of the mean square: at least four times what research found for normal values
/// (rectified inputs, weights as He has them) and 512 channels.
struct Bound {
  double rms, most;
};
Bound bound_of(const BlockedAlgorithm& a) { return a.exact ? Bound{1e-6, 8e-6} : Bound{1.5e-6, 1.2e-5}; }

void check(const Case& c, const BlockedAlgorithm& a, const Case::Variant& v, const std::vector<float>& got) {
  double squares = 0, most = 0;
  for (int64_t o = 0; o < channel_blocks(c.s.out_channels) * 16; ++o) {
    for (int64_t n = 0; n < c.s.batch; ++n) {
      for (int64_t p = 0; p < c.out(); ++p) {
        const int64_t at = c.blocked(o, n, c.out(), p);
        const float y = got[static_cast<size_t>(at)];
        ASSERT_TRUE(std::isfinite(y)) << a.name << ", " << describe(c.s) << ": channel " << o << " pixel " << p;
        if (o >= c.s.out_channels) continue;
        const double error = std::abs(y - c.expected(o, at, v));
        squares += error * error, most = std::max(most, error);
      }
    }
  }
  const double scale = std::hypot(c.rms, v.bias ? 1.0 : 0.0, v.residual ? 1.0 : 0.0);
  const double rms = std::sqrt(squares / static_cast<double>(c.s.out_channels * c.s.batch * c.out()));
  EXPECT_LE(rms / scale, bound_of(a).rms) << a.name << ", " << describe(c.s);
  EXPECT_LE(most / scale, bound_of(a).most) << a.name << ", " << describe(c.s);
  for (size_t i = c.y.size(); i < got.size(); ++i) {
    ASSERT_EQ(got[i], kBeside) << a.name << ", " << describe(c.s) << ": wrote behind the output";
  }
}

TEST_P(BlockedAlgorithms, AgreeWithDouble) {
  std::map<std::string, int> taken;
  for (uint32_t seed = 0; seed < 80; ++seed) {
    const Case c(random_shape(seed), seed);
    for (const BlockedAlgorithm* a : blocked_algorithms()) {
      if (const char* why = a->refuses(c.s)) {
        ASSERT_GT(std::strlen(why), 10u);
        continue;
      }
      ++taken[a->name];
      EXPECT_GT(a->seconds(c.s, blocked_machine()), 0) << a->name << ", " << describe(c.s);
      std::vector<float> packed(static_cast<size_t>(a->packed_size(c.s)), kBeside);
      a->pack(c.s, c.w.data(), packed.data());
      const Case::Variant v = {(seed & 1) != 0, (seed & 2) != 0, (seed & 4) != 0};
      set_num_threads(1);
      const std::vector<float> got = c.run(*a, packed, v);
      check(c, *a, v, got);
      for (int threads : {2, 3}) {
        set_num_threads(threads);
        const std::vector<float> again = c.run(*a, packed, v);
        ASSERT_EQ(std::memcmp(got.data(), again.data(), got.size() * sizeof(float)), 0)
            << a->name << ", " << describe(c.s) << ": " << threads << " threads give other bits";
      }
      if (HasFatalFailure()) return;
    }
  }
  for (const BlockedAlgorithm* a : blocked_algorithms()) EXPECT_GE(taken[a->name], 4) << a->name;
}

TEST_P(BlockedAlgorithms, TheResidualMayBeTheOutput) {
  for (uint32_t seed : {0u, 1u, 2u, 4u, 8u, 12u}) {
    const Case c(random_shape(seed), seed);
    for (const BlockedAlgorithm* a : blocked_algorithms()) {
      if (a->refuses(c.s)) continue;
      std::vector<float> packed(static_cast<size_t>(a->packed_size(c.s)));
      a->pack(c.s, c.w.data(), packed.data());
      const Case::Variant v = {true, true, true};
      const std::vector<float> apart = c.run(*a, packed, v);
      std::vector<float> y = c.residual;
      const BlockedEpilogue e = {.bias = c.bias.data(), .residual = y.data(), .lower = 0, .upper = 1};
      a->run(c.s, a->plain_input ? c.plain.data() : c.x.data(), packed.data(), e, y.data());
      ASSERT_EQ(std::memcmp(y.data(), apart.data(), y.size() * sizeof(float)), 0) << a->name << ", " << describe(c.s);
    }
  }
}

TEST_P(BlockedAlgorithms, SumThousandsOfProducts) {
  for (int64_t size : {5, 15}) {  // tiles through lines, and in them
    BlockedShape s;
    s.in_channels = 32 * 16, s.out_channels = 40;
    s.in[0] = s.in[1] = s.out[0] = s.out[1] = size;
    s.kernel[0] = s.kernel[1] = 3, s.pad[0] = s.pad[1] = 1;
    if (size == 15) s.in_channels = 30 * 16, s.out[0] = 3;
    const Case c(s, 5);
    std::vector<float> packed(static_cast<size_t>(blocked_direct.packed_size(s)));
    blocked_direct.pack(s, c.w.data(), packed.data());
    for (int threads : {1, 3}) {
      set_num_threads(threads);
      const Case::Variant v = {true, true, true};
      const std::vector<float> apart = c.run(blocked_direct, packed, v);
      check(c, blocked_direct, v, apart);
      std::vector<float> y = c.residual;
      const BlockedEpilogue e = {.bias = c.bias.data(), .residual = y.data(), .lower = 0, .upper = 1};
      blocked_direct.run(s, c.x.data(), packed.data(), e, y.data());
      ASSERT_EQ(std::memcmp(y.data(), apart.data(), y.size() * sizeof(float)), 0) << size << ", " << threads;
    }
  }
}

TEST_P(BlockedAlgorithms, TakeNoPicturesAndNoPixels) {
  for (int what = 0; what < 3; ++what) {
    BlockedShape s;
    s.in_channels = s.out_channels = 32;
    s.kernel[0] = s.kernel[1] = 3;
    s.in[0] = s.in[1] = s.out[0] = s.out[1] = 8;
    s.pad[0] = s.pad[1] = 1;
    if (what == 0) s.batch = 0;
    if (what == 1) s.in[0] = s.out[0] = 0;
    if (what == 2) s.kernel[0] = s.kernel[1] = 1, s.pad[0] = s.pad[1] = 0, s.in[1] = s.out[1] = 0;
    for (const BlockedAlgorithm* a : blocked_algorithms()) {
      if (a->refuses(s)) continue;
      std::vector<float> w(32 * 32 * 9), packed(static_cast<size_t>(a->packed_size(s)));
      a->pack(s, w.data(), packed.data());
      for (int threads : {1, 3}) {
        set_num_threads(threads);
        EXPECT_GE(a->seconds(s, blocked_machine()), 0) << a->name;
        a->run(s, nullptr, packed.data(), {}, nullptr);
      }
    }
  }
}

}  // namespace
}  // namespace twibil::kernels
