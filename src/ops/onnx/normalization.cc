// SPDX-License-Identifier: Apache-2.0
// Normalisations that NumPy-like layers do not cover, and dropout as ONNX says it.
#include <cmath>

#include "ops/nn/dropout.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(layer_norm)
TW_DECLARE(instance_norm)

namespace {

struct LayerAttrs {
  int64_t axis = -1, outputs = 1;
  double epsilon = 1e-5;
};
struct GroupAttrs {
  int64_t num_groups = 1;
  double epsilon = 1e-5;
  int64_t opset = 21;
};
struct RmsAttrs {
  int64_t axis = -1;
  double epsilon = 1e-5;
};
struct LpAttrs {
  int64_t axis = -1, p = 2;
};
struct MvnAttrs {
  IntList axes{0, 2, 3};
};
struct DropoutFormAttrs {
  int64_t outputs = 1;
};

IntList axes_from(int axis, int rank) {
  IntList list;
  for (int i = axis; i < rank; ++i) list.push_back(i);
  return list;
}
/// The dtype in which statistics are computed.
Val widened(const Val& x) { return is_half(x->dtype()) ? cast(x, DType::float32) : x; }

struct Moments {
  Val centred, mean, inverse;
};
Moments moments_of(const Val& x, const IntList& axes, double epsilon) {
  Val m = mean(x, Maybe<IntList>(axes), true), d = x - m;
  Val variance = mean(square(d), Maybe<IntList>(axes), true);
  return {d, m, reciprocal(sqrt(variance + Val(epsilon)))};
}

}  // namespace

inline constexpr Field kOnnxLayerFields[] = {TW_ATTR(LayerAttrs, axis, "First axis that is normalised."),
                                             TW_ATTR(LayerAttrs, epsilon, "Added to the variance."),
                                             TW_ATTR(LayerAttrs, outputs, "3: also mean and inverse deviation.")};
inline constexpr Field kOnnxGroupFields[] = {
    TW_ATTR(GroupAttrs, num_groups, "Number of groups of channels.", .required = true),
    TW_ATTR(GroupAttrs, epsilon, "Added to the variance."),
    TW_ATTR(GroupAttrs, opset, "Before 21 scale and bias belong to groups, then to channels.")};
inline constexpr Field kOnnxRmsFields[] = {TW_ATTR(RmsAttrs, axis, "First axis that is normalised."),
                                           TW_ATTR(RmsAttrs, epsilon, "Added to the mean of squares.")};
inline constexpr Field kOnnxLpFields[] = {TW_ATTR(LpAttrs, axis, "Axis of the vectors."),
                                          TW_ATTR(LpAttrs, p, "1 or 2.")};
inline constexpr Field kOnnxMvnFields[] = {TW_ATTR(MvnAttrs, axes, "Axes that are normalised together.")};
inline constexpr Field kOnnxDropoutFormFields[] = {TW_ATTR(DropoutFormAttrs, outputs, "2: also the mask.")};

TW_OP(onnx_layer_norm) = whole({
    .name = "onnx_layer_norm",
    .doc = "Normalises the axes from one on to mean 0 and variance 1, then scales and shifts.",
    .onnx = {.names = "LayerNormalization:17", .attrs = "outputs:@outputs", .unused = "stash_type=1"},
    .attrs = schema<LayerAttrs>(kOnnxLayerFields),
    .in = {{{.name = "X"}, {.name = "Scale"}, {.name = "B", .kind = SlotKind::optional}}},
    .count = count_rule<LayerAttrs>([](auto& a) { return a.outputs > 1 ? 3 : 1; }),
    .types = kFloats,
    .expand = expand_rule<LayerAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int rank = in[0]->rank(), axis = normalize_axis(a.axis, rank, "LayerNormalization");
      bool vectors = in[1]->rank() == 1 && in[2] && in[2]->rank() == 1;
      if (a.outputs <= 1 && axis == rank - 1 && vectors)
        return {With(op_layer_norm).set("axis", -1).set("eps", a.epsilon)({in[0], in[1], in[2]})};
      Moments m = moments_of(widened(in[0]), axes_from(axis, rank), a.epsilon);
      Val y = cast(m.centred * m.inverse, in[0]->dtype()) * in[1];
      if (in[2]) y = y + in[2];
      if (a.outputs <= 1) return {y};
      return {y, m.mean, m.inverse};
    }),
    .samples = {{{.in = {{{2, 3, 4}, SampleInput({4}), SampleInput({4})}}},
                 {.in = {{{2, 3, 4}, {3, 4}, {3, 4}}}, .attrs = "axis=1"}}},
});

