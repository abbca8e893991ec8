// SPDX-License-Identifier: Apache-2.0
// Anchors, targets and detections of single-shot detectors, with MXNet's semantics.
#include <vector>

#include "base/recycled.h"
#include "kernels/detection.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

struct PriorAttrs {
  DoubleList sizes{1.0}, ratios{1.0};
  bool clip = false;
  DoubleList steps{-1.0, -1.0}, offsets{0.5, 0.5};
};
struct TargetAttrs {
  double overlap_threshold = 0.5, ignore_label = -1, negative_mining_ratio = -1, negative_mining_thresh = 0.5;
  int64_t minimum_negative_samples = 0;
  DoubleList variances{0.1, 0.1, 0.2, 0.2};
};
struct DetectionAttrs {
  bool clip = true;
  double threshold = 0.01;
  int64_t background_id = 0;
  double nms_threshold = 0.5;
  bool force_suppress = false;
  DoubleList variances{0.1, 0.1, 0.2, 0.2};
  int64_t nms_topk = -1;
};
struct IouAttrs {
  Choice format;
};
struct NmsAttrs {
  double overlap_thresh = 0.5, valid_thresh = 0;
  int64_t topk = -1, coord_start = 2, score_index = 1, id_index = -1, background_id = -1;
  bool force_suppress = false;
  Choice in_format, out_format;
};

void set_variances(const DoubleList& from, float* to, const char* who) {
  TW_CHECK(from.size() == 4, value, who, ": variances must be 4 numbers; got ", from.size());
  for (int i = 0; i < 4; ++i) to[i] = static_cast<float>(from[i]);
}
Recycled<float> floats(const DoubleList& list) { return {list.begin(), list.end()}; }
constexpr DTypeSet kSingle = bit_of(DType::float32);

/// Boxes as float32, whatever float they come in.
struct Singles {
  Recycled<float> held;
  const float* data;
  explicit Singles(const Buffer& b) : data(b.as<float>()) {
    if (b.dtype == DType::float32) return;
    held.resize(static_cast<size_t>(b.size));
    kernels::convert_row(b.dtype, DType::float32, b.data, held.data(), b.size);
    data = held.data();
  }
};

}  // namespace

inline constexpr Field kPriorFields[] = {
    TW_ATTR(PriorAttrs, sizes, "Sizes of anchors, as fractions of the picture."),
    TW_ATTR(PriorAttrs, ratios, "Ratios of width to height."),
    TW_ATTR(PriorAttrs, clip, "Cuts anchors to [0, 1]."),
    TW_ATTR(PriorAttrs, steps, "Distance of centres (y, x); -1: one over the map's size."),
    TW_ATTR(PriorAttrs, offsets, "Place of centres (y, x) within their cells."),
};
TW_OP(multibox_prior) = whole({
    .name = "multibox_prior",
    .doc = "Anchor boxes for every cell of a feature map: (1, height * width * (sizes + ratios - 1), 4), as corners.",
    .names = {"npx.multibox_prior", "nd.contrib.MultiBoxPrior"},
    .attrs = schema<PriorAttrs>(kPriorFields),
    .in = {{{.name = "data", .doc = "(batch, channels, height, width); only its size is used."}}},
    .infer = infer_rule<PriorAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(in[0].rank() == 4, value, "multibox_prior: data must have shape (batch, channels, height, width); got ",
               in[0].shape);
      TW_CHECK(!a.sizes.empty() && !a.ratios.empty(), value, "multibox_prior: sizes and ratios must not be empty");
      TW_CHECK(a.steps.size() == 2 && a.offsets.size() == 2, value,
               "multibox_prior: steps and offsets must be pairs (y, x)");
      for (double s : a.sizes) TW_CHECK(s > 0, value, "multibox_prior: sizes must be positive; got ", s);
      for (double r : a.ratios) TW_CHECK(r > 0, value, "multibox_prior: ratios must be positive; got ", r);
      int64_t per_cell = a.sizes.size() + a.ratios.size() - 1;
      out[0] = {Shape{1, checked_mul(checked_mul(in[0].shape[2], in[0].shape[3]), per_cell), 4}, DType::float32};
    }),
    .types = kFloats,
    .kernel = cpu_rule<PriorAttrs>([](auto& a, Call& c) {
      Recycled<float> sizes = floats(a.sizes), ratios = floats(a.ratios);
      kernels::MultiBoxPrior p{.sizes = sizes,
                               .ratios = ratios,
                               .clip = a.clip,
                               .step_y = static_cast<float>(a.steps[0]),
                               .step_x = static_cast<float>(a.steps[1]),
                               .offset_y = static_cast<float>(a.offsets[0]),
                               .offset_x = static_cast<float>(a.offsets[1])};
      kernels::multibox_prior(p, c.in[0].dim(2), c.in[0].dim(3), c.out[0].template as<float>());
    }),
    .strided = true,
    .no_grad = "anchors depend on the map's size only",
    .samples = {{{.in = {{{1, 3, 4, 5}}}, .attrs = "sizes=(0.5, 0.25), ratios=(1, 2, 0.5)"}}},
});

