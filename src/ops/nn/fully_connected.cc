// SPDX-License-Identifier: Apache-2.0
// Dense layers.
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

static int64_t rows_of(const FullyConnectedAttrs& a, std::span<const int64_t> x) {
  int64_t rows = 1;
  size_t lead = a.flatten ? 1 : x.size() - 1;
  for (size_t i = 0; i < lead; ++i) rows *= x[i];
  return rows;
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
      const Shape &x = in[0].shape, &w = in[1].shape;
      TW_CHECK(x.rank() >= 1, value, "fully_connected: x must have at least one dimension");
      TW_CHECK(w.rank() == 2, value, "fully_connected: weight must have shape (units, inputs); got ", w);
      int64_t inputs = 1;
      for (int i = a.flatten ? 1 : x.rank() - 1; i < x.rank(); ++i) inputs = checked_mul(inputs, x[i]);
      TW_CHECK(w[1] == inputs, value, "fully_connected: weight of shape ", w, " takes ", w[1], " inputs; x of shape ",
               x, " has ", inputs);
      TW_CHECK(a.num_hidden == 0 || a.num_hidden == w[0], value, "fully_connected: num_hidden is ", a.num_hidden,
               " but weight has ", w[0], " units");
      if (in[2].present() && !a.no_bias)
        TW_CHECK(in[2].shape == Shape{w[0]}, value, "fully_connected: bias must have shape [", w[0], "]; got ",
                 in[2].shape);
      Shape y = a.flatten ? Shape{x[0]} : Shape(x.span().first(static_cast<size_t>(x.rank() - 1)));
      y.push_back(w[0]);
      out[0] = {y, promote(in[0].dtype, in[1].dtype)};
    }),
    .types = kFloats,
    .kernel = cpu_rule<FullyConnectedAttrs>([](auto& a, Call& c) {
      if (c.out[0].size == 0) return;  // the inputs may be 2^60 columns of nothing
      const void* bias = c.in[2].present() && !a.no_bias ? c.in[2].data : nullptr;
      kernels::dense(c.out[0].dtype, rows_of(a, c.in[0].shape()), c.in[1].dim(0), c.in[1].dim(1), c.in[0].data,
                     c.in[1].data, bias, c.out[0].data);
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
    .algorithm = algorithm_rule<FullyConnectedAttrs>([](auto& a, const Call& c) {
      return kernels::matmul_algorithm(
          c.out[0].dtype, kernels::row_major(rows_of(a, c.in[0].shape()), c.in[1].dim(0), c.in[1].dim(1), false, true));
    }),
    .absorb = absorb_rule<FullyConnectedAttrs>([](auto& a, std::span<Val> in, const Affine& f) {
      if (f.axis != (a.flatten ? 1 : in[0]->rank() - 1)) return false;
      absorb_channels(in, f, a.no_bias);
      return true;
    }),
    .samples = {{{.in = {{{3, 4}, {5, 4}, SampleInput({5})}}},
                 {.in = {{{2, 3, 4}, {5, 12}, SampleInput({5})}}},
                 {.in = {{{2, 3, 4}, {5, 4}}}, .attrs = "flatten=False, no_bias=True"}}},
});

}  // namespace twibil::ops
