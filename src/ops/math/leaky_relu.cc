// SPDX-License-Identifier: Apache-2.0
// Relus that let something of negative elements through, and MXNet's operator that chooses one of them by name.
#include "ir/modes.h"
#include "kernels/random.h"
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kLeaky = record([](Expr x, Param slope) { return select(x > 0, x, slope * x); });
inline constexpr Program kElu = record([](Expr x, Param slope) { return select(x > 0, x, slope * expm1(x)); });
inline constexpr Program kSelu = record([](Expr x) {
  constexpr double kScale = 1.0507009873554804934193349852946, kAlpha = 1.6732632423543772848170429916717;
  return select(x > 0, kScale * x, kScale * kAlpha * expm1(x));
});
inline constexpr Program kPrelu = record([](Expr x, Expr gamma) { return select(x > 0, x, gamma * x); });

struct SlopeAttrs {
  double slope = 0.25;
};
inline constexpr Field kSlopeFields[] = {TW_ATTR(SlopeAttrs, slope, "What negative elements are multiplied by.")};

TW_OP(leaky) = whole({
    .name = "leaky",
    .doc = "x where it is positive, else slope * x.",
    .onnx = {.names = "LeakyRelu", .attrs = "slope:alpha=0.01"},
    .attrs = schema<SlopeAttrs>(kSlopeFields),
    .in = kData,
    .program = &kLeaky,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_with_kinks(Domain::real),
});

TW_OP(elu) = whole({
    .name = "elu",
    .doc = "x where it is positive, else slope * (exp(x) - 1).",
    .onnx = {.names = "Elu", .attrs = "slope:alpha=1"},
    .attrs = schema<SlopeAttrs>(kSlopeFields),
    .in = kData,
    .program = &kElu,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_with_kinks(Domain::real),
});

TW_OP(selu) = whole({
    .name = "selu",
    .doc = "elu, scaled so that activations keep mean 0 and variance 1.",
    .names = {"npx.selu"},
    .in = kData,
    .program = &kSelu,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_with_kinks(Domain::real),
});

TW_OP(prelu) = whole({
    .name = "prelu",
    .doc = "x where it is positive, else gamma * x with a learnt gamma, which broadcasts.",
    .onnx = {.names = "PRelu"},
    .in = {{{.name = "data"}, {.name = "gamma"}}},
    .program = &kPrelu,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = {{{.in = {{{3, 4}, {3, 4}}}}, {.in = {{{2, 3, 4}, {3, 1}}}}}},
});

struct BoundsAttrs {
  double lower_bound = 0.125, upper_bound = 0.334;
};
inline constexpr Field kBoundsFields[] = {
    TW_ATTR(BoundsAttrs, lower_bound, "The least slope."),
    TW_ATTR(BoundsAttrs, upper_bound, "The slope that is never reached."),
};

TW_OP(random_slopes) = whole({
    .name = "random_slopes",
    .doc = "Random numbers between the bounds, shaped like data: the slopes of a randomised relu.",
    .attrs = schema<BoundsAttrs>(kBoundsFields),
    .in = kData,
    .infer = infer_rule<BoundsAttrs>([](auto&, SigsIn in, SigsOut out) {
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<BoundsAttrs>([](auto& a, Call& c) {
      kernels::random_uniform({c.key.seed, c.key.counter}, c.out[0].dtype, c.out[0].size, c.out[0].data, a.lower_bound,
                              a.upper_bound);
    }),
    .strided = true,
    .no_grad = "random numbers do not depend on data",
    .random = true,
    .samples = {{{.in = {{{3, 4}}}}}},
});

struct LeakyReluAttrs {
  Choice act_type;
  double slope = 0.25, lower_bound = 0.125, upper_bound = 0.334;
};
inline constexpr Field kLeakyReluFields[] = {
    TW_ATTR(LeakyReluAttrs, act_type, "Which function.", .choices = "leaky|prelu|elu|selu|gelu|rrelu"),
    TW_ATTR(LeakyReluAttrs, slope, "Of leaky and elu."),
    TW_ATTR(LeakyReluAttrs, lower_bound, "Of rrelu: the least random slope."),
    TW_ATTR(LeakyReluAttrs, upper_bound, "Of rrelu: the largest random slope."),
};
enum LeakyKind { kLeakyKind, kPreluKind, kEluKind, kSeluKind, kGeluKind, kRreluKind };

TW_DECLARE(gelu_erf)

// gamma has one number, or one for each channel (axis 1): trailing axes are added so that it broadcasts.
static Val prelu(const Val& data, Val gamma) {
  TW_CHECK(gamma, type, "leaky_relu: act_type prelu needs the argument gamma");
  TW_CHECK(gamma->rank() <= 1, value, "leaky_relu: gamma must have one dimension; got shape ", gamma->shape());
  if (gamma->rank() == 1)
    for (int axis = 2; axis < data->rank(); ++axis) gamma = expand_dims(gamma, -1);
  return apply(op_prelu, {data, gamma});
}

static Val leaky_relu(const LeakyReluAttrs& a, const Val& data, const Val& gamma) {
  TW_CHECK(!gamma || a.act_type == kPreluKind, value, "leaky_relu: only act_type prelu takes gamma");
  switch (a.act_type) {
    case kPreluKind: return prelu(data, gamma);
    case kEluKind: return apply(op_elu, SlopeAttrs{a.slope}, {data});
    case kSeluKind: return apply(op_selu, {data});
    case kGeluKind: return apply(op_gelu_erf, {data});
    case kRreluKind: {
      if (!modes.training) return apply(op_leaky, SlopeAttrs{(a.lower_bound + a.upper_bound) / 2}, {data});
      return apply(op_prelu, {data, apply(op_random_slopes, BoundsAttrs{a.lower_bound, a.upper_bound}, {data})});
    }
    default: return apply(op_leaky, SlopeAttrs{a.slope}, {data});
  }
}

TW_OP(leaky_relu) = whole({
    .name = "leaky_relu",
    .doc = "A relu that lets something of negative elements through: act_type says what.",
    .names = {"npx.leaky_relu", "nd.LeakyReLU"},
    .graph = {.wanted = "gamma:act_type=prelu"},
    .attrs = schema<LeakyReluAttrs>(kLeakyReluFields),
    .in = {{{.name = "data"}, {.name = "gamma", .kind = SlotKind::optional}}},
    .types = kFloats,
    .complete = complete_rule<LeakyReluAttrs>([](auto&, std::span<Sig> in) {
      if (in.size() > 1 && in[0].present() && !in[1].present())
        in[1] = {Shape{in[0].rank() > 1 ? in[0].shape[1] : 1}, in[0].dtype};
    }),
    .expand = expand_rule<LeakyReluAttrs>([](auto& a, auto in) -> Vals { return {leaky_relu(a, in[0], in[1])}; }),
    .samples = {{
        {.in = {{{3, 4}}}},
        {.in = {{{2, 3, 4}, {3}}}, .attrs = "act_type=prelu"},
        {.in = {{{3, 4}}}, .attrs = "act_type=elu, slope=0.5"},
        {.in = {{{3, 4}}}, .attrs = "act_type=selu"},
        {.in = {{{3, 4}}}, .attrs = "act_type=gelu"},
        {.in = {{{3, 4}}}, .attrs = "act_type=rrelu"},
    }},
});

}  // namespace twibil::ops