inline constexpr Field kTargetFields[] = {
    TW_ATTR(TargetAttrs, overlap_threshold, "Anchors with a larger overlap (IoU) take the object."),
    TW_ATTR(TargetAttrs, ignore_label, "Class of anchors that do not count."),
    TW_ATTR(TargetAttrs, negative_mining_ratio, "Negatives per positive, the hardest ones; -1: all."),
    TW_ATTR(TargetAttrs, negative_mining_thresh, "Only anchors with a smaller overlap can be negatives."),
    TW_ATTR(TargetAttrs, minimum_negative_samples, "Accepted; without effect, as in MXNet."),
    TW_ATTR(TargetAttrs, variances, "What the offsets (x, y, w, h) are divided by."),
};
TW_OP(multibox_target) = whole({
    .name = "multibox_target",
    .doc = "Training targets of anchors: offsets (batch, anchors * 4), their mask, and classes (batch, anchors), 0 for "
           "the background.",
    .names = {"npx.multibox_target", "nd.contrib.MultiBoxTarget"},
    .attrs = schema<TargetAttrs>(kTargetFields),
    .in = {{{.name = "anchor", .doc = "(1, anchors, 4) as corners."},
            {.name = "label", .doc = "(batch, objects, 5): class (-1: none), corners."},
            {.name = "cls_pred", .doc = "(batch, classes + 1, anchors)."}}},
    .out = {{"loc_target", "loc_mask", "cls_target"}},
    .infer = infer_rule<TargetAttrs>([](auto& a, SigsIn in, SigsOut out) {
      const Shape &anchor = in[0].shape, &label = in[1].shape, &pred = in[2].shape;
      TW_CHECK(anchor.rank() == 3 && anchor[0] == 1 && anchor[2] == 4, value,
               "multibox_target: anchor must have shape (1, anchors, 4); got ", anchor);
      TW_CHECK(label.rank() == 3 && label[2] >= 5, value,
               "multibox_target: label must have shape (batch, objects, 5 or more); got ", label);
      TW_CHECK(pred.rank() == 3 && pred[0] == label[0] && pred[1] >= 1 && pred[2] == anchor[1], value,
               "multibox_target: cls_pred must have shape (", label[0], ", classes + 1, ", anchor[1], "); got ", pred);
      TW_CHECK(a.variances.size() == 4, value, "multibox_target: variances must be 4 numbers; got ",
               a.variances.size());
      Shape loc{label[0], checked_mul(anchor[1], 4)};
      out[0] = out[1] = {loc, DType::float32};
      out[2] = {Shape{label[0], anchor[1]}, DType::float32};
    }),
    .types = kFloats,
    .kernel = cpu_rule<TargetAttrs>([](auto& a, Call& c) {
      kernels::MultiBoxTarget t{.overlap_threshold = static_cast<float>(a.overlap_threshold),
                                .ignore_label = static_cast<float>(a.ignore_label),
                                .negative_mining_ratio = static_cast<float>(a.negative_mining_ratio),
                                .negative_mining_thresh = static_cast<float>(a.negative_mining_thresh),
                                .minimum_negative_samples = a.minimum_negative_samples};
      set_variances(a.variances, t.variances, "multibox_target");
      Singles anchor(c.in[0]), label(c.in[1]), pred(c.in[2]);
      bool enough = kernels::multibox_target(
          t, c.in[0].dim(1), anchor.data, c.in[1].dim(0), c.in[1].dim(1), c.in[1].dim(2), label.data, c.in[2].dim(1),
          pred.data, c.out[0].template as<float>(), c.out[1].template as<float>(), c.out[2].template as<float>());
      TW_CHECK(enough, value,
               "multibox_target: negative mining needs more anchors with an overlap below negative_mining_thresh = ",
               a.negative_mining_thresh);
    }),
    .no_grad = "targets are constants of the training",
    .samples = {{{.in = {{{{1, 6, 4}, Domain::boxes}, {{2, 2, 5}, Domain::boxes}, {2, 3, 6}}}}}},
});

