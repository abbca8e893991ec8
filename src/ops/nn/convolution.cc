// SPDX-License-Identifier: Apache-2.0
// Convolutions in one to three dimensions and their transposes. Each gradient is an operator with gradients of its own,
// so every order exists.
#include "kernels/convolution.h"

#include "ops/legacy/slices.h"
#include "ops/nn/blocked_convolution.h"
#include "ops/shape/join.h"

namespace twibil::ops {

struct ConvolutionAttrs {
  IntList kernel, stride, dilate, pad;
  int64_t num_filter = 0, num_group = 1, workspace = 1024;
  bool no_bias = false, cudnn_off = false;
  Maybe<IntList> adj, target_shape;  // of transposed convolutions
  ShortText layout, cudnn_tune;
};
extern const OpDef op_convolution, op_convolution_data, op_convolution_weight;

inline constexpr Field kConvolutionFields[] = {
    TW_ATTR(ConvolutionAttrs, kernel, "Size of the window, one to three numbers; empty: that of the weight."),
    TW_ATTR(ConvolutionAttrs, stride, "Steps of the window; empty: 1."),
    TW_ATTR(ConvolutionAttrs, dilate, "Distances of the window's elements; empty: 1."),
    TW_ATTR(ConvolutionAttrs, pad, "Zeros around the data, on both sides; empty: 0."),
    TW_ATTR(ConvolutionAttrs, num_filter, "Number of output channels; 0: that of the weight."),
    TW_ATTR(ConvolutionAttrs, num_group, "Number of groups of channels that do not see each other."),
    TW_ATTR(ConvolutionAttrs, workspace, "Accepted for compatibility."),
    TW_ATTR(ConvolutionAttrs, no_bias, "Whether the bias is left out."),
    TW_ATTR(ConvolutionAttrs, layout, "Order of the axes: NCW, NCHW or NCDHW."),
    TW_ATTR(ConvolutionAttrs, cudnn_tune, "Accepted for compatibility.", .keyword_only = true),
    TW_ATTR(ConvolutionAttrs, cudnn_off, "Accepted for compatibility.", .keyword_only = true),
};
inline constexpr Field kDeconvolutionFields[] = {
    kConvolutionFields[0],
    kConvolutionFields[1],
    kConvolutionFields[2],
    kConvolutionFields[3],
    TW_ATTR(ConvolutionAttrs, adj, "Added to the size of the result at its end."),
    TW_ATTR(ConvolutionAttrs, target_shape, "Size of the result, in place of pad and adj."),
    kConvolutionFields[4],
    kConvolutionFields[5],
    kConvolutionFields[6],
    kConvolutionFields[7],
    kConvolutionFields[8],
    kConvolutionFields[9],
    kConvolutionFields[10],
};

namespace {

int64_t at(const IntList& list, int i, int64_t otherwise) { return list.empty() ? otherwise : list[i]; }

void check_list(const char* who, const char* name, const IntList& list, int axes, int64_t least) {
  TW_CHECK(list.empty() || list.size() == axes, value, who, ": ", name, " needs ", axes, " numbers for this data; got ",
           list.span());
  for (int64_t v : list)
    TW_CHECK(v >= least && v < (int64_t{1} << 31), value, who, ": ", name, " must be at least ", least, "; got ",
             list.span());
}

void check_attrs(const ConvolutionAttrs& a, const Shape& x, const Shape& w, const char* who) {
  int axes = x.rank() - 2;
  TW_CHECK(axes >= 1 && axes <= 3, value, who,
           ": data must have shape (batch, channels, size...) with 1 to 3 sizes; got ", x);
  TW_CHECK(w.rank() == x.rank(), value, who, ": weight of shape ", w, " must have as many dimensions as data of shape ",
           x);
  check_list(who, "kernel", a.kernel, axes, 1);
  check_list(who, "stride", a.stride, axes, 1);
  check_list(who, "dilate", a.dilate, axes, 1);
  check_list(who, "pad", a.pad, axes, 0);
  TW_CHECK(a.num_group >= 1, value, who, ": num_group must be at least 1; got ", a.num_group);
  for (int i = 0; i < axes; ++i) {
    TW_CHECK(w[i + 2] >= 1, value, who, ": weight of shape ", w, " has an empty window");
    TW_CHECK(a.kernel.empty() || a.kernel[i] == w[i + 2], value, who, ": kernel ", a.kernel.span(),
             " differs from the weight's shape ", w);
  }
  std::string_view layout = a.layout.view();
  TW_CHECK(layout.empty() || layout == "None" || layout == "NCW" || layout == "NCHW" || layout == "NCDHW", value, who,
           ": layout must be NCW, NCHW or NCDHW; got ", layout);
}

/// From the first to the last element of a window along axis i.
int64_t covered_by(const ConvolutionAttrs& a, int64_t window, int i) {
  return checked_add(checked_mul(window - 1, at(a.dilate, i, 1)), 1);
}

/// The size that a convolution of x has along axis i.
int64_t result_size(const ConvolutionAttrs& a, int64_t in, int64_t window, int i, const char* who) {
  int64_t covered = covered_by(a, window, i);
  int64_t padded = checked_add(in, checked_mul(2, at(a.pad, i, 0)));
  TW_CHECK(padded >= covered, value, who, ": a window of ", covered, " elements does not fit padded data of ", padded,
           " along axis ", i + 2);
  return (padded - covered) / at(a.stride, i, 1) + 1;
}

void check_groups(const char* who, const Shape& x, const Shape& w, int64_t groups) {
  TW_CHECK(x[1] % groups == 0 && w[0] % groups == 0, value, who, ": ", groups,
           " groups must divide the channels of data ", x, " and of weight ", w);
  TW_CHECK(w[1] == x[1] / groups, value, who, ": weight of shape ", w, " takes ", w[1], " channels in each of ", groups,
           " groups; data of shape ", x, " has ", x[1]);
}

/// Whether dy can be the gradient of x convolved with w.
void check_result(const ConvolutionAttrs& a, const Shape& x, const Shape& w, const Shape& dy, const char* who) {
  check_attrs(a, x, w, who);
  check_groups(who, x, w, a.num_group);
  bool fits = dy.rank() == x.rank() && dy[0] == x[0] && dy[1] == w[0];
  for (int i = 2; fits && i < x.rank(); ++i) fits = dy[i] == result_size(a, x[i], w[i], i - 2, who);
  TW_CHECK(fits, value, who, ": dy of shape ", dy, " does not fit data of shape ", x, " and weight of shape ", w);
}

/// x: the larger side, w: (y channels, x channels / groups, ...), y: the smaller side.
kernels::ConvolutionShape shape_of(const ConvolutionAttrs& a, std::span<const int64_t> x, std::span<const int64_t> w,
                                   std::span<const int64_t> y) {
  kernels::ConvolutionShape s{.batch = x[0],
                              .in_channels = x[1],
                              .out_channels = w[0],
                              .groups = a.num_group,
                              .in = {1, 1, 1},
                              .out = {1, 1, 1},
                              .kernel = {1, 1, 1}};
  int axes = static_cast<int>(x.size()) - 2, first = 3 - axes;
  for (int i = 0; i < axes; ++i) {
    s.in[first + i] = x[static_cast<size_t>(i + 2)];
    s.out[first + i] = y[static_cast<size_t>(i + 2)];
    s.kernel[first + i] = w[static_cast<size_t>(i + 2)];
    s.stride[first + i] = at(a.stride, i, 1);
    s.dilation[first + i] = at(a.dilate, i, 1);
    s.pad[first + i] = at(a.pad, i, 0);
  }
  return s;
}

/// Of a convolution in two dimensions.
kernels::BlockedShape blocked_shape_of(const ConvolutionAttrs& a, const BlockedQuery& q) {
  const Shape &x = q.in[0].shape, &w = q.in[1].shape, &y = q.out[0].shape;
  kernels::BlockedShape s{.batch = x[0], .in_channels = x[1], .out_channels = w[0], .groups = a.num_group};
  for (int i = 0; i < 2; ++i) {
    s.in[i] = x[i + 2], s.out[i] = y[i + 2], s.kernel[i] = w[i + 2];
    s.stride[i] = at(a.stride, i, 1), s.dilation[i] = at(a.dilate, i, 1), s.pad[i] = at(a.pad, i, 0);
  }
  return s;
}

bool same_windows(const ConvolutionAttrs& a, const ConvolutionAttrs& b, int axes) {
  for (int i = 0; i < axes; ++i)
    if (at(a.stride, i, 1) != at(b.stride, i, 1) || at(a.dilate, i, 1) != at(b.dilate, i, 1) ||
        at(a.pad, i, 0) != at(b.pad, i, 0))
      return false;
  return a.num_group == 1 && b.num_group == 1;
}
/// The bias of a call, or zeros in its place.
Val some_bias(const ConvolutionAttrs& a, std::span<const Val> in) {
  if (in.size() > 2 && in[2] && !a.no_bias) return in[2];
  IntList axes;
  for (int i = 1; i < in[1]->rank(); ++i) axes.push_back(i);
  return zeros_like(sum(in[1], axes));
}

double convolution_cost(const Shape& w, const Shape& y) {
  return 2.0 * static_cast<double>(w.size()) * static_cast<double>(y.size()) /
         static_cast<double>(std::max<int64_t>(1, w[0]));
}

/// Weight and bias of a graph whose parameters have no shape yet. Transposed: the weight's first size is the data's.
void complete_weight(const ConvolutionAttrs& a, std::span<Sig> in, bool transposed) {
  const Sig& x = in[0];
  if (!x.present() || x.rank() < 3 || a.num_filter < 1 || a.num_group < 1 || a.kernel.size() != x.rank() - 2) return;
  int64_t channels = x.shape[1];
  Shape w = transposed ? Shape{channels, a.num_filter / a.num_group} : Shape{a.num_filter, channels / a.num_group};
  for (int64_t k : a.kernel) w.push_back(k);
  if (!in[1].present()) in[1] = {w, x.dtype};
  if (in.size() > 2 && !in[2].present()) in[2] = {Shape{a.num_filter}, x.dtype};
}

/// dbias: over the batch and all sizes.
Val bias_gradient(const Val& dy) {
  IntList axes{0};
  for (int i = 2; i < dy->rank(); ++i) axes.push_back(i);
  return sum(dy, axes);
}

}  // namespace

TW_OP(convolution) = whole({
    .name = "convolution",
    .doc = "Convolves data with weight: y[n, o] = bias[o] + sum over c of weight[o, c] correlated with data[n, c].",
    .names = {"npx.convolution", "nd.Convolution"},
    .graph = {.names = "Convolution Convolution_v1", .attrs = "kernel num_filter"},
    .attrs = schema<ConvolutionAttrs>(kConvolutionFields),
    .in = {{{.name = "data", .doc = "(batch, channels, size...), one to three sizes."},
            {.name = "weight", .doc = "(filters, channels / groups, window...)."},
            {.name = "bias", .kind = SlotKind::optional, .doc = "(filters,)."}}},
    .infer = infer_rule<ConvolutionAttrs>([](auto& a, SigsIn in, SigsOut out) {
      const Shape &x = in[0].shape, &w = in[1].shape;
      check_attrs(a, x, w, "convolution");
      check_groups("convolution", x, w, a.num_group);
      TW_CHECK(a.num_filter == 0 || a.num_filter == w[0], value, "convolution: num_filter is ", a.num_filter,
               " but weight has ", w[0], " filters");
      if (in[2].present() && !a.no_bias)
        TW_CHECK(in[2].shape == Shape{w[0]}, value, "convolution: bias must have shape [", w[0], "]; got ",
                 in[2].shape);
      Shape y{x[0], w[0]};
      for (int i = 0; i + 2 < x.rank(); ++i) y.push_back(result_size(a, x[i + 2], w[i + 2], i, "convolution"));
      out[0] = {y, promote(in[0].dtype, in[1].dtype)};
    }),
    .types = kFloats,
    .kernel = cpu_rule<ConvolutionAttrs>([](auto& a, Call& c) {
      const void* bias = c.in[2].present() && !a.no_bias ? c.in[2].data : nullptr;
      kernels::convolution_forward(c.out[0].dtype, shape_of(a, c.in[0].shape(), c.in[1].shape(), c.out[0].shape()),
                                   c.in[0].data, c.in[1].data, bias, c.out[0].data);
    }),
    .complete = complete_rule<ConvolutionAttrs>([](auto& a, std::span<Sig> in) { complete_weight(a, in, false); }),
    .same_dtype = true,
    .needs = X0 | X1,
    .grad = grad_rule<ConvolutionAttrs>([](auto& a, const Grad& g) -> Vals {
      return {g.wants(0) ? apply(op_convolution_data, a, {g.dy(), g.x(1), g.x(0)}) : Val(),
              g.wants(1) ? apply(op_convolution_weight, a, {g.x(0), g.dy(), g.x(1)}) : Val(),
              g.wants(2) && !a.no_bias ? bias_gradient(g.dy()) : Val()};
    }),
    .heavy = true,
    .cost = cost_rule<ConvolutionAttrs>([](auto&, SigsIn in, SigsIn out) {
      return convolution_cost(in[1].shape, out[0].shape);
    }),
    .algorithm = algorithm_rule<ConvolutionAttrs>([](auto& a, const Call& c) {
      return kernels::convolution_algorithm(c.out[0].dtype,
                                            shape_of(a, c.in[0].shape(), c.in[1].shape(), c.out[0].shape()), false);
    }),
    .absorb = absorb_rule<ConvolutionAttrs>([](auto& a, std::span<Val> in, const Affine& f) {
      if (f.axis != 1) return false;
      absorb_channels(in, f, a.no_bias);
      return true;
    }),
    .blocked = {blocked_plan_rule<ConvolutionAttrs>([](auto& a, const BlockedQuery& q) {
                  return q.in[0].rank() == 4 ? plan_blocked_convolution(blocked_shape_of(a, q), q) : BlockedPlan();
                }),
                blocked_rule<ConvolutionAttrs>([](auto& a, const BlockedQuery& q, std::span<const Val> in) {
                  return blocked_convolution(blocked_shape_of(a, q), q, in[0], in[1], a.no_bias ? Val() : in[2]);
                })},
    .split_bias =
        [](void* attrs, std::span<Val> in, Val& bias) {
          auto& a = *static_cast<ConvolutionAttrs*>(attrs);
          for (int i = 2; i < in[1]->rank(); ++i)
            if (in[1]->dims[i] != 1 || at(a.stride, i - 2, 1) != 1 || at(a.pad, i - 2, 0) != 0) return false;
          if (a.no_bias || !in[2]) return true;
          Shape spread{1, in[2]->size()};
          for (int i = 2; i < in[1]->rank(); ++i) spread.push_back(1);
          bias = reshape(in[2], spread);
          in[2] = {};
          a.no_bias = true;
          return true;
        },
    .merge = {.add =
                  [](void* attrs, std::span<Val> in, const void* other_attrs, std::span<const Val> other) {
                    auto& a = *static_cast<ConvolutionAttrs*>(attrs);
                    const auto& b = *static_cast<const ConvolutionAttrs*>(other_attrs);
                    bool fits = in[1]->rank() == other[1]->rank() && same_windows(a, b, in[1]->rank() - 2);
                    for (int i = 1; fits && i < in[1]->rank(); ++i) fits = in[1]->dims[i] == other[1]->dims[i];
                    if (!fits || in[1]->dtype() != other[1]->dtype()) return false;
                    bool biased = !(a.no_bias && b.no_bias);
                    if (biased) in[2] = join({some_bias(a, in), some_bias(b, other)}, 0);
                    in[1] = join({in[1], other[1]}, 0);
                    a.no_bias = !biased;
                    a.num_filter = in[1]->dims[0];
                    return true;
                  },
              .part = [](const Val& y, int64_t begin, int64_t size) { return part(y, 1, begin, size); }},
    .samples =
        {{{.in = {{{2, 3, 5, 6}, {4, 3, 3, 3}, SampleInput({4})}}, .attrs = "kernel=(3, 3), pad=(1, 1), num_filter=4"},
          {.in = {{{2, 4, 7}, {6, 2, 3}}}, .attrs = "kernel=(3,), stride=(2,), dilate=(2,), num_group=2, no_bias=True"},
          {.in = {{{1, 2, 3, 4, 5}, {3, 2, 2, 2, 2}, SampleInput({3})}}, .attrs = "kernel=(2, 2, 2), stride=(1, 2, 1)"},
          {.in = {{{2, 3, 6, 6}, {3, 1, 3, 3}}}, .attrs = "kernel=(3, 3), num_group=3, no_bias=True"}}},
});

TW_OP(convolution_data) = whole({
    .name = "convolution_data",
    .doc = "The gradient of a convolution by its data, in the shape of `like`.",
    .attrs = schema<ConvolutionAttrs>(kConvolutionFields),
    .in = {{{.name = "dy"}, {.name = "weight"}, {.name = "like", .shape_only = true}}},
    .infer = infer_rule<ConvolutionAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_result(a, in[2].shape, in[1].shape, in[0].shape, "convolution_data");
      out[0] = {in[2].shape, in[0].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<ConvolutionAttrs>([](auto& a, Call& c) {
      kernels::convolution_backward_data(c.out[0].dtype,
                                         shape_of(a, c.out[0].shape(), c.in[1].shape(), c.in[0].shape()), c.in[0].data,
                                         c.in[1].data, nullptr, c.out[0].data);
    }),
    .same_dtype = true,
    .needs = X0 | X1,
    .grad = grad_rule<ConvolutionAttrs>([](auto& a, const Grad& g) -> Vals {
      ConvolutionAttrs plain = a;
      plain.no_bias = true;
      return {g.wants(0) ? apply(op_convolution, plain, {g.dy(), g.x(1)}) : Val(),
              g.wants(1) ? apply(op_convolution_weight, a, {g.dy(), g.x(0), g.x(1)}) : Val(), Val()};
    }),
    .heavy = true,
    .cost = cost_rule<ConvolutionAttrs>([](auto&, SigsIn in, SigsIn) {
      return convolution_cost(in[1].shape, in[0].shape);
    }),
    .algorithm = algorithm_rule<ConvolutionAttrs>([](auto& a, const Call& c) {
      return kernels::convolution_algorithm(c.out[0].dtype,
                                            shape_of(a, c.out[0].shape(), c.in[1].shape(), c.in[0].shape()), true);
    }),
    .samples = {{{.in = {{{2, 4, 5, 6}, {4, 3, 3, 3}, {2, 3, 5, 6}}}, .attrs = "kernel=(3, 3), pad=(1, 1)"}}},
});

TW_OP(convolution_weight) = whole({
    .name = "convolution_weight",
    .doc = "The gradient of a convolution by its weight, in the shape of `like`.",
    .attrs = schema<ConvolutionAttrs>(kConvolutionFields),
    .in = {{{.name = "data"}, {.name = "dy"}, {.name = "like", .shape_only = true}}},
    .infer = infer_rule<ConvolutionAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_result(a, in[0].shape, in[2].shape, in[1].shape, "convolution_weight");
      out[0] = {in[2].shape, in[0].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<ConvolutionAttrs>([](auto& a, Call& c) {
      kernels::convolution_backward_weights(c.out[0].dtype,
                                            shape_of(a, c.in[0].shape(), c.out[0].shape(), c.in[1].shape()),
                                            c.in[0].data, c.in[1].data, c.out[0].data);
    }),
    .same_dtype = true,
    .needs = X0 | X1,
    .grad = grad_rule<ConvolutionAttrs>([](auto& a, const Grad& g) -> Vals {
      ConvolutionAttrs plain = a;
      plain.no_bias = true;
      return {g.wants(0) ? apply(op_convolution_data, a, {g.x(1), g.dy(), g.x(0)}) : Val(),
              g.wants(1) ? apply(op_convolution, plain, {g.x(0), g.dy()}) : Val(), Val()};
    }),
    .heavy = true,
    .cost = cost_rule<ConvolutionAttrs>([](auto&, SigsIn in, SigsIn) {
      return convolution_cost(in[2].shape, in[1].shape);
    }),
    .samples = {{{.in = {{{2, 3, 5, 6}, {2, 4, 5, 6}, {4, 3, 3, 3}}}, .attrs = "kernel=(3, 3), pad=(1, 1)"}}},
});

/// The size of a transposed convolution's result and the padding that leads to it.
static int64_t transposed_size(ConvolutionAttrs& a, int64_t in, int64_t window, int i) {
  int64_t full = checked_add(checked_mul(in - 1, at(a.stride, i, 1)), covered_by(a, window, i));
  if (a.target_shape && !(*a.target_shape).empty()) {
    int64_t total = full - (*a.target_shape)[i];
    TW_CHECK(total >= 0, value, "deconvolution: target_shape ", (*a.target_shape).span(), " is larger than the result ",
             full, " along axis ", i + 2);
    while (a.pad.size() <= i) a.pad.push_back(0);
    a.pad[i] = total - total / 2;
    return (*a.target_shape)[i];
  }
  int64_t size = checked_add(full, (a.adj ? at(*a.adj, i, 0) : 0) - 2 * at(a.pad, i, 0));
  TW_CHECK(size >= 0, value, "deconvolution: pad ", a.pad.span(), " is larger than the result along axis ", i + 2);
  return size;
}

TW_OP(deconvolution) = whole({
    .name = "deconvolution",
    .doc = "The transpose of a convolution: spreads every element of data over a window of the result.",
    .names = {"npx.deconvolution", "nd.Deconvolution"},
    .graph = {.names = "Deconvolution", .attrs = "kernel num_filter no_bias=True"},
    .attrs = schema<ConvolutionAttrs>(kDeconvolutionFields),
    .in = {{{.name = "data", .doc = "(batch, channels, size...)."},
            {.name = "weight", .doc = "(channels, filters / groups, window...)."},
            {.name = "bias", .kind = SlotKind::optional, .doc = "(filters,)."}}},
    .infer = infer_rule<ConvolutionAttrs>([](auto& attrs, SigsIn in, SigsOut out) {
      ConvolutionAttrs a = attrs;
      const Shape &x = in[0].shape, &w = in[1].shape;
      check_attrs(a, x, w, "deconvolution");
      if (a.adj) check_list("deconvolution", "adj", *a.adj, x.rank() - 2, 0);
      if (a.target_shape) check_list("deconvolution", "target_shape", *a.target_shape, x.rank() - 2, 0);
      TW_CHECK(w[0] == x[1] && x[1] % a.num_group == 0, value, "deconvolution: weight of shape ", w, " takes ", w[0],
               " channels in ", a.num_group, " groups; data of shape ", x, " has ", x[1]);
      int64_t filters = checked_mul(w[1], a.num_group);
      TW_CHECK(a.num_filter == 0 || a.num_filter == filters, value, "deconvolution: num_filter is ", a.num_filter,
               " but weight has ", filters, " filters");
      if (in[2].present() && !a.no_bias)
        TW_CHECK(in[2].shape == Shape{filters}, value, "deconvolution: bias must have shape [", filters, "]; got ",
                 in[2].shape);
      Shape y{x[0], filters};
      for (int i = 0; i + 2 < x.rank(); ++i) {
        y.push_back(transposed_size(a, x[i + 2], w[i + 2], i));
        TW_CHECK(x[i + 2] == 0 || result_size(a, y[i + 2], w[i + 2], i, "deconvolution") == x[i + 2], value,
                 "deconvolution: what adj or target_shape add to the result must be smaller than stride; axis ", i + 2,
                 " would have ", y[i + 2], " elements");
      }
      out[0] = {y, promote(in[0].dtype, in[1].dtype)};
    }),
    .types = kFloats,
    .kernel = cpu_rule<ConvolutionAttrs>([](auto& attrs, Call& c) {
      ConvolutionAttrs a = attrs;
      for (int i = 0; i + 2 < c.in[0].rank; ++i) transposed_size(a, c.in[0].dim(i + 2), c.in[1].dim(i + 2), i);
      const void* bias = c.in[2].present() && !a.no_bias ? c.in[2].data : nullptr;
      kernels::convolution_backward_data(c.out[0].dtype,
                                         shape_of(a, c.out[0].shape(), c.in[1].shape(), c.in[0].shape()), c.in[0].data,
                                         c.in[1].data, bias, c.out[0].data);
    }),
    .complete = complete_rule<ConvolutionAttrs>([](auto& a, std::span<Sig> in) { complete_weight(a, in, true); }),
    .same_dtype = true,
    .needs = X0 | X1,
    .grad = grad_rule<ConvolutionAttrs>([](auto& attrs, const Grad& g) -> Vals {
      ConvolutionAttrs a = attrs;
      Val x = g.x(0), w = g.x(1), dy = g.dy();
      for (int i = 0; i + 2 < x->rank(); ++i) transposed_size(a, x->dims[i + 2], w->dims[i + 2], i);
      Val db = g.wants(2) && !a.no_bias ? bias_gradient(dy) : Val();
      a.no_bias = true;
      a.num_filter = 0;
      a.adj = a.target_shape = {};
      if (x->size() == 0) return {zeros_like(x), zeros_like(w), db};  // no window may fit what has no elements
      return {g.wants(0) ? apply(op_convolution, a, {dy, w}) : Val(),
              g.wants(1) ? apply(op_convolution_weight, a, {dy, x, w}) : Val(), db};
    }),
    .heavy = true,
    .cost = cost_rule<ConvolutionAttrs>([](auto&, SigsIn in, SigsIn) {
      return convolution_cost(in[1].shape, in[0].shape);
    }),
    .algorithm = algorithm_rule<ConvolutionAttrs>([](auto& attrs, const Call& c) {
      ConvolutionAttrs a = attrs;
      for (int i = 0; i + 2 < c.in[0].rank; ++i) transposed_size(a, c.in[0].dim(i + 2), c.in[1].dim(i + 2), i);
      return kernels::convolution_algorithm(c.out[0].dtype,
                                            shape_of(a, c.out[0].shape(), c.in[1].shape(), c.in[0].shape()), true);
    }),
    .samples = {{{.in = {{{2, 3, 4, 5}, {3, 2, 3, 3}, SampleInput({2})}},
                  .attrs = "kernel=(3, 3), stride=(2, 2), pad=(1, 1), num_filter=2"},
                 {.in = {{{1, 4, 5}, {4, 2, 4}}},
                  .attrs = "kernel=(4,), stride=(2,), pad=(1,), num_group=2, no_bias=True"}}},
});

}  // namespace twibil::ops
