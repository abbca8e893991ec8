// SPDX-License-Identifier: Apache-2.0
// Layer normalisation along one axis: a fused operator on the last axis, a composition on others.
#include <vector>

#include "base/recycled.h"
#include "kernels/normalize.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

extern const OpDef op_layer_norm_last, op_layer_norm_grad;

struct LayerNormAttrs {
  int64_t axis = -1;
  double eps = 1e-5;
  bool output_mean_var = false;
};
inline constexpr Field kLayerNormFields[] = {
    TW_ATTR(LayerNormAttrs, axis, "Axis to normalise."),
    TW_ATTR(LayerNormAttrs, eps, "Added to the variance."),
    TW_ATTR(LayerNormAttrs, output_mean_var, "Accepted for compatibility."),
};

struct LayerNormLastAttrs {
  double eps = 1e-5;
};
inline constexpr Field kLayerNormLastFields[] = {TW_ATTR(LayerNormLastAttrs, eps, "Added to the variance.")};

static Val move_last(const Val& x, int axis, bool back) {
  IntList order;
  int rank = x->rank();
  for (int i = 0; i < rank; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  if (!back) return transpose(x, order);
  IntList inverse;
  for (int i = 0; i < rank; ++i) inverse.push_back(0);
  for (int i = 0; i < rank; ++i) inverse[static_cast<int>(order[i])] = i;
  return transpose(x, inverse);
}

TW_OP(layer_norm) = whole({
    .name = "layer_norm",
    .doc = "Normalises along `axis` to mean 0 and variance 1, then scales by gamma and shifts by beta.",
    .names = {"npx.layer_norm", "nd.LayerNorm"},
    .attrs = schema<LayerNormAttrs>(kLayerNormFields),
    .in = {{{.name = "data"}, {.name = "gamma"}, {.name = "beta"}}},
    .types = kFloats,
    .complete = complete_rule<LayerNormAttrs>([](auto& a, std::span<Sig> in) {
      int rank = in[0].rank();
      if (!in[0].present() || a.axis < -rank || a.axis >= rank) return;
      int64_t size = in[0].shape[static_cast<int>(a.axis < 0 ? a.axis + rank : a.axis)];
      for (size_t i = 1; i < in.size(); ++i)
        if (!in[i].present()) in[i] = {Shape{size}, in[0].dtype};
    }),
    .expand = expand_rule<LayerNormAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const Val& x = in[0];
      TW_CHECK(x->rank() > 0, value, "layer_norm: data must have at least one dimension");
      int axis = normalize_axis(a.axis, x->rank(), "layer_norm");
      for (int i = 1; i < 3; ++i)
        TW_CHECK(Shape(in[i]->shape()) == Shape{x->dims[axis]}, value, "layer_norm: gamma and beta must have shape [",
                 x->dims[axis], "]; got ", in[i]->shape());
      LayerNormLastAttrs last{a.eps};
      if (axis == x->rank() - 1) return {apply(op_layer_norm_last, last, {x, in[1], in[2]})};
      return {move_last(apply(op_layer_norm_last, last, {move_last(x, axis, false), in[1], in[2]}), axis, true)};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{4, 5}, SampleInput({5}), SampleInput({5})}}},
                 {.in = {{{2, 3, 4}, SampleInput({3}), SampleInput({3})}}, .attrs = "axis=1"}}},
});

TW_OP(layer_norm_last) = whole({
    .name = "layer_norm_last",
    .doc = "Layer normalisation along the last axis.",
    .attrs = schema<LayerNormLastAttrs>(kLayerNormLastFields),
    .in = {{{.name = "data"}, {.name = "gamma"}, {.name = "beta"}}},
    .out = {{"y", "mean", "inv_std"}},
    .visible = 1,
    .infer = infer_rule<LayerNormLastAttrs>([](auto&, SigsIn in, SigsOut out) {
      Shape rows = in[0].shape;
      TW_CHECK(rows.rank() > 0, value, "layer_norm_last: data must have at least one dimension");
      int64_t n = rows[rows.rank() - 1];
      TW_CHECK(in[1].shape == Shape{n} && in[2].shape == Shape{n}, value,
               "layer_norm_last: gamma and beta must have shape [", n, "]; got ", in[1].shape, " and ", in[2].shape);
      rows[rows.rank() - 1] = 1;
      DType t = in[0].dtype == DType::float64 ? DType::float64 : DType::float32;
      out[0] = {in[0].shape, in[0].dtype};
      out[1] = out[2] = {rows, t};
    }),
    .types = kFloats,
    .kernel = cpu_rule<LayerNormLastAttrs>([](auto& a, Call& c) {
      int64_t n = c.in[0].dim(c.in[0].rank - 1), rows = c.out[1].size;
      DType t = c.out[1].dtype;
      Recycled<std::byte> gamma(static_cast<size_t>(n * size_of(t))), beta(gamma.size());
      kernels::convert_row(c.in[1].dtype, t, c.in[1].data, gamma.data(), n);
      kernels::convert_row(c.in[2].dtype, t, c.in[2].data, beta.data(), n);
      kernels::layer_norm(c.in[0].dtype, rows, n, a.eps, gamma.data(), beta.data(), c.in[0].data, c.out[0].data,
                          c.out[1].data, c.out[2].data);
    }),
    .needs = X0 | X1 | Y1 | Y2,
    .grad = grad_rule<LayerNormLastAttrs>([](auto&, const Grad& g) -> Vals {
      std::vector<Val> in{g.dy(), g.x(0), g.x(1), g.y(1), g.y(2)};
      Vals d = apply_all(op_layer_norm_grad, nullptr, in);
      return {d[0], d[1], d[2]};
    }),
    .inplace = {{{0, 0}}},
    .rows = rows_rule<LayerNormLastAttrs>([](auto&, SigsIn in) -> Rows {
      return {in[0].rank() - 1, 6};
    }),
    .samples = {{{.in = {{{4, 5}, SampleInput({5}), SampleInput({5})}}}}},
});

