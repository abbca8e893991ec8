// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocked_choice.h"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "kernels/blocked_tuning.h"
#include "kernels/isa.h"

namespace twibil::kernels {

static constexpr const BlockedAlgorithm* kMenu[] = {
    // clang-format off
    &blocked_direct,
    &blocked_depthwise,
    &blocked_first,
    &blocked_winograd_2x2,
    &blocked_winograd_4x4,
    &blocked_winograd_5x5,
    &blocked_winograd_line,
    &blocked_reference,
    // clang-format on
};

std::span<const BlockedAlgorithm* const> blocked_algorithms() { return kMenu; }

const BlockedMachine& blocked_machine() {
  static const BlockedMachine machine = [] {
    int64_t processors = std::max<int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
    int64_t l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    // Two multiply-adds of a vector a cycle at 3 GHz, and what one memory channel or two give a core.
    double flops = 2.0 * 2 * static_cast<double>(vector_bytes()) / 4 * 3e9;
    return BlockedMachine{.flops = flops * static_cast<double>(processors),
                          .bandwidth = std::min(15e9 * static_cast<double>(processors), 150e9),
                          .threads = static_cast<int>(processors),
                          .l2_bytes = l2 > 0 ? l2 : int64_t{1} << 20};
  }();
  return machine;
}

const BlockedAlgorithm& blocked_algorithm(std::string_view name) {
  for (const BlockedAlgorithm* a : kMenu)
    if (a->name == name) return *a;
  throw_error(ErrorKind::value, text("there is no convolution algorithm ", name));
}

/// Measures the promising ones: a prediction is seldom wrong by more than three.
static void measure(std::vector<BlockedVerdict>& all, const BlockedShape& s) {
  double best = std::numeric_limits<double>::infinity();
  for (const BlockedVerdict& v : all)
    if (v.refusal.empty()) best = std::min(best, v.seconds);
  for (BlockedVerdict& v : all)
    if (v.refusal.empty() && v.seconds <= 3 * best) {
      v.seconds = BlockedTuning::instance().seconds(*v.algorithm, s);
      v.measured = true;
    }
  BlockedTuning::instance().save();
}

std::vector<BlockedVerdict> judge_blocked(const BlockedShape& s, const BlockedRules& rules) {
  std::vector<BlockedVerdict> all;
  for (const BlockedAlgorithm* a : kMenu) {
    BlockedVerdict v{a, "", 0, false};
    if (const char* why = a->refuses(s)) v.refusal = why;
    else if (rules.exact && !a->exact) v.refusal = "exact results were asked for, and it adds transformed products";
    else v.seconds = a->seconds(s, blocked_machine());
    all.push_back(std::move(v));
  }
  if (rules.autotune) measure(all, s);
  return all;
}

BlockedChoice choose_blocked(const BlockedShape& s, const BlockedRules& rules) {
  BlockedChoice best{&blocked_reference, std::numeric_limits<double>::infinity(), false};
  for (const BlockedVerdict& v : judge_blocked(s, rules)) {
    if (!v.refusal.empty() || (best.measured && !v.measured)) continue;
    if (v.seconds < best.seconds || (v.measured && !best.measured)) best = {v.algorithm, v.seconds, v.measured};
  }
  return best;
}

}  // namespace twibil::kernels
