// SPDX-License-Identifier: Apache-2.0
// Speed of the matrix kernels, in GFLOP/s and as a share of this processor's multiply-add roof, which is measured
// between the cases because machines change their clock.
//   bench_matrix_kernels [word in the case's name] [threads]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "kernels/convolution.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"
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

void matmul_case(int64_t m, int64_t n, int64_t k, bool b_transposed = false) {
  const auto a = values(m * k), b = values(k * n);
  std::vector<float> c(static_cast<size_t>(m * n));
  const MatmulShape shape = row_major(m, n, k, false, b_transposed);
  const std::string name = "matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                           (b_transposed ? " B transposed" : "");
  report(name, 2.0 * static_cast<double>(m * n * k),
         [&] { matmul(DType::float32, shape, a.data(), b.data(), c.data()); });
}

void convolution_case(int64_t batch, int64_t c, int64_t o, int64_t size, int64_t kernel = 3, int64_t stride = 1,
                      int64_t groups = 1) {
  const int64_t in[] = {size, size}, k[] = {kernel, kernel}, strides[] = {stride, stride}, one[] = {1, 1};
  const int64_t pad[] = {kernel / 2, kernel / 2};
  const ConvolutionShape s = convolution_shape(batch, c, o, groups, in, k, strides, one, pad);
  const auto x = values(batch * c * size * size), w = values(o * c / groups * kernel * kernel);
  const auto dy = values(batch * o * s.out[1] * s.out[2]);
  std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
  const double flops = 2.0 * static_cast<double>(batch * o * (c / groups) * kernel * kernel * s.out[1] * s.out[2]);
  const std::string name = " " + std::to_string(batch) + "x" + std::to_string(c) + "->" + std::to_string(o) + " @" +
                           std::to_string(size) + " k" + std::to_string(kernel) +
                           (stride > 1 ? " s" + std::to_string(stride) : "") +
                           (groups > 1 ? " g" + std::to_string(groups) : "");
  report("forward" + name, flops,
         [&] { convolution_forward(DType::float32, s, x.data(), w.data(), nullptr, y.data()); });
  report("dx     " + name, flops,
         [&] { convolution_backward_data(DType::float32, s, dy.data(), w.data(), nullptr, dx.data()); });
  if (kernel == 3 && stride == 1) {
    ConvolutionShape direct = s;
    direct.algorithm = ConvolutionAlgorithm::direct;
    report("forward, direct" + name, flops,
           [&] { convolution_forward(DType::float32, direct, x.data(), w.data(), nullptr, y.data()); });
  }
  report("dw     " + name, flops,
         [&] { convolution_backward_weights(DType::float32, s, x.data(), dy.data(), dw.data()); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  if (argc > 2) threads = std::atoi(argv[2]);
  set_num_threads(threads);
  std::printf("%s, %d thread(s)\n", std::string(name_of(isa())).c_str(), threads);
  matmul_case(4, 8, 8);
  matmul_case(8, 8, 8);
  matmul_case(16, 16, 16);
  matmul_case(32, 32, 32);
  for (int64_t n : {64, 128, 256, 512, 1024}) matmul_case(n, n, n);
  for (int64_t n : {64, 128, 512}) matmul_case(n, n, n, true);
  matmul_case(1, 4096, 4096);
  matmul_case(1, 4096, 4096, true);
  matmul_case(32, 4096, 1024, true);
  // TinySSD at 256 x 256
  convolution_case(2, 3, 16, 256);
  convolution_case(2, 16, 16, 256);
  convolution_case(2, 16, 32, 128);
  convolution_case(2, 32, 32, 128);
  convolution_case(2, 32, 64, 64);
  convolution_case(2, 64, 64, 64);
  convolution_case(4, 64, 128, 32);
  convolution_case(4, 64, 8, 32);
  convolution_case(4, 64, 16, 32);
  convolution_case(8, 128, 128, 16);
  convolution_case(8, 128, 128, 8);
  convolution_case(8, 128, 16, 4);
  // ResNet-50 and MobileNet
  convolution_case(1, 3, 64, 224, 7, 2);
  convolution_case(1, 64, 64, 56);
  convolution_case(1, 64, 256, 56, 1);
  convolution_case(1, 256, 128, 56, 1, 2);
  convolution_case(1, 128, 128, 56, 3, 2);
  convolution_case(4, 512, 512, 7);
  convolution_case(1, 64, 64, 112, 3, 1, 64);
}
