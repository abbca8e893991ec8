// SPDX-License-Identifier: Apache-2.0
// Convolutions in blocks of channels. The algorithm is chosen while a graph is compiled; its weights are laid out once.
#include "ops/nn/blocked_convolution.h"

#include <limits>

#include "kernels/blocked_choice.h"

namespace twibil::ops {

extern const OpDef op_pack_convolution_weight, op_blocked_convolution;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct PackAttrs {
  ShortText algorithm;
  int64_t groups = 1;
  IntList stride, dilate;
};
struct BlockedConvolutionAttrs {
  ShortText algorithm;
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  IntList kernel, stride, dilate, pad, size;
  double lower = -kInfinity, upper = kInfinity;
  bool exact = false;
};

void check_pair(const IntList& list, const char* name, int64_t least, const char* who) {
  TW_CHECK(list.size() == 2 && list[0] >= least && list[1] >= least && list[0] < (int64_t{1} << 31) &&
               list[1] < (int64_t{1} << 31),
           value, who, ": ", name, " needs two numbers of at least ", least, "; got ", list.span());
}
void take(const IntList& from, int64_t* to) { to[0] = from[0], to[1] = from[1]; }

kernels::BlockedShape packing_shape(const PackAttrs& a, std::span<const int64_t> w) {
  kernels::BlockedShape s{.in_channels = w[1] * a.groups, .out_channels = w[0], .groups = a.groups};
  s.kernel[0] = w[2], s.kernel[1] = w[3];
  take(a.stride, s.stride);
  take(a.dilate, s.dilation);
  return s;
}

/// x: the data's shape, in blocks or plain.
kernels::BlockedShape shape_of(const BlockedConvolutionAttrs& a, std::span<const int64_t> x) {
  kernels::BlockedShape s{.in_channels = a.in_channels, .out_channels = a.out_channels, .groups = a.groups};
  s.batch = x.size() == 5 ? x[1] : x[0];
  s.in[0] = x[2], s.in[1] = x[3];
  take(a.size, s.out);
  take(a.kernel, s.kernel);
  take(a.stride, s.stride);
  take(a.dilate, s.dilation);
  take(a.pad, s.pad);
  return s;
}

double operations(const kernels::BlockedShape& s) {
  return 2.0 * static_cast<double>(s.batch * s.out[0] * s.out[1]) * static_cast<double>(s.out_channels) *
         static_cast<double>(s.in_channels / s.groups * s.kernel[0] * s.kernel[1]);
}

void check_shape(const BlockedConvolutionAttrs& a, SigsIn in) {
  const char* who = "blocked_convolution";
  check_pair(a.kernel, "kernel", 1, who);
  check_pair(a.stride, "stride", 1, who);
  check_pair(a.dilate, "dilate", 1, who);
  check_pair(a.pad, "pad", 0, who);
  check_pair(a.size, "size", 1, who);
  TW_CHECK(a.groups >= 1 && a.in_channels >= 1 && a.out_channels >= 1 && a.in_channels % a.groups == 0 &&
               a.out_channels % a.groups == 0,
           value, who, ": groups must divide the channels ", a.in_channels, " and ", a.out_channels, "; got ",
           a.groups);
  if (kernels::blocked_algorithm(a.algorithm.view()).plain_input)
    TW_CHECK(in[0].rank() == 4 && in[0].shape[1] == a.in_channels, value, who, ": ", a.algorithm.view(),
             " takes data (batch, ", a.in_channels, ", height, width); got ", in[0].shape);
  else check_blocked(in[0], a.in_channels, who);
  int64_t blocks = channel_blocks(a.out_channels);
  if (in[2].present())
    TW_CHECK(in[2].shape.size() == blocks * kChannelBlock, value, who, ": bias must have ", blocks * kChannelBlock,
             " elements; got ", in[2].shape);
}

}  // namespace

BlockedPlan plan_blocked_convolution(const kernels::BlockedShape& s, const BlockedQuery& q) {
  BlockedPlan plan;
  if (!can_block(q.in[0]) || !can_block(q.in[1]) || !can_block(q.out[0])) return plan;
  if (q.in[2].present() && q.in[2].dtype != DType::float32) return plan;
  kernels::BlockedChoice best = kernels::choose_blocked(s, {q.exact, q.autotune});
  plan.possible = best.algorithm != &kernels::blocked_reference;  // no faster than what is there
  plan.inputs = best.algorithm->plain_input ? 0 : X0;
  plan.fixed = X1 | X2;
  // The other kernels reach perhaps half as much; in the time that is saved so many bytes move in the caches.
  plan.gain = operations(s) / 8;
  return plan;
}

