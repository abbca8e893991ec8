// SPDX-License-Identifier: Apache-2.0
// Anchors, their targets, and IoU. Arithmetic is in float32 in MXNet's order, so that thresholds fall the same way.
#include "kernels/detection.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/recycled.h"
#include "base/parallel.h"
#include "kernels/copy_convert.h"
#include "kernels/copy_dims.h"

namespace twibil::kernels {
namespace {

// Boxes by coordinate, so that one box meets many in a vector loop.
struct BoxColumns {
  Recycled<float> x0, y0, x1, y1, area;

  BoxColumns(int64_t n, const float* box, bool center) : x0(n), y0(n), x1(n), y1(n), area(n) {
    for (int64_t i = 0; i < n; ++i, box += 4) {
      float w = center ? box[2] / 2 : 0, h = center ? box[3] / 2 : 0;
      x0[i] = center ? box[0] - w : box[0], x1[i] = center ? box[0] + w : box[2];
      y0[i] = center ? box[1] - h : box[1], y1[i] = center ? box[1] + h : box[3];
    }
  }
};

void iou_with_all(const float (&b)[4], float b_area, const BoxColumns& a, int64_t first, int64_t n, float* y) {
  const float *x0 = a.x0.data() + first, *y0 = a.y0.data() + first, *x1 = a.x1.data() + first,
              *y1 = a.y1.data() + first;
  const float* area = a.area.data() + first;
  for (int64_t i = 0; i < n; ++i) {
    float w = std::min(x1[i], b[2]) - std::max(x0[i], b[0]), h = std::min(y1[i], b[3]) - std::max(y0[i], b[1]);
    float both = (w > 0 ? w : 0.0f) * (h > 0 ? h : 0.0f), either = area[i] + b_area - both;
    y[i] = either > 0 ? both / either : 0.0f;
  }
}

class TargetOfPicture {
 public:
  TargetOfPicture(const MultiBoxTarget& p, int64_t anchors, const float* anchor, const BoxColumns& columns,
                  int64_t labels, int64_t label_width, const float* label)
      : p_(p),
        anchors_(anchors),
        width_(label_width),
        anchor_(anchor),
        label_(label),
        state_(anchors, kFree),
        object_(anchors, -1),
        best_(anchors, -1.0f) {
    while (objects_ < labels && object_class(objects_) != -1.0f) ++objects_;
    iou_.resize(objects_ * anchors);
    for (int64_t k = 0; k < objects_; ++k) {
      const float* box = label + k * label_width + 1;
      float corner[4] = {box[0], box[1], box[2], box[3]};
      iou_with_all(corner, (box[2] - box[0]) * (box[3] - box[1]), columns, 0, anchors, iou(k));
    }
  }
  int64_t objects() const { return objects_; }

  void match() {
    match_each_object();
    find_best_objects();
    if (p_.overlap_threshold <= 0) return;
    for (int64_t j = 0; j < anchors_; ++j)
      if (state_[j] == kFree && best_[j] > p_.overlap_threshold) state_[j] = kPositive;
  }

  bool choose_negatives(int64_t classes, const float* preds) {
    if (!(p_.negative_mining_ratio > 0)) {
      for (auto& s : state_)
        if (s == kFree) s = kNegative;
      return true;
    }
    int64_t positives = std::count(state_.begin(), state_.end(), kPositive);
    int64_t wanted = convert_value<int64_t>(static_cast<float>(positives) * p_.negative_mining_ratio);
    wanted = std::min(wanted, anchors_ - positives);
    Recycled<std::pair<float, int64_t>> candidates;  // probability of background, anchor
    for (int64_t j = 0; j < anchors_; ++j)
      if (state_[j] == kFree && best_[j] < p_.negative_mining_thresh)
        candidates.emplace_back(background_probability(classes, preds + j), j);
    std::stable_sort(candidates.begin(), candidates.end(), [](auto& a, auto& b) { return a.first < b.first; });
    int64_t found = static_cast<int64_t>(candidates.size());
    for (int64_t i = 0; i < std::min(wanted, found); ++i) state_[candidates[i].second] = kNegative;
    return found >= wanted;
  }

  void write(float* loc, float* mask, float* cls) const {
    for (int64_t j = 0; j < anchors_; ++j) {
      if (state_[j] == kNegative) cls[j] = 0;
      if (state_[j] != kPositive) continue;
      cls[j] = object_class(object_[j]) + 1;
      std::fill_n(mask + 4 * j, 4, 1.0f);
      encode(anchor_ + 4 * j, label_ + object_[j] * width_ + 1, loc + 4 * j);
    }
  }

 private:
  enum State : int8_t { kFree, kNegative, kPositive };

  float object_class(int64_t k) const { return label_[k * width_]; }
  float* iou(int64_t k) { return iou_.data() + k * anchors_; }

  // The best free anchor of an object: its IoU, or 1e-6 and -1 when none is above.
  std::pair<float, int64_t> best_free_anchor(int64_t k) {
    const float* row = iou(k);
    std::pair<float, int64_t> best(1e-6f, -1);
    for (int64_t j = 0; j < anchors_; ++j)
      if (row[j] > best.first && state_[j] == kFree) best = {row[j], j};
    return best;
  }

  void match_each_object() {
    Recycled<std::pair<float, int64_t>> best(objects_);
    Recycled<char> open(objects_, true);
    for (int64_t k = 0; k < objects_; ++k) best[k] = best_free_anchor(k);
    for (;;) {
      int64_t pick = -1;
      for (int64_t k = 0; k < objects_; ++k) {
        if (!open[k] || best[k].second < 0) continue;
        bool better = pick < 0 || best[k].first > best[pick].first ||
                      (best[k].first == best[pick].first && best[k].second < best[pick].second);
        if (better) pick = k;
      }
      if (pick < 0) return;
      int64_t taken = best[pick].second;
      open[pick] = false;
      state_[taken] = kPositive, object_[taken] = pick, best_[taken] = best[pick].first;
      for (int64_t k = 0; k < objects_; ++k)
        if (open[k] && best[k].second == taken) best[k] = best_free_anchor(k);
    }
  }

