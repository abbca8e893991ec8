// SPDX-License-Identifier: Apache-2.0
// What a model wants of pictures, and what its results mean: NAME-predict.json beside the model.
//
//   {"size": [224, 224],              rows and columns; pictures are resized to it
//    "divide": 255,                   an element is (pixel / divide - mean) / std, channel by channel
//    "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
//    "classes": ["tench", "goldfish"],
//    "scores": "logits",              of a classifier: softmax is to be applied; or "probabilities"
//    "detector": {"threshold": 0.4, "overlap": 0.45}}    for networks that find boxes
//
// Every member may be missing. A detector gives rows of class, score, left, top, right, bottom, or its anchors, class
// scores and box offsets.
#pragma once
#include <string>
#include <vector>

#include "twibil/model.h"

namespace twibil::cli {

struct PredictSettings {
  int64_t height = 224, width = 224;
  double divide = 255;
  std::vector<double> mean{0, 0, 0}, std{1, 1, 1};
  std::vector<std::string> classes;
  bool logits = true;
  bool detector = false;
  double threshold = 0.4, overlap = 0.45;
  bool found = false;  // there was a file

  std::string class_name(int64_t i) const {
    return i >= 0 && i < static_cast<int64_t>(classes.size()) ? classes[static_cast<size_t>(i)] : text("class ", i);
  }
};
PredictSettings read_settings(const Model& model);
/// What the graph says of an input.
Hint hint_of(const Model& model, const std::string& input);

}  // namespace twibil::cli