inline constexpr Field kDetectionFields[] = {
    TW_ATTR(DetectionAttrs, clip, "Cuts boxes to [0, 1]."),
    TW_ATTR(DetectionAttrs, threshold, "Least score of a detection."),
    TW_ATTR(DetectionAttrs, background_id, "Accepted; class 0 is the background, as in MXNet."),
    TW_ATTR(DetectionAttrs, nms_threshold, "Overlap from which the lower score is suppressed."),
    TW_ATTR(DetectionAttrs, force_suppress, "Suppresses across classes too."),
    TW_ATTR(DetectionAttrs, variances, "What the offsets are multiplied by."),
    TW_ATTR(DetectionAttrs, nms_topk, "Only the best this many take part; -1: all."),
};
TW_OP(multibox_detection) = whole({
    .name = "multibox_detection",
    .doc = "Detections (batch, anchors, 6) from scores and offsets: rows (class, score, corners), class -1 where "
           "nothing was found.",
    .names = {"npx.multibox_detection", "nd.contrib.MultiBoxDetection"},
    .attrs = schema<DetectionAttrs>(kDetectionFields),
    .in = {{{.name = "cls_prob", .doc = "(batch, classes + 1, anchors)."},
            {.name = "loc_pred", .doc = "(batch, anchors * 4)."},
            {.name = "anchor", .doc = "(1, anchors, 4)."}}},
    .infer = infer_rule<DetectionAttrs>([](auto& a, SigsIn in, SigsOut out) {
      const Shape &prob = in[0].shape, &loc = in[1].shape, &anchor = in[2].shape;
      TW_CHECK(prob.rank() == 3 && prob[1] >= 1, value,
               "multibox_detection: cls_prob must have shape (batch, classes + 1, anchors); got ", prob);
      const int64_t numbers = checked_mul(prob[2], 4);
      TW_CHECK(loc.rank() == 2 && loc[0] == prob[0] && loc[1] == numbers, value,
               "multibox_detection: loc_pred must have shape (", prob[0], ", ", numbers, "); got ", loc);
      TW_CHECK(anchor.rank() == 3 && anchor[0] == 1 && anchor[1] == prob[2] && anchor[2] == 4, value,
               "multibox_detection: anchor must have shape (1, ", prob[2], ", 4); got ", anchor);
      TW_CHECK(a.variances.size() == 4, value, "multibox_detection: variances must be 4 numbers; got ",
               a.variances.size());
      out[0] = {Shape{prob[0], prob[2], 6}, DType::float32};
    }),
    .types = kFloats,
    .kernel = cpu_rule<DetectionAttrs>([](auto& a, Call& c) {
      kernels::MultiBoxDetection d{.clip = a.clip,
                                   .threshold = static_cast<float>(a.threshold),
                                   .background_id = a.background_id,
                                   .nms_threshold = static_cast<float>(a.nms_threshold),
                                   .force_suppress = a.force_suppress};
      set_variances(a.variances, d.variances, "multibox_detection");
      d.nms_topk = a.nms_topk;
      Singles prob(c.in[0]), loc(c.in[1]), anchor(c.in[2]);
      kernels::multibox_detection(d, c.in[0].dim(0), c.in[0].dim(1), c.in[0].dim(2), prob.data, loc.data, anchor.data,
                                  c.out[0].template as<float>());
    }),
    .no_grad = "which boxes stay changes in jumps",
    .samples = {{{.in = {{{{2, 3, 6}, Domain::positive}, {2, 24}, {{1, 6, 4}, Domain::boxes}}}}}},
});