TW_OP(onnx_group_norm) = whole({
    .name = "onnx_group_norm",
    .doc = "Normalises groups of channels to mean 0 and variance 1, then scales and shifts.",
    .onnx = {.names = "GroupNormalization:18", .attrs = "opset:@opset", .unused = "stash_type=1"},
    .attrs = schema<GroupAttrs>(kOnnxGroupFields),
    .in = {{{.name = "X"}, {.name = "scale"}, {.name = "bias"}}},
    .types = kFloats,
    .expand = expand_rule<GroupAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const Val& x = in[0];
      TW_CHECK(x->rank() >= 2 && a.num_groups > 0 && x->dims[1] % a.num_groups == 0, value,
               "GroupNormalization: ", a.num_groups, " groups must divide the channels of data of shape ", x->shape());
      int64_t n = x->dims[0], c = x->dims[1], groups = a.num_groups, each = c / groups;
      int64_t rest = 1;
      for (int i = 2; i < x->rank(); ++i) rest *= x->dims[i];
      Moments m = moments_of(reshape(widened(x), Shape{n, groups, each * rest}), {2}, a.epsilon);
      Val y = cast(m.centred * m.inverse, x->dtype());
      bool by_group = a.opset < 21;
      Shape view = by_group ? Shape{n, groups, each * rest} : Shape{n, c, rest}, per{1, by_group ? groups : c, 1};
      y = reshape(y, view) * reshape(in[1], per) + reshape(in[2], per);
      return {reshape(y, shape_of(x))};
    }),
    .samples = {{{.in = {{{2, 4, 3}, SampleInput({4}), SampleInput({4})}}, .attrs = "num_groups=2"}}},
});

TW_OP(onnx_rms_norm) = whole({
    .name = "onnx_rms_norm",
    .doc = "Divides the axes from one on by the root of their mean square, then scales.",
    .onnx = {.names = "RMSNormalization:23", .unused = "stash_type=1"},
    .attrs = schema<RmsAttrs>(kOnnxRmsFields),
    .in = {{{.name = "X"}, {.name = "scale"}}},
    .types = kFloats,
    .expand = expand_rule<RmsAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int rank = in[0]->rank(), axis = normalize_axis(a.axis, rank, "RMSNormalization");
      Val x = widened(in[0]);
      Val r = sqrt(mean(square(x), Maybe<IntList>(axes_from(axis, rank)), true) + Val(a.epsilon));
      return {cast(x / r, in[0]->dtype()) * in[1]};
    }),
    .samples = {{{.in = {{{2, 3, 4}, SampleInput({4})}}}}},
});

TW_OP(onnx_lp_normalization) = whole({
    .name = "onnx_lp_normalization",
    .doc = "Divides vectors along an axis by their norm; a zero vector stays.",
    .onnx = {.names = "LpNormalization"},
    .attrs = schema<LpAttrs>(kOnnxLpFields),
    .in = {{{.name = "input"}}},
    .types = kFloats,
    .expand = expand_rule<LpAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(a.p == 1 || a.p == 2, value, "LpNormalization: p must be 1 or 2; got ", a.p);
      IntList axis{normalize_axis(a.axis, in[0]->rank(), "LpNormalization")};
      Val n = a.p == 1 ? sum(absolute(in[0]), Maybe<IntList>(axis), true)
                       : sqrt(sum(square(in[0]), Maybe<IntList>(axis), true));
      return {in[0] / where(equal(n, Val(0.0)), ones_like(n), n)};
    }),
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(onnx_mean_variance_normalization) = whole({
    .name = "onnx_mean_variance_normalization",
    .doc = "Moves and scales axes to mean 0 and variance 1.",
    .onnx = {.names = "MeanVarianceNormalization:9"},
    .attrs = schema<MvnAttrs>(kOnnxMvnFields),
    .in = {{{.name = "X"}}},
    .types = kFloats,
    .expand = expand_rule<MvnAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val d = in[0] - mean(in[0], Maybe<IntList>(a.axes), true);
      return {d / (sqrt(mean(square(d), Maybe<IntList>(a.axes), true)) + Val(1e-9))};
    }),
    .samples = {{{.in = {{{2, 3, 2, 2}}}}}},
});

TW_OP(onnx_dropout) = whole({
    .name = "onnx_dropout",
    .doc = "The data; while one trains, elements are set to zero at random.",
    .onnx = {.names = "Dropout", .attrs = "outputs:@outputs", .unused = "seed"},
    .attrs = schema<DropoutFormAttrs>(kOnnxDropoutFormFields),
    .in = {{{.name = "data"},
            {.name = "ratio", .kind = SlotKind::optional, .value = true},
            {.name = "training_mode", .kind = SlotKind::optional, .value = true}}},
    .count = count_rule<DropoutFormAttrs>([](auto& a) { return a.outputs == 2 ? 2 : 1; }),
    .types = kFloats,
    .expand = expand_rule<DropoutFormAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      double p = in[1] ? real_of(in[1], "Dropout") : 0.5;
      bool always = in[2] && int_of(in[2], "Dropout") != 0 && p > 0;
      TW_CHECK(!always, not_implemented,
               "Dropout: training_mode is on in the model, so its results are random; train with autograd.record()");
      Val y = p > 0 ? With(op_dropout).set("p", p)({in[0]}) : in[0];
      if (a.outputs != 2) return {y};
      return {y, cast(ones_like(in[0]), DType::bool_)};
    }),
    .unfolds = true,
});

}  // namespace twibil::ops
