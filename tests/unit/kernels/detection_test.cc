// SPDX-License-Identifier: Apache-2.0
// The detection kernels against what MXNet 1.9.1 answered (tests/fixtures/detection/generate.py).
#include "kernels/detection.h"

#include <fstream>
#include <map>
#include <sstream>

#include "kernels/kernel_cases.h"

namespace twibil::kernels {
namespace {

struct DetectionCase {
  int line = 0;
  std::map<std::string, std::vector<double>> params;
  std::map<std::string, std::vector<float>> arrays;
  std::map<std::string, Shape> shapes;
  double operator[](const std::string& name) const { return params.at(name)[0]; }
  const float* data(const std::string& name) const { return arrays.at(name).data(); }
  int64_t dim(const std::string& name, int axis) const { return shapes.at(name)[axis]; }
  std::vector<float> floats(const std::string& name) const {
    auto& p = params.at(name);
    return {p.begin(), p.end()};
  }
};

// Looked for from the current directory upwards: tests run in the checkout or in a build folder of it.
std::string fixture_path() {
  std::string path = "tests/fixtures/detection/cases.txt";
  for (int up = 0; up < 6 && !std::ifstream(path).is_open(); ++up) path.insert(0, "../");
  return path;
}

std::vector<DetectionCase> cases_of(const std::string& op) {
  std::vector<DetectionCase> all;
  std::ifstream file(fixture_path());
  EXPECT_TRUE(file.is_open()) << fixture_path();
  std::string line, word, name;
  DetectionCase now;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream in(line);
    in >> word >> name;
    if (word == "case") {
      now = {};
      now.line = number;
      if (name != op) now.line = 0;
    } else if (word == "param") {
      size_t n;
      in >> n;
      auto& v = now.params[name];
      v.resize(n);
      for (auto& x : v) in >> x;
    } else if (word == "array") {
      size_t rank;
      in >> rank;
      auto& shape = now.shapes[name];
      shape.resize(rank);
      for (auto& d : shape) in >> d;
      auto& v = now.arrays[name];
      v.resize(count(shape));
      for (auto& x : v) {
        in >> word;
        x = std::strtof(word.c_str(), nullptr);
      }
    } else if (word == "end" && now.line) {
      all.push_back(now);
    }
  }
  EXPECT_FALSE(all.empty()) << "no case of " << op;
  return all;
}

void expect_equal(const DetectionCase& c, const std::string& name, const std::vector<float>& got,
                  double tolerance = 2e-5) {
  auto& want = c.arrays.at(name);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(close(got[i], want[i], tolerance))
        << "case at line " << c.line << ", " << name << "[" << i << "]: " << got[i] << " for " << want[i];
}

TEST(Detection, Prior) {
  for (auto& c : cases_of("prior")) {
    auto sizes = c.floats("sizes"), ratios = c.floats("ratios"), steps = c.floats("steps"),
         offsets = c.floats("offsets");
    std::vector<float> y(c.arrays.at("y").size());
    ASSERT_EQ(y.size(), static_cast<size_t>(c["height"] * c["width"] * 4) * (sizes.size() + ratios.size() - 1));
    multibox_prior({sizes, ratios, c["clip"] != 0, steps[0], steps[1], offsets[0], offsets[1]}, c["height"], c["width"],
                   y.data());
    expect_equal(c, "y", y, 1e-6);
  }
}

TEST(Detection, Target) {
  for (auto& c : cases_of("target")) {
    int64_t anchors = c.dim("anchors", 0), batch = c.dim("labels", 0);
    std::vector<float> loc(batch * anchors * 4, 5), mask(loc), cls(batch * anchors, 5), v = c.floats("variances");
    MultiBoxTarget p;
    p.overlap_threshold = c["overlap_threshold"], p.ignore_label = c["ignore_label"];
    p.negative_mining_ratio = c["negative_mining_ratio"], p.negative_mining_thresh = c["negative_mining_thresh"];
    p.minimum_negative_samples = c["minimum_negative_samples"];
    std::copy(v.begin(), v.end(), p.variances);
    EXPECT_TRUE(multibox_target(p, anchors, c.data("anchors"), batch, c.dim("labels", 1), c.dim("labels", 2),
                                c.data("labels"), c.dim("preds", 1), c.data("preds"), loc.data(), mask.data(),
                                cls.data()));
    expect_equal(c, "cls", cls);
    expect_equal(c, "mask", mask);
    expect_equal(c, "loc", loc);
  }
}

TEST(Detection, Detection) {
  for (auto& c : cases_of("detection")) {
    int64_t batch = c.dim("prob", 0), anchors = c.dim("prob", 2);
    std::vector<float> y(batch * anchors * 6, 5), v = c.floats("variances");
    MultiBoxDetection p;
    p.clip = c["clip"] != 0, p.threshold = c["threshold"], p.background_id = c["background_id"];
    p.nms_threshold = c["nms_threshold"], p.force_suppress = c["force_suppress"] != 0, p.nms_topk = c["nms_topk"];
    std::copy(v.begin(), v.end(), p.variances);
    multibox_detection(p, batch, c.dim("prob", 1), anchors, c.data("prob"), c.data("loc"), c.data("anchors"), y.data());
    expect_equal(c, "y", y);
  }
}

TEST(Detection, Iou) {
  for (auto& c : cases_of("iou")) {
    int64_t a = c.arrays.at("a").size() / 4, b = c.arrays.at("b").size() / 4;
    std::vector<float> y(a * b, 5);
    box_iou(c["center"] != 0, a, c.data("a"), b, c.data("b"), y.data());
    expect_equal(c, "y", y, 1e-6);
  }
}

TEST(Detection, Nms) {
  for (auto& c : cases_of("nms")) {
    int64_t batch = c.dim("x", 0), n = c.dim("x", 1), width = c.dim("x", 2);
    std::vector<float> y(batch * n * width, 5), dx(y.size());
    std::vector<int64_t> index(batch * n);
    BoxNms p;
    p.overlap_thresh = c["overlap_thresh"], p.valid_thresh = c["valid_thresh"], p.topk = c["topk"];
    p.coord_start = c["coord_start"], p.score_index = c["score_index"], p.id_index = c["id_index"];
    p.background_id = c["background_id"], p.force_suppress = c["force_suppress"] != 0;
    p.in_center = c["in_center"] != 0, p.out_center = c["out_center"] != 0;
    box_nms(p, batch, n, width, c.data("x"), y.data(), index.data());
    expect_equal(c, "y", y);
    for (int64_t i = 0; i < batch * n; ++i)
      if (index[i] >= 0) std::copy_n(c.data("dy") + i * width, width, &dx[(i / n * n + index[i]) * width]);
    expect_equal(c, "dx", dx);
  }
}

TEST(Detection, LargeIouIsTheSameForAnyThreads) {
  Strided a(DType::float32, {5444, 4}), b(DType::float32, {90, 4}), y(DType::float32, {5444, 90});
  a.randomise(1, 0, 1), b.randomise(2, 0, 1);
  auto f = [](const Strided& s) { return static_cast<const float*>(s.data()); };
  expect_same_bits(y.bytes, [&] { box_iou(false, 5444, f(a), 90, f(b), static_cast<float*>(y.data())); });
}

TEST(Detection, EmptyInputs) {
  box_iou(false, 0, nullptr, 3, std::vector<float>(12).data(), nullptr);
  box_nms({}, 2, 0, 6, nullptr, nullptr, nullptr);
  multibox_detection({}, 2, 3, 0, nullptr, nullptr, nullptr, nullptr);
  EXPECT_TRUE(multibox_target({}, 0, nullptr, 1, 0, 5, nullptr, 2, nullptr, nullptr, nullptr, nullptr));
}

}  // namespace
}  // namespace twibil::kernels