inline constexpr Field kIouFields[] = {TW_ATTR(
    IouAttrs, format, "corner: (xmin, ymin, xmax, ymax); center: (x, y, width, height).", .choices = "corner|center")};
TW_OP(box_iou) = whole({
    .name = "box_iou",
    .doc = "Intersection over union of every box of lhs with every box of rhs: lhs.shape[:-1] + rhs.shape[:-1].",
    .names = {"npx.box_iou", "nd.contrib.box_iou"},
    .attrs = schema<IouAttrs>(kIouFields),
    .in = {{{.name = "lhs", .doc = "(..., 4)."}, {.name = "rhs", .doc = "(..., 4)."}}},
    .infer = infer_rule<IouAttrs>([](auto&, SigsIn in, SigsOut out) {
      for (int k = 0; k < 2; ++k)
        TW_CHECK(in[k].rank() >= 1 && in[k].shape[in[k].rank() - 1] == 4, value, "box_iou: ", k ? "rhs" : "lhs",
                 " must have shape (..., 4); got ", in[k].shape);
      Shape y(in[0].shape.span().first(static_cast<size_t>(in[0].rank() - 1)));
      for (int i = 0; i + 1 < in[1].rank(); ++i) y.push_back(in[1].shape[i]);
      out[0] = {y, DType::float32};
    }),
    .types = kFloats,
    .kernel = cpu_rule<IouAttrs>([](auto& a, Call& c) {
      Singles x(c.in[0]), y(c.in[1]);
      kernels::box_iou(a.format == 1, c.in[0].size / 4, x.data, c.in[1].size / 4, y.data,
                       c.out[0].template as<float>());
    }),
    .no_grad = "boxes are matched, not trained, through it",
    .samples = {{{.in = {{{{3, 4}, Domain::boxes}, {{5, 4}, Domain::boxes}}}}}},
});

