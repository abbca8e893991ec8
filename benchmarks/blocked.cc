// SPDX-License-Identifier: Apache-2.0
// Speed of the convolutions on blocked channels: every algorithm of the menu that takes a layer, in GFLOP/s of the
// direct sum and as a share of the multiply-add roof, what it predicts, and the convolution on (batch, channels,
// height, width).
//   bench_blocked [word in the case's name] [threads]
#include "kernels/blocked.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/blocked_choice.h"
#include "kernels/blocked_tile.h"
#include "kernels/convolution.h"
#include "kernels/isa.h"
#include "roof.h"

using namespace twibil;
using namespace twibil::bench;
using namespace twibil::kernels;

namespace {

std::vector<float> values(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i * 2654435761u % 1000) / 500 - 1;
  return v;
}

float* aligned(std::vector<float>& v) {
  return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64);
}

/// The tile alone: rows x depth times depth x columns, from the first cache or (many columns) the second.
void tile_case(const char* where, int64_t rows, int64_t depth, int64_t columns) {
  auto a = values(rows * depth + 16), b = values(columns * depth * kChannelBlock + 16);
  auto c = values(rows * columns * kChannelBlock + 16);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < depth / kChannelBlock; ++i) offsets.push_back(i * rows * kChannelBlock);
  BlockedTile t{};
  t.a_offsets = offsets.data();
  t.blocks = depth / kChannelBlock;
  t.b_column_step = depth * kChannelBlock;
  t.c_column_step = rows * kChannelBlock;
  t.a = aligned(a), t.rows = rows, t.columns = kTileMaxColumns;
  report(text("tile, ", where, " ", rows, "x", depth, "x", columns * kChannelBlock),
         2.0 * static_cast<double>(rows * depth * columns * kChannelBlock), [&] {
           for (int64_t j = 0; j < columns; j += kTileMaxColumns) {
             t.b = aligned(b) + j * t.b_column_step, t.c = aligned(c) + j * t.c_column_step;
             blocked_tiles().run(t);
           }
         });
}

struct Layer {
  int64_t in_channels, out_channels, size, kernel = 1, stride = 1, groups = 1, dilation = 1;
  int64_t kernel_width = 0;  // 0: square
};

void layer_case(int64_t batch, const Layer& l) {
  BlockedShape s;
  s.batch = batch, s.in_channels = l.in_channels, s.out_channels = l.out_channels, s.groups = l.groups;
  for (int axis = 0; axis < 2; ++axis) {
    s.kernel[axis] = axis == 1 && l.kernel_width ? l.kernel_width : l.kernel;
    s.stride[axis] = l.stride, s.dilation[axis] = l.dilation, s.in[axis] = l.size;
    s.pad[axis] = (s.kernel[axis] - 1) * l.dilation / 2;
    s.out[axis] = (l.size + 2 * s.pad[axis] - (s.kernel[axis] - 1) * l.dilation - 1) / l.stride + 1;
  }
  const int64_t in = l.size * l.size, out = s.out[0] * s.out[1], taps = s.kernel[0] * s.kernel[1];
  const int64_t depth = l.in_channels / l.groups * taps;
  const double flops = 2.0 * static_cast<double>(batch * l.out_channels * out * depth);
  const std::string name =
      text(batch, "x", l.in_channels, "->", l.out_channels, " @", l.size, " k", s.kernel[0],
           l.kernel_width ? text("x", l.kernel_width) : "", l.stride > 1 ? text(" s", l.stride) : "",
           l.groups > 1 ? text(" g", l.groups) : "", l.dilation > 1 ? text(" d", l.dilation) : "", " ");
  const auto w = values(l.out_channels * depth);
  auto x = values(channel_blocks(l.in_channels) * batch * in * kChannelBlock + 16);
  auto y = values(channel_blocks(l.out_channels) * batch * out * kChannelBlock + 16);
  for (const BlockedAlgorithm* algorithm : blocked_algorithms()) {
    if (algorithm->refuses(s) || algorithm == &blocked_reference) continue;
    // Weights of a megabyte and more once near, and once where a network of many layers leaves them: in memory.
    const int64_t size = algorithm->packed_size(s);
    const int64_t copies = batch == 1 && size > (1 << 18) ? (int64_t{16} << 20) / size + 2 : 1;
    std::vector<float> packed(static_cast<size_t>(copies * size + 16));
    for (int64_t i = 0; i < copies; ++i) algorithm->pack(s, w.data(), aligned(packed) + i * size);
    BlockedMachine machine = blocked_machine();
    machine.flops = roof() * 1e9;
    report(text(name, algorithm->name, text(" (", std::lround(algorithm->seconds(s, machine) * 1e6), " us)")), flops,
           [&] { algorithm->run(s, aligned(x), aligned(packed), {}, aligned(y)); });
    int64_t turn = 0;
    if (copies == 1) continue;
    report(text(name, algorithm->name, ", weights in memory"), flops, [&] {
      algorithm->run(s, aligned(x), aligned(packed) + turn * size, {}, aligned(y));
      turn = (turn + 1) % copies;
    });
  }
  const std::string plain = name + "NCHW";
  if (l.groups > 1) return;
  ConvolutionShape c =
      convolution_shape(batch, l.in_channels, l.out_channels, l.groups, s.in, s.kernel, s.stride, s.dilation, s.pad);
  c.algorithm = ConvolutionAlgorithm::direct;
  report(plain, flops, [&] { convolution_forward(DType::float32, c, x.data(), w.data(), nullptr, y.data()); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  if (argc > 2) threads = std::atoi(argv[2]);
  set_num_threads(threads);
  std::printf("%s, %d thread(s), roof %.0f GFLOP/s\n", std::string(name_of(isa())).c_str(), threads, roof());
  const int64_t rows = blocked_tiles().max_rows;
  tile_case("L1", rows, 128, 2);
  tile_case("L2", rows, 256, 32);
  tile_case("L2", 49, 256, 32);
  constexpr Layer kLayers[] = {
      // ResNet-50
      {64, 64, 56},
      {64, 64, 56, 3},
      {64, 256, 56},
      {256, 64, 56},
      {256, 128, 56},
      {128, 128, 56, 3, 2},
      {256, 512, 56, 1, 2},
      {128, 512, 28},
      {512, 128, 28},
      {128, 128, 28, 3},
      {512, 256, 28},
      {256, 256, 28, 3, 2},
      {512, 1024, 28, 1, 2},
      {256, 1024, 14},
      {1024, 256, 14},
      {256, 256, 14, 3},
      {512, 512, 14, 3, 2},
      {1024, 2048, 14, 1, 2},
      {512, 2048, 7},
      {2048, 512, 7},
      {512, 512, 7, 3},
      // VGG-16, AlexNet, Inception-v3 and others
      {64, 64, 224, 3},
      {128, 128, 112, 3},
      {256, 256, 56, 3},
      {512, 512, 28, 3},
      {192, 384, 13, 3},
      {64, 192, 27, 5},
      {192, 192, 17, 1, 1, 1, 1, 7},
      {448, 384, 8, 3},
      {48, 64, 35, 5},
      {288, 384, 35, 3, 2},
      {256, 256, 28, 3, 1, 1, 2},
      {256, 256, 28, 3, 1, 32},
      {24, 40, 31, 3},
  };
  for (const Layer& layer : kLayers) {
    for (int64_t batch : {1, 8}) layer_case(batch, layer);
  }
}
