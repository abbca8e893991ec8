// SPDX-License-Identifier: Apache-2.0
// Decoding of predictions, and non-maximum suppression.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/parallel.h"
#include "base/recycled.h"
#include "kernels/detection.h"

namespace twibil::kernels {
namespace {

float overlap(const float* a, const float* b, float a_area, float b_area) {
  float w = std::max(0.0f, std::min(a[2], b[2]) - std::max(a[0], b[0]));
  float h = std::max(0.0f, std::min(a[3], b[3]) - std::max(a[1], b[1]));
  float both = w * h, either = a_area + b_area - both;
  return either <= 0 ? 0.0f : both / either;
}
float area_of(const float* b) { return (b[2] - b[0]) * (b[3] - b[1]); }

void decode(const float* a, const float* p, const MultiBoxDetection& d, float* to) {
  float aw = a[2] - a[0], ah = a[3] - a[1], ax = (a[0] + a[2]) / 2, ay = (a[1] + a[3]) / 2;
  float x = p[0] * d.variances[0] * aw + ax, y = p[1] * d.variances[1] * ah + ay;
  float w = std::exp(p[2] * d.variances[2]) * aw / 2, h = std::exp(p[3] * d.variances[3]) * ah / 2;
  to[0] = x - w, to[1] = y - h, to[2] = x + w, to[3] = y + h;
  if (d.clip)
    for (int k = 0; k < 4; ++k) to[k] = std::max(0.0f, std::min(1.0f, to[k]));
}

// Writes the rows of one picture's anchors that are some object; returns their number.
int64_t detect(const MultiBoxDetection& d, int64_t classes, int64_t anchors, const float* prob, const float* loc,
               const float* anchor, float* y) {
  int64_t found = 0;
  for (int64_t i = 0; i < anchors; ++i) {
    float score = -1;
    int64_t id = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (prob[c * anchors + i] > score) score = prob[c * anchors + i], id = c;
    if (id == 0 || score < d.threshold) continue;
    float* row = y + 6 * found++;
    row[0] = static_cast<float>(id - 1);
    row[1] = score;
    decode(anchor + 4 * i, loc + 4 * i, d, row + 2);
  }
  return found;
}

// Sorts the first `found` rows and marks those that a better one covers.
void suppress(const MultiBoxDetection& d, int64_t found, float* y) {
  Recycled<float> rows(y, y + 6 * found);
  Recycled<int64_t> order(found);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows[6 * a + 1] > rows[6 * b + 1]; });
  int64_t keep = d.nms_topk > 0 ? std::min(d.nms_topk, found) : found;
  for (int64_t i = keep; i < found; ++i) y[6 * i] = -1;  // dropped rows stay in the order of their anchors
  for (int64_t i = 0; i < keep; ++i) std::copy_n(&rows[6 * order[i]], 6, y + 6 * i);
  for (int64_t i = 0; i < keep; ++i) {
    const float* better = y + 6 * i;
    if (better[0] < 0) continue;
    float area = area_of(better + 2);
    for (int64_t j = i + 1; j < keep; ++j) {
      float* other = y + 6 * j;
      if (other[0] < 0 || (!d.force_suppress && other[0] != better[0])) continue;
      if (overlap(better + 2, other + 2, area, area_of(other + 2)) >= d.nms_threshold) other[0] = -1;
    }
  }
}

void to_corner(const float* box, bool center, float* to) {
  if (!center) std::copy_n(box, 4, to);
  else
    to[0] = box[0] - box[2] / 2, to[1] = box[1] - box[3] / 2, to[2] = box[0] + box[2] / 2, to[3] = box[1] + box[3] / 2;
}

class NmsOfPicture {
 public:
  NmsOfPicture(const BoxNms& p, int64_t n, int64_t width, const float* x) : p_(p), width_(width), x_(x) {
    for (int64_t i = 0; i < n; ++i) {
      bool background = p.id_index >= 0 && id_of(i) == static_cast<float>(p.background_id);
      if (score_of(i) > p.valid_thresh && !background) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return score_of(a) > score_of(b); });
    if (p.topk > 0 && p.topk < static_cast<int64_t>(order_.size())) order_.resize(p.topk);
    boxes_.resize(4 * order_.size());
    for (size_t i = 0; i < order_.size(); ++i) to_corner(row(order_[i]) + p.coord_start, p.in_center, &boxes_[4 * i]);
  }

  /// Rows of x that stay, best first.
  Recycled<int64_t> run() {
    size_t n = order_.size();
    Recycled<char> gone(n, false);
    Recycled<float> area(n);
    Recycled<int64_t> kept;
    for (size_t i = 0; i < n; ++i) {
      const float* b = &boxes_[4 * i];
      area[i] = b[2] < b[0] || b[3] < b[1] ? 0.0f : area_of(b);
    }
    bool by_class = !p_.force_suppress && p_.id_index >= 0;
    for (size_t i = 0; i < n; ++i) {
      if (gone[i]) continue;
      kept.push_back(order_[i]);
      for (size_t j = i + 1; j < n; ++j)
        if (!gone[j] && (!by_class || id_of(order_[i]) == id_of(order_[j])))
          gone[j] = overlap(&boxes_[4 * i], &boxes_[4 * j], area[i], area[j]) > p_.overlap_thresh;
    }
    return kept;
  }

  void write(int64_t i, float* to) const {
    std::copy_n(row(i), width_, to);
    float* box = to + p_.coord_start;
    // MXNet takes a negative first coordinate for an absent row and leaves the box as it is.
    if (p_.in_center == p_.out_center || box[0] < 0) return;
    float b[4];
    to_corner(row(i) + p_.coord_start, p_.in_center, b);
    if (p_.out_center)
      box[0] = (b[0] + b[2]) / 2, box[1] = (b[1] + b[3]) / 2, box[2] = b[2] - b[0], box[3] = b[3] - b[1];
    else std::copy_n(b, 4, box);
  }

 private:
  const float* row(int64_t i) const { return x_ + i * width_; }
  float score_of(int64_t i) const { return row(i)[p_.score_index]; }
  float id_of(int64_t i) const { return row(i)[p_.id_index]; }

  const BoxNms& p_;
  int64_t width_;
  const float* x_;
  Recycled<int64_t> order_;
  Recycled<float> boxes_;  // corners, in order
};

}  // namespace

void multibox_detection(const MultiBoxDetection& d, int64_t batch, int64_t classes, int64_t anchors, const float* prob,
                        const float* loc, const float* anchor, float* y) {
  if (anchors == 0) return;
  std::fill_n(y, batch * anchors * 6, -1.0f);
  parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      float* rows = y + b * anchors * 6;
      int64_t found = detect(d, classes, anchors, prob + b * classes * anchors, loc + b * anchors * 4, anchor, rows);
      if (found > 0 && d.nms_threshold > 0 && d.nms_threshold <= 1) suppress(d, found, rows);
    }
  });
}

void box_nms(const BoxNms& nms, int64_t batch, int64_t n, int64_t width, const float* x, float* y, int64_t* index) {
  std::fill_n(y, batch * n * width, -1.0f);
  if (index) std::fill_n(index, batch * n, int64_t{-1});
  parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      NmsOfPicture picture(nms, n, width, x + b * n * width);
      int64_t at = b * n;
      for (int64_t i : picture.run()) {
        picture.write(i, y + at * width);
        if (index) index[at] = i;
        ++at;
      }
    }
  });
}

}  // namespace twibil::kernels
