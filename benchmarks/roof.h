// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder that time kernels share: the multiply-add roof of this processor, measured between
// the cases because machines change their clock, and a report of a case as a share of it.
#pragma once
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "kernels/isa.h"

namespace twibil::bench {

inline int threads = 1;

/// One thread is timed by its own clock, which stands still while another program has the core.
inline double now() {
  timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Twelve independent sums; the empty asm keeps each in its register.
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define START(i) Vec a##i = Vec{} + float(i + 1);
#define STEP(i)        \
  a##i = a##i * x + y; \
  asm volatile("" : "+v"(a##i));
#define SUM(i) s += a##i;
#define ROOF(name, bytes, ...)                                \
  __VA_ARGS__ inline float name(int64_t steps) {              \
    typedef float Vec __attribute__((vector_size(bytes)));    \
    EACH(START)                                               \
    Vec x = Vec{} + 1.0000001f, y = Vec{} + 1e-9f, s = Vec{}; \
    for (int64_t i = 0; i < steps; ++i) {                     \
      EACH(STEP)                                              \
    }                                                         \
    EACH(SUM)                                                 \
    return s[0];                                              \
  }
#if defined(__x86_64__)
ROOF(roof_avx512, 64, __attribute__((target("avx512f"))))
ROOF(roof_avx2, 32, __attribute__((target("avx2,fma"))))
#endif
ROOF(roof_baseline, 16)

inline volatile float sink;

inline double roof() {
  float (*run)(int64_t) = roof_baseline;
#if defined(__x86_64__)
  if (kernels::isa() == kernels::Isa::avx512) run = roof_avx512;
  if (kernels::isa() == kernels::Isa::avx2) run = roof_avx2;
#endif
  const int64_t steps = 100'000;
  double best = 1e9;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const double start = now();
    parallel_for(threads, 1, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) sink = run(steps);
    });
    best = std::min(best, now() - start);
  }
  return threads * static_cast<double>(steps) * 12 * (kernels::vector_bytes() / 4) * 2 / best / 1e9;
}

inline const char* wanted = "";  // a word in the name of the cases to run

/// The best time of several bursts, and the median share of the roof as it was just before and after each burst.
inline void report(const std::string& name, double flops, const std::function<void()>& run) {
  if (name.find(wanted) == std::string::npos) return;
  run();
  double start = now();
  run();
  const int burst = std::max(1, static_cast<int>(0.003 / std::max(1e-9, now() - start)));
  double best = 1e9;
  std::vector<double> shares;
  double before = roof();
  for (int round = 0; round < 15; ++round) {
    start = now();
    for (int i = 0; i < burst; ++i) run();
    const double seconds = (now() - start) / burst, after = roof();
    best = std::min(best, seconds);
    shares.push_back(flops / seconds / 1e9 / ((before + after) / 2));
    before = after;
  }
  std::sort(shares.begin(), shares.end());
  std::printf("%-44s %10.2f us %8.1f GFLOP/s  median %3.0f %% of the roof\n", name.c_str(), best * 1e6,
              flops / best / 1e9, 100 * shares[shares.size() / 2]);
  std::fflush(stdout);
}

#undef EACH
#undef START
#undef STEP
#undef SUM
#undef ROOF

}  // namespace twibil::bench
