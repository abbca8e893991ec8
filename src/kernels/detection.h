// SPDX-License-Identifier: Apache-2.0
// Boxes of single-shot detectors, with the semantics of MXNet 1.9.1 (tests/fixtures/detection holds its answers). All
// arrays are float32 and contiguous; pictures run in parallel. A corner box is (xmin, ymin, xmax, ymax), a centre box
// (x, y, w, h).
#pragma once
#include <cstdint>
#include <span>

namespace twibil::kernels {

struct MultiBoxPrior {
  std::span<const float> sizes, ratios;    // at least one of each
  bool clip = false;                       // to [0, 1]
  float step_y = -1, step_x = -1;          // distance of centres; not positive: 1 / height, 1 / width
  float offset_y = 0.5f, offset_x = 0.5f;  // of the centre inside its cell, in cells
};

/// Anchors of a height x width feature map: per cell (row by row) every size with the first ratio, then the first size
/// with every other ratio; y has height * width * (sizes + ratios - 1) corner boxes.
void multibox_prior(const MultiBoxPrior& prior, int64_t height, int64_t width, float* y);

struct MultiBoxTarget {
  float overlap_threshold = 0.5f;  // anchors with a larger IoU are positive; <= 0: bipartite matches only
  float ignore_label = -1;         // class of anchors that are neither positive nor negative
  float negative_mining_ratio =
      -1;  // > 0: negatives per positive, the hardest ones; else every other anchor is negative
  float negative_mining_thresh = 0.5f;   // only anchors whose best IoU is below can be mined
  int64_t minimum_negative_samples = 0;  // accepted and, as in MXNet's CPU operator, without effect
  float variances[4] = {0.1f, 0.1f, 0.2f, 0.2f};
};

/// anchors [anchors, 4]; labels [batch, labels, label_width >= 5] rows (class, corner box, ...), the first row of class
/// -1 ends a picture's list; preds [batch, classes, anchors] class scores before softmax, class 0 the background (only
/// read when mining). loc [batch, anchors * 4]: encoded offsets of positives, else 0; mask: 1 for them; cls [batch,
/// anchors]: class + 1, 0 for negatives, ignore_label else. Every object first gets its best free anchor (highest IoU
/// of all pairs first, lower anchor then lower object on ties, IoU above 1e-6), then anchors take their best object
/// above the threshold. A picture without objects has loc and mask 0 and cls ignore_label everywhere. False: mining
/// found fewer candidates than it needs (MXNet raises).
bool multibox_target(const MultiBoxTarget& target, int64_t anchors, const float* anchor, int64_t batch, int64_t labels,
                     int64_t label_width, const float* label, int64_t classes, const float* preds, float* loc,
                     float* mask, float* cls);

struct MultiBoxDetection {
  bool clip = true;             // boxes to [0, 1]
  float threshold = 0.01f;      // least score
  int64_t background_id = 0;    // accepted; class 0 is the background whatever it says, as in MXNet
  float nms_threshold = 0.5f;   // IoU from which the lower score goes; NMS is skipped outside (0, 1]
  bool force_suppress = false;  // NMS across classes
  float variances[4] = {0.1f, 0.1f, 0.2f, 0.2f};
  int64_t nms_topk = -1;  // > 0: only the best this many go through NMS, the rest gets class -1
};

/// prob [batch, classes, anchors], loc [batch, anchors * 4] encoded offsets, anchors [anchors, 4] corner. y [batch,
/// anchors, 6]: rows (class - 1, score, corner box) by falling score, suppressed ones with class -1 in their place,
/// then rows of -1. When NMS is skipped rows stay in the order of their anchors.
void multibox_detection(const MultiBoxDetection& detection, int64_t batch, int64_t classes, int64_t anchors,
                        const float* prob, const float* loc, const float* anchor, float* y);

/// y[i, j] = IoU of a[i] and b[j]; an empty or turned box has area 0, and 0 / 0 is 0.
void box_iou(bool center, int64_t a_count, const float* a, int64_t b_count, const float* b, float* y);

struct BoxNms {
  float overlap_thresh = 0.5f;                              // a box goes when its IoU with a better one is larger
  float valid_thresh = 0;                                   // boxes with a score not above are dropped
  int64_t topk = -1;                                        // > 0: only the best this many valid boxes stay
  int64_t coord_start = 2, score_index = 1, id_index = -1;  // columns; id_index < 0: one class
  int64_t background_id = -1;                  // boxes of this class (-1 too) are dropped where id_index >= 0
  bool force_suppress = false;                 // across classes
  bool in_center = false, out_center = false;  // formats
};

/// x, y [batch, n, width]: the rows that stay, by falling score (earlier first on ties), then rows of -1. index [batch,
/// n] (may be null): the row of x that a row of y is, or -1; the gradient is dx[index[i]] = dy[i], 0 for rows that
/// went.
void box_nms(const BoxNms& nms, int64_t batch, int64_t n, int64_t width, const float* x, float* y, int64_t* index);

}  // namespace twibil::kernels
