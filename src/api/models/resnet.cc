// SPDX-License-Identifier: Apache-2.0
// Residual networks of version 1 (normalise after each convolution) and version 2 (before it).
#include "api/models/parts.h"

namespace twibil::nn {

namespace {

struct Size {
  std::vector<int> depths;
  bool bottleneck;
};
const std::map<int, Size> kSizes{{18, {{2, 2, 2, 2}, false}},
                                 {34, {{3, 4, 6, 3}, false}},
                                 {50, {{3, 4, 6, 3}, true}},
                                 {101, {{3, 4, 23, 3}, true}},
                                 {152, {{3, 8, 36, 3}, true}}};

LayerPointer conv(int64_t channels, int64_t kernel, int64_t stride = 1, bool bias = false) {
  return conv2d(channels, kernel, {.stride = stride, .padding = kernel / 2, .bias = bias});
}

/// relu(body(x) + x). In a bottleneck the first 1 x 1 convolution takes the stride.
LayerPointer block_v1(int64_t channels, int64_t stride, bool bottleneck, bool downsample) {
  int64_t narrow = channels / 4;
  LayerPointer rectify = relu();
  LayerPointer body =
      bottleneck ? sequential({conv(narrow, 1, stride, true), batch_norm(), relu(), conv(narrow, 3), batch_norm(),
                               relu(), conv(channels, 1, 1, true), batch_norm()})
                 : sequential({conv(channels, 3, stride), batch_norm(), relu(), conv(channels, 3), batch_norm()});
  if (!downsample) return block({{"body", body}}, [=](const Array& x) { return (*rectify)((*body)(x) + x); });
  LayerPointer shortcut = sequential({conv(channels, 1, stride), batch_norm()});
  return block({{"body", body}, {"downsample", shortcut}},
               [=](const Array& x) { return (*rectify)((*body)(x) + (*shortcut)(x)); });
}

/// conv(... conv(a)) + x for a = relu(bn(x)), or + downsample(a). In a bottleneck the 3 x 3 convolution takes the
/// stride.
LayerPointer block_v2(int64_t channels, int64_t stride, bool bottleneck, bool downsample) {
  int64_t narrow = channels / 4;
  Layers convs = bottleneck ? Layers{conv(narrow, 1), conv(narrow, 3, stride), conv(channels, 1)}
                            : Layers{conv(channels, 3, stride), conv(channels, 3)};
  Layers norms;
  std::vector<std::pair<std::string, LayerPointer>> children;
  for (size_t i = 0; i < convs.size(); ++i) {
    norms.push_back(batch_norm());
    children.emplace_back(text("bn", i + 1), norms[i]);
    children.emplace_back(text("conv", i + 1), convs[i]);
  }
  LayerPointer rectify = relu(), shortcut = downsample ? conv(channels, 1, stride) : nullptr;
  if (shortcut) children.emplace_back("downsample", shortcut);
  return block(children, [=](const Array& x) {
    Array y = (*rectify)((*norms[0])(x));
    Array kept = shortcut ? (*shortcut)(y) : x;
    y = (*convs[0])(y);
    for (size_t i = 1; i < convs.size(); ++i) y = (*convs[i])((*rectify)((*norms[i])(y)));
    return y + kept;
  });
}

LayerPointer make_resnet(int version, const Size& size, int64_t classes) {
  Layers layers;
  if (version == 2) layers.push_back(batch_norm(0.9, 1e-5, false, false));  // of the picture itself
  append(layers, {conv(64, 7, 2), batch_norm(), relu(), max_pool2d(3, {.stride = 2, .padding = 1})});
  int64_t before = 64;
  for (size_t stage = 0; stage < size.depths.size(); ++stage) {
    int64_t channels = (size.bottleneck ? int64_t{256} : int64_t{64}) << stage;
    Layers blocks;
    for (int i = 0; i < size.depths[stage]; ++i) {
      auto make = version == 1 ? block_v1 : block_v2;
      blocks.push_back(make(channels, i == 0 && stage > 0 ? 2 : 1, size.bottleneck, i == 0 && channels != before));
    }
    layers.push_back(sequential(blocks));
    before = channels;
  }
  if (version == 2) append(layers, {batch_norm(), relu(), global_avg_pool2d(), flatten()});
  else layers.push_back(global_avg_pool2d());
  return classifier(sequential(layers), dense(classes));
}

}  // namespace

void add_resnet(Makers& makers) {
  for (int version : {1, 2})
    for (const auto& [n, size] : kSizes)
      makers[text("resnet", n, "_v", version)] = [version, size = size](int64_t classes) {
        return make_resnet(version, size, classes);
      };
}

}  // namespace twibil::nn
