// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along an axis; plain, limited to a length per row, or under a mask.
#include "kernels/softmax.h"

#include <vector>

#include "base/recycled.h"
#include "ops/axes.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

extern const OpDef op_softmax_grad, op_log_softmax_grad;

namespace {

struct Around {  // sizes before, at and after the axis
  int axis;
  kernels::SoftmaxShape shape;
  Around(const Buffer& x, int64_t axis_attr, const char* who) : axis(normalize_axis(axis_attr, x.rank, who)) {
    shape = {x.dtype, 1, x.dims[axis], 1};
    for (int i = 0; i < axis; ++i) shape.outer *= x.dims[i];
    for (int i = axis + 1; i < x.rank; ++i) shape.inner *= x.dims[i];
  }
};

void infer_softmax(const SoftmaxAttrs& a, SigsIn in, SigsOut out, const char* who) {
  normalize_axis(a.axis, in[0].rank(), who);
  TW_CHECK(!a.temperature || *a.temperature != 0, value, who, ": temperature must not be 0");
  TW_CHECK(a.use_length == in[1].present(), value, who, ": length must be given exactly when use_length is true");
  if (a.use_length) {
    Shape rows = in[0].shape;
    rows.erase(normalize_axis(a.axis, in[0].rank(), who));
    TW_CHECK(in[1].shape == rows, value, who, ": length must have shape ", rows, " (data without the axis); got ",
             in[1].shape);
  }
  DType t = a.dtype.value_or(in[0].dtype);
  out[0] = {in[0].shape, is_floating(t) ? t : default_float()};
}

void run_softmax(const SoftmaxAttrs& a, Call& c, bool log, const char* who) {
  const Buffer& y = c.out[0];
  copy_buffer(c.in[0], y);  // in the result's dtype
  Around around(y, a.axis, who);
  Recycled<int64_t> lengths;
  kernels::SoftmaxMask mask;
  if (c.in[1].present()) {
    lengths.resize(static_cast<size_t>(c.in[1].size));
    kernels::convert_row(c.in[1].dtype, DType::int64, c.in[1].data, lengths.data(), c.in[1].size);
    mask.lengths = lengths.data();
  }
  kernels::softmax(around.shape, log, a.temperature.value_or(1.0), mask, y.data, y.data);
}

Val temper(const SoftmaxAttrs& a, const Val& dx) { return a.temperature ? dx / *a.temperature : dx; }

}  // namespace

inline constexpr Field kSoftmaxFields[] = {
    TW_ATTR(SoftmaxAttrs, axis, "Axis that sums to one."),
    TW_ATTR(SoftmaxAttrs, temperature, "Divides the data first; None: 1."),
    TW_ATTR(SoftmaxAttrs, dtype, "dtype of the result; None: that of the data."),
    TW_ATTR(SoftmaxAttrs, use_length, "Whether `length` limits each row; the rest is 0."),
};

TW_OP(softmax) = whole({
    .name = "softmax",
    .doc = "Maps data to positive values that sum to one along `axis`: exp(x - max) / sum(exp(x - max)).",
    .names = {"npx.softmax", "nd.softmax"},
    .onnx = {.names = "Softmax:13", .attrs = "axis=-1"},
    .attrs = schema<SoftmaxAttrs>(kSoftmaxFields),
    .in = {{{.name = "data"},
            {.name = "length", .kind = SlotKind::optional, .doc = "Valid elements per row, integers."}}},
    .infer = infer_rule<SoftmaxAttrs>([](auto& a, SigsIn in, SigsOut out) { infer_softmax(a, in, out, "softmax"); }),
    .types = kAll,
    .kernel = cpu_rule<SoftmaxAttrs>([](auto& a, Call& c) { run_softmax(a, c, false, "softmax"); }),
    .needs = Y0,
    .grad = grad_rule<SoftmaxAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_softmax_grad, a, {g.y(), g.dy()})};
    }),
    .inplace = {{{0, 0}}},
    .rows = rows_before_axis<SoftmaxAttrs>(),
    .samples = {{{.in = {{{4, 7}}}},
                 {.in = {{{2, 3, 4}}}, .attrs = "axis=1, temperature=2.0"},
                 {.in = {{{2, 4}, SampleInput({2}, Domain::index, 5)}}, .attrs = "use_length=True"}}},
});

