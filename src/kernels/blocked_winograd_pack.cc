// SPDX-License-Identifier: Apache-2.0
// The weights' transform G0 w G1^T, in double and once per network.
#include <algorithm>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/blocked_winograd.h"
#include "kernels/winograd_matrices.h"

namespace twibil::kernels::winograd {
namespace {

constexpr int64_t kLongest = 9, kMostTaps = 7;  // n and r of any form

using Lanes = double[kChannelBlock];

/// One input channel's weights to one block of output channels; `point_step` lies between the transformed values.
template <class F0, class F1>
void transform_weights(const Lanes (&w)[kMostTaps][kMostTaps], int64_t point_step, float* u) {
  static constexpr auto g0 = in_double(F0::matrices.weight);
  static constexpr auto g1 = in_double(F1::matrices.weight);
  Lanes columns[F0::n][F1::r] = {};
  for (size_t i = 0; i < F0::n; ++i) {
    for (size_t q = 0; q < F1::r; ++q) {
      for (size_t t = 0; t < F0::r; ++t) {
        for (int64_t o = 0; o < kChannelBlock; ++o) columns[i][q][o] += g0[i][t] * w[t][q][o];
      }
    }
  }
  for (size_t i = 0; i < F0::n; ++i) {
    for (size_t q = 0; q < F1::n; ++q, u += point_step) {
      Lanes sum = {};
      for (size_t t = 0; t < F1::r; ++t) {
        for (int64_t o = 0; o < kChannelBlock; ++o) sum[o] += g1[q][t] * columns[i][t][o];
      }
      for (int64_t o = 0; o < kChannelBlock; ++o) u[o] = static_cast<float>(sum[o]);
    }
  }
}

struct PackForm {
  FormSizes sizes;
  void (*transform)(const Lanes (&w)[kMostTaps][kMostTaps], int64_t point_step, float* u);
};
template <class F0, class F1> constexpr PackForm make_form() {
  static_assert(F0::n <= kLongest && F1::n <= kLongest && F0::r <= kMostTaps && F1::r <= kMostTaps);
  return {{{F0::m, F1::m}, {F0::r, F1::r}}, transform_weights<F0, F1>};
}

using One = Form<1, 1>;
constexpr PackForm kForms[] = {
    make_form<Form<4, 3>, Form<4, 3>>(), make_form<Form<2, 3>, Form<2, 3>>(), make_form<Form<2, 5>, Form<2, 5>>(),
    make_form<One, Form<4, 3>>(),        make_form<Form<4, 3>, One>(),        make_form<One, Form<2, 7>>(),
    make_form<Form<2, 7>, One>(),
};
static_assert(std::size(kForms) == static_cast<size_t>(FormId::kCount));

}  // namespace

const FormSizes& form_sizes(FormId form) { return kForms[static_cast<size_t>(form)].sizes; }

int64_t packed_size(const BlockedShape& s, FormId form) {
  const int64_t in = channel_blocks(s.in_channels / s.groups), out = channel_blocks(s.out_channels / s.groups);
  return checked_mul(checked_mul(checked_mul(in, out), s.groups),
                     form_sizes(form).points() * kChannelBlock * kChannelBlock);
}

void pack(const BlockedShape& s, FormId form, const float* w, float* packed) {
  const FormSizes& f = form_sizes(form);
  const int64_t channels = s.in_channels / s.groups, outs = s.out_channels / s.groups;
  const int64_t in_blocks = channel_blocks(channels), out_blocks = channel_blocks(outs);
  const int64_t taps = f.r[0] * f.r[1], block = kChannelBlock * kChannelBlock;
  parallel_for(s.groups * out_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / out_blocks, o = i % out_blocks, pair = o / 2 * 2;
      const int64_t columns = std::min<int64_t>(2, out_blocks - pair),
                    existing = std::min(kChannelBlock, outs - o * kChannelBlock);
      float* u = packed + (group * out_blocks + pair) * f.points() * in_blocks * block + (o - pair) * in_blocks * block;
      for (int64_t c = 0; c < in_blocks * kChannelBlock; ++c, u += kChannelBlock) {
        Lanes taken[kMostTaps][kMostTaps] = {};
        for (int64_t lane = 0; lane < existing && c < channels; ++lane) {
          const float* from = w + ((group * outs + o * kChannelBlock + lane) * channels + c) * taps;
          for (int64_t t = 0; t < taps; ++t) taken[t / f.r[1]][t % f.r[1]][lane] = static_cast<double>(from[t]);
        }
        kForms[static_cast<size_t>(form)].transform(taken, columns * in_blocks * block, u);
      }
    }
  });
}

}  // namespace twibil::kernels::winograd