TW_OP(layer_norm_grad) = whole({
    .name = "layer_norm_grad",
    .doc = "The gradients of layer_norm_last by data, gamma and beta.",
    .in = {{{.name = "dy"}, {.name = "x"}, {.name = "gamma"}, {.name = "mean"}, {.name = "inv_std"}}},
    .out = {{"dx", "dgamma", "dbeta"}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      const Shape& x = in[1].shape;
      TW_CHECK(x.rank() > 0 && in[0].shape == x && in[0].dtype == in[1].dtype, value,
               "layer_norm_grad: dy and x must agree in shape and dtype; got ", in[0], " and ", in[1]);
      Shape rows = x;
      rows[x.rank() - 1] = 1;
      DType t = in[1].dtype == DType::float64 ? DType::float64 : DType::float32;
      TW_CHECK(in[2].shape == Shape{x[x.rank() - 1]}, value, "layer_norm_grad: gamma must have shape [",
               x[x.rank() - 1], "]; got ", in[2].shape);
      for (int k = 3; k < 5; ++k)
        TW_CHECK(in[k].shape == rows && in[k].dtype == t, value, "layer_norm_grad: mean and inv_std must be ", t,
                 " of shape ", rows, "; got ", in[k]);
      out[0] = {in[1].shape, in[1].dtype};
      out[1] = out[2] = {in[2].shape, in[3].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) {
      int64_t n = c.in[2].size, rows = c.in[3].size;
      DType t = c.in[3].dtype;
      Recycled<std::byte> gamma(static_cast<size_t>(n * size_of(t)));
      kernels::convert_row(c.in[2].dtype, t, c.in[2].data, gamma.data(), n);
      kernels::layer_norm_backward(c.in[1].dtype, rows, n, gamma.data(), c.in[3].data, c.in[4].data, c.in[1].data,
                                   c.in[0].data, c.out[0].data, c.out[1].data, c.out[2].data);
    }),
    .needs = X(0) | X(1) | X(2) | X(3) | X(4),
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      // dx = r (u - mean(u) - xhat mean(u xhat)) with u = dy gamma; dgamma = sum(dy xhat); dbeta = sum(dy).
      Val dy = g.x(0), x = g.x(1), gamma = g.x(2), r = g.x(4), xhat = (x - g.x(3)) * r, u = dy * gamma;
      IntList last{-1};
      auto row = [&](const Val& v) { return mean(v, last, true); };
      Val h = g.dy(0), hg = g.dy(1), hb = g.dy(2);
      Val projected = h - row(h) - xhat * row(h * xhat);
      Val to_u = r * projected;
      Val to_dy = to_u * gamma + hg * xhat + hb;
      Val to_xhat = hg * dy - r * (h * row(u * xhat) + u * row(h * xhat));
      Val to_r = row(h * (u - row(u) - xhat * row(u * xhat)));  // per row, divided by n already
      Val to_x = r * (to_xhat - row(to_xhat) - xhat * row(to_xhat * xhat)) - r * r * xhat * to_r;
      return {to_dy, to_x, sum_to_like(to_u * dy, gamma), Val(), Val()};
    }),
    .inplace = {{{0, 0}}},
    .samples = {{{.in = {{{4, 5}, {4, 5}, SampleInput({5}), {4, 1}, {{4, 1}, Domain::positive}}}, .smooth = false}}},
});

}  // namespace twibil::ops
