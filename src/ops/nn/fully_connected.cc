// SPDX-License-Identifier: Apache-2.0
// Dense layers. fully_connected is what users call; dense_clamped, without a public name, is what a compiled graph for
// prediction may call instead: it keeps the sums between two numbers before it writes them.
#include <algorithm>
#include <limits>

#include "kernels/matmul.h"
#include "ops/forms.h"

namespace twibil::ops {

struct FullyConnectedAttrs {
  int64_t num_hidden = 0;
  bool no_bias = false;
  bool flatten = true;
};
inline constexpr Field kFullyConnectedFields[] = {
    TW_ATTR(FullyConnectedAttrs, num_hidden, "Number of units; 0: that of the weight."),
    TW_ATTR(FullyConnectedAttrs, no_bias, "Whether the bias is left out."),
    TW_ATTR(FullyConnectedAttrs, flatten, "Sees x as (x.shape[0], all the rest); otherwise works on the last axis."),
};

struct DenseClampedAttrs {
  bool flatten = true;
  double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
};
inline constexpr Field kDenseClampedFields[] = {
    TW_ATTR(DenseClampedAttrs, flatten, "Sees x as (x.shape[0], all the rest); otherwise works on the last axis."),
    TW_ATTR(DenseClampedAttrs, lower, "The least result."),
    TW_ATTR(DenseClampedAttrs, upper, "The greatest result."),
};

extern const OpDef op_dense_clamped;

template <class A> int64_t rows_of(const A& a, std::span<const int64_t> x) {
  int64_t rows = 1;
  size_t lead = a.flatten ? 1 : x.size() - 1;
  for (size_t i = 0; i < lead; ++i) rows *= x[i];
  return rows;
}

template <class A> Sig dense_result(const A& a, SigsIn in, bool bias, std::string_view who) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  TW_CHECK(x.rank() >= 1, value, who, ": x must have at least one dimension");
  TW_CHECK(w.rank() == 2, value, who, ": weight must have shape (units, inputs); got ", w);
  int64_t inputs = 1;
  for (int i = a.flatten ? 1 : x.rank() - 1; i < x.rank(); ++i) inputs = checked_mul(inputs, x[i]);
  TW_CHECK(w[1] == inputs, value, who, ": weight of shape ", w, " takes ", w[1], " inputs; x of shape ", x, " has ",
           inputs);
  if (bias) TW_CHECK(in[2].shape == Shape{w[0]}, value, who, ": bias must have shape [", w[0], "]; got ", in[2].shape);
  Shape y = a.flatten ? Shape{x[0]} : Shape(x.span().first(static_cast<size_t>(x.rank() - 1)));
  y.push_back(w[0]);
  return {y, promote(in[0].dtype, in[1].dtype)};
}

template <class A> void run_dense(const A& a, Call& c, const kernels::DenseEpilogue& e) {
  if (c.out[0].size == 0) return;  // the inputs may be 2^60 columns of nothing
  kernels::dense(c.out[0].dtype, rows_of(a, c.in[0].shape()), c.in[1].dim(0), c.in[1].dim(1), c.in[0].data,
                 c.in[1].data, e, c.out[0].data);
}

template <class A> const char* dense_algorithm(const A& a, const Call& c) {
  return kernels::matmul_algorithm(
      c.out[0].dtype, kernels::row_major(rows_of(a, c.in[0].shape()), c.in[1].dim(0), c.in[1].dim(1), false, true));
}

