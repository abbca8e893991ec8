// SPDX-License-Identifier: Apache-2.0
// A network of the zoo with weights from a file that Python's save_parameters(), MXNet's, or PyTorch (.pth) wrote:
//
//   classify resnet18_v1 resnet18_v1.params picture.jpg [CLASSES [SIDE]]
//
// prints the five best classes and their scores. examples/classify/classify.py makes such files of real weights.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "twibil/io.h"
#include "twibil/jit.h"
#include "twibil/models.h"

using namespace twibil;

/// (1, 3, side, side), as MXNet's networks want it.
static Array to_input(const std::string& path, int64_t side) {
  const double mean[] = {0.485, 0.456, 0.406}, spread[] = {0.229, 0.224, 0.225};
  const io::Picture p = io::resize(io::read_image(path), side, side);
  std::vector<float> x;
  for (size_t c = 0; c < 3; ++c)
    for (size_t i = c; i < p.pixels.size(); i += 3)
      x.push_back(static_cast<float>((p.pixels[i] / 255.0 - mean[c]) / spread[c]));
  return Array::from(x, Shape{1, 3, side, side});
}

int main(int count, char** words) try {
  if (count < 4) return std::fputs("classify NETWORK FILE.params PICTURE [CLASSES [SIDE]]\n", stderr), 2;
  const int64_t classes = count > 4 ? std::atoi(words[4]) : 1000, side = count > 5 ? std::atoi(words[5]) : 224;
  auto net = nn::get_model(words[1], classes);
  const bool torch = std::string_view(words[2]).ends_with(".pth");
  (torch ? nn::load_torch_parameters : nn::load_parameters)(*net, words[2]);
  auto predict = jit([=](const Array& x) { return (*net)(x); });
  std::vector<float> scores = predict(to_input(words[3], side)).to_vector<float>();
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return scores[i]; });
  for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i)
    std::printf("%9.5f  class %zu\n", static_cast<double>(scores[order[i]]), order[i]);
} catch (const std::exception& e) {
  std::fprintf(stderr, "classify: %s\n", e.what());
  return 1;
}
