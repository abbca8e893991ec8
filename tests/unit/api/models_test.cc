// SPDX-License-Identifier: Apache-2.0
// The networks of twibil/models.h: names of parameters, shapes and outputs are those that MXNet 1.9.1 and PyTorch gave
// (tests/fixtures), which tests/python/test_model_zoo.py compares with Python's networks.
#include "twibil/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "api/io/zip_file.h"
#include "twibil/jit.h"
#include "twibil/model.h"

namespace twibil::nn {
namespace {

struct Expected {
  std::string name;
  int64_t side, parameters;
  uint32_t checksum;
  std::vector<double> out;
};

std::vector<Expected> expected(const std::string& file) {
  std::string path = "tests/fixtures/" + file;  // tests run in the checkout or in a build folder of it
  for (int up = 0; up < 6 && !std::ifstream(path).is_open(); ++up) path.insert(0, "../");
  std::ifstream in(path);
  EXPECT_TRUE(in.is_open()) << path;
  std::vector<Expected> all;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Expected e;
    words >> e.name >> e.side >> e.parameters >> e.checksum;
    for (double v; words >> v;) e.out.push_back(v);
    all.push_back(e);
  }
  return all;
}

/// tests/python/zoo_formula.py in C++.
std::vector<double> spread(uint32_t number, int64_t count) {
  std::vector<double> u(static_cast<size_t>(count));
  for (size_t i = 0; i < u.size(); ++i) {
    uint32_t h = static_cast<uint32_t>(i + 1) * 2654435761u + number * 40503u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    u[i] = h / 2147483648.0 - 1;
  }
  return u;
}
Array values(uint32_t number, const std::string& name, const Shape& shape) {
  std::vector<double> u = spread(number + 1, shape.size());
  std::vector<float> v;
  double scale = name.ends_with("weight") ? std::sqrt(6.0 / static_cast<double>(shape.size() / shape[0])) : 0.1;
  bool gamma = name.ends_with("gamma"), variance = name.ends_with("running_var");
  for (double x : u) v.push_back(static_cast<float>(gamma ? 1 + 0.1 * x : variance ? 1 + 0.2 * x : scale * x));
  return Array::from(v, shape);
}
Array picture(int64_t side) {
  std::vector<double> u = spread(0, 3 * side * side);
  return Array::from(std::vector<float>(u.begin(), u.end()), Shape{1, 3, side, side});
}

void compare(const Expected& e) {
  auto net = get_model(e.name, 10);
  auto run = jit([&](const Array& x) { return (*net)(x); });
  run(Array::zeros({1, 3, e.side, e.side}));
  std::vector<Parameter> parameters = net->parameters();
  ASSERT_EQ(static_cast<int64_t>(parameters.size()), e.parameters) << e.name;
  std::string lines;
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    Parameter& p = parameters[i];
    lines += p.name + ' ';
    for (int k = 0; k < p.data.rank(); ++k) lines += (k ? "x" : "") + std::to_string(p.data.dim(k));
    lines += '\n';
    p.data.assign(values(i, p.name, p.data.shape()));
  }
  if (e.checksum != 0) {
    EXPECT_EQ(io::crc32(io::bytes_of(lines)), e.checksum) << e.name;
  }
  std::vector<double> out = run(picture(e.side)).astype(DType::float64).to_vector<double>();
  ASSERT_EQ(out.size(), 10u);
  double size = 0, error = 0;
  for (size_t i = 0; i < 10; ++i)
    size = std::max(size, std::abs(e.out[i])), error = std::max(error, std::abs(out[i] - e.out[i]));
  EXPECT_LE(error, 1e-4 * size) << e.name;
}

TEST(Models, AreMxnets) {
  std::vector<Expected> all = expected("mxnet/zoo.txt");
  EXPECT_EQ(all.size() + 2, model_names().size());
  size_t step = std::getenv("TWIBIL_ISA") ? 6 : 1;  // structures do not depend on the instruction set
  for (size_t i = 0; i < all.size(); i += step) compare(all[i]);
}
TEST(Models, ArePytorchs) {
  for (const Expected& e : expected("torch/zoo.txt")) compare(e);
}

TEST(Models, FilesFillNetworksThatHaveSeenNoInput) {
  std::string path = ::testing::TempDir() + "zoo.params";
  auto net = get_model("mobilenetv2_0.25", 3);
  Array x = picture(32), y = (*net)(x);
  save_parameters(*net, path);
  auto other = get_model("mobilenetv2_0.25", 3);
  load_parameters(*other, path);
  EXPECT_EQ((*other)(x).to_vector<float>(), y.to_vector<float>());
  for (const Parameter& p : other->parameters()) EXPECT_EQ(static_cast<bool>(p.data.grad()), p.trained) << p.name;
  auto wider = get_model("mobilenetv2_0.25", 4), another = get_model("squeezenet1.1", 3);
  for (const LayerPointer& wrong : {wider, another}) {
    EXPECT_THROW(load_parameters(*wrong, path), Error);
    for (const Parameter& p : wrong->parameters()) EXPECT_FALSE(p.data) << p.name;
  }
}

TEST(Models, UnknownNames) {
  try {
    get_model("resnet50");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("resnet50_v"), std::string::npos) << e.message();
  }
  EXPECT_THROW(get_model("alexnet", 0), Error);
}

}  // namespace
}  // namespace twibil::nn