Val blocked_convolution(const kernels::BlockedShape& s, const BlockedQuery& q, const Val& data, const Val& weight,
                        const Val& bias) {
  kernels::BlockedChoice best = kernels::choose_blocked(s, {q.exact, q.autotune});
  PackAttrs pack;
  pack.algorithm = best.algorithm->name;
  pack.groups = s.groups;
  pack.stride = {s.stride[0], s.stride[1]};
  pack.dilate = {s.dilation[0], s.dilation[1]};
  BlockedConvolutionAttrs a;
  a.algorithm = pack.algorithm;
  a.in_channels = s.in_channels;
  a.out_channels = s.out_channels;
  a.groups = s.groups;
  a.kernel = {s.kernel[0], s.kernel[1]};
  a.stride = pack.stride;
  a.dilate = pack.dilate;
  a.pad = {s.pad[0], s.pad[1]};
  a.size = {s.out[0], s.out[1]};
  a.exact = q.exact;
  Val whole_bias = bias && s.out_channels % kChannelBlock != 0 ? channels_to_blocks(bias) : bias;
  return apply(op_blocked_convolution, a, {data, apply(op_pack_convolution_weight, pack, {weight}), whole_bias});
}

inline constexpr Field kPackFields[] = {
    TW_ATTR(PackAttrs, algorithm, "For which algorithm."),
    TW_ATTR(PackAttrs, groups, "Number of groups of channels that do not see each other."),
    TW_ATTR(PackAttrs, stride, "Steps of the window."),
    TW_ATTR(PackAttrs, dilate, "Distances of the window's elements."),
};
inline constexpr Field kBlockedConvolutionFields[] = {
    TW_ATTR(BlockedConvolutionAttrs, algorithm, "Which kernel computes it."),
    TW_ATTR(BlockedConvolutionAttrs, in_channels, "Channels of data."),
    TW_ATTR(BlockedConvolutionAttrs, out_channels, "Channels of the result."),
    TW_ATTR(BlockedConvolutionAttrs, groups, "Number of groups of channels that do not see each other."),
    TW_ATTR(BlockedConvolutionAttrs, kernel, "Size of the window."),
    TW_ATTR(BlockedConvolutionAttrs, stride, "Steps of the window."),
    TW_ATTR(BlockedConvolutionAttrs, dilate, "Distances of the window's elements."),
    TW_ATTR(BlockedConvolutionAttrs, pad, "Zeros in front of the data."),
    TW_ATTR(BlockedConvolutionAttrs, size, "Height and width of the result."),
    TW_ATTR(BlockedConvolutionAttrs, lower, "The result is at least this."),
    TW_ATTR(BlockedConvolutionAttrs, upper, "The result is at most this."),
    TW_ATTR(BlockedConvolutionAttrs, exact, "Whether only exact algorithms were allowed; for people."),
};

TW_OP(pack_convolution_weight) = whole({
    .name = "pack_convolution_weight",
    .doc = "A convolution's weight laid out for an algorithm on blocked channels.",
    .attrs = schema<PackAttrs>(kPackFields),
    .in = {{{.name = "weight", .doc = "(filters, channels / groups, height, width)."}}},
    .infer = infer_rule<PackAttrs>([](auto& a, SigsIn in, SigsOut out) {
      const Shape& w = in[0].shape;
      check_pair(a.stride, "stride", 1, "pack_convolution_weight");
      check_pair(a.dilate, "dilate", 1, "pack_convolution_weight");
      TW_CHECK(w.rank() == 4 && w.size() > 0 && a.groups >= 1 && w[0] % a.groups == 0, value,
               "pack_convolution_weight: weight must have shape (filters, channels, height, width) with filters for ",
               a.groups, " groups; got ", w);
      const kernels::BlockedAlgorithm& algorithm = kernels::blocked_algorithm(a.algorithm.view());
      out[0] = {Shape{algorithm.packed_size(packing_shape(a, w))}, in[0].dtype};
    }),
    .types = bit_of(DType::float32),
    .kernel = cpu_rule<PackAttrs>([](auto& a, Call& c) {
      kernels::blocked_algorithm(a.algorithm.view())
          .pack(packing_shape(a, c.in[0].shape()), c.in[0].as<float>(), c.out[0].template as<float>());
    }),
    .no_grad = "belongs to prediction",
    .prepares = true,
    .samples = {{{.in = {{{5, 3, 3, 3}}}, .attrs = "algorithm=plain loops, stride=(1, 1), dilate=(1, 1)"}}},
});

