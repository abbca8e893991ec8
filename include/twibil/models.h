// SPDX-License-Identifier: Apache-2.0
// Well-known networks that classify pictures, with the names, structures and parameters of MXNet's model zoo and of
// Python's gluon.model_zoo: one file of parameters serves all three.
//
//   auto net = nn::get_model("resnet18_v1");
//   nn::load_parameters(*net, "resnet18_v1.params");
//   auto predict = jit([=](const Array& x) { return (*net)(x); });
//   Array scores = predict(picture);   // (batch, 3, 224, 224) to (batch, 1000); softmax makes probabilities of them
#pragma once
#include "twibil/nn.h"

namespace twibil::nn {

/// alexnet, vgg11 to vgg19 (with or without _bn), inception_bn, inceptionv3, resnet18_v1 to resnet152_v2, squeezenet1.0
/// and 1.1, mobilenet1.0 to 0.25, mobilenetv2_1.0 to 0.25, densenet121 to 201, mobilenetv2_torch, efficientnet_lite0. A
/// value error for other names.
LayerPointer get_model(const std::string& name, int64_t classes = 1000);
std::vector<std::string> model_names();

}  // namespace twibil::nn
