// SPDX-License-Identifier: Apache-2.0
// Pooling in one to three dimensions.
#include "kernels/pooling.h"

#include "kernels/blocked_pool.h"
#include "kernels/pooling_pick.h"
#include "ops/forms.h"
#include "ops/nn/blocked.h"

namespace twibil::ops {

extern const OpDef op_pooling, op_pooling_grad, op_pooling_pick, op_blocked_pooling;

namespace {

struct PoolingAttrs {
  IntList kernel;
  Choice pool_type;
  bool global_pool = false;
  bool cudnn_off = false;
  Choice pooling_convention;
  IntList stride, pad;
  Maybe<int64_t> p_value;
  Maybe<bool> count_include_pad;
  ShortText layout;
};
enum PoolType { kMax, kAvg, kSum, kLp };
enum Convention { kValid, kFull, kSame };

int64_t at(const IntList& list, int i, int64_t otherwise) { return list.empty() ? otherwise : list[i]; }

void check(const PoolingAttrs& a, const Shape& x) {
  int axes = x.rank() - 2;
  TW_CHECK(axes >= 1 && axes <= 3, value,
           "pooling: data must have shape (batch, channels, size...) with 1 to 3 sizes; got ", x);
  if (a.global_pool) return;
  TW_CHECK(a.kernel.size() == axes, value, "pooling: kernel needs ", axes, " numbers for data of shape ", x, "; got ",
           a.kernel.span());
  TW_CHECK(a.stride.empty() || a.stride.size() == axes, value, "pooling: stride needs ", axes, " numbers; got ",
           a.stride.span());
  TW_CHECK(a.pad.empty() || a.pad.size() == axes, value, "pooling: pad needs ", axes, " numbers; got ", a.pad.span());
  for (int i = 0; i < axes; ++i) {
    TW_CHECK(a.kernel[i] > 0 && a.kernel[i] < (int64_t{1} << 31), value, "pooling: kernel must be positive; got ",
             a.kernel.span());
    TW_CHECK(at(a.stride, i, 1) > 0 && at(a.stride, i, 1) < (int64_t{1} << 31), value,
             "pooling: stride must be positive; got ", a.stride.span());
    TW_CHECK(at(a.pad, i, 0) >= 0 && at(a.pad, i, 0) < a.kernel[i], value,
             "pooling: pad must be at least 0 and smaller than the kernel ", a.kernel.span(), "; got ", a.pad.span());
    TW_CHECK(x[i + 2] + 2 * at(a.pad, i, 0) >= a.kernel[i] || a.pooling_convention == kSame, value, "pooling: kernel ",
             a.kernel[i], " exceeds the padded size ", x[i + 2] + 2 * at(a.pad, i, 0), " of axis ", i + 2);
  }
  TW_CHECK(!a.p_value || (*a.p_value >= 1 && *a.p_value <= 3), value, "pooling: p_value must be 1, 2 or 3; got ",
           a.p_value.value_or(0));
}

int64_t result_size(const PoolingAttrs& a, int64_t in, int i) {
  if (a.global_pool) return 1;
  int64_t k = a.kernel[i], s = at(a.stride, i, 1), p = at(a.pad, i, 0);
  if (a.pooling_convention == kSame) return (in + s - 1) / s;
  int64_t room = in + 2 * p - k;
  return (a.pooling_convention == kFull ? (room + s - 1) / s : room / s) + 1;
}

Shape result_shape(const PoolingAttrs& a, const Shape& x) {
  check(a, x);
  Shape y{x[0], x[1]};
  for (int i = 0; i + 2 < x.rank(); ++i) y.push_back(result_size(a, x[i + 2], i));
  return y;
}

kernels::PoolShape pool_shape(const PoolingAttrs& a, std::span<const int64_t> x, std::span<const int64_t> y) {
  size_t axes = x.size() - 2;
  int64_t kernel[3], stride[3], pad[3];
  for (size_t i = 0; i < axes; ++i) {
    int k = static_cast<int>(i);
    kernel[i] = a.global_pool ? x[i + 2] : a.kernel[k];
    stride[i] = a.global_pool ? 1 : at(a.stride, k, 1);
    pad[i] = a.global_pool ? 0 : at(a.pad, k, 0);
    if (!a.global_pool && a.pooling_convention == kSame)
      pad[i] = std::max<int64_t>(0, (y[i + 2] - 1) * stride[i] + kernel[i] - x[i + 2]) / 2;
  }
  kernels::PoolShape s =
      kernels::pool_shape(x[0] * x[1], x.subspan(2), y.subspan(2), {kernel, axes}, {stride, axes}, {pad, axes});
  s.p = a.p_value.value_or(2);
  return s;
}

kernels::PoolKind kind_of(const PoolingAttrs& a) {
  switch (a.pool_type) {
    case kMax: return kernels::PoolKind::max;
    case kSum: return kernels::PoolKind::sum;
    case kLp: return kernels::PoolKind::lp;
    default:
      return a.count_include_pad.value_or(true) ? kernels::PoolKind::average : kernels::PoolKind::average_of_elements;
  }
}

}  // namespace

inline constexpr Field kPoolingFields[] = {
    TW_ATTR(PoolingAttrs, kernel, "Size of the window; ignored when pooling globally."),
    TW_ATTR(PoolingAttrs, pool_type, "What is taken of each window.", .choices = "max|avg|sum|lp"),
    TW_ATTR(PoolingAttrs, global_pool, "Takes all of each channel as one window."),
    TW_ATTR(PoolingAttrs, cudnn_off, "Accepted for compatibility."),
    TW_ATTR(PoolingAttrs, pooling_convention,
            "How the size is rounded: valid down, full up, same: input size over stride.",
            .choices = "valid|full|same"),
    TW_ATTR(PoolingAttrs, stride, "Steps of the window; empty: 1."),
    TW_ATTR(PoolingAttrs, pad, "Padding on both sides; empty: 0."),
    TW_ATTR(PoolingAttrs, p_value, "The p of lp pooling; None: 2."),
    TW_ATTR(PoolingAttrs, count_include_pad, "Whether averages count the padding; None: yes."),
    TW_ATTR(PoolingAttrs, layout, "Order of the axes: NCW, NCHW or NCDHW."),
};

TW_OP(pooling) = whole({
    .name = "pooling",
    .doc = "Takes the maximum, mean, sum or p-norm of windows of data. NaN wins a maximum.",
    .names = {"npx.pooling", "nd.Pooling"},
    .graph = {.names = "Pooling Pooling_v1"},
    .attrs = schema<PoolingAttrs>(kPoolingFields),
    .in = {{{.name = "data", .doc = "(batch, channels, size...), one to three sizes."}}},
    .infer = infer_rule<PoolingAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {result_shape(a, in[0].shape), in[0].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<PoolingAttrs>([](auto& a, Call& c) {
      kernels::pool_forward(c.in[0].dtype, kind_of(a), pool_shape(a, c.in[0].shape(), c.out[0].shape()), c.in[0].data,
                            c.out[0].data);
    }),
    .needs = X0 | Y0,
    .grad = grad_rule<PoolingAttrs>([](auto& a, const Grad& g) -> Vals {
      if (a.pool_type != kLp) return {apply(op_pooling_grad, a, {g.dy(), g.x(0), g.y()})};
      // dy * (x / y)^(p - 1), spread over the window: with sum pooling's gradient, so that further orders follow.
      PoolingAttrs spread = a;
      spread.pool_type = kSum;
      Val x = g.x(0), y = g.y(), p = Val(a.p_value.value_or(2) - 1);
      return {apply(op_pooling_grad, spread, {g.dy() / power(y, p), x, y}) * power(x, p)};
    }),
    .blocked = {blocked_plan_rule<PoolingAttrs>([](auto& a, const BlockedQuery& q) {
                  return BlockedPlan{.possible = can_block(q.in[0]) && a.pool_type != kLp, .inputs = X0};
                }),
                blocked_rule<PoolingAttrs>([](auto& a, const BlockedQuery&, std::span<const Val> in) {
                  return apply(op_blocked_pooling, a, {in[0]});
                })},
    .averages =
        [](const void* attrs) {
          int type = static_cast<const PoolingAttrs*>(attrs)->pool_type;
          return type == kAvg || type == kSum;
        },
    .samples = {{{.in = {{{2, 3, 6, 5}}}, .attrs = "kernel=(2, 2), stride=(2, 2)"},
                 {.in = {{{2, 3, 7}}},
                  .attrs = "kernel=(3,), pool_type=avg, stride=(2,), pad=(1,), pooling_convention=full"},
                 {.in = {{{1, 2, 4, 4, 4}}}, .attrs = "kernel=(2, 2, 2), pool_type=sum"},
                 {.in = {{{2, 3, 5, 5}}}, .attrs = "pool_type=avg, global_pool=True"},
                 {.in = {{{{2, 3, 5, 5}, Domain::positive}}}, .attrs = "kernel=(2, 2), pool_type=lp"}}},
});

TW_OP(blocked_pooling) = whole({
    .name = "blocked_pooling",
    .doc = "pooling of data in blocks of channels.",
    .attrs = schema<PoolingAttrs>(kPoolingFields),
    .in = {{{.name = "data", .doc = "(blocks, batch, height, width, 16)."}}},
    .infer = infer_rule<PoolingAttrs>([](auto& a, SigsIn in, SigsOut out) {
      const Shape& x = in[0].shape;
      TW_CHECK(
          x.rank() == 5 && a.pool_type != kLp, value,
          "blocked_pooling: data must have shape (blocks, batch, height, width, 16), for any pool_type but lp; got ",
          x);
      Shape y = result_shape(a, {x[0], x[1], x[2], x[3]});
      y.push_back(x[4]);
      check_blocked(in[0], checked_mul(x[0], kChannelBlock), "blocked_pooling");
      out[0] = {y, in[0].dtype};
    }),
    .types = bit_of(DType::float32),
    .kernel = cpu_rule<PoolingAttrs>([](auto& a, Call& c) {
      kernels::blocked_pool(kind_of(a), pool_shape(a, c.in[0].shape().first(4), c.out[0].shape().first(4)),
                            c.in[0].as<float>(), c.out[0].template as<float>());
    }),
    .no_grad = "belongs to prediction",
    .samples = {{{.in = {{{2, 2, 5, 6, 16}}}, .attrs = "kernel=(3, 3), stride=(2, 2), pad=(1, 1)"},
                 {.in = {{{2, 2, 5, 4, 16}}}, .attrs = "kernel=(3, 3), pool_type=avg, pad=(1, 1)"},
                 {.in = {{{2, 2, 5, 4, 16}}}, .attrs = "pool_type=avg, global_pool=True"}}},
});

TW_OP(pooling_grad) = whole({
    .name = "pooling_grad",
    .doc =
        "The gradient of pooling by its data x, from dy and the result y; a maximum's goes to the first of its window.",
    .attrs = schema<PoolingAttrs>(kPoolingFields),
    .in = {{{.name = "dy"}, {.name = "x"}, {.name = "y"}}},
    .infer = infer_rule<PoolingAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(result_shape(a, in[1].shape) == in[0].shape, value, "pooling_grad: dy has shape ", in[0].shape,
               " for data of shape ", in[1].shape);
      TW_CHECK(in[2].shape == in[0].shape, value, "pooling_grad: y must have the shape ", in[0].shape, " of dy; got ",
               in[2].shape);
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<PoolingAttrs>([](auto& a, Call& c) {
      kernels::pool_backward(c.in[0].dtype, kind_of(a), pool_shape(a, c.in[1].shape(), c.in[0].shape()), c.in[1].data,
                             c.in[2].data, c.in[0].data, c.out[0].data);
    }),
    .same_dtype = true,
    .needs = X0 | X1 | X2,
    .grad = grad_rule<PoolingAttrs>([](auto& a, const Grad& g) -> Vals {
      if (!g.wants(0)) return {Val(), Val(), Val()};  // flat in x, almost everywhere
      if (a.pool_type == kMax) return {apply(op_pooling_pick, a, {g.dy(), g.x(1)}), Val(), Val()};
      return {apply(op_pooling, a, {g.dy()}), Val(), Val()};
    }),
    .samples = {{{.in = {{{2, 3, 3, 2}, {2, 3, 6, 5}, {2, 3, 3, 2}}},
                  .attrs = "kernel=(2, 2), stride=(2, 2)",
                  .smooth = false}}},
});

TW_OP(pooling_pick) = whole({
    .name = "pooling_pick",
    .doc = "Reads h where the maxima of max pooling of x lie: the transpose of max pooling's gradient.",
    .attrs = schema<PoolingAttrs>(kPoolingFields),
    .in = {{{.name = "h"}, {.name = "x"}}},
    .infer = infer_rule<PoolingAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(in[0].shape == in[1].shape, value, "pooling_pick: h and x must have one shape; got ", in[0].shape,
               " and ", in[1].shape);
      out[0] = {result_shape(a, in[1].shape), in[0].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<PoolingAttrs>([](auto& a, Call& c) {
      kernels::pool_pick(c.in[0].dtype, pool_shape(a, c.in[1].shape(), c.out[0].shape()), c.in[1].data, c.in[0].data,
                         c.out[0].data);
    }),
    .same_dtype = true,
    .needs = X1,
    .grad = grad_rule<PoolingAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_pooling_grad, a, {g.dy(), g.x(1), g.dy()}), Val()};
    }),
    .samples = {{{.in = {{{2, 3, 6, 5}, {2, 3, 6, 5}}}, .attrs = "kernel=(2, 2), stride=(2, 2)", .smooth = false}}},
});

}  // namespace twibil::ops
