// SPDX-License-Identifier: Apache-2.0
#include "api/models/parts.h"
#include "ir/registry.h"

namespace twibil::nn {

namespace {
const Makers& makers() {
  static const Makers all = [] {
    Makers m;
    for (auto add : {add_alexnet, add_vgg, add_squeezenet, add_densenet, add_inception, add_resnet, add_mobilenet})
      add(m);
    return m;
  }();
  return all;
}
}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : makers()) names.push_back(name);
  return names;
}

LayerPointer get_model(const std::string& name, int64_t classes) {
  TW_CHECK(classes > 0, value, "get_model: classes must be positive; got ", classes);
  auto found = makers().find(name);
  if (found == makers().end()) {
    std::vector<std::string> names = model_names();
    std::string known;
    for (const std::string& n : names) known.append(known.empty() ? "" : ", ").append(n);
    throw_error(ErrorKind::value, text("get_model: there is no network ", name,
                                       did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end())),
                                       ". Known are ", known));
  }
  return found->second(classes);
}

}  // namespace twibil::nn