TW_OP(log_softmax) = whole({
    .name = "log_softmax",
    .doc = "The logarithm of softmax, computed directly: x - max - log(sum(exp(x - max))).",
    .names = {"npx.log_softmax", "nd.log_softmax"},
    .onnx = {.names = "LogSoftmax:13", .attrs = "axis=-1"},
    .attrs = schema<SoftmaxAttrs>(kSoftmaxFields),
    .in = {{{.name = "data"},
            {.name = "length", .kind = SlotKind::optional, .doc = "Valid elements per row, integers."}}},
    .infer = infer_rule<SoftmaxAttrs>([](auto& a, SigsIn in, SigsOut out) {
      infer_softmax(a, in, out, "log_softmax");
    }),
    .types = kAll,
    .kernel = cpu_rule<SoftmaxAttrs>([](auto& a, Call& c) { run_softmax(a, c, true, "log_softmax"); }),
    .needs = Y0,
    .grad = grad_rule<SoftmaxAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_log_softmax_grad, a, {g.y(), g.dy()})};
    }),
    .inplace = {{{0, 0}}},
    .rows = rows_before_axis<SoftmaxAttrs>(),
    .samples = {{{.in = {{{4, 7}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1, temperature=2.0"}}},
});

inline constexpr auto kGradInfer = infer_rule<SoftmaxAttrs>([](auto&, SigsIn in, SigsOut out) {
  TW_CHECK(in[0].shape == in[1].shape, value, "y and dy must have one shape; got ", in[0].shape, " and ", in[1].shape);
  out[0] = {in[0].shape, in[0].dtype};
});

TW_OP(softmax_grad) = whole({
    .name = "softmax_grad",
    .doc = "The gradient of softmax from its result: y * (dy - sum(dy * y)) / temperature.",
    .attrs = schema<SoftmaxAttrs>(kSoftmaxFields),
    .in = {{{.name = "y"}, {.name = "dy"}}},
    .infer = kGradInfer,
    .types = kFloats,
    .kernel = cpu_rule<SoftmaxAttrs>([](auto& a, Call& c) {
      Around around(c.in[0], a.axis, "softmax");
      kernels::softmax_backward(around.shape, false, a.temperature.value_or(1.0), c.in[0].data, c.in[1].data,
                                c.out[0].data);
    }),
    .same_dtype = true,
    .needs = X0 | X1,
    .grad = grad_rule<SoftmaxAttrs>([](auto& a, const Grad& g) -> Vals {
      Val y = g.x(0), dy = g.x(1), h = temper(a, g.dy());
      IntList axis{a.axis};
      Val dot = sum(dy * y, axis, true), hy = sum(h * y, axis, true);
      return {g.wants(0) ? h * (dy - dot) - hy * dy : Val(), g.wants(1) ? y * (h - hy) : Val()};
    }),
    .inplace = {{{0, 1}}},
    .rows = rows_before_axis<SoftmaxAttrs>(),
    .samples = {{{.in = {{{4, 7}, {4, 7}}}}}},
});

TW_OP(log_softmax_grad) = whole({
    .name = "log_softmax_grad",
    .doc = "The gradient of log_softmax from its result: (dy - exp(y) * sum(dy)) / temperature.",
    .attrs = schema<SoftmaxAttrs>(kSoftmaxFields),
    .in = {{{.name = "y"}, {.name = "dy"}}},
    .infer = kGradInfer,
    .types = kFloats,
    .kernel = cpu_rule<SoftmaxAttrs>([](auto& a, Call& c) {
      Around around(c.in[0], a.axis, "log_softmax");
      kernels::softmax_backward(around.shape, true, a.temperature.value_or(1.0), c.in[0].data, c.in[1].data,
                                c.out[0].data);
    }),
    .same_dtype = true,
    .needs = X0 | X1,
    .grad = grad_rule<SoftmaxAttrs>([](auto& a, const Grad& g) -> Vals {
      Val p = exp(g.x(0)), dy = g.x(1), h = temper(a, g.dy());
      IntList axis{a.axis};
      return {g.wants(0) ? -(h * p * sum(dy, axis, true)) : Val(), g.wants(1) ? h - sum(h * p, axis, true) : Val()};
    }),
    .inplace = {{{0, 1}}},
    .rows = rows_before_axis<SoftmaxAttrs>(),
    .samples = {{{.in = {{{4, 7}, {4, 7}}}}}},
});

struct MaskedAttrs {
  int64_t axis = -1;
  Maybe<double> temperature;
  bool normalize = true;
};
inline constexpr Field kMaskedFields[] = {
    TW_ATTR(MaskedAttrs, axis, "Axis that sums to one over the true elements."),
    TW_ATTR(MaskedAttrs, temperature, "Divides the data first; None: 1."),
    TW_ATTR(MaskedAttrs, normalize, "Accepted for compatibility: the maximum is always taken off.",
            .keyword_only = true),
};
static void run_masked(const MaskedAttrs& a, Call& c, bool log, const char* who) {
  const Buffer& y = c.out[0];
  copy_buffer(c.in[0], y);
  Around around(y, a.axis, who);
  Recycled<uint8_t> mask(static_cast<size_t>(y.size));  // broadcast to the data
  int64_t strides[kMaxRank];
  contiguous_strides(y.shape(), strides);
  kernels::convert(c.in[1].dtype, DType::bool_, y.shape(), c.in[1].data, Strides(c.in[1], y.shape()), mask.data(),
                   {strides, y.rank});
  kernels::SoftmaxMask limit;
  limit.mask = mask.data();
  kernels::softmax(around.shape, log, a.temperature.value_or(1.0), limit, y.data, y.data);
}
static void infer_masked(const MaskedAttrs& a, SigsIn in, SigsOut out, const char* who) {
  normalize_axis(a.axis, in[0].rank(), who);
  TW_CHECK(broadcast(in[0].shape, in[1].shape, who) == in[0].shape, value, who, ": mask of shape ", in[1].shape,
           " does not broadcast to data of shape ", in[0].shape);
  out[0] = {in[0].shape, in[0].dtype};
}

/// The mask goes with the rows, or is one for all of them.
static constexpr RowsFunction kMaskedRows = rows_rule<MaskedAttrs>([](auto& a, SigsIn in) -> Rows {
  const Shape &x = in[0].shape, &mask = in[1].shape;
  int axis = normalize_axis(a.axis, x.rank(), "masked_softmax"), lost = x.rank() - mask.rank();
  bool one = true;
  for (int i = lost; i < axis; ++i) one = one && mask[i - lost] == 1;
  return one ? Rows{axis, 2} : Rows{lost ? 0 : std::min(axis, common_axes(x, mask))};
});

TW_OP(masked_softmax) = whole({
    .name = "masked_softmax",
    .doc = "Softmax over the elements where mask is true; the others are 0.",
    .names = {"npx.masked_softmax"},
    .attrs = schema<MaskedAttrs>(kMaskedFields),
    .in = {{{.name = "data"}, {.name = "mask", .doc = "Bool, broadcast to the data."}}},
    .infer = infer_rule<MaskedAttrs>([](auto& a, SigsIn in, SigsOut out) {
      infer_masked(a, in, out, "masked_softmax");
    }),
    .types = kFloats,
    .kernel = cpu_rule<MaskedAttrs>([](auto& a, Call& c) { run_masked(a, c, false, "masked_softmax"); }),
    .needs = Y0,
    .grad = grad_rule<MaskedAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_softmax_grad, SoftmaxAttrs{a.axis, a.temperature}, {g.y(), g.dy()})};
    }),
    .inplace = {{{0, 0}}},
    .rows = kMaskedRows,
    .samples = {{{.in = {{{4, 7}, {{4, 7}, Domain::boolean}}}}}},
});