extern const OpDef op_box_nms_grad;
inline constexpr Field kNmsFields[] = {
    TW_ATTR(NmsAttrs, overlap_thresh, "Overlap above which the lower score goes."),
    TW_ATTR(NmsAttrs, valid_thresh, "Scores must be above this."),
    TW_ATTR(NmsAttrs, topk, "Only the best this many stay; -1: all."),
    TW_ATTR(NmsAttrs, coord_start, "Column of the first coordinate."),
    TW_ATTR(NmsAttrs, score_index, "Column of the score."),
    TW_ATTR(NmsAttrs, id_index, "Column of the class; -1: one class."),
    TW_ATTR(NmsAttrs, background_id, "Boxes of this class go."),
    TW_ATTR(NmsAttrs, force_suppress, "Suppresses across classes too."),
    TW_ATTR(NmsAttrs, in_format, "Format of the boxes.", .choices = "corner|center"),
    TW_ATTR(NmsAttrs, out_format, "Format of the result.", .choices = "corner|center"),
};
TW_OP(box_nms) = whole({
    .name = "box_nms",
    .doc = "Non-maximum suppression: the boxes that stay, by falling score, then rows of -1.",
    .names = {"npx.box_nms", "nd.contrib.box_nms"},
    .attrs = schema<NmsAttrs>(kNmsFields),
    .in = {{{.name = "data", .doc = "(..., boxes, columns)."}}},
    .out = {{"y", "index"}},
    .visible = 1,
    .infer = infer_rule<NmsAttrs>([](auto& a, SigsIn in, SigsOut out) {
      const Shape& x = in[0].shape;
      TW_CHECK(x.rank() >= 2 && x[x.rank() - 1] >= 5, value,
               "box_nms: data must have shape (..., boxes, columns) with at least 5 columns; got ", x);
      int64_t width = x[x.rank() - 1];
      TW_CHECK(a.coord_start >= 0 && a.coord_start <= width - 4, value, "box_nms: coord_start ", a.coord_start,
               " leaves no room for 4 coordinates in ", width, " columns");
      TW_CHECK(a.score_index >= 0 && a.score_index < width, value, "box_nms: score_index ", a.score_index,
               " is out of range for ", width, " columns");
      TW_CHECK(a.id_index < width, value, "box_nms: id_index ", a.id_index, " is out of range for ", width, " columns");
      out[0] = {x, DType::float32};
      out[1] = {Shape(x.span().first(static_cast<size_t>(x.rank() - 1))), DType::int64};
    }),
    .types = kFloats,
    .kernel = cpu_rule<NmsAttrs>([](auto& a, Call& c) {
      kernels::BoxNms n{.overlap_thresh = static_cast<float>(a.overlap_thresh),
                        .valid_thresh = static_cast<float>(a.valid_thresh),
                        .topk = a.topk,
                        .coord_start = a.coord_start,
                        .score_index = a.score_index,
                        .id_index = a.id_index,
                        .background_id = a.background_id,
                        .force_suppress = a.force_suppress,
                        .in_center = a.in_format == 1,
                        .out_center = a.out_format == 1};
      const Buffer& x = c.in[0];
      int64_t width = x.dim(x.rank - 1), boxes = x.dim(x.rank - 2), batch = x.size > 0 ? x.size / (boxes * width) : 0;
      Singles data(x);
      kernels::box_nms(n, batch, boxes, width, data.data, c.out[0].template as<float>(),
                       c.out[1].template as<int64_t>());
    }),
    .needs = Y1,
    .grad = grad_rule<NmsAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_box_nms_grad, a, {g.dy(), g.y(1)})};
    }),
    .samples = {{{.in = {{{{1, 5, 6}, Domain::boxes}}}, .smooth = false}}},
});
TW_OP(box_nms_grad) = whole({
    .name = "box_nms_grad",
    .doc = "The gradient of box_nms: rows of dy back where they came from.",
    .attrs = schema<NmsAttrs>(kNmsFields),
    .in = {{{.name = "dy"}, {.name = "index"}}},
    .infer = infer_rule<NmsAttrs>([](auto&, SigsIn in, SigsOut out) {
      const Shape& dy = in[0].shape;
      TW_CHECK(dy.rank() >= 2 && in[1].dtype == DType::int64 &&
                   in[1].shape == Shape(dy.span().first(static_cast<size_t>(dy.rank() - 1))),
               value, "box_nms_grad: index must be int64 of dy's shape without the last axis; got ", in[1], " for ",
               in[0]);
      out[0] = in[0];
    }),
    .types = kSingle,
    .kernel = cpu_rule<NmsAttrs>([](auto&, Call& c) {
      const Buffer& dy = c.in[0];
      kernels::fill(DType::float32, dy.shape(), c.out[0].data, Strides(c.out[0]), Scalar(0));
      int64_t width = dy.dim(dy.rank - 1), boxes = dy.dim(dy.rank - 2);
      for (int64_t row = 0; row < c.in[1].size; ++row) {
        int64_t from = c.in[1].template as<int64_t>()[row];
        TW_CHECK(from < boxes, index, "box_nms_grad: index ", from, " is out of range for ", boxes, " boxes");
        if (from >= 0)
          std::copy_n(dy.template as<float>() + row * width, width,
                      c.out[0].template as<float>() + (row / boxes * boxes + from) * width);
      }
    }),
    .no_grad = "second gradients of suppression are not of use",
    .samples = {{{.in = {{{1, 5, 6}, {{1, 5}, Domain::index, 5}}}}}},
});

}  // namespace twibil::ops
