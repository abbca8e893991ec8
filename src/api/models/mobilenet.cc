// SPDX-License-Identifier: Apache-2.0
// Networks of depthwise convolutions: MobileNet, MobileNetV2 as MXNet and as torchvision have it, EfficientNet-Lite0.
#include "api/models/parts.h"

namespace twibil::nn {

namespace {

struct Stage {
  int64_t channels;
  int blocks;
  int64_t stride, expansion, kernel;
};
const std::vector<Stage> kV2{{16, 1, 1, 1, 3}, {24, 2, 2, 6, 3},  {32, 3, 2, 6, 3}, {64, 4, 2, 6, 3},
                             {96, 3, 1, 6, 3}, {160, 3, 2, 6, 3}, {320, 1, 1, 6, 3}};
const std::vector<Stage> kLite0{{16, 1, 1, 1, 3},  {24, 2, 2, 6, 3},  {40, 2, 2, 6, 5}, {80, 3, 2, 6, 3},
                                {112, 3, 1, 6, 5}, {192, 4, 2, 6, 5}, {320, 1, 1, 6, 3}};

struct Style {
  bool expand_always;  // a 1 x 1 convolution also where it expands nothing: MXNet's MobileNetV2
  bool tensorflow;     // padding and epsilon as there
};

Layers conv(int64_t channels, int64_t kernel, int64_t stride, int64_t groups, const LayerPointer& activation,
            bool tensorflow = false) {
  bool pads = tensorflow && stride == 2;  // TensorFlow pads even sides so, more behind than in front
  Layers layers;
  if (pads) layers.push_back(pad2d((kernel - 2) / 2, (kernel - 1) / 2));
  layers.push_back(
      conv2d(channels, kernel, {.stride = stride, .padding = pads ? 0 : kernel / 2, .groups = groups, .bias = false}));
  layers.push_back(batch_norm(0.9, tensorflow ? 1e-3 : 1e-5));
  if (activation) layers.push_back(activation);
  return layers;
}

LayerPointer make_v1(double multiplier, int64_t classes) {
  auto scaled = [&](int64_t n) { return static_cast<int64_t>(static_cast<double>(n) * multiplier); };
  int64_t width = scaled(32);
  Layers layers = conv(width, 3, 2, 1, relu());
  const std::vector<std::pair<int64_t, int64_t>> pairs{{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                                                       {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                                                       {512, 1}, {1024, 2}, {1024, 1}};
  for (auto [channels, stride] : pairs) {
    append(layers, conv(width, 3, stride, width, relu()));
    append(layers, conv(width = scaled(channels), 1, 1, 1, relu()));
  }
  append(layers, {global_avg_pool2d(), flatten()});
  return classifier(sequential(layers), dense(classes));
}

LayerPointer inverted_residual(int64_t before, int64_t channels, const Stage& s, int64_t stride, Style style) {
  int64_t wide = before * s.expansion;
  Layers layers;
  if (style.expand_always || s.expansion != 1) layers = conv(wide, 1, 1, 1, relu6(), style.tensorflow);
  append(layers, conv(wide, s.kernel, stride, wide, relu6(), style.tensorflow));
  append(layers, conv(channels, 1, 1, 1, nullptr, style.tensorflow));
  LayerPointer body = sequential(layers);
  bool shortcut = stride == 1 && before == channels;
  if (!style.expand_always && !shortcut) return body;  // torchvision's blocks; MXNet's have a name for all
  return block({{style.expand_always ? "out" : "body", body}}, [=](const Array& x) {
    Array y = (*body)(x);
    return shortcut ? y + x : y;
  });
}

LayerPointer features(const std::vector<Stage>& stages, double multiplier, Style style, const Layers& end) {
  auto scaled = [&](int64_t n) { return static_cast<int64_t>(static_cast<double>(n) * multiplier); };
  int64_t width = scaled(32);
  Layers layers = conv(width, 3, 2, 1, relu6(), style.tensorflow);
  for (const Stage& s : stages)
    for (int i = 0; i < s.blocks; ++i) {
      layers.push_back(inverted_residual(width, scaled(s.channels), s, i == 0 ? s.stride : 1, style));
      width = scaled(s.channels);
    }
  append(layers, conv(multiplier > 1 ? scaled(1280) : 1280, 1, 1, 1, relu6(), style.tensorflow));
  append(layers, end);
  return sequential(layers);
}

}  // namespace

void add_mobilenet(Makers& makers) {
  const std::map<std::string, double> multipliers{{"1.0", 1}, {"0.75", 0.75}, {"0.5", 0.5}, {"0.25", 0.25}};
  for (const auto& [name, m] : multipliers) {
    makers["mobilenet" + name] = [m = m](int64_t classes) { return make_v1(m, classes); };
    makers["mobilenetv2_" + name] = [m = m](int64_t classes) {
      return classifier(features(kV2, m, {.expand_always = true, .tensorflow = false}, {global_avg_pool2d()}),
                        sequential({conv2d(classes, 1, {.bias = false}), flatten()}));
    };
  }
  makers["mobilenetv2_torch"] = [](int64_t classes) {
    return classifier(features(kV2, 1, {false, false}, {global_avg_pool2d(), flatten(), dropout(0.2)}), dense(classes));
  };
  makers["efficientnet_lite0"] = [](int64_t classes) {
    return classifier(features(kLite0, 1, {false, true}, {global_avg_pool2d(), flatten(), dropout(0.2)}),
                      dense(classes));
  };
}

}  // namespace twibil::nn
