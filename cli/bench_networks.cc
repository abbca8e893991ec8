// SPDX-License-Identifier: Apache-2.0
// AlexNet and the ResNets are here as benchmarks/networks.py and the usual ONNX files have them: AlexNet with local
// response normalisation, ResNets whose 3 x 3 convolutions take the stride. The others are those of the zoo.
#include "bench_networks.h"

#include <algorithm>

#include "arguments.h"
#include "twibil/models.h"
#include "twibil/ops.h"

namespace twibil::cli {

namespace {

using nn::LayerPointer;

LayerPointer response_norm() {
  return nn::function([](const Array& x) { return op::lrn(x, 5, {.alpha = 1e-4, .beta = 0.75, .knorm = 2}); });
}

LayerPointer alexnet() {
  auto pool = [] { return nn::max_pool2d(3, {.stride = 2}); };
  return nn::sequential({nn::conv2d(96, 11, 4),
                         nn::relu(),
                         response_norm(),
                         pool(),
                         nn::conv2d(256, 5, 1, 2),
                         nn::relu(),
                         response_norm(),
                         pool(),
                         nn::conv2d(384, 3, 1, 1),
                         nn::relu(),
                         nn::conv2d(384, 3, 1, 1),
                         nn::relu(),
                         nn::conv2d(256, 3, 1, 1),
                         nn::relu(),
                         pool(),
                         nn::dense(4096),
                         nn::relu(),
                         nn::dense(4096),
                         nn::relu(),
                         nn::dense(1000)});
}

LayerPointer unit(int64_t channels, int64_t kernel, int64_t stride, bool active) {
  LayerPointer conv = nn::conv2d(channels, kernel, {.stride = stride, .padding = kernel / 2, .bias = false});
  return nn::sequential({conv, nn::batch_norm(), active ? nn::relu() : nn::identity()});
}

LayerPointer resnet(const std::vector<int>& depths) {
  std::vector<LayerPointer> layers{unit(64, 7, 2, true), nn::max_pool2d(3, {.stride = 2, .padding = 1})};
  int64_t width = 64;
  for (int depth : depths) {
    for (int i = 0; i < depth; ++i) {
      int64_t stride = i == 0 && width > 64 ? 2 : 1;
      LayerPointer body =
          nn::sequential({unit(width, 1, 1, true), unit(width, 3, stride, true), unit(4 * width, 1, 1, false)});
      LayerPointer shortcut = i == 0 ? unit(4 * width, 1, stride, false) : nn::identity();
      layers.push_back(nn::block({{"body", body}, {"shortcut", shortcut}},
                                 [=](const Array& x) { return op::relu((*body)(x) + (*shortcut)(x)); }));
    }
    width *= 2;
  }
  layers.push_back(nn::global_avg_pool2d());
  layers.push_back(nn::dense(1000));
  return nn::sequential(layers);
}

}  // namespace

const std::vector<std::string>& bench_names() {
  static const std::vector<std::string> names{"alexnet",      "vgg11",     "vgg16",     "inception-bn",
                                              "inception-v3", "resnet-50", "resnet-152"};
  return names;
}

BenchNetwork make_bench_network(const std::string& name) {
  if (name == "alexnet") return {name, 224, alexnet()};
  if (name == "resnet-50") return {name, 224, resnet({3, 4, 6, 3})};
  if (name == "resnet-152") return {name, 224, resnet({3, 8, 36, 3})};
  if (name == "inception-bn") return {name, 224, nn::get_model("inception_bn")};
  if (name == "inception-v3" || name == "inceptionv3") return {name, 299, nn::get_model("inceptionv3")};
  std::vector<std::string> known = nn::model_names();
  if (std::ranges::find(known, name) != known.end()) return {name, 224, nn::get_model(name)};
  std::string list;
  for (const std::vector<std::string>& names : {bench_names(), known})
    for (const std::string& n : names) list.append(" ").append(n);
  throw UsageError("there is no network " + name + "; known are" + list);
}

}  // namespace twibil::cli
