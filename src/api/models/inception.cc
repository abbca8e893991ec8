// SPDX-License-Identifier: Apache-2.0
// Inception v3, and Inception with batch normalisation.
#include "api/models/parts.h"

namespace twibil::nn {

namespace {

// ---- v3 ----
struct Conv {
  int64_t channels;
  Pair kernel, stride = 1, padding = 0;
};
LayerPointer conv(const Conv& c) {
  return sequential({conv2d(c.channels, c.kernel, {.stride = c.stride, .padding = c.padding, .bias = false}),
                     batch_norm(0.9, 0.001), relu()});
}
/// Convolutions, after `pool` if there is one.
LayerPointer branch(const std::vector<Conv>& convs, const LayerPointer& pool = nullptr) {
  Layers layers;
  if (pool) layers.push_back(pool);
  for (const Conv& c : convs) layers.push_back(conv(c));
  return sequential(layers);
}
LayerPointer mean3() { return avg_pool2d(3, {.stride = 1, .padding = 1}); }
LayerPointer max3() { return max_pool2d(3, {.stride = 2}); }
Conv row(int64_t channels, int64_t length = 7) { return {channels, {1, length}, 1, {0, length / 2}}; }
Conv column(int64_t channels, int64_t length = 7) { return {channels, {length, 1}, 1, {length / 2, 0}}; }

LayerPointer local(int64_t pooled) {
  return concatenate({branch({{64, 1}}), branch({{48, 1}, {64, 5, 1, 2}}),
                      branch({{64, 1}, {96, 3, 1, 1}, {96, 3, 1, 1}}), branch({{pooled, 1}}, mean3())});
}
LayerPointer long_rows(int64_t n) {
  return concatenate({branch({{192, 1}}), branch({{n, 1}, row(n), column(192)}),
                      branch({{n, 1}, column(n), row(n), column(n), row(192)}), branch({{192, 1}}, mean3())});
}
LayerPointer wide() {
  auto split = [] { return concatenate({branch({row(384, 3)}), branch({column(384, 3)})}); };
  return concatenate({branch({{320, 1}}), sequential({branch({{384, 1}}), split()}),
                      sequential({branch({{448, 1}, {384, 3, 1, 1}}), split()}), branch({{192, 1}}, mean3())});
}

LayerPointer make_v3(int64_t classes) {
  Layers layers{conv({32, 3, 2}), conv({32, 3}), conv({64, 3, 1, 1}), max3(), conv({80, 1}), conv({192, 3}), max3()};
  for (int64_t pooled : {32, 64, 64}) layers.push_back(local(pooled));
  layers.push_back(
      concatenate({branch({{384, 3, 2}}), branch({{64, 1}, {96, 3, 1, 1}, {96, 3, 2}}), branch({}, max3())}));
  for (int64_t n : {128, 160, 160, 192}) layers.push_back(long_rows(n));
  layers.push_back(concatenate(
      {branch({{192, 1}, {320, 3, 2}}), branch({{192, 1}, row(192), column(192), {192, 3, 2}}), branch({}, max3())}));
  append(layers, {wide(), wide(), avg_pool2d(8), dropout(0.5)});
  return classifier(sequential(layers), dense(classes));
}

// ---- Inception-BN ----
struct Unit {
  int64_t channels, kernel, stride = 1;
};
LayerPointer chain(const std::vector<Unit>& units, const LayerPointer& pool = nullptr) {
  Layers layers;
  if (pool) layers.push_back(pool);
  for (const Unit& u : units)
    append(layers, {conv2d(u.channels, u.kernel, u.stride, u.kernel / 2), batch_norm(), relu()});
  return sequential(layers);
}
LayerPointer same(int64_t one, Unit reduce, Unit three, Unit reduce2, Unit two, int64_t pooled, bool maximum = false) {
  LayerPointer pool = maximum ? max_pool2d(3, {.stride = 1, .padding = 1}) : mean3();
  return concatenate(
      {chain({{one, 1}}), chain({reduce, three}), chain({reduce2, two, two}), chain({{pooled, 1}}, pool)});
}
LayerPointer half(int64_t reduce, int64_t three, int64_t reduce2, int64_t two) {
  return concatenate({chain({{reduce, 1}, {three, 3, 2}}), chain({{reduce2, 1}, {two, 3}, {two, 3, 2}}),
                      max_pool2d(3, {.stride = 2, .padding = 1})});
}

LayerPointer make_bn(int64_t classes) {
  auto keep = [](int64_t one, int64_t r, int64_t three, int64_t r2, int64_t two, int64_t pooled, bool maximum = false) {
    return same(one, {r, 1}, {three, 3}, {r2, 1}, {two, 3}, pooled, maximum);
  };
  return classifier(
      sequential({chain({{64, 7, 2}}), max3(), chain({{64, 1}, {192, 3}}), max3(), keep(64, 64, 64, 64, 96, 32),
                  keep(64, 64, 96, 64, 96, 64), half(128, 160, 64, 96), keep(224, 64, 96, 96, 128, 128),
                  keep(192, 96, 128, 96, 128, 128), keep(160, 128, 160, 128, 160, 128),
                  keep(96, 128, 192, 160, 192, 128), half(128, 192, 192, 256), keep(352, 192, 320, 160, 224, 128),
                  keep(352, 192, 320, 192, 224, 128, true), global_avg_pool2d(), flatten()}),
      dense(classes));
}

}  // namespace

void add_inception(Makers& makers) {
  makers["inceptionv3"] = make_v3;
  makers["inception_bn"] = make_bn;
}

}  // namespace twibil::nn
