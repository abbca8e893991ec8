// SPDX-License-Identifier: Apache-2.0
// Output layers of MXNet 1: what they compute is a prediction, what they hand back is the gradient of a loss that
// nobody computes, whatever gradient arrives.
#include "ir/modes.h"
#include "ops/legacy/slices.h"
#include "ops/math/elementwise.h"

namespace twibil::ops {

TW_DECLARE(stop_gradient)
TW_DECLARE(with_gradient)
TW_DECLARE(log_softmax)

struct WithGradientAttrs {
  bool times_own = false;
};
inline constexpr Field kWithGradientFields[] = {
    TW_ATTR(WithGradientAttrs, times_own, "Whether y's own gradient is multiplied in.")};

TW_OP(with_gradient) = whole({
    .name = "with_gradient",
    .doc = "y, which in place of its own gradient hands dx back to x.",
    .attrs = schema<WithGradientAttrs>(kWithGradientFields),
    .in = {{{.name = "x"}, {.name = "y"}, {.name = "dx"}}},
    .infer = infer_rule<WithGradientAttrs>([](auto&, SigsIn in, SigsOut out) {
      TW_CHECK(in[0].shape == in[2].shape, value, "with_gradient: dx must have the shape ", in[0].shape, " of x; got ",
               in[2].shape);
      out[0] = {in[1].shape, in[1].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<WithGradientAttrs>([](auto&, Call& c) {
      std::copy_n(c.in[1].data, c.out[0].size * size_of(c.out[0].dtype), c.out[0].data);
    }),
    .same_dtype = true,
    .needs = X2,
    .grad = grad_rule<WithGradientAttrs>([](auto& a, const Grad& g) -> Vals {
      return {a.times_own ? g.x(2) * g.dy() : g.x(2)};
    }),
    .inplace = {{{0, 1}}},
    .samples = {{{.in = {{{3, 4}, {3, 4}, {3, 4}}}, .smooth = false}}},
});

namespace {

Val stop(const Val& x) { return apply(op_stop_gradient, {x}); }
/// y with the gradient that `make_gradient` gives for x; nothing is computed for it where nobody asks.
template <class F> Val replaced(const Val& x, const Val& y, F make_gradient, bool times_own = false) {
  TW_CHECK(is_floating(x->dtype()), type, "dtype ", x->dtype(), " of data is not supported; it must be a floating one");
  if (!modes.recording) return y;
  return apply(op_with_gradient, WithGradientAttrs{times_own}, {x, y, stop(make_gradient(stop(y)))});
}
double count_of(const Val& x) { return static_cast<double>(std::max<int64_t>(1, x->size())); }
double batch_of(const Val& x) { return static_cast<double>(x->rank() ? std::max<int64_t>(1, x->dims[0]) : 1); }
Val counted_true(const Val& condition, DType t) { return maximum(sum(cast(condition, t)), 1.0); }

enum Normalization { kNull, kBatch, kValid };
struct SoftmaxOutputAttrs {
  double grad_scale = 1, ignore_label = -1, smooth_alpha = 0;
  bool multi_output = false, use_ignore = false, preserve_shape = false, out_grad = false;
  Choice normalization;
};
constexpr Field kSoftmaxOutputFields[] = {
    TW_ATTR(SoftmaxOutputAttrs, grad_scale, "The gradient is multiplied by it."),
    TW_ATTR(SoftmaxOutputAttrs, ignore_label, "A label without gradient, with use_ignore."),
    TW_ATTR(SoftmaxOutputAttrs, multi_output, "Classes stand along axis 1, one label for each other position."),
    TW_ATTR(SoftmaxOutputAttrs, use_ignore, "Whether ignore_label is looked at."),
    TW_ATTR(SoftmaxOutputAttrs, preserve_shape, "Classes stand along the last axis."),
    TW_ATTR(SoftmaxOutputAttrs, normalization, "What the gradient is divided by.", .choices = "null|batch|valid"),
    TW_ATTR(SoftmaxOutputAttrs, out_grad, "Whether the gradient that arrives is multiplied in."),
    TW_ATTR(SoftmaxOutputAttrs, smooth_alpha, "Smooths labels."),
};

/// data as (rows, classes), and back.
struct Rows {
  const Val& data;
  bool multi;
  int64_t classes, positions;
  Rows(const SoftmaxOutputAttrs& a, const Val& x) : data(x), multi(a.multi_output && x->rank() > 2) {
    TW_CHECK(x->rank() >= 1, value, "SoftmaxOutput: data must have at least one axis");
    positions = 1;
    if (multi) {
      classes = x->dims[1];
      for (int i = 2; i < x->rank(); ++i) positions *= x->dims[i];
    } else if (a.preserve_shape || x->rank() == 1) {
      classes = x->dims[x->rank() - 1];
    } else {
      classes = 1;
      for (int i = 1; i < x->rank(); ++i) classes *= x->dims[i];
    }
  }
  int64_t count() const { return classes ? data->size() / classes : 0; }
  Val to(const Val& x) const {
    if (!multi) return reshape(x, Shape{count(), classes});
    Val y = transpose(reshape(x, Shape{data->dims[0], classes, positions}), {0, 2, 1});
    return reshape(y, Shape{count(), classes});
  }
  Val from(const Val& x) const {
    if (!multi) return reshape(x, Shape(data->shape()));
    Val y = transpose(reshape(x, Shape{data->dims[0], positions, classes}), {0, 2, 1});
    return reshape(y, Shape(data->shape()));
  }
};

Val softmax_gradient(const SoftmaxOutputAttrs& a, const Rows& rows, const Val& p, const Val& label) {
  DType t = p->dtype();
  if (label->size() == p->size()) return (p - cast(reshape(label, Shape(p->shape())), t)) * a.grad_scale;
  Val flat = reshape(label, Shape{rows.count()});
  double right = 1 - a.smooth_alpha,
         wrong = rows.classes > 1 ? a.smooth_alpha / static_cast<double>(rows.classes - 1) : 0;
  Val target = one_hot(cast(flat, DType::int64), rows.classes, t);
  if (a.smooth_alpha != 0) target = target * (right - wrong) + wrong;
  Val dx = rows.to(p) - target;
  if (a.use_ignore) dx = dx * expand_dims(cast(not_equal(flat, a.ignore_label), t), 1);
  dx = rows.from(dx);
  double by = a.normalization == kValid ? 1 : static_cast<double>(std::max<int64_t>(1, rows.positions));
  if (a.normalization == kBatch) by *= batch_of(label);
  dx = dx * (a.grad_scale / by);
  return a.normalization == kValid ? dx / counted_true(not_equal(flat, a.ignore_label), t) : dx;
}

struct ScaleAttrs {
  double grad_scale = 1;
};
constexpr Field kScaleFields[] = {TW_ATTR(ScaleAttrs, grad_scale, "The gradient is multiplied by it.")};

/// Regression: the gradient of a loss between the output and a label of the same size, per example.
template <class F>
Val regression(const char* who, const ScaleAttrs& a, const Val& data, const Val& y, const Val& label, F error) {
  TW_CHECK(label->size() == data->size(), value, who, ": label of shape ", label->shape(),
           " must have as many elements as data of shape ", data->shape());
  return replaced(data, y, [&](const Val& out) {
    Val d = error(out, cast(reshape(label, Shape(out->shape())), out->dtype()));
    return d * (a.grad_scale * batch_of(label) / count_of(label));
  });
}
/// A label that is not known has the shape of data.
void label_like_data(const void*, std::span<Sig> in) {
  if (in[0].present() && !in[1].present()) in[1] = in[0];
}
constexpr std::array<Slot, 14> kDataLabel = {{{.name = "data"}, {.name = "label"}}};
constexpr std::array<Sample, 6> kRegressionSamples = {{{.in = {{{3, 4}, {3, 4}}}, .smooth = false}}};

}  // namespace

TW_OP(softmax_output) = whole({
    .name = "softmax_output",
    .doc = "softmax(data); the gradient of data is that of the cross entropy with label.",
    .names = {"nd.SoftmaxOutput"},
    .graph = {.names = "SoftmaxOutput Softmax"},
    .attrs = schema<SoftmaxOutputAttrs>(kSoftmaxOutputFields),
    .in = kDataLabel,
    .types = kFloats,
    .complete = complete_rule<SoftmaxOutputAttrs>([](auto& a, std::span<Sig> in) {
      if (!in[0].present() || in[1].present()) return;
      const Shape& x = in[0].shape;
      Shape label;
      for (int i = 0; i < x.rank(); ++i) {
        bool kept = a.multi_output ? i != 1 : a.preserve_shape ? i + 1 < x.rank() : i == 0 && x.rank() > 1;
        if (kept) label.push_back(x[i]);
      }
      in[1] = {label, in[0].dtype};
    }),
    .expand = expand_rule<SoftmaxOutputAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Rows rows(a, in[0]);
      TW_CHECK(in[1]->size() == rows.count() || in[1]->size() == in[0]->size(), value, "SoftmaxOutput: label of shape ",
               in[1]->shape(), " must have a number for each of the ", rows.count(), " rows of data of shape ",
               in[0]->shape());
      Val y = rows.multi ? softmax(in[0], 1) : rows.from(softmax(rows.to(in[0]), -1));
      return {replaced(
          in[0], y, [&](const Val& p) { return softmax_gradient(a, rows, p, in[1]); }, a.out_grad)};
    }),
    .samples = {{{.in = {{{4, 5}, {{4}, Domain::index, 5}}}, .smooth = false},
                 {.in = {{{2, 3, 4}, {{2, 4}, Domain::index, 3}}},
                  .attrs = "multi_output=True, use_ignore=True, ignore_label=1, normalization=valid",
                  .smooth = false},
                 {.in = {{{4, 5}, {{4}, Domain::index, 5}}},
                  .attrs = "grad_scale=0.5, normalization=batch, smooth_alpha=0.1",
                  .smooth = false}}},
});

TW_OP(linear_regression_output) = whole({
    .name = "linear_regression_output",
    .doc = "data; its gradient is data - label.",
    .names = {"nd.LinearRegressionOutput"},
    .attrs = schema<ScaleAttrs>(kScaleFields),
    .in = kDataLabel,
    .types = kFloats,
    .complete = label_like_data,
    .expand = expand_rule<ScaleAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {regression("LinearRegressionOutput", a, in[0], copy(in[0]), in[1],
                         [](const Val& y, const Val& label) { return y - label; })};
    }),
    .samples = kRegressionSamples,
});