TW_OP(masked_log_softmax) = whole({
    .name = "masked_log_softmax",
    .doc = "The logarithm of masked_softmax; minus infinity where mask is false.",
    .names = {"npx.masked_log_softmax"},
    .attrs = schema<MaskedAttrs>(kMaskedFields),
    .in = {{{.name = "data"}, {.name = "mask", .doc = "Bool, broadcast to the data."}}},
    .infer = infer_rule<MaskedAttrs>([](auto& a, SigsIn in, SigsOut out) {
      infer_masked(a, in, out, "masked_log_softmax");
    }),
    .types = kFloats,
    .kernel = cpu_rule<MaskedAttrs>([](auto& a, Call& c) { run_masked(a, c, true, "masked_log_softmax"); }),
    .needs = X1 | Y0,
    .grad = grad_rule<MaskedAttrs>([](auto& a, const Grad& g) -> Vals {
      Val dy = where(g.x(1), g.dy(), Val(0.0));
      return {apply(op_log_softmax_grad, SoftmaxAttrs{a.axis, a.temperature}, {g.y(), cast(dy, g.dy()->dtype())})};
    }),
    .rows = kMaskedRows,
    .samples = {{{.in = {{{4, 7}, {{4, 7}, Domain::boolean}}}, .smooth = false}}},
});

}  // namespace twibil::ops
