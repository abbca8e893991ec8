// SPDX-License-Identifier: Apache-2.0
// The networks that `twibil bench` times.
#pragma once
#include <string>
#include <vector>

#include "twibil/nn.h"

namespace twibil::cli {

struct BenchNetwork {
  std::string name;
  int64_t side;  // of its square pictures
  nn::LayerPointer net;
};
/// alexnet, vgg11, vgg16, inception-bn, inception-v3, resnet-50, resnet-152: what is timed when nobody says otherwise.
const std::vector<std::string>& bench_names();
/// One of these, or any network of twibil/models.h. UsageError for other names.
BenchNetwork make_bench_network(const std::string& name);

}  // namespace twibil::cli