TW_OP(logistic_regression_output) = whole({
    .name = "logistic_regression_output",
    .doc = "sigmoid(data); the gradient of data is sigmoid(data) - label.",
    .names = {"nd.LogisticRegressionOutput"},
    .attrs = schema<ScaleAttrs>(kScaleFields),
    .in = kDataLabel,
    .types = kFloats,
    .complete = label_like_data,
    .expand = expand_rule<ScaleAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {regression("LogisticRegressionOutput", a, in[0], sigmoid(in[0]), in[1],
                         [](const Val& y, const Val& label) { return y - label; })};
    }),
    .samples = kRegressionSamples,
});

TW_OP(mae_regression_output) = whole({
    .name = "mae_regression_output",
    .doc = "data; its gradient is the sign of data - label.",
    .names = {"nd.MAERegressionOutput"},
    .attrs = schema<ScaleAttrs>(kScaleFields),
    .in = kDataLabel,
    .types = kFloats,
    .complete = label_like_data,
    .expand = expand_rule<ScaleAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {regression("MAERegressionOutput", a, in[0], copy(in[0]), in[1],
                         [](const Val& y, const Val& label) { return sign(y - label); })};
    }),
    .samples = kRegressionSamples,
});

struct SvmAttrs {
  double margin = 1, regularization_coefficient = 1;
  bool use_linear = false;
};
inline constexpr Field kSvmFields[] = {
    TW_ATTR(SvmAttrs, margin, "Scores of the right class must be above it, others below minus it."),
    TW_ATTR(SvmAttrs, regularization_coefficient, "The gradient is multiplied by it."),
    TW_ATTR(SvmAttrs, use_linear, "The hinge loss, in place of its square."),
};

