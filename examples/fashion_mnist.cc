// SPDX-License-Identifier: Apache-2.0
// Trains LeNet on Fashion-MNIST (the IDX files of Debian's dataset-fashion-mnist, or a folder given as argument).
#include <cstdio>
#include <string>

#include "twibil/io.h"
#include "twibil/nn.h"
#include "twibil/ops.h"

using namespace twibil;

struct Samples {
  Array pictures, labels;  // (n, 1, 28, 28) in [0, 1], and (n,)
};

static Samples load(const std::string& folder, const std::string& part) {
  io::IdxArray x = io::read_idx(folder + "/" + part + "-images-idx3-ubyte.gz"),
               y = io::read_idx(folder + "/" + part + "-labels-idx1-ubyte.gz");
  int64_t n = x.shape[0];
  return {Array::from(x.data.data(), Shape{n, 1, x.shape[1], x.shape[2]}, DType::uint8).astype(DType::float32) / 255,
          Array::from(y.data.data(), Shape{n}, DType::uint8).astype(DType::int64)};
}

static double accuracy(nn::Layer& net, const Samples& s, int64_t limit) {
  int64_t right = 0, batch = 500;
  for (int64_t i = 0; i + batch <= limit; i += batch) {
    Array guess = op::argmax(net(s.pictures.slice(i, i + batch)), {.axis = 1});
    right += static_cast<int64_t>(op::sum(guess == s.labels.slice(i, i + batch)).item());
  }
  return static_cast<double>(right) / static_cast<double>(limit);
}

int main(int argc, char** argv) {
  std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  int64_t epochs = argc > 2 ? std::stoll(argv[2]) : 2, most = argc > 3 ? std::stoll(argv[3]) : 60000, batch = 100;
  try {
    seed(1);
    Samples train = load(folder, "train"), test = load(folder, "t10k");
    auto net =
        nn::sequential({nn::conv2d(6, 5, 1, 2), nn::relu(), nn::max_pool2d(2), nn::conv2d(16, 5), nn::relu(),
                        nn::max_pool2d(2), nn::dense(120), nn::relu(), nn::dense(84), nn::relu(), nn::dense(10)});
    auto optimizer = nn::adam(0.001);
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      double total = 0;
      int64_t steps = 0;
      for (int64_t i = 0; i + batch <= most; i += batch, ++steps) {
        Array loss;
        {
          Record scope;
          loss =
              nn::softmax_cross_entropy((*net)(train.pictures.slice(i, i + batch)), train.labels.slice(i, i + batch));
        }
        loss.backward();
        optimizer->step(*net, batch);
        if (steps % 50 == 0) total += op::mean(loss).item();
      }
      std::printf("epoch %lld: loss %.3f, accuracy on new pictures %.3f\n", static_cast<long long>(epoch + 1),
                  total / static_cast<double>((steps + 49) / 50), accuracy(*net, test, 10000));
    }
    nn::save_parameters(*net, "lenet.params");
    std::printf("saved lenet.params\n");
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
