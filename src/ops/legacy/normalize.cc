// SPDX-License-Identifier: Apache-2.0
// Normalisations of MXNet 1 that are made of other operators, and softmax in its older forms.
#include <cmath>

#include "kernels/lrn.h"
#include "ops/legacy/slices.h"
#include "ops/math/elementwise.h"
#include "ops/nn/blocked.h"

namespace twibil::ops {

TW_DECLARE(log_softmax)
TW_DECLARE(pick)

namespace {

/// gamma or beta, one number for each channel (axis 1), so that it broadcasts over data.
Val per_channel(const Val& parameter, int rank) {
  Val p = parameter;
  for (int axis = 2; axis < rank; ++axis) p = expand_dims(p, -1);
  return p;
}
IntList axes_from(int first, int rank) {
  IntList axes;
  for (int i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}
/// (x - mean) / sqrt(variance + eps) over axes.
Val standardized(const Val& x, const IntList& axes, double eps) {
  Val centred = x - mean(x, axes, true);
  return centred / sqrt(mean(square(centred), axes, true) + eps);
}
/// Parameters with as many numbers as data has channels.
void channels_like_data(const void*, std::span<Sig> in) {
  if (!in[0].present() || in[0].rank() < 2) return;
  for (size_t i = 1; i < in.size(); ++i)
    if (!in[i].present()) in[i] = {Shape{in[0].shape[1]}, in[0].dtype};
}

}  // namespace

struct LrnAttrs {
  double alpha = 1e-4, beta = 0.75, knorm = 2;
  int64_t nsize = 5;
};
inline constexpr Field kLrnFields[] = {
    TW_ATTR(LrnAttrs, alpha, "Weight of the squares."),
    TW_ATTR(LrnAttrs, beta, "Exponent."),
    TW_ATTR(LrnAttrs, knorm, "Added to the squares."),
    TW_ATTR(LrnAttrs, nsize, "How many channels a window has, odd.", .required = true),
};

struct BlockedLrnAttrs {
  double alpha = 1e-4, beta = 0.75, knorm = 2;
  int64_t nsize = 5;
  int64_t channels = 0;
};
inline constexpr Field kBlockedLrnFields[] = {
    TW_ATTR(BlockedLrnAttrs, alpha, "Weight of the squares."),
    TW_ATTR(BlockedLrnAttrs, beta, "Exponent."),
    TW_ATTR(BlockedLrnAttrs, knorm, "Added to the squares."),
    TW_ATTR(BlockedLrnAttrs, nsize, "How many channels a window has, odd."),
    TW_ATTR(BlockedLrnAttrs, channels, "How many channels there are; the last block may have room for more."),
};
extern const OpDef op_blocked_lrn;

/// The sum over the channels around each.
static Val sum_nearby(const Val& x, int64_t window) {
  PadAttrs around;
  for (int i = 0; i < 4; ++i) {
    around.before.push_back(i == 1 ? window / 2 : 0);
    around.after.push_back(i == 1 ? window / 2 : 0);
  }
  Val padded = apply(op_pad, around, {x}), total;
  for (int64_t k = 0; k < window; ++k) {
    Val shifted = part(padded, 1, k, x->dims[1]);
    total = total ? total + shifted : shifted;
  }
  return total;
}

TW_OP(lrn) = whole({
    .name = "lrn",
    .doc = "Local response normalisation: data / (knorm + alpha / nsize * squares of nearby channels)^beta.",
    .names = {"nd.LRN"},
    .onnx = {.names = "LRN", .attrs = "alpha=0.0001 beta=0.75 knorm:bias=1 nsize:size"},
    .attrs = schema<LrnAttrs>(kLrnFields),
    .in = kData,
    .infer = infer_rule<LrnAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(in[0].rank() == 4, value, "LRN: data must have shape (batch, channels, height, width); got ",
               in[0].shape);
      TW_CHECK(a.nsize >= 1 && a.nsize % 2 == 1 && a.nsize < 4096, value, "LRN: nsize must be odd and positive; got ",
               a.nsize);
      out[0] = in[0];
    }),
    .types = kFloats,
    .kernel = cpu_rule<LrnAttrs>([](auto& a, Call& c) {
      const Buffer& x = c.in[0];
      if (x.size == 0) return;
      kernels::lrn(x.dtype, {x.dim(0), x.dim(1), x.dim(2) * x.dim(3), a.nsize, a.alpha, a.beta, a.knorm}, x.data,
                   c.out[0].data);
    }),
    .needs = X0,
    .grad = grad_rule<LrnAttrs>([](auto& a, const Grad& g) -> Vals {
      // With s = knorm + scale * (squares nearby): dx = dy s^-beta - 2 scale beta x (dy x s^(-beta - 1) nearby).
      Val x = g.x(0), dy = g.dy();
      double scale = a.alpha / static_cast<double>(a.nsize);
      Val s = sum_nearby(square(x), a.nsize) * scale + a.knorm;
      Val through = sum_nearby(dy * x * power(s, Val(-a.beta - 1)), a.nsize);
      return {dy * power(s, Val(-a.beta)) - x * through * (2 * scale * a.beta)};
    }),
    .blocked =
        {blocked_plan_rule<LrnAttrs>([](auto&, const BlockedQuery& q) {
           return BlockedPlan{.possible = can_block(q.in[0]), .inputs = X0};
         }),
         blocked_rule<LrnAttrs>([](auto& a, const BlockedQuery& q, std::span<const Val> in) {
           return apply(op_blocked_lrn, BlockedLrnAttrs{a.alpha, a.beta, a.knorm, a.nsize, q.in[0].shape[1]}, {in[0]});
         })},
    .samples = {{{.in = {{{2, 5, 2, 3}}}, .attrs = "nsize=3, alpha=0.1"}}},
});

