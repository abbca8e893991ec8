// SPDX-License-Identifier: Apache-2.0
// Networks that are one chain of layers: AlexNet, VGG, SqueezeNet, and DenseNet, whose layers keep their input.
#include "api/models/parts.h"

namespace twibil::nn {

namespace {

LayerPointer max3() { return max_pool2d(3, {.stride = 2}); }

/// The layer with the rectifier behind it, which takes no number of its own: as gluon's Dense(activation="relu").
class WithRelu final : public Layer {
 public:
  explicit WithRelu(LayerPointer layer) : layer_(std::move(layer)), relu_(relu()) {}
  Array operator()(const Array& x) override { return (*relu_)((*layer_)(x)); }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    layer_->collect(prefix, into);
  }

 private:
  LayerPointer layer_, relu_;
};
LayerPointer with_relu(LayerPointer layer) { return std::make_shared<WithRelu>(std::move(layer)); }

LayerPointer make_alexnet(int64_t classes) {
  auto conv = [](int64_t channels, int64_t kernel, int64_t stride, int64_t padding) {
    return with_relu(conv2d(channels, kernel, stride, padding));
  };
  return classifier(sequential({conv(64, 11, 4, 2), max3(), conv(192, 5, 1, 2), max3(), conv(384, 3, 1, 1),
                                conv(256, 3, 1, 1), conv(256, 3, 1, 1), max3(), flatten(), with_relu(dense(4096)),
                                dropout(0.5), with_relu(dense(4096)), dropout(0.5)}),
                    dense(classes));
}

LayerPointer make_vgg(const std::vector<int>& depths, bool normalised, int64_t classes) {
  Layers layers;
  int64_t width = 64;
  for (int count : depths) {
    for (int i = 0; i < count; ++i) {
      layers.push_back(conv2d(width, 3, 1, 1));
      if (normalised) layers.push_back(batch_norm());
      layers.push_back(relu());
    }
    layers.push_back(max_pool2d(2));
    width = std::min<int64_t>(512, 2 * width);
  }
  for (int i = 0; i < 2; ++i) append(layers, {with_relu(dense(4096)), dropout(0.5)});
  return classifier(sequential(layers), dense(classes));
}

LayerPointer make_squeezenet(int64_t first, int64_t kernel, const std::vector<int64_t>& widths, int64_t classes) {
  auto pool = [] { return max_pool2d(3, {.stride = 2, .ceil = true}); };
  auto conv = [](int64_t channels, int64_t k, int64_t padding) {
    return sequential({conv2d(channels, k, 1, padding), relu()});
  };
  Layers layers{conv2d(first, kernel, 2), relu(), pool()};
  for (int64_t n : widths)  // 0 stands for pooling
    layers.push_back(n == 0 ? pool()
                            : sequential({conv(n, 1, 0), concatenate({conv(4 * n, 1, 0), conv(4 * n, 3, 1)})}));
  layers.push_back(dropout(0.5));
  return classifier(sequential(layers), sequential({conv2d(classes, 1), relu(), avg_pool2d(13), flatten()}));
}

LayerPointer make_densenet(int64_t width, int64_t growth, const std::vector<int>& depths, int64_t classes) {
  auto conv = [](int64_t channels, int64_t kernel) {
    return Layers{batch_norm(), relu(), conv2d(channels, kernel, {.padding = kernel / 2, .bias = false})};
  };
  Layers layers{conv2d(width, 7, {.stride = 2, .padding = 3, .bias = false}), batch_norm(), relu(),
                max_pool2d(3, {.stride = 2, .padding = 1})};
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    if (stage > 0) {
      Layers shrink = conv(width /= 2, 1);
      shrink.push_back(avg_pool2d(2));
      layers.push_back(sequential(shrink));
    }
    Layers dense_layers;
    for (int i = 0; i < depths[stage]; ++i) {
      Layers more = conv(4 * growth, 1);
      append(more, conv(growth, 3));
      dense_layers.push_back(concatenate({identity(), sequential(more)}));
    }
    layers.push_back(sequential(dense_layers));
    width += depths[stage] * growth;
  }
  append(layers, {batch_norm(), relu(), avg_pool2d(7), flatten()});
  return classifier(sequential(layers), dense(classes));
}

}  // namespace

void add_alexnet(Makers& makers) { makers["alexnet"] = make_alexnet; }

void add_vgg(Makers& makers) {
  const std::map<int, std::vector<int>> depths{
      {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
  for (const auto& [n, d] : depths)
    for (bool normalised : {false, true})
      makers[text("vgg", n, normalised ? "_bn" : "")] = [d = d, normalised](int64_t classes) {
        return make_vgg(d, normalised, classes);
      };
}

void add_squeezenet(Makers& makers) {
  makers["squeezenet1.0"] = [](int64_t classes) {
    return make_squeezenet(96, 7, {16, 16, 32, 0, 32, 48, 48, 64, 0, 64}, classes);
  };
  makers["squeezenet1.1"] = [](int64_t classes) {
    return make_squeezenet(64, 3, {16, 16, 0, 32, 32, 0, 48, 48, 64, 64}, classes);
  };
}

void add_densenet(Makers& makers) {
  makers["densenet121"] = [](int64_t classes) { return make_densenet(64, 32, {6, 12, 24, 16}, classes); };
  makers["densenet161"] = [](int64_t classes) { return make_densenet(96, 48, {6, 12, 36, 24}, classes); };
  makers["densenet169"] = [](int64_t classes) { return make_densenet(64, 32, {6, 12, 32, 32}, classes); };
  makers["densenet201"] = [](int64_t classes) { return make_densenet(64, 32, {6, 12, 48, 32}, classes); };
}

}  // namespace twibil::nn
