// SPDX-License-Identifier: Apache-2.0
// Speed of the other kernels on blocked channels: conversions, pooling, response normalisation in GB/s of what they
// read and write, beside copying as many bytes; first layers and depthwise convolutions in GFLOP/s.
//   bench_blocked_other [word in the case's name]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "kernels/blocked.h"
#include "kernels/blocked_convert.h"
#include "kernels/blocked_pool.h"
#include "kernels/lrn.h"

using namespace twibil;
using namespace twibil::kernels;

namespace {

/// The clock of this thread stands still while another program has the core.
double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The best time of short batches for a third of a second.
double best_seconds(const std::function<void()>& run) {
  run();
  double start = now();
  run();
  const int repeats = std::max(1, static_cast<int>(200e-6 / std::max(now() - start, 1e-9)));
  double best = 1e9;
  for (const double stop = now() + 0.3; now() < stop;) {
    start = now();
    for (int i = 0; i < repeats; ++i) run();
    best = std::min(best, (now() - start) / repeats);
  }
  return best;
}

/// Aligned as the library's arrays are.
struct Floats {
  explicit Floats(int64_t n) : memory(static_cast<size_t>(n) + 16), size(n) {
    data = memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) / 4 % 16) % 16;
    for (int64_t i = 0; i < n; ++i) data[i] = static_cast<float>(i * 2654435761 % 1024) / 512 - 1;
  }
  std::vector<float> memory;
  int64_t size;
  float* data;
};

const char* wanted = "";
bool skipped(const std::string& name) { return name.find(wanted) == std::string::npos; }

void report_bytes(const std::string& name, int64_t in, int64_t out,
                  const std::function<void(const float*, float*)>& run) {
  if (skipped(name)) return;
  Floats x(in), y(out), copy(in);
  const double bytes = 4 * static_cast<double>(in + out);
  const double copying = best_seconds([&] { std::memcpy(copy.data, x.data, static_cast<size_t>(in) * 4); });
  const double seconds = best_seconds([&] { run(x.data, y.data); });
  const double rate = bytes / seconds / 1e9, roof = 8 * static_cast<double>(in) / copying / 1e9;
  std::printf("%-32s %8.1f us %7.1f GB/s, copying %7.1f GB/s: %3.0f %%\n", name.c_str(), seconds * 1e6, rate, roof,
              100 * rate / roof);
}

void report_convolution(const std::string& name, const BlockedAlgorithm& a, const BlockedShape& s) {
  if (skipped(name)) return;
  const int64_t in = s.batch * channel_blocks(s.in_channels) * kChannelBlock * s.in[0] * s.in[1];
  const int64_t lanes = channel_blocks(s.out_channels) * kChannelBlock, out = s.batch * lanes * s.out[0] * s.out[1];
  const int64_t taps = s.in_channels / s.groups * s.kernel[0] * s.kernel[1];
  Floats x(in), y(out), w(s.out_channels * taps), packed(a.packed_size(s)), bias(lanes);
  a.pack(s, w.data, packed.data);
  const BlockedEpilogue e{.bias = bias.data, .lower = 0};
  const double seconds = best_seconds([&] { a.run(s, x.data, packed.data, e, y.data); });
  const double flops = 2.0 * static_cast<double>(s.batch * s.out_channels * s.out[0] * s.out[1] * taps);
  std::printf("%-32s %8.1f us %7.1f GFLOP/s\n", name.c_str(), seconds * 1e6, flops / seconds / 1e9);
}

BlockedShape convolution(int64_t batch, int64_t in, int64_t out, int64_t groups, int64_t size, int64_t kernel,
                         int64_t stride, int64_t pad) {
  BlockedShape s{.batch = batch, .in_channels = in, .out_channels = out, .groups = groups};
  for (int a = 0; a < 2; ++a) {
    s.in[a] = size, s.kernel[a] = kernel, s.stride[a] = stride, s.pad[a] = pad;
    s.out[a] = (size + 2 * pad - kernel) / stride + 1;
  }
  return s;
}