TW_OP(blocked_lrn) = whole({
    .name = "blocked_lrn",
    .doc = "lrn of data in blocks of channels.",
    .attrs = schema<BlockedLrnAttrs>(kBlockedLrnFields),
    .in = {{{.name = "data", .doc = "(blocks, batch, height, width, 16)."}}},
    .infer = infer_rule<BlockedLrnAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_blocked(in[0], a.channels, "blocked_lrn");
      TW_CHECK(a.nsize >= 1 && a.nsize % 2 == 1 && a.nsize < 4096, value,
               "blocked_lrn: nsize must be odd and positive; got ", a.nsize);
      out[0] = in[0];
    }),
    .types = bit_of(DType::float32),
    .kernel = cpu_rule<BlockedLrnAttrs>([](auto& a, Call& c) {
      const Buffer& x = c.in[0];
      if (x.size == 0) return;
      kernels::blocked_lrn({x.dim(1), a.channels, x.dim(2) * x.dim(3), a.nsize, a.alpha, a.beta, a.knorm},
                           x.as<float>(), c.out[0].template as<float>());
    }),
    .no_grad = "belongs to prediction",
    .samples = {{{.in = {{{2, 2, 3, 2, 16}}}, .attrs = "nsize=5, alpha=0.1, channels=21"}}},
});

struct L2Attrs {
  double eps = 1e-10;
  Choice mode;
};
inline constexpr Field kL2Fields[] = {
    TW_ATTR(L2Attrs, eps, "Added to the sum of squares."),
    TW_ATTR(L2Attrs, mode, "What is divided by its norm: each example, each pixel, or each channel of each example.",
            .choices = "instance|channel|spatial"),
};
TW_OP(l2_normalization) = whole({
    .name = "l2_normalization",
    .doc = "data divided by its Euclidean norm.",
    .graph = {.names = "L2Normalization"},
    .attrs = schema<L2Attrs>(kL2Fields),
    .in = kData,
    .types = kFloats,
    .expand = expand_rule<L2Attrs>([](auto& a, std::span<const Val> in) -> Vals {
      int rank = in[0]->rank();
      TW_CHECK(rank >= (a.mode == 2 ? 3 : 2), value, "L2Normalization: data of shape ", in[0]->shape(),
               " has too few axes");
      IntList axes = a.mode == 0 ? axes_from(1, rank) : a.mode == 1 ? IntList{1} : axes_from(2, rank);
      return {in[0] / sqrt(sum(square(in[0]), axes, true) + a.eps)};
    }),
    .samples = {{{.in = {{{2, 3, 4}}}},
                 {.in = {{{2, 3, 4}}}, .attrs = "mode=channel"},
                 {.in = {{{2, 3, 4}}}, .attrs = "mode=spatial"}}},
});

struct EpsAttrs {
  double eps = 1e-3;
};
inline constexpr Field kEpsFields[] = {TW_ATTR(EpsAttrs, eps, "Added to the variance.")};

TW_OP(instance_norm) = whole({
    .name = "instance_norm",
    .doc = "Each channel of each example with mean 0 and variance 1, times gamma, plus beta.",
    .names = {"nd.InstanceNorm"},
    .onnx = {.names = "InstanceNormalization", .attrs = "eps:epsilon=1e-05"},
    .attrs = schema<EpsAttrs>(kEpsFields),
    .in = {{{.name = "data"}, {.name = "gamma"}, {.name = "beta"}}},
    .types = kFloats,
    .complete = channels_like_data,
    .expand = expand_rule<EpsAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int rank = in[0]->rank();
      TW_CHECK(rank >= 3, value, "InstanceNorm: data must have at least three axes; got shape ", in[0]->shape());
      Val y = standardized(in[0], axes_from(2, rank), a.eps);
      return {y * per_channel(in[1], rank) + per_channel(in[2], rank)};
    }),
    .samples = {{{.in = {{{2, 3, 6}, SampleInput({3}), SampleInput({3})}}, .attrs = "eps=0.1"}}},
});

