// SPDX-License-Identifier: Apache-2.0
// Normalisation over the batch.
#include <cmath>
#include <vector>

#include "base/recycled.h"
#include "kernels/normalize.h"
#include "ops/forms.h"
#include "ops/nn/blocked.h"
#include "ops/strides.h"

namespace twibil::ops {

extern const OpDef op_batch_norm_grad, op_batch_norm_predict;

namespace {

struct BatchNormAttrs {
  double eps = 1e-3, momentum = 0.9;
  bool fix_gamma = true, use_global_stats = false, output_mean_var = false;
  int64_t axis = 1;
  bool cudnn_off = false;
};

struct Channels {
  int axis;
  kernels::ChannelShape shape;
  Channels(const Buffer& x, int64_t a)
      : axis(normalize_axis(a, x.rank, "batch_norm")), shape{x.dtype, 1, x.dims[axis], 1} {
    for (int i = 0; i < axis; ++i) shape.batch *= x.dims[i];
    for (int i = axis + 1; i < x.rank; ++i) shape.inner *= x.dims[i];
  }
};

DType statistics_dtype(DType t) { return t == DType::float64 ? DType::float64 : DType::float32; }

/// A vector of channels in the dtype of the statistics; absent ones stay null.
struct Vector {
  Recycled<std::byte> bytes;
  const void* data = nullptr;
  Vector(const Buffer& b, DType t) {
    if (!b.present()) return;
    data = b.data;
    if (b.dtype == t) return;
    bytes.resize(static_cast<size_t>(b.size * size_of(t)));
    kernels::convert_row(b.dtype, t, b.data, bytes.data(), b.size);
    data = bytes.data();
  }
};

void check_vector(const Sig& v, const char* name, int64_t channels) {
  TW_CHECK(v.shape == Shape{channels}, value, "batch_norm: ", name, " must have shape [", channels,
           "], the size of the channel axis; got ", v.shape);
}

/// running = momentum * running + (1 - momentum) * batch.
void update_running(const Buffer& running, DType t, const std::byte* batch, double momentum) {
  auto mix = [&]<class T>(const T* fresh) {
    dispatch(running.dtype, [&]<class R>() {
      if constexpr (std::is_floating_point_v<R>) {
        R* r = running.as<R>();
        for (int64_t i = 0; i < running.size; ++i) r[i] = static_cast<R>(momentum * r[i] + (1 - momentum) * fresh[i]);
      }
    });
  };
  if (t == DType::float64) mix(reinterpret_cast<const double*>(batch));
  else mix(reinterpret_cast<const float*>(batch));
}

/// Halves would lose what a step of 0.1 adds; reading them is no harm.
void check_updatable(const Sig& running) {
  TW_CHECK(running.dtype == DType::float32 || running.dtype == DType::float64, type,
           "batch_norm: running statistics must be float32 or float64; got ", running.dtype);
}

/// What both forms check, and their first results: y, and the mean and variance that it was computed with.
void infer_normalized(const BatchNormAttrs& a, SigsIn in, SigsOut out) {
  TW_CHECK(in[0].rank() >= 1, value, "batch_norm: x must have at least one dimension");
  int64_t channels = in[0].shape[normalize_axis(a.axis, in[0].rank(), "batch_norm")];
  check_vector(in[1], "gamma", channels);
  check_vector(in[2], "beta", channels);
  check_vector(in[3], "running_mean", channels);
  check_vector(in[4], "running_var", channels);
  TW_CHECK(in[4].dtype == in[3].dtype, type, "batch_norm: running_mean and running_var must have one dtype");
  DType t = statistics_dtype(in[0].dtype);
  out[0] = {in[0].shape, in[0].dtype};
  out[1] = out[2] = {Shape{channels}, t};
}

void take_running_statistics(Call& c, DType t) {
  kernels::convert_row(c.in[3].dtype, t, c.in[3].data, c.out[1].data, c.in[3].size);
  kernels::convert_row(c.in[4].dtype, t, c.in[4].data, c.out[2].data, c.in[4].size);
}

/// y from the statistics in the second and third output.
void normalize(const BatchNormAttrs& a, Call& c, const Channels& ch, DType t) {
  Vector gamma(a.fix_gamma ? Buffer() : c.in[1], t), beta(c.in[2], t);
  kernels::batch_norm_apply(ch.shape, a.eps, c.out[1].data, c.out[2].data, gamma.data, beta.data, c.in[0].data,
                            c.out[0].data);
}

Vals gradients_of(const BatchNormAttrs& a, const Grad& g, bool by_running_statistics) {
  BatchNormAttrs now = a;
  now.use_global_stats = by_running_statistics;
  std::vector<Val> in{g.dy(), g.x(0), g.x(1), g.y(1), g.y(2)};
  Vals d = apply_all(op_batch_norm_grad, &now, in);
  return {d[0], g.wants(1) && !a.fix_gamma ? d[1] : Val(), g.wants(2) ? d[2] : Val(), Val(), Val()};
}

/// x seen per channel: [1, channels, 1, ...].
Val along(const Val& v, const Val& x, int axis) {
  Shape shape;
  for (int i = 0; i < x->rank(); ++i) shape.push_back(i == axis ? x->dims[i] : 1);
  return reshape(v, shape);
}

}  // namespace

inline constexpr Field kBatchNormFields[] = {
    TW_ATTR(BatchNormAttrs, eps, "Added to the variance."),
    TW_ATTR(BatchNormAttrs, momentum, "How much of the running statistics is kept."),
    TW_ATTR(BatchNormAttrs, fix_gamma, "Takes gamma as 1."),
    TW_ATTR(BatchNormAttrs, use_global_stats, "Uses the running statistics also in training."),
    TW_ATTR(BatchNormAttrs, output_mean_var,
            "Accepted for compatibility: mean and variance are kept for the gradient anyway."),
    TW_ATTR(BatchNormAttrs, axis, "The channel axis."),
    TW_ATTR(BatchNormAttrs, cudnn_off, "Accepted for compatibility."),
};

TW_OP(batch_norm) = whole({
    .name = "batch_norm",
    .doc = "Normalises each channel to mean 0 and variance 1, then scales by gamma and shifts by beta.\n\nIn training "
           "the statistics are those of the batch (biased variance), and the running ones are updated in place.",
    .names = {"npx.batch_norm", "nd.BatchNorm"},
    .graph = {.names = "BatchNorm BatchNorm_v1 CuDNNBatchNorm _npx_batch_norm",
              .inputs = "data gamma beta moving_mean moving_var"},
    .onnx = {.names = "BatchNormalization:7",
             .attrs = "eps:epsilon=1e-05 momentum=0.9 fix_gamma=False",
             .unused = "training_mode=0 spatial=1"},
    .attrs = schema<BatchNormAttrs>(kBatchNormFields),
    .in = {{{.name = "x"},
            {.name = "gamma"},
            {.name = "beta"},
            {.name = "running_mean", .kind = SlotKind::aux},
            {.name = "running_var", .kind = SlotKind::aux}}},
    .out = {{"y", "mean", "var", "new_running_mean", "new_running_var"}},
    .visible = 1,
    .infer = infer_rule<BatchNormAttrs>([](auto& a, SigsIn in, SigsOut out) {
      infer_normalized(a, in, out);
      check_updatable(in[3]);
      out[3] = in[3];
      out[4] = in[4];
    }),
    .types = kFloats,
    .kernel = cpu_rule<BatchNormAttrs>([](auto& a, Call& c) {
      Channels ch(c.in[0], a.axis);
      DType t = statistics_dtype(c.in[0].dtype);
      if (c.training && !a.use_global_stats) {
        kernels::batch_norm_statistics(ch.shape, c.in[0].data, c.out[1].data, c.out[2].data);
        if (c.in[0].size) {
          update_running(c.out[3], t, c.out[1].data, a.momentum);
          update_running(c.out[4], t, c.out[2].data, a.momentum);
        }
      } else {
        take_running_statistics(c, t);
      }
      normalize(a, c, ch, t);
    }),
    .complete = complete_rule<BatchNormAttrs>([](auto& a, std::span<Sig> in) {
      int rank = in[0].rank();
      if (!in[0].present() || a.axis < -rank || a.axis >= rank) return;
      int64_t channels = in[0].shape[static_cast<int>(a.axis < 0 ? a.axis + rank : a.axis)];
      for (size_t i = 1; i < in.size(); ++i)
        if (!in[i].present()) in[i] = {Shape{channels}, statistics_dtype(in[0].dtype)};
    }),
    .needs = X0 | X1 | Y1 | Y2,
    .grad = grad_rule<BatchNormAttrs>([](auto& a, const Grad& g) -> Vals {
      return gradients_of(a, g, a.use_global_stats || !g.training());
    }),
    .inplace = {{{0, 0}}},
    .updates = {{{3, 3}, {4, 4}}},
    .again = {&op_batch_norm_predict, {{{1, 3}, {2, 4}}}},
    .trains = true,
    .predict = expand_rule<BatchNormAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Sig sigs[5], results[3];
      for (int i = 0; i < 5; ++i) sigs[i] = in[static_cast<size_t>(i)].sig();
      infer_normalized(a, sigs, results);  // its errors are batch_norm's
      check_updatable(sigs[3]);
      return {apply_all(op_batch_norm_predict, &a, in)[0]};
    }),
    .samples = {{{.in = {{{4, 3, 2, 2},
                          SampleInput({3}, Domain::positive),
                          SampleInput({3}),
                          SampleInput({3}),
                          SampleInput({3}, Domain::positive)}},
                  .attrs = "fix_gamma=False"},
                 {.in = {{{5, 3},
                          SampleInput({3}, Domain::positive),
                          SampleInput({3}),
                          SampleInput({3}),
                          SampleInput({3}, Domain::positive)}},
                  .attrs = "axis=-1"}}},
});

