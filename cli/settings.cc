// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "api/io/file.h"
#include "api/io/json.h"

namespace twibil::cli {

namespace {

using io::Json;

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    io::Bytes bytes = io::read_file(path, 1 << 24);
    root_ = io::parse_json(io::text_of(bytes), path);
    TW_CHECK(root_.is(Json::Kind::object), value, path, ": an object {...} is needed");
  }
  const Json& root() const { return root_; }

  double number(const Json& j, const char* key, double least, double most) const {
    double v = j.is(Json::Kind::integer) ? static_cast<double>(j.integer) : j.real;
    check((j.is(Json::Kind::integer) || j.is(Json::Kind::real)) && v >= least && v <= most, j, key,
          text("a number from ", least, " to ", most));
    return v;
  }
  int64_t whole(const Json& j, const char* key, int64_t least, int64_t most) const {
    check(j.is(Json::Kind::integer) && j.integer >= least && j.integer <= most, j, key,
          text("a whole number from ", least, " to ", most));
    return j.integer;
  }
  const std::vector<Json>& list(const Json& j, const char* key, size_t size, const char* of) const {
    check(j.is(Json::Kind::array) && (size == 0 || j.items.size() == size), j, key,
          size ? text("a list of ", size, " ", of) : text("a list of ", of));
    return j.items;
  }
  const std::string& string(const Json& j, const char* key) const {
    check(j.is(Json::Kind::string), j, key, "text");
    return j.string;
  }
  void check(bool held, const Json& j, const char* key, const std::string& what) const {
    TW_CHECK(held, value, path_, ": byte ", j.offset, ": ", key, " must be ", what);
  }

 private:
  std::string path_;
  Json root_;
};

void read_detector(const Reader& r, const Json& j, PredictSettings& s) {
  r.check(j.is(Json::Kind::object), j, "detector", "an object {...}");
  s.detector = true;
  for (const auto& [key, value] : j.members) {
    if (key == "threshold") s.threshold = r.number(value, "threshold", 0, 1);
    else if (key == "overlap") s.overlap = r.number(value, "overlap", 0, 1);
    else r.check(false, value, key.c_str(), "threshold or overlap (of a detector)");
  }
}

}  // namespace

Hint hint_of(const Model& model, const std::string& input) {
  for (const SymbolNode* v : variables_of(model.symbol().outputs()))
    if (v->name == input) return v->hint;
  return {};
}

PredictSettings read_settings(const Model& model) {
  PredictSettings s;
  if (model.inputs().size() == 1) {  // a graph may say the size of its pictures
    Hint h = hint_of(model, model.inputs()[0]);
    bool pictures = h.has_shape && h.shape.rank() == 4;
    if (pictures && h.shape[2] > 0 && h.shape[3] > 0) s.height = h.shape[2], s.width = h.shape[3];
  }
  std::string path = model.stem() + "-predict.json";
  if (!std::filesystem::exists(path)) return s;
  s.found = true;
  Reader r(path);
  auto channels = [&](const Json& j, const char* key) {
    std::vector<double> v;
    for (const Json& item : r.list(j, key, 3, "numbers")) v.push_back(r.number(item, key, -1e6, 1e6));
    return v;
  };
  for (const auto& [key, value] : r.root().members) {
    if (key == "size") {
      const auto& sides = r.list(value, "size", 2, "whole numbers");
      s.height = r.whole(sides[0], "size", 1, 16384);
      s.width = r.whole(sides[1], "size", 1, 16384);
    } else if (key == "divide") {
      s.divide = r.number(value, "divide", 1e-6, 1e6);
    } else if (key == "mean") {
      s.mean = channels(value, "mean");
    } else if (key == "std") {
      s.std = channels(value, "std");
      for (double v : s.std) r.check(v != 0, value, "std", "numbers that are not 0");
    } else if (key == "classes") {
      for (const Json& item : r.list(value, "classes", 0, "names")) s.classes.push_back(r.string(item, "classes"));
    } else if (key == "scores") {
      const std::string& word = r.string(value, "scores");
      r.check(word == "logits" || word == "probabilities", value, "scores", "logits or probabilities");
      s.logits = word == "logits";
    } else if (key == "detector") {
      read_detector(r, value, s);
    } else {
      r.check(false, value, key.c_str(), "one of size, divide, mean, std, classes, scores, detector");
    }
  }
  return s;
}

}  // namespace twibil::cli
