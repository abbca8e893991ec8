// SPDX-License-Identifier: Apache-2.0
// `twibil predict`: pictures through a classifier or a detector.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "arguments.h"
#include "commands.h"
#include "settings.h"
#include "twibil/io.h"
#include "twibil/ops.h"

namespace twibil::cli {

namespace {

/// (1, 3, height, width), as the settings say.
Array to_input(const io::Picture& picture, const PredictSettings& s) {
  bool fits = picture.height == s.height && picture.width == s.width;
  io::Picture p = fits ? picture : io::resize(picture, s.height, s.width);
  std::vector<float> x(static_cast<size_t>(3 * s.height * s.width));
  auto divide = static_cast<float>(s.divide);
  for (size_t c = 0; c < 3; ++c) {
    auto mean = static_cast<float>(s.mean[c]), std = static_cast<float>(s.std[c]);
    float* plane = &x[c * static_cast<size_t>(s.height * s.width)];
    for (int64_t i = 0; i < s.height * s.width; ++i)
      plane[i] = (static_cast<float>(p.pixels[static_cast<size_t>(i * 3) + c]) / divide - mean) / std;
  }
  return Array::from(x, Shape{1, 3, s.height, s.width});
}

void print_classes(const std::vector<Array>& out, const PredictSettings& s) {
  TW_CHECK(
      out.size() == 1 && out[0].rank() == 2 && out[0].dim(0) == 1, value, "the network gives ", out.size(),
      " results, the first of shape ", out[0].shape(),
      "; a classifier gives one of shape (1, classes). Is it a detector? Then say so in the model's -predict.json");
  Array scores = s.logits ? op::softmax(out[0]) : out[0];
  std::vector<float> p = scores.to_vector<float>();
  TW_CHECK(s.classes.empty() || s.classes.size() == p.size(), value, "the network tells ", p.size(),
           " classes apart, but the model's -predict.json names ", s.classes.size());
  std::vector<int64_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  size_t best = std::min<size_t>(5, order.size());
  auto better = [&](int64_t a, int64_t b) {  // NaN last, ties by number
    float x = p[static_cast<size_t>(a)], y = p[static_cast<size_t>(b)];
    return x > y || (x == x && y != y) || (a < b && !(y > x) && !(y == y && x != x));
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best), order.end(), better);
  for (size_t i = 0; i < best; ++i)
    std::printf("  %.4f  %s\n", static_cast<double>(p[static_cast<size_t>(order[i])]), s.class_name(order[i]).c_str());
}

struct Found {
  int64_t kind;
  double score, left, top, right, bottom;  // in parts of the picture
};

/// Rows of class, score and box, the best first.
std::vector<Found> find_boxes(const std::vector<Array>& out, const PredictSettings& s) {
  Array rows = out[0];
  if (out.size() == 3) {  // anchors (1, n, 4), scores (1, n, classes + 1), offsets (1, 4 n)
    TW_CHECK(out[0].rank() == 3 && out[1].rank() == 3 && out[2].rank() == 2, value,
             "a detector's three results must be anchors (1, n, 4), scores (1, n, classes + 1) and offsets (1, 4 n); "
             "got shapes ",
             out[0].shape(), ", ", out[1].shape(), ", ", out[2].shape());
    Array chances = (s.logits ? op::softmax(out[1]) : out[1]).transpose({0, 2, 1});
    rows = op::multibox_detection(chances, out[2], out[0], {.threshold = s.threshold, .nms_threshold = s.overlap});
  }
  TW_CHECK(out.size() == 1 || out.size() == 3, value, "a detector gives one or three results; this network gives ",
           out.size());
  TW_CHECK(rows.rank() == 3 && rows.dim(0) == 1 && rows.dim(2) == 6, value,
           "a detector's result must have shape (1, n, 6); got ", rows.shape());
  std::vector<double> v = rows.to_vector<double>();
  std::vector<Found> found;
  for (size_t i = 0; i + 6 <= v.size(); i += 6) {
    bool finite = std::all_of(&v[i], &v[i] + 6, [](double x) { return std::isfinite(x) && std::abs(x) < 1e6; });
    if (!finite || v[i] < 0 || v[i + 1] < s.threshold) continue;
    found.push_back({static_cast<int64_t>(v[i]), v[i + 1], v[i + 2], v[i + 3], v[i + 4], v[i + 5]});
  }
  std::ranges::stable_sort(found, std::greater(), &Found::score);
  return found;
}

std::string draw(const io::Picture& picture, const std::vector<Found>& found, const PredictSettings& s,
                 const std::string& source, const std::string& folder) {
  io::Picture p = picture;
  double w = static_cast<double>(p.width), h = static_cast<double>(p.height);
  double thick = std::max(2.0, std::round(std::min(w, h) / 200));
  for (auto it = found.rbegin(); it != found.rend(); ++it) {  // the best on top
    char score[16];
    std::snprintf(score, sizeof score, " %.2f", it->score);
    io::draw_box(p, it->left * w, it->top * h, it->right * w, it->bottom * h, s.class_name(it->kind) + score,
                 io::palette_color(it->kind), thick, static_cast<int64_t>(std::max(1.0, thick / 2)));
  }
  std::filesystem::path to =
      std::filesystem::path(folder) / (std::filesystem::path(source).stem().string() + "-boxes.png");
  io::write_image(to.string(), p);
  return to.string();
}

void predict_one(const Model& model, const PredictSettings& s, const std::string& path, const std::string& folder) {
  io::Picture picture = io::read_image(path);
  std::vector<Array> out = model.all({to_input(picture, s)});
  if (!s.detector) {
    std::printf("%s\n", path.c_str());
    return print_classes(out, s);
  }
  std::vector<Found> found = find_boxes(out, s);
  std::string drawn = draw(picture, found, s, path, folder);
  std::printf("%s: %zu %s, drawn in %s\n", path.c_str(), found.size(), found.size() == 1 ? "box" : "boxes",
              drawn.c_str());
  double w = static_cast<double>(picture.width), h = static_cast<double>(picture.height);
  for (const Found& f : found)
    std::printf("  %.4f  %s  left %.1f, top %.1f, right %.1f, bottom %.1f\n", f.score, s.class_name(f.kind).c_str(),
                f.left * w, f.top * h, f.right * w, f.bottom * h);
}

}  // namespace

int predict(const Words& words) {
  Arguments a(words, {"out", "threshold"});
  if (a.positions.size() < 2) throw UsageError("predict needs a model and at least one picture");
  Model model(a.positions[0]);
  PredictSettings s = read_settings(model);
  s.threshold = a.number("threshold", s.threshold, 0, 1);
  TW_CHECK(model.inputs().size() == 1, value, model.symbol_path(), ": pictures are one input; this network has ",
           model.inputs().size(), " inputs");
  std::string folder = a.option("out", ".");
  std::filesystem::create_directories(folder);
  int status = 0;
  for (size_t i = 1; i < a.positions.size(); ++i) {
    try {
      predict_one(model, s, a.positions[i], folder);
    } catch (const Error& e) {  // the other pictures may be fine
      std::fprintf(stderr, "twibil: %s: %s\n", a.positions[i].c_str(), e.what());
      status = 1;
    }
  }
  return status;
}

}  // namespace twibil::cli