struct GroupNormAttrs {
  int64_t num_groups = 1;
  double eps = 1e-5;
  bool output_mean_var = false;
};
inline constexpr Field kGroupNormFields[] = {
    TW_ATTR(GroupNormAttrs, num_groups, "How many groups of channels."),
    TW_ATTR(GroupNormAttrs, eps, "Added to the variance."),
    TW_ATTR(GroupNormAttrs, output_mean_var, "Accepted for compatibility."),
};
TW_OP(group_norm) = whole({
    .name = "group_norm",
    .doc = "Each group of channels of each example with mean 0 and variance 1, times gamma, plus beta.",
    .names = {"nd.GroupNorm", "npx.group_norm"},
    .attrs = schema<GroupNormAttrs>(kGroupNormFields),
    .in = {{{.name = "data"}, {.name = "gamma"}, {.name = "beta"}}},
    .types = kFloats,
    .complete = channels_like_data,
    .expand = expand_rule<GroupNormAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const Val& x = in[0];
      int rank = x->rank();
      TW_CHECK(rank >= 3 && a.num_groups >= 1 && x->dims[1] % a.num_groups == 0, value, "GroupNorm: ", a.num_groups,
               " groups must divide the channels of data (batch, channels, ...); got shape ", x->shape());
      int64_t rest = 1;
      for (int i = 2; i < rank; ++i) rest *= x->dims[i];
      int64_t inner = x->dims[1] / a.num_groups * rest;
      Val y = standardized(reshape(x, Shape{x->dims[0], a.num_groups, inner}), IntList{2}, a.eps);
      // Parameters for each channel, or for each group.
      bool grouped = in[1]->size() == a.num_groups && a.num_groups != x->dims[1];
      if (grouped) return {reshape(y * expand_dims(in[1], 1) + expand_dims(in[2], 1), Shape(x->shape()))};
      return {reshape(y, Shape(x->shape())) * per_channel(in[1], rank) + per_channel(in[2], rank)};
    }),
    .samples = {{{.in = {{{2, 4, 6}, SampleInput({4}), SampleInput({4})}}, .attrs = "num_groups=2, eps=0.1"}}},
});

// ---- softmax ----

struct SoftmaxActivationAttrs {
  Choice mode;
};
inline constexpr Field kSoftmaxActivationFields[] = {
    TW_ATTR(SoftmaxActivationAttrs, mode, "Over the last axis, or over axis 1.", .choices = "instance|channel")};
TW_OP(softmax_activation) = whole({
    .name = "softmax_activation",
    .doc = "softmax over the last axis, or over channels.",
    .graph = {.names = "SoftmaxActivation"},
    .attrs = schema<SoftmaxActivationAttrs>(kSoftmaxActivationFields),
    .in = kData,
    .types = kFloats,
    .expand = expand_rule<SoftmaxActivationAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const Val& x = in[0];
      TW_CHECK(x->rank() >= 2, value, "SoftmaxActivation: data must have at least two axes; got shape ", x->shape());
      if (a.mode == 1) return {softmax(x, 1)};
      return {softmax(x, -1)};
    }),
    .samples = {{{.in = {{{2, 3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "mode=channel"}}},
});

inline constexpr Field kAxisFields[] = {TW_ATTR(AxisAttrs, axis, "Axis that sums to one.")};
TW_OP(softmin) = whole({
    .name = "softmin",
    .doc = "softmax of the negative.",
    .graph = {.names = "softmin"},
    .attrs = schema<AxisAttrs>(kAxisFields),
    .in = kData,
    .types = kFloats,
    .expand = expand_rule<AxisAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {softmax(-in[0], a.axis)};
    }),
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(div_sqrt_dim) = whole({
    .name = "div_sqrt_dim",
    .doc = "data divided by the root of its last size.",
    .graph = {.names = "_contrib_div_sqrt_dim"},
    .in = kData,
    .types = kFloats,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      TW_CHECK(in[0]->rank() >= 1, value, "div_sqrt_dim: data must have at least one axis");
      double n = static_cast<double>(std::max<int64_t>(1, in[0]->dims[in[0]->rank() - 1]));
      return {in[0] * std::pow(n, -0.5)};
    },
    .samples = {{{.in = {{{3, 4}}}}}},
});

}  // namespace twibil::ops