void pooling(const std::string& name, PoolKind kind, int64_t planes, int64_t size, int64_t kernel, int64_t stride,
             int64_t pad) {
  const int64_t out = (size + 2 * pad - kernel) / stride + 1;
  const int64_t in2[] = {size, size}, out2[] = {out, out}, kernel2[] = {kernel, kernel}, stride2[] = {stride, stride};
  const int64_t pad2[] = {pad, pad};
  const PoolShape s = pool_shape(planes, in2, out2, kernel2, stride2, pad2);
  report_bytes(name, planes * size * size * kChannelBlock, planes * out * out * kChannelBlock,
               [&](const float* x, float* y) { blocked_pool(kind, s, x, y); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  set_num_threads(1);
  struct Picture {
    int64_t batch, channels, pixels;
  };
  for (auto [n, c, p] : {Picture{1, 64, 3136}, {1, 2048, 49}, {8, 64, 3136}, {1, 64, 50176}, {8, 64, 50176}}) {
    const std::string name = std::to_string(n) + " x " + std::to_string(c) + " x " + std::to_string(p);
    const Picture t{n, c, p};
    report_bytes("to blocks " + name, n * c * p, n * c * p,
                 [t](const float* x, float* y) { to_blocked(t.batch, t.channels, t.pixels, x, y); });
    report_bytes("from blocks " + name, n * c * p, n * c * p,
                 [t](const float* x, float* y) { from_blocked(t.batch, t.channels, t.pixels, x, y); });
  }
  pooling("max 3x3/2 64@112", PoolKind::max, 4, 112, 3, 2, 1);
  pooling("max 2x2/2 64@224", PoolKind::max, 4, 224, 2, 2, 0);
  pooling("max 3x3/1 192@28", PoolKind::max, 12, 28, 3, 1, 1);
  pooling("average 3x3/1 192@28", PoolKind::average, 12, 28, 3, 1, 1);
  pooling("global average 2048@7", PoolKind::average, 128, 7, 7, 1, 0);
  pooling("max 3x3/2 64@112, batch 8", PoolKind::max, 32, 112, 3, 2, 1);
  const LrnShape lrn_shape{1, 96, 27 * 27, 5, 1e-4, 0.75, 2};
  const int64_t lrn_size = lrn_shape.channels * lrn_shape.pixels;
  report_bytes("lrn of 5, 96@27", lrn_size, lrn_size,
               [&](const float* x, float* y) { lrn(DType::float32, lrn_shape, x, y); });
  report_bytes("lrn of 5, 96@27, blocks", lrn_size, lrn_size,
               [&](const float* x, float* y) { blocked_lrn(lrn_shape, x, y); });
  report_convolution("first 7x7/2 3->64@224", blocked_first, convolution(1, 3, 64, 1, 224, 7, 2, 3));
  report_convolution("first 7x7/2 3->64@224, batch 8", blocked_first, convolution(8, 3, 64, 1, 224, 7, 2, 3));
  report_convolution("first 11x11/4 3->96@227", blocked_first, convolution(1, 3, 96, 1, 227, 11, 4, 0));
  report_convolution("first 3x3/1 3->64@224", blocked_first, convolution(1, 3, 64, 1, 224, 3, 1, 1));
  report_convolution("first 3x3/2 3->32@299", blocked_first, convolution(1, 3, 32, 1, 299, 3, 2, 0));
  report_convolution("depthwise 3x3/1 32@112", blocked_depthwise, convolution(1, 32, 32, 32, 112, 3, 1, 1));
  report_convolution("depthwise 3x3/2 64@112", blocked_depthwise, convolution(1, 64, 64, 64, 112, 3, 2, 1));
  report_convolution("depthwise 3x3/1 512@14", blocked_depthwise, convolution(1, 512, 512, 512, 14, 3, 1, 1));
  report_convolution("depthwise 3x3/1 1024@7", blocked_depthwise, convolution(1, 1024, 1024, 1024, 7, 3, 1, 1));
  report_convolution("depthwise 5x5/1 480@14", blocked_depthwise, convolution(1, 480, 480, 480, 14, 5, 1, 2));
  report_convolution("depthwise 7x7/1 384@14", blocked_depthwise, convolution(1, 384, 384, 384, 14, 7, 1, 3));
  return 0;
}