TW_OP(svm_output) = whole({
    .name = "svm_output",
    .doc = "data; its gradient is that of the (squared) hinge loss with label.",
    .names = {"nd.SVMOutput"},
    .attrs = schema<SvmAttrs>(kSvmFields),
    .in = kDataLabel,
    .types = kFloats,
    .complete =
        [](const void*, std::span<Sig> in) {
          if (in[0].present() && in[0].rank() >= 1 && !in[1].present()) in[1] = {Shape{in[0].shape[0]}, in[0].dtype};
        },
    .expand = expand_rule<SvmAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(in[0]->rank() == 2 && in[1]->size() == in[0]->dims[0], value, "SVMOutput: data must have shape (batch, ",
               "classes) and label one number for each example; got ", in[0]->shape(), " and ", in[1]->shape());
      return {replaced(in[0], copy(in[0]), [&](const Val& x) {
        DType t = x->dtype();
        Val right = one_hot(cast(reshape(in[1], Shape{x->dims[0]}), DType::int64), x->dims[1], t);
        Val toward = right * -2.0 + 1.0;          // -1 at the right class
        Val excess = Val(a.margin) + toward * x;  // above 0 where the margin is missed
        Val slope = toward * cast(greater(excess, 0.0), t) * a.regularization_coefficient;
        return a.use_linear ? slope : slope * excess * 2.0;
      })};
    }),
    .samples = {{{.in = {{{4, 5}, {{4}, Domain::index, 5}}}, .smooth = false},
                 {.in = {{{4, 5}, {{4}, Domain::index, 5}}}, .attrs = "use_linear=True", .smooth = false}}},
});