  void find_best_objects() {
    for (int64_t k = 0; k < objects_; ++k) {
      const float* row = iou(k);
      for (int64_t j = 0; j < anchors_; ++j)
        if (state_[j] == kFree && row[j] > best_[j]) best_[j] = row[j], object_[j] = k;
    }
  }

  float background_probability(int64_t classes, const float* scores) const {
    float top = scores[0], sum = 0;
    for (int64_t c = 1; c < classes; ++c) top = std::max(top, scores[c * anchors_]);
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(scores[c * anchors_] - top);
    return std::exp(scores[0] - top) / sum;
  }

  void encode(const float* a, const float* g, float* to) const {
    float aw = a[2] - a[0], ah = a[3] - a[1], ax = (a[0] + a[2]) * 0.5f, ay = (a[1] + a[3]) * 0.5f;
    float gw = g[2] - g[0], gh = g[3] - g[1], gx = (g[0] + g[2]) * 0.5f, gy = (g[1] + g[3]) * 0.5f;
    to[0] = (gx - ax) / aw / p_.variances[0];
    to[1] = (gy - ay) / ah / p_.variances[1];
    to[2] = std::log(gw / aw) / p_.variances[2];
    to[3] = std::log(gh / ah) / p_.variances[3];
  }

  const MultiBoxTarget& p_;
  int64_t anchors_, width_, objects_ = 0;
  const float *anchor_, *label_;
  Recycled<float> iou_;  // [objects, anchors]
  std::vector<State> state_;
  Recycled<int64_t> object_;
  Recycled<float> best_;
};

}  // namespace

void multibox_prior(const MultiBoxPrior& p, int64_t height, int64_t width, float* y) {
  if (width == 0) return;  // there may be 2^60 empty rows
  float step_y = p.step_y > 0 ? p.step_y : 1.0f / static_cast<float>(height);
  float step_x = p.step_x > 0 ? p.step_x : 1.0f / static_cast<float>(width);
  Recycled<float> half;  // (w, h) / 2 of every anchor of a cell
  auto add = [&](float size, float ratio) {
    float root = std::sqrt(ratio);
    half.push_back(size * static_cast<float>(height) / static_cast<float>(width) * root / 2);
    half.push_back(size / root / 2);
  };
  for (float size : p.sizes) add(size, p.ratios[0]);
  for (size_t i = 1; i < p.ratios.size(); ++i) add(p.sizes[0], p.ratios[i]);
  for (int64_t r = 0; r < height; ++r)
    for (int64_t c = 0; c < width; ++c) {
      float cy = (static_cast<float>(r) + p.offset_y) * step_y, cx = (static_cast<float>(c) + p.offset_x) * step_x;
      for (size_t i = 0; i < half.size(); i += 2, y += 4) {
        y[0] = cx - half[i], y[1] = cy - half[i + 1], y[2] = cx + half[i], y[3] = cy + half[i + 1];
        if (p.clip)
          for (int k = 0; k < 4; ++k) y[k] = std::clamp(y[k], 0.0f, 1.0f);
      }
    }
}

bool multibox_target(const MultiBoxTarget& target, int64_t anchors, const float* anchor, int64_t batch, int64_t labels,
                     int64_t label_width, const float* label, int64_t classes, const float* preds, float* loc,
                     float* mask, float* cls) {
  if (anchors == 0) return true;
  BoxColumns columns(anchors, anchor, false);
  for (int64_t j = 0; j < anchors; ++j)
    columns.area[j] = (columns.x1[j] - columns.x0[j]) * (columns.y1[j] - columns.y0[j]);
  std::fill_n(loc, batch * anchors * 4, 0.0f);
  std::fill_n(mask, batch * anchors * 4, 0.0f);
  std::fill_n(cls, batch * anchors, target.ignore_label);
  Recycled<char> complete(batch, true);
  parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      TargetOfPicture picture(target, anchors, anchor, columns, labels, label_width, label + b * labels * label_width);
      if (picture.objects() == 0) continue;
      picture.match();
      complete[b] = picture.choose_negatives(classes, preds + b * classes * anchors);
      picture.write(loc + b * anchors * 4, mask + b * anchors * 4, cls + b * anchors);
    }
  });
  return std::find(complete.begin(), complete.end(), false) == complete.end();
}

void box_iou(bool center, int64_t a_count, const float* a, int64_t b_count, const float* b, float* y) {
  // The loop over b is the inner one: columns of b, one box of a at a time.
  auto area = [](float x0, float y0, float x1, float y1) { return x1 < x0 || y1 < y0 ? 0.0f : (x1 - x0) * (y1 - y0); };
  BoxColumns rows(a_count, a, center), columns(b_count, b, center);
  for (auto* c : {&rows, &columns})
    for (size_t i = 0; i < c->area.size(); ++i) c->area[i] = area(c->x0[i], c->y0[i], c->x1[i], c->y1[i]);
  parallel_for(a_count, std::max<int64_t>(1, kPiece / 2 / std::max<int64_t>(1, b_count)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   float box[4] = {rows.x0[i], rows.y0[i], rows.x1[i], rows.y1[i]};
                   iou_with_all(box, rows.area[i], columns, 0, b_count, y + i * b_count);
                 }
               });
}

}  // namespace twibil::kernels
