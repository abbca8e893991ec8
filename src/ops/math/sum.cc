// SPDX-License-Identifier: Apache-2.0
// Sums and means over axes.
#include "kernels/reduce.h"
#include "ops/axes.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

inline constexpr Field kSumFields[] = {
    TW_ATTR(SumAttrs, axis, "Axis or axes to sum over; None: all."),
    TW_ATTR(SumAttrs, dtype, "dtype of the result; None: that of x, int64 for integers and bool."),
    TW_ATTR(SumAttrs, keepdims, "Keeps the reduced axes with size one."),
};

static DType sum_dtype(DType t) { return is_floating(t) ? t : DType::int64; }
static DType mean_dtype(DType t) { return is_floating(t) ? t : default_float(); }

/// dy with the reduced axes put back as size one, so that it broadcasts to x.
static Val spread(const SumAttrs& a, const Val& dy, const Val& x) {
  return broadcast_like(a.keepdims ? dy : put_back(dy, a.axis, x), x);
}

TW_OP(sum) = whole({
    .name = "sum",
    .doc = "Sums the elements of x over the given axes. An empty sum is 0; integers and bool add up in int64.",
    .names = {"np.sum", "ndarray.sum", "nd.sum", "nd.sum_axis"},
    .graph = {.names = "_np_sum _npi_sum"},
    .attrs = schema<SumAttrs>(kSumFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<SumAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {reduced_shape(in[0].shape, a.axis, a.keepdims, "sum"), a.dtype.value_or(sum_dtype(in[0].dtype))};
    }),
    .types = kAll,
    .kernel = cpu_rule<SumAttrs>([](auto& a, Call& c) {
      kernels::reduce(kernels::Reduction::sum, c.in[0].dtype, c.out[0].dtype, c.in[0].shape(), c.in[0].data,
                      Strides(c.in[0]), axis_set(a.axis, c.in[0].rank, "sum"), c.out[0].data);
    }),
    .strided = true,
    .grad = grad_rule<SumAttrs>([](auto& a, const Grad& g) -> Vals { return {spread(a, g.dy(), g.x(0))}; }),
    .folds = folds_of<SumAttrs>(),
    .samples = {{{.in = {{{3, 4}}}},
                 {.in = {{{2, 3, 4}}}, .attrs = "axis=(0, 2)"},
                 {.in = {{{2, 3, 4}}}, .attrs = "axis=1, keepdims=True"}}},
});

TW_OP(mean) = whole({
    .name = "mean",
    .doc = "Averages the elements of x over the given axes. Integers and bool give the default float; an empty mean is "
           "NaN.",
    .names = {"np.mean", "ndarray.mean", "nd.mean"},
    .attrs = schema<SumAttrs>(kSumFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<SumAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {reduced_shape(in[0].shape, a.axis, a.keepdims, "mean"), a.dtype.value_or(mean_dtype(in[0].dtype))};
    }),
    .types = kAll,
    .kernel = cpu_rule<SumAttrs>([](auto& a, Call& c) {
      kernels::reduce(kernels::Reduction::mean, c.in[0].dtype, c.out[0].dtype, c.in[0].shape(), c.in[0].data,
                      Strides(c.in[0]), axis_set(a.axis, c.in[0].rank, "mean"), c.out[0].data);
    }),
    .strided = true,
    .grad = grad_rule<SumAttrs>([](auto& a, const Grad& g) -> Vals {
      Val x = g.x(0), dy = g.dy();
      double n = static_cast<double>(x->size()) / static_cast<double>(std::max<int64_t>(dy->size(), 1));
      return {spread(a, dy / n, x)};
    }),
    .folds = folds_of<SumAttrs>(true),
    .samples = {{{.in = {{{3, 4}}}},
                 {.in = {{{2, 3, 4}}}, .attrs = "axis=(0, 2)"},
                 {.in = {{{2, 3, 4}}}, .attrs = "axis=1, keepdims=True"}}},
});

}  // namespace twibil::ops