struct MakeLossAttrs {
  double grad_scale = 1, valid_thresh = 0;
  Choice normalization;
};
inline constexpr Field kMakeLossFields[] = {
    TW_ATTR(MakeLossAttrs, grad_scale, "The gradient."),
    TW_ATTR(MakeLossAttrs, valid_thresh, "Elements above it count as valid."),
    TW_ATTR(MakeLossAttrs, normalization, "What the gradient is divided by.", .choices = "null|batch|valid"),
};

TW_OP(make_loss) = whole({
    .name = "make_loss",
    .doc = "data, a loss: its gradient is grad_scale, whatever arrives.",
    .names = {"nd.MakeLoss"},
    .graph = {.names = "MakeLoss make_loss"},
    .attrs = schema<MakeLossAttrs>(kMakeLossFields),
    .in = kData,
    .types = kFloats,
    .expand = expand_rule<MakeLossAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {replaced(in[0], copy(in[0]), [&](const Val& y) {
        double by = a.normalization == kBatch ? batch_of(y) : 1;
        Val dx = ones_like(y) * (a.grad_scale / by);
        return a.normalization == kValid ? dx / counted_true(greater(y, a.valid_thresh), y->dtype()) : dx;
      })};
    }),
    .samples = {{{.in = {{{3, 4}}}, .smooth = false},
                 {.in = {{{3, 4}}}, .attrs = "grad_scale=0.5, normalization=valid", .smooth = false}}},
});

// MXNet's has one element in an array of one axis.
TW_OP(softmax_cross_entropy) = whole({
    .name = "softmax_cross_entropy",
    .doc = "The sum of -log(softmax(data)) at the labels, in an array of shape (1,).",
    .names = {"nd.softmax_cross_entropy"},
    .in = kDataLabel,
    .types = kFloats,
    .complete =
        [](const void*, std::span<Sig> in) {
          if (in[0].present() && in[0].rank() >= 1 && !in[1].present()) in[1] = {Shape{in[0].shape[0]}, in[0].dtype};
        },
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      TW_CHECK(in[0]->rank() == 2 && in[1]->size() == in[0]->dims[0], value, "softmax_cross_entropy: data must have ",
               "shape (batch, classes) and label one number for each example; got ", in[0]->shape(), " and ",
               in[1]->shape());
      Val right = one_hot(cast(reshape(in[1], Shape{in[0]->dims[0]}), DType::int64), in[0]->dims[1], in[0]->dtype());
      return {reshape(-sum(apply(op_log_softmax, {in[0]}) * right), Shape{1})};
    },
    .samples = {{{.in = {{{4, 5}, {{4}, Domain::index, 5}}}}}},
});

}  // namespace twibil::ops
