// SPDX-License-Identifier: Apache-2.0
// Losses over class scores in the second axis.
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(log_softmax)
TW_DECLARE(take_along_axis)

namespace {

struct LossAttrs {
  Choice reduction;
  Maybe<int64_t> ignore_index;
  int64_t outputs = 1;
};
enum Reduction { kMean, kSum, kNone };

/// Minus the score of each target, weighted; `log_p` is (batch, classes, sizes...), targets (batch, sizes...).
Val likelihood_loss(const LossAttrs& a, const Val& log_p, const Val& target, const Val& weight, const char* who) {
  TW_CHECK(log_p->rank() >= 2 && target->rank() == log_p->rank() - 1, value, who, ": scores of shape ", log_p->shape(),
           " need targets without the class axis; got shape ", target->shape());
  int64_t classes = log_p->dims[1];
  Val t = cast(target, DType::int64), zero = zeros_like(t), ignored, w;
  if (a.ignore_index) {
    ignored = equal(t, Val(*a.ignore_index));
    t = where(ignored, zero, t);  // any class will do: it weighs nothing
  }
  Val loss = -at_index(With(op_take_along_axis).set("axis", 1)({log_p, expand_dims(t, 1)}), 1, 0);
  if (weight) {
    TW_CHECK(weight->rank() == 1 && weight->dims[0] == classes, value, who, ": weight must have shape [", classes,
             "]; got ", weight->shape());
    Val flat = With(op_take_along_axis).set("axis", 0)({weight, reshape(t, Shape{t->size()})});
    w = reshape(flat, shape_of(t));
  }
  if (ignored) {
    Val none = zeros_like(loss);
    w = where(ignored, none, w ? w : ones_like(loss));
  }
  if (w) loss = loss * w;
  if (a.reduction == kNone) return loss;
  Val total = sum(loss);
  if (a.reduction == kSum) return total;
  return w ? total / sum(w) : mean(loss);
}

}  // namespace

inline constexpr Field kOnnxLossFields[] = {
    TW_ATTR(LossAttrs, reduction, "What becomes of the losses.", .choices = "mean|sum|none"),
    TW_ATTR(LossAttrs, ignore_index, "A target that does not count; None: all do."),
    TW_ATTR(LossAttrs, outputs, "2: also the logarithms of the probabilities.")};

TW_OP(onnx_negative_log_likelihood) = whole({
    .name = "onnx_negative_log_likelihood",
    .doc = "Minus the logarithm of the probability of each target.",
    .onnx = {.names = "NegativeLogLikelihoodLoss:12"},
    .attrs = schema<LossAttrs>(kOnnxLossFields),
    .in = {{{.name = "input"}, {.name = "target"}, {.name = "weight", .kind = SlotKind::optional}}},
    .types = kFloats,
    .expand = expand_rule<LossAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {likelihood_loss(a, in[0], in[1], in[2], "NegativeLogLikelihoodLoss")};
    }),
    .samples = {{{.in = {{{3, 4}, SampleInput({3}, Domain::index, 4)}}}}},
});

TW_OP(onnx_softmax_cross_entropy) = whole({
    .name = "onnx_softmax_cross_entropy",
    .doc = "Minus the logarithm of the softmax of the scores at each target.",
    .onnx = {.names = "SoftmaxCrossEntropyLoss:12", .attrs = "outputs:@outputs"},
    .attrs = schema<LossAttrs>(kOnnxLossFields),
    .in = {{{.name = "scores"}, {.name = "labels"}, {.name = "weights", .kind = SlotKind::optional}}},
    .count = count_rule<LossAttrs>([](auto& a) { return a.outputs == 2 ? 2 : 1; }),
    .types = kFloats,
    .expand = expand_rule<LossAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val p = With(op_log_softmax).set("axis", 1)({in[0]});
      Val loss = likelihood_loss(a, p, in[1], in[2], "SoftmaxCrossEntropyLoss");
      if (a.outputs != 2) return {loss};
      return {loss, p};
    }),
    .samples = {{{.in = {{{3, 4}, SampleInput({3}, Domain::index, 4)}}}}},
});

}  // namespace twibil::ops
