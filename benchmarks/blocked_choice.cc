// SPDX-License-Identifier: Apache-2.0
// How well predicted seconds choose among the convolutions on blocked channels: over a grid of shapes every algorithm
// runs with weights that lie in memory, as in a network, and the choice is compared with the fastest.
//   bench_blocked_choice [kernel height] [kernel width] [batch, 0 for 1, 8 and 32] [threads]
#include "kernels/blocked_choice.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "kernels/blocked.h"
#include "kernels/isa.h"
#include "roof.h"

using namespace twibil;
using namespace twibil::bench;
using namespace twibil::kernels;

namespace {

constexpr int64_t kCold = int64_t{16} << 20;     // floats of weights between two uses of the same
constexpr int64_t kLargest = int64_t{32} << 20;  // floats of a layer's input or output
constexpr double kMostFlops = 8e9, kSeconds = 0.03;

float* aligned(std::vector<float>& v) {
  return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64);
}

struct Sums {
  int shapes = 0, right = 0;
  double lost = 0, worst = 0, ratio = 0, ratio_squared = 0;  // ratio: logarithms of predicted / measured
  int predictions = 0;
};

/// The best time of one algorithm; copies of the weights take turns.
double measure(const BlockedAlgorithm& a, const BlockedShape& s, std::vector<float>& weights, std::vector<float>& x,
               std::vector<float>& y) {
  const int64_t size = a.packed_size(s), copies = kCold / size + 1;
  weights.resize(static_cast<size_t>(std::max<int64_t>(static_cast<int64_t>(weights.size()), copies * size + 16)),
                 0.01F);
  BlockedEpilogue e;
  e.lower = 0;
  double best = 1e9;
  const double begin = now();
  for (int64_t i = 0; i < 3 || now() - begin < kSeconds; ++i) {
    const double start = now();
    a.run(s, aligned(x), aligned(weights) + i % copies * size, e, aligned(y));
    const double seconds = now() - start;
    if (seconds > 0) best = std::min(best, seconds);  // a clock may stand still
  }
  return best;
}

void try_shape(const BlockedShape& s, const BlockedMachine& machine, std::vector<float>& weights, std::vector<float>& x,
               std::vector<float>& y, Sums& sums) {
  std::printf("%ldx%ld %4ld x %4ld -> %4ld @%3ld:", s.kernel[0], s.kernel[1], s.batch, s.in_channels, s.out_channels,
              s.in[0]);
  double best = 1e9, chosen = 1e9, least = 1e9;
  for (const BlockedAlgorithm* a : blocked_algorithms()) {
    if (a->refuses(s) || a->plain_input || a == &blocked_reference) continue;
    const double seconds = measure(*a, s, weights, x, y), predicted = a->seconds(s, machine);
    std::printf("  %s %.0f us (%.0f)", a->name, seconds * 1e6, predicted * 1e6);
    if (predicted < least) least = predicted, chosen = seconds;
    best = std::min(best, seconds);
    const double ratio = std::log(predicted / seconds);
    sums.ratio += ratio, sums.ratio_squared += ratio * ratio;
    ++sums.predictions;
  }
  const double flops = 2.0 * static_cast<double>(s.batch * s.in_channels * s.out_channels * s.out[0] * s.out[1] *
                                                 s.kernel[0] * s.kernel[1]);
  std::printf("  %.2f x roof, lost %.0f %%\n", flops / best / 1e9 / roof(), 100 * (chosen / best - 1));
  std::fflush(stdout);
  ++sums.shapes;
  sums.right += chosen == best;
  sums.lost += chosen / best - 1;
  sums.worst = std::max(sums.worst, chosen / best - 1);
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  BlockedShape s;
  s.kernel[0] = argument(1, 3), s.kernel[1] = argument(2, 3);
  threads = argument(4, 1);
  set_num_threads(threads);
  BlockedMachine machine = blocked_machine();
  machine.bandwidth *= static_cast<double>(threads) / machine.threads;
  machine.flops *= static_cast<double>(threads) / machine.threads;
  machine.threads = threads;
  const auto room = static_cast<size_t>(kLargest + 16);
  std::vector<float> x(room), y(room), weights;
  Sums sums;
  constexpr int64_t kChannels[][2] = {{32, 32}, {64, 64}, {64, 192}, {128, 128}, {256, 256}, {192, 384}, {512, 512}};
  for (const int64_t batch : {1, 8, 32}) {
    if (argument(3, 0) && batch != argument(3, 0)) continue;
    for (const int64_t size : {7, 14, 28, 56, 112}) {
      for (const auto& [in, out] : kChannels) {
        s.batch = batch, s.in_channels = in, s.out_channels = out;
        for (int axis = 0; axis < 2; ++axis) s.in[axis] = s.out[axis] = size, s.pad[axis] = s.kernel[axis] / 2;
        const int64_t most = batch * size * size * std::max(in, out);
        const double flops = 2.0 * static_cast<double>(batch * size * size * in * out * s.kernel[0] * s.kernel[1]);
        if (most <= kLargest && flops <= kMostFlops) try_shape(s, machine, weights, x, y, sums);
      }
    }
  }
  const double mean = sums.ratio / sums.predictions;
  std::printf(
      "%s, %d thread(s): the fastest of %d shapes was chosen %d times; lost %.1f %% on average, %.0f %% at most; "
      "predictions are %.2f of the time, and vary by a factor of %.2f\n",
      std::string(name_of(isa())).c_str(), threads, sums.shapes, sums.right, 100 * sums.lost / sums.shapes,
      100 * sums.worst, std::exp(mean), std::exp(std::sqrt(sums.ratio_squared / sums.predictions - mean * mean)));
}