TW_OP(batch_norm_predict) = whole({
    .name = "batch_norm_predict",
    .doc = "batch_norm outside training: the running statistics are only read, so that predictions may run at once.",
    .attrs = schema<BatchNormAttrs>(kBatchNormFields),
    .in = {{{.name = "x"},
            {.name = "gamma"},
            {.name = "beta"},
            {.name = "running_mean", .kind = SlotKind::aux},
            {.name = "running_var", .kind = SlotKind::aux}}},
    .out = {{"y", "mean", "var"}},
    .visible = 1,
    .infer = infer_rule<BatchNormAttrs>([](auto& a, SigsIn in, SigsOut out) { infer_normalized(a, in, out); }),
    .types = kFloats,
    .kernel = cpu_rule<BatchNormAttrs>([](auto& a, Call& c) {
      DType t = statistics_dtype(c.in[0].dtype);
      take_running_statistics(c, t);
      normalize(a, c, Channels(c.in[0], a.axis), t);
    }),
    .needs = X0 | X1 | Y1 | Y2,
    .grad = grad_rule<BatchNormAttrs>([](auto& a, const Grad& g) -> Vals { return gradients_of(a, g, true); }),
    .inplace = {{{0, 0}}},
    .affine = affine_rule<BatchNormAttrs>([](auto& a, std::span<const Val> in) -> Affine {
      Val inverse = Val(1.0) / sqrt(in[4] + a.eps), scale = a.fix_gamma ? inverse : in[1] * inverse;
      return {scale, in[2] - in[3] * scale, normalize_axis(a.axis, in[0]->rank(), "batch_norm")};
    }),
    .blocked = {blocked_plan_rule<BatchNormAttrs>([](auto& a, const BlockedQuery& q) {
                  bool channels = can_block(q.in[0]) && (a.axis == 1 || a.axis == -3);
                  for (size_t k = 1; channels && k < q.in.size(); ++k) channels = q.in[k].dtype == DType::float32;
                  return BlockedPlan{.possible = channels, .inputs = X0, .fixed = X(1) | X(2) | X(3) | X(4)};
                }),
                blocked_rule<BatchNormAttrs>([](auto& a, const BlockedQuery&, std::span<const Val> in) {
                  Val inverse = Val(1.0) / sqrt(in[4] + a.eps), scale = a.fix_gamma ? inverse : in[1] * inverse;
                  return in[0] * channels_to_blocks(scale) + channels_to_blocks(in[2] - in[3] * scale);
                })},
    .samples = {{{.in = {{{4, 3, 2, 2},
                          SampleInput({3}, Domain::positive),
                          SampleInput({3}),
                          SampleInput({3}),
                          SampleInput({3}, Domain::positive)}},
                  .attrs = "fix_gamma=False"}}},
});