TW_OP(blocked_convolution) = whole({
    .name = "blocked_convolution",
    .doc = "A convolution in blocks of channels; adds bias and residual, then keeps the sum between two numbers.",
    .attrs = schema<BlockedConvolutionAttrs>(kBlockedConvolutionFields),
    .in = {{{.name = "data", .doc = "In blocks, or as it stands where the algorithm takes it so."},
            {.name = "weight", .doc = "Laid out for the algorithm."},
            {.name = "bias", .kind = SlotKind::optional, .doc = "A number for each channel, in whole blocks."},
            {.name = "residual", .kind = SlotKind::optional, .doc = "In blocks, in the shape of the result."}}},
    .infer = infer_rule<BlockedConvolutionAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_shape(a, in);
      kernels::BlockedShape s = shape_of(a, in[0].shape);
      Shape y{channel_blocks(a.out_channels), s.batch, s.out[0], s.out[1], kChannelBlock};
      int64_t packed = kernels::blocked_algorithm(a.algorithm.view()).packed_size(s);
      TW_CHECK(in[1].shape == Shape{packed}, value, "blocked_convolution: weight must be laid out in ", packed,
               " elements; got ", in[1].shape);
      if (in[3].present())
        TW_CHECK(in[3].shape == y, value, "blocked_convolution: residual must have shape ", y, "; got ", in[3].shape);
      out[0] = {y, in[0].dtype};
    }),
    .types = bit_of(DType::float32),
    .kernel = cpu_rule<BlockedConvolutionAttrs>([](auto& a, Call& c) {
      if (c.out[0].size == 0) return;
      kernels::BlockedEpilogue e{.bias = c.in[2].present() ? c.in[2].as<float>() : nullptr,
                                 .residual = c.in[3].present() ? c.in[3].as<float>() : nullptr,
                                 .lower = static_cast<float>(a.lower),
                                 .upper = static_cast<float>(a.upper)};
      kernels::blocked_algorithm(a.algorithm.view())
          .run(shape_of(a, c.in[0].shape()), c.in[0].as<float>(), c.in[1].as<float>(), e,
               c.out[0].template as<float>());
    }),
    .no_grad = "belongs to prediction",
    .inplace = {{{0, 3}}},
    .heavy = true,
    .cost = cost_rule<BlockedConvolutionAttrs>([](auto& a, SigsIn in, SigsIn) {
      return operations(shape_of(a, in[0].shape));
    }),
    .algorithm = algorithm_rule<BlockedConvolutionAttrs>([](auto& a, const Call&) -> const char* {
      return kernels::blocked_algorithm(a.algorithm.view()).name;
    }),
    .epilogue = {.addend = 3,
                 .adds =
                     [](const void* attrs) {
                       const auto& a = *static_cast<const BlockedConvolutionAttrs*>(attrs);
                       return a.lower == -kInfinity && a.upper == kInfinity;
                     },
                 .clamp =
                     [](void* attrs, double low, double high) {
                       auto& a = *static_cast<BlockedConvolutionAttrs*>(attrs);
                       a.lower = std::min(std::max(a.lower, low), high);
                       a.upper = std::min(std::max(a.upper, low), high);
                     }},
    .verdicts = [](const void* attrs, const Call& c) -> std::vector<AlgorithmVerdict> {
      const auto& a = *static_cast<const BlockedConvolutionAttrs*>(attrs);
      std::vector<AlgorithmVerdict> all;
      for (auto& v : kernels::judge_blocked(shape_of(a, c.in[0].shape()), {a.exact, false}))
        all.push_back({v.algorithm->name, std::move(v.refusal), v.seconds, v.measured});
      return all;
    },
    .samples = {{{.in = {{{1, 2, 4, 5, 16}, {2304}, {16}, {1, 2, 4, 5, 16}}},
                  .attrs = "algorithm=plain loops, in_channels=7, out_channels=9, kernel=(3, 3), stride=(1, 1), "
                           "dilate=(1, 1), pad=(1, 1), size=(4, 5), lower=0"}}},
});

}  // namespace twibil::ops
