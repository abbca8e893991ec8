// SPDX-License-Identifier: Apache-2.0
// What the networks of the zoo are made of.
#pragma once
#include <map>

#include "twibil/models.h"

namespace twibil::nn {

using Layers = std::vector<LayerPointer>;

inline void append(Layers& to, const Layers& more) { to.insert(to.end(), more.begin(), more.end()); }
/// `features`, then `output`: the parameters of both have these words in their names.
inline LayerPointer classifier(const LayerPointer& features, const LayerPointer& output) {
  return block({{"features", features}, {"output", output}}, [=](const Array& x) { return (*output)((*features)(x)); });
}

/// Networks by name; each makes one for so many classes.
using Makers = std::map<std::string, std::function<LayerPointer(int64_t classes)>>;
void add_alexnet(Makers& makers);
void add_vgg(Makers& makers);
void add_squeezenet(Makers& makers);
void add_densenet(Makers& makers);
void add_inception(Makers& makers);
void add_resnet(Makers& makers);
void add_mobilenet(Makers& makers);

}  // namespace twibil::nn
