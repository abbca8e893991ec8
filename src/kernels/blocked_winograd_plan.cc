// SPDX-License-Identifier: Apache-2.0
// What a Winograd convolution costs, by which it is cut up and chosen; the entries of the menu.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/blocked_winograd.h"

namespace twibil::kernels::winograd {
namespace {

// Fitted to 77 shapes with AVX-512 (benchmarks/RESULTS.md); the root of the mean square of what is left is 7 %.
constexpr double kProductShare = 0.95;  // of the multiply-add roof, in step 2
constexpr double kInputVector = 5,
                 kOutputVector = 12;  // steps 1 and 3: multiply-adds that a vector and point are worth
constexpr double kTaskSeconds = 3e-6, kForkSeconds = 3e-6;
constexpr double kCacheBandwidth = 100e9;          // of one core, from the cache that all share
constexpr double kSharedCache = double(16 << 20);  // that much of it survives until it is read again
constexpr double kFetched = 1.9;                   // weights come faster than others, as they are asked for in advance
constexpr double kFloats = sizeof(float);

double number(int64_t x) { return static_cast<double>(x); }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What all plans of a convolution have in common.
struct Cost {
  const BlockedShape& s;
  const FormSizes& f;
  const BlockedMachine& m;
  double points, weight_bytes;  // of all groups

  Cost(const BlockedShape& s, const FormSizes& f, const BlockedMachine& m, const Plan& p)
      : s(s),
        f(f),
        m(m),
        points(number(f.points())),
        weight_bytes(points * number(p.in_blocks * p.out_blocks * s.groups) * kChannelBlock * kChannelBlock * kFloats) {
  }