TW_OP(batch_norm_grad) = whole({
    .name = "batch_norm_grad",
    .doc = "The gradients of batch_norm by x, gamma and beta, from the statistics it used.",
    .attrs = schema<BatchNormAttrs>(kBatchNormFields),
    .in = {{{.name = "dy"}, {.name = "x"}, {.name = "gamma"}, {.name = "mean"}, {.name = "var"}}},
    .out = {{"dx", "dgamma", "dbeta"}},
    .infer = infer_rule<BatchNormAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(in[1].rank() > 0 && in[0].dtype == in[1].dtype, type,
               "batch_norm_grad: dy and x must have one dtype and at least one dimension; got ", in[0], " and ", in[1]);
      int64_t channels = in[1].shape[normalize_axis(a.axis, in[1].rank(), "batch_norm_grad")];
      check_vector(in[2], "gamma", channels);
      for (int k = 3; k < 5; ++k) {
        check_vector(in[k], k == 3 ? "mean" : "var", channels);
        TW_CHECK(in[k].dtype == statistics_dtype(in[1].dtype), type, "batch_norm_grad: statistics of ", in[1].dtype,
                 " data must be ", statistics_dtype(in[1].dtype), "; got ", in[k].dtype);
      }
      TW_CHECK(in[0].shape == in[1].shape, value, "batch_norm_grad: dy and x must have one shape; got ", in[0].shape,
               " and ", in[1].shape);
      out[0] = {in[1].shape, in[1].dtype};
      out[1] = out[2] = {in[3].shape, in[3].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<BatchNormAttrs>([](auto& a, Call& c) {
      Channels ch(c.in[1], a.axis);
      DType t = statistics_dtype(c.in[1].dtype);
      Vector gamma(a.fix_gamma ? Buffer() : c.in[2], t);
      const void *mean = c.in[3].data, *var = c.in[4].data;
      kernels::batch_norm_backward_sums(ch.shape, a.eps, mean, var, c.in[1].data, c.in[0].data, c.out[1].data,
                                        c.out[2].data);
      bool fixed = a.use_global_stats;
      kernels::batch_norm_backward_dx(ch.shape, a.eps, mean, var, gamma.data, fixed ? nullptr : c.out[1].data,
                                      fixed ? nullptr : c.out[2].data, c.in[1].data, c.in[0].data, c.out[0].data);
    }),
    .needs = X(0) | X(1) | X(2) | X(3) | X(4),
    .grad = grad_rule<BatchNormAttrs>([](auto& a, const Grad& g) -> Vals {
      // Second order: the same gradients written with operators on x, then differentiated as a function of all inputs.
      Val dy = g.x(0), x = g.x(1);
      int axis = normalize_axis(a.axis, x->rank(), "batch_norm");
      IntList others;
      for (int i = 0; i < x->rank(); ++i)
        if (i != axis) others.push_back(i);
      double m = static_cast<double>(x->size()) / static_cast<double>(std::max<int64_t>(1, x->dims[axis]));
      auto per_channel = [&](const Val& v) { return sum(v, others, true); };
      Val mean = along(g.x(3), x, axis), inv = Val(1.0) / sqrt(along(g.x(4), x, axis) + a.eps), xhat = (x - mean) * inv;
      Val gamma = a.fix_gamma ? Val(1.0) : along(g.x(2), x, axis), scale = gamma * inv;
      Val h = g.dy(0), hg = along(g.dy(1), x, axis), hb = along(g.dy(2), x, axis);
      Val s1 = per_channel(dy), s2 = per_channel(dy * xhat), h1 = per_channel(h), h2 = per_channel(h * xhat),
          hdy = per_channel(h * dy);
      Val to_dy, to_xhat, to_inv_over_inv, to_gamma;
      if (a.use_global_stats) {
        to_dy = scale * h + hg * xhat + hb;
        to_xhat = hg * dy;
        Val dx = inv * to_xhat;
        Val dgamma = a.fix_gamma ? Val() : sum(h * dy * inv, others);
        return {to_dy, dx, dgamma, Val(), Val()};
      }
      // dx = scale * (dy - s1 / m - xhat * s2 / m), dgamma = s2, dbeta = s1.
      to_dy = scale * (h - h1 / m - xhat * h2 / m) + hg * xhat + hb;
      to_xhat = hg * dy - scale * (h * s2 + dy * h2) / m;
      Val to_scale = hdy - h1 * s1 / m - h2 * s2 / m;  // per channel
      // xhat and inv depend on x through the batch's statistics.
      Val back = inv * (to_xhat - per_channel(to_xhat) / m - xhat * per_channel(to_xhat * xhat) / m) -
                 (to_scale * gamma * inv * inv * xhat) / m;
      Val dgamma = a.fix_gamma ? Val() : reshape_like(to_scale * inv, g.x(2));
      return {to_dy, back, dgamma, Val(), Val()};
    }),
    .inplace = {{{0, 0}}},
    .samples = {{{.in = {{{4, 3, 2},
                          {4, 3, 2},
                          SampleInput({3}, Domain::positive),
                          SampleInput({3}),
                          SampleInput({3}, Domain::positive)}},
                  .attrs = "fix_gamma=False",
                  .smooth = false}}},
});

}  // namespace twibil::ops