TW_OP(fully_connected) = whole({
    .name = "fully_connected",
    .doc = "y = x W^T + b.",
    .names = {"npx.fully_connected", "nd.FullyConnected"},
    .graph = {.names = "FullyConnected", .attrs = "num_hidden", .inputs = "data"},
    .attrs = schema<FullyConnectedAttrs>(kFullyConnectedFields),
    .in = {{{.name = "x", .doc = "(batch, ...)."},
            {.name = "weight", .doc = "(units, inputs)."},
            {.name = "bias", .kind = SlotKind::optional, .doc = "(units,)."}}},
    .infer = infer_rule<FullyConnectedAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = dense_result(a, in, in[2].present() && !a.no_bias, "fully_connected");
      const Shape& w = in[1].shape;
      TW_CHECK(a.num_hidden == 0 || a.num_hidden == w[0], value, "fully_connected: num_hidden is ", a.num_hidden,
               " but weight has ", w[0], " units");
    }),
    .types = kFloats,
    .kernel = cpu_rule<FullyConnectedAttrs>([](auto& a, Call& c) {
      run_dense(a, c, {.bias = c.in[2].present() && !a.no_bias ? c.in[2].data : nullptr});
    }),
    .complete = complete_rule<FullyConnectedAttrs>([](auto& a, std::span<Sig> in) {
      const Sig& x = in[0];
      if (!x.present() || x.rank() < 1 || a.num_hidden < 1) return;
      int64_t inputs = 1;
      for (int i = a.flatten ? 1 : x.rank() - 1; i < x.rank(); ++i) inputs = checked_mul(inputs, x.shape[i]);
      if (!in[1].present()) in[1] = {Shape{a.num_hidden, inputs}, x.dtype};
      if (in.size() > 2 && !in[2].present()) in[2] = {Shape{a.num_hidden}, x.dtype};
    }),
    .same_dtype = true,
    .needs = X0 | X1,
    .grad = grad_rule<FullyConnectedAttrs>([](auto& a, const Grad& g) -> Vals {
      Val x = g.x(0), w = g.x(1), dy = g.dy();
      Shape flat_x{rows_of(a, x->shape()), w->dims[1]}, flat_dy{flat_x[0], w->dims[0]};
      Val rows = reshape(dy, flat_dy);
      Val dx = g.wants(0) ? reshape_like(matmul(rows, w), x) : Val();
      Val dw = g.wants(1) ? matmul(transpose(rows, {1, 0}), reshape(x, flat_x)) : Val();
      Val db = g.wants(2) && !a.no_bias ? sum(rows, IntList{0}) : Val();
      return {dx, dw, db};
    }),
    .heavy = true,
    .cost = cost_rule<FullyConnectedAttrs>([](auto&, SigsIn in, SigsIn out) {
      return 2.0 * static_cast<double>(out[0].shape.size()) * static_cast<double>(in[1].shape[1]);
    }),
    .algorithm = algorithm_rule<FullyConnectedAttrs>([](auto& a, const Call& c) { return dense_algorithm(a, c); }),
    .absorb = absorb_rule<FullyConnectedAttrs>([](auto& a, std::span<Val> in, const Affine& f) {
      if (f.axis != (a.flatten ? 1 : in[0]->rank() - 1)) return false;
      absorb_channels(in, f, a.no_bias);
      return true;
    }),
    .epilogue = {.as = &op_dense_clamped,
                 .convert = [](const void* attrs, void* converted) -> NeedsMask {
                   const auto& a = *static_cast<const FullyConnectedAttrs*>(attrs);
                   static_cast<DenseClampedAttrs*>(converted)->flatten = a.flatten;
                   return a.no_bias ? X2 : kNeedsNothing;
                 }},
    .samples = {{{.in = {{{3, 4}, {5, 4}, SampleInput({5})}}},
                 {.in = {{{2, 3, 4}, {5, 12}, SampleInput({5})}}},
                 {.in = {{{2, 3, 4}, {5, 4}}}, .attrs = "flatten=False, no_bias=True"}}},
});

TW_OP(dense_clamped) = whole({
    .name = "dense_clamped",
    .doc = "y = min(max(x W^T + b, lower), upper).",
    .attrs = schema<DenseClampedAttrs>(kDenseClampedFields),
    .in = {{{.name = "x", .doc = "(batch, ...)."},
            {.name = "weight", .doc = "(units, inputs)."},
            {.name = "bias", .kind = SlotKind::optional, .doc = "(units,)."}}},
    .infer = infer_rule<DenseClampedAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = dense_result(a, in, in[2].present(), "dense_clamped");
    }),
    .types = kFloats,
    .kernel = cpu_rule<DenseClampedAttrs>([](auto& a, Call& c) {
      run_dense(a, c, {.bias = c.in[2].present() ? c.in[2].data : nullptr, .lower = a.lower, .upper = a.upper});
    }),
    .same_dtype = true,
    .no_grad = "belongs to prediction",
    .heavy = true,
    .cost = cost_rule<DenseClampedAttrs>([](auto&, SigsIn in, SigsIn out) {
      return 2.0 * static_cast<double>(out[0].shape.size()) * static_cast<double>(in[1].shape[1]);
    }),
    .algorithm = algorithm_rule<DenseClampedAttrs>([](auto& a, const Call& c) { return dense_algorithm(a, c); }),
    .epilogue = {.clamp =
                     [](void* attrs, double low, double high) {
                       auto& a = *static_cast<DenseClampedAttrs*>(attrs);
                       a.lower = std::min(std::max(a.lower, low), high);
                       a.upper = std::min(std::max(a.upper, low), high);
                     }},
    .samples = {{{.in = {{{3, 4}, {5, 4}, SampleInput({5})}}, .attrs = "lower=0"},
                 {.in = {{{2, 3, 4}, {5, 12}, SampleInput({5})}}, .attrs = "lower=-0.5, upper=0.5"},
                 {.in = {{{2, 3, 4}, {5, 4}}}, .attrs = "flatten=False, upper=0"}}},
});

}  // namespace twibil::ops