  double operator()(const Plan& p) const {
    const double threads = m.threads, flops = m.flops / threads;
    const double tasks = number(p.tile_blocks * p.out_parts * s.groups);
    const double tiles = number(ceil_div(p.tiles, p.tile_blocks));
    const double outs = std::min(number(2 * ceil_div(ceil_div(p.out_blocks, 2), p.out_parts)), number(p.out_blocks));
    const double in = number(p.in_blocks), block = number(kChannelBlock);

    const double products = tiles * points * in * outs * block * block / kProductShare;
    const double transforms = tiles * points * block * (kInputVector * in + kOutputVector * outs);
    const double work = 2 * (products + transforms) / flops + kTaskSeconds;

    // The weights of a part pass by once for each block of tiles, the tiles once for each pair of output blocks.
    const double part_bytes = points * in * outs * block * block * kFloats;
    const double tile_bytes = points * tiles * block * (in + 2) * kFloats;
    double cached = 0;
    if (part_bytes + tile_bytes > 0.8 * number(m.l2_bytes)) cached += part_bytes;
    if (tile_bytes > 0.7 * number(m.l2_bytes)) cached += tile_bytes * outs / 2;
    const double turns = std::ceil(tasks / threads);  // the last ones may find idle threads beside them
    const double fork = tasks > 1 && threads > 1 ? kForkSeconds : 0;
    const double busy = fork + turns * (work + cached / kCacheBandwidth);

    const double passes = weight_bytes > kSharedCache ? number(p.tile_blocks) : 1;
    const double pictures = number(s.batch) * block * kFloats *
                            (number(s.in[0] * s.in[1] * p.in_blocks) + number(s.out[0] * s.out[1] * p.out_blocks)) *
                            number(s.groups);
    const double streamed = passes * weight_bytes + (pictures > kSharedCache ? pictures : 0);
    // Memory and arithmetic overlap in part.
    constexpr double kPower = 1.5;
    return std::pow(std::pow(busy, kPower) + std::pow(streamed / (kFetched * m.bandwidth), kPower), 1 / kPower);
  }
};

}  // namespace

Plan make_plan(const BlockedShape& s, FormId form, const BlockedMachine& m) {
  const FormSizes& f = form_sizes(form);
  Plan p;
  p.tile_rows = ceil_div(s.out[0], f.m[0]);
  p.tile_columns = ceil_div(s.out[1], f.m[1]);
  p.tiles = s.batch * p.tile_rows * p.tile_columns;
  p.in_blocks = channel_blocks(s.in_channels / s.groups);
  p.out_blocks = channel_blocks(s.out_channels / s.groups);
  p.tile_blocks = p.out_parts = 1;
  p.seconds = 0;
  if (p.tiles == 0) return p;
  const Cost cost(s, f, m, p);
  Plan best = p;
  best.seconds = HUGE_VAL;
  const int64_t pairs = ceil_div(p.out_blocks, 2);
  for (const int64_t parts : {int64_t{1}, int64_t{2}, int64_t{4}, int64_t{8}, int64_t{m.threads}}) {
    if (parts > pairs || parts > m.threads) continue;
    p.out_parts = parts;
    for (const int64_t tiles : {7, 14, 28, 42, 56, 84, 112, 224}) {
      // As many blocks as keep all threads busy to the end.
      const int64_t even = m.threads / std::gcd(int64_t{m.threads}, parts * s.groups);
      p.tile_blocks = std::min(p.tiles, ceil_div(ceil_div(p.tiles, tiles), even) * even);
      p.seconds = cost(p);
      if (p.seconds < best.seconds) best = p;
      if (tiles >= p.tiles) break;
    }
  }
  return best;
}

const char* refuses(const BlockedShape& s, FormId form) {
  const FormSizes& f = form_sizes(form);
  for (int axis = 0; axis < 2; ++axis) {
    if (s.kernel[axis] != f.r[axis]) return "the kernel has another size than the one that it transforms";
    if (s.stride[axis] != 1) return "its tiles overlap by whole steps of one: no stride";
    if (s.dilation[axis] != 1 && s.kernel[axis] > 1) return "its tiles hold neighbours: no dilation";
  }
  if (s.groups > 1 && (s.in_channels / s.groups % kChannelBlock != 0 || s.out_channels / s.groups % kChannelBlock != 0))
    return "its groups are whole blocks of 16 channels";
  if (s.in_channels < kChannelBlock / 2) return "so few input channels are not worth a transform";
  return nullptr;
}

namespace {

template <FormId kForm> constexpr BlockedAlgorithm entry(const char* name) {
  return {
      .name = name,
      .exact = false,
      .plain_input = false,
      .refuses = [](const BlockedShape& s) { return refuses(s, kForm); },
      .seconds = [](const BlockedShape& s, const BlockedMachine& m) { return make_plan(s, kForm, m).seconds; },
      .packed_size = [](const BlockedShape& s) { return packed_size(s, kForm); },
      .pack = [](const BlockedShape& s, const float* w, float* packed) { pack(s, kForm, w, packed); },
      .run = [](const BlockedShape& s, const float* x, const float* packed, const BlockedEpilogue& e,
                float* y) { run(s, kForm, x, packed, e, y); },
  };
}

/// The form for a kernel of one row or one column.
FormId line_form(const BlockedShape& s) {
  if (s.kernel[0] == 1) return s.kernel[1] == 7 ? FormId::k1x2_1x7 : FormId::k1x4_1x3;
  return s.kernel[0] == 7 ? FormId::k2x1_7x1 : FormId::k4x1_3x1;
}

}  // namespace
}  // namespace twibil::kernels::winograd

namespace twibil::kernels {

using winograd::FormId;

constinit const BlockedAlgorithm blocked_winograd_4x4 = winograd::entry<FormId::k4x4_3x3>("winograd 4x4");
constinit const BlockedAlgorithm blocked_winograd_2x2 = winograd::entry<FormId::k2x2_3x3>("winograd 2x2");
constinit const BlockedAlgorithm blocked_winograd_5x5 = winograd::entry<FormId::k2x2_5x5>("winograd 2x2 of 5x5");
constinit const BlockedAlgorithm blocked_winograd_line{
    .name = "winograd of a line",
    .exact = false,
    .plain_input = false,
    .refuses = [](const BlockedShape& s) { return winograd::refuses(s, winograd::line_form(s)); },
    .seconds = [](const BlockedShape& s,
                  const BlockedMachine& m) { return winograd::make_plan(s, winograd::line_form(s), m).seconds; },
    .packed_size = [](const BlockedShape& s) { return winograd::packed_size(s, winograd::line_form(s)); },
    .pack = [](const BlockedShape& s, const float* w,
               float* packed) { winograd::pack(s, winograd::line_form(s), w, packed); },
    .run = [](const BlockedShape& s, const float* x, const float* packed, const BlockedEpilogue& e,
              float* y) { winograd::run(s, winograd::line_form(s), x, packed, e, y); },
};

}  // namespace twibil::kernels
