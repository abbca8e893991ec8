// SPDX-License-Identifier: Apache-2.0
// Reductions to extrema, products, truth and spread.
#include <cmath>

#include "kernels/reduce.h"
#include "kernels/scan.h"
#include "ops/axes.h"
#include "ops/forms.h"
#include "ops/math/arg_attrs.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

struct VarAttrs {
  Maybe<IntList> axis;
  Maybe<DType> dtype;
  double ddof = 0;
  bool keepdims = false;
};
struct CumsumAttrs {
  Maybe<int64_t> axis;
  Maybe<DType> dtype;
  bool reverse = false;
};
struct NormAttrs {
  int64_t ord = 2;
  Maybe<IntList> axis;
  bool keepdims = false;
};

void check_not_empty(const Shape& x, kernels::AxisSet set, const char* who) {
  for (int i = 0; i < x.rank(); ++i)
    TW_CHECK(
        !(set >> i & 1) || x[i] > 0 || x.size() != 0 ||
            [&] {
              for (int k = 0; k < x.rank(); ++k)
                if (!(set >> k & 1) && x[k] == 0) return true;  // no result, so nothing to find
              return false;
            }(),
        value, who, ": axis ", i, " of shape ", x, " is empty; there is no element to take");
}

template <class A> void run_reduction(kernels::Reduction op, const A& a, Call& c, const char* who) {
  kernels::reduce(op, c.in[0].dtype, c.out[0].dtype, c.in[0].shape(), c.in[0].data, Strides(c.in[0]),
                  axis_set(a.axis, c.in[0].rank, who), c.out[0].data);
}

template <class A> Val spread(const A& a, const Val& v, const Val& x) {
  return a.keepdims ? v : put_back(v, a.axis, x);
}

/// The gradient of an extremum, split evenly among the elements that attain it.
Vals extremum_gradient(const AxesAttrs& a, const Grad& g) {
  Val x = g.x(0), y = spread(a, g.y(), x), dy = spread(a, g.dy(), x);
  Val hit = cast(equal(x, y), g.dy()->dtype());
  return {hit * (dy / sum(hit, a.axis, true))};
}

void infer_arg(const ArgAttrs& a, SigsIn in, SigsOut out, const char* who) {
  kernels::AxisSet set = axis_set(a.axis, in[0].rank(), who);
  check_not_empty(in[0].shape, set, who);
  out[0] = {reduced_shape(in[0].shape, set, a.keepdims), DType::int64};
}
void run_arg(const ArgAttrs& a, Call& c, bool maximum, const char* who) {
  kernels::arg_reduce(maximum, c.in[0].dtype, c.in[0].shape(), c.in[0].data, Strides(c.in[0]),
                      axis_set(a.axis, c.in[0].rank, who), c.out[0].as<int64_t>());
}
DType float_of(DType t) { return is_floating(t) ? t : default_float(); }

}  // namespace

inline constexpr Field kAxesFields[] = {TW_ATTR(AxesAttrs, axis, "Axis or axes to reduce; None: all."),
                                        TW_ATTR(AxesAttrs, keepdims, "Keeps the reduced axes with size one.")};

TW_OP(max) = whole({
    .name = "max",
    .doc = "The largest element along axes; NaN wins. The gradient is split evenly among equal elements.",
    .names = {"np.max", "np.amax", "ndarray.max", "nd.max"},
    .graph = {.names = "_np_max _npi_max"},
    .attrs = schema<AxesAttrs>(kAxesFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<AxesAttrs>([](auto& a, SigsIn in, SigsOut out) {
      kernels::AxisSet set = axis_set(a.axis, in[0].rank(), "max");
      check_not_empty(in[0].shape, set, "max");
      out[0] = {reduced_shape(in[0].shape, set, a.keepdims), in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<AxesAttrs>([](auto& a, Call& c) { run_reduction(kernels::Reduction::max, a, c, "max"); }),
    .strided = true,
    .needs = X0 | Y0,
    .grad = grad_rule<AxesAttrs>([](auto& a, const Grad& g) -> Vals { return extremum_gradient(a, g); }),
    .folds = folds_of<AxesAttrs>(),
    .samples = {{{.in = {{{3, 4}}}, .smooth = false},
                 {.in = {{{2, 3, 4}}}, .attrs = "axis=(0, 2)", .smooth = false},
                 {.in = {{{2, 3, 4}}}, .attrs = "axis=1, keepdims=True", .smooth = false}}},
});

TW_OP(min) = whole({
    .name = "min",
    .doc = "The smallest element along axes; NaN wins. The gradient is split evenly among equal elements.",
    .names = {"np.min", "np.amin", "ndarray.min", "nd.min"},
    .graph = {.names = "_np_min _npi_min"},
    .attrs = schema<AxesAttrs>(kAxesFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<AxesAttrs>([](auto& a, SigsIn in, SigsOut out) {
      kernels::AxisSet set = axis_set(a.axis, in[0].rank(), "min");
      check_not_empty(in[0].shape, set, "min");
      out[0] = {reduced_shape(in[0].shape, set, a.keepdims), in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<AxesAttrs>([](auto& a, Call& c) { run_reduction(kernels::Reduction::min, a, c, "min"); }),
    .strided = true,
    .needs = X0 | Y0,
    .grad = grad_rule<AxesAttrs>([](auto& a, const Grad& g) -> Vals { return extremum_gradient(a, g); }),
    .folds = folds_of<AxesAttrs>(),
    .samples = {{{.in = {{{3, 4}}}, .smooth = false}, {.in = {{{2, 3, 4}}}, .attrs = "axis=-1", .smooth = false}}},
});

inline constexpr Field kProdFields[] = {
    TW_ATTR(SumAttrs, axis, "Axis or axes to reduce; None: all."),
    TW_ATTR(SumAttrs, dtype, "dtype of the result; None: that of a, int64 for integers and bool."),
    TW_ATTR(SumAttrs, keepdims, "Keeps the reduced axes with size one.")};
extern const OpDef op_prod;
TW_OP(prod) = whole({
    .name = "prod",
    .doc = "The product of the elements along axes. An empty product is 1; integers and bool multiply in int64.",
    .names = {"np.prod", "ndarray.prod", "nd.prod"},
    .graph = {.names = "_np_prod _npi_prod"},
    .attrs = schema<SumAttrs>(kProdFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<SumAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {reduced_shape(in[0].shape, a.axis, a.keepdims, "prod"),
                a.dtype.value_or(is_floating(in[0].dtype) ? in[0].dtype : DType::int64)};
    }),
    .types = kAll,
    .kernel = cpu_rule<SumAttrs>([](auto& a, Call& c) { run_reduction(kernels::Reduction::prod, a, c, "prod"); }),
    .strided = true,
    .needs = X0,
    .grad = grad_rule<SumAttrs>([](auto& a, const Grad& g) -> Vals {
      // The product of all others, by splitting off zeros: right with none, one or several of them.
      Val x = g.x(0), dy = spread(a, g.dy(), x);
      DType t = x->dtype();
      Val zero = cast(equal(x, 0), t), safe = x + zero, zeros = sum(zero, a.axis, true);
      SumAttrs keep{a.axis, {}, true};
      Val rest = apply(op_prod, keep, {safe});
      Val without = rest / safe;
      Val none = cast(equal(zeros, 0), t), one = cast(equal(zeros, 1), t);
      return {dy * without * (none + one * zero)};
    }),
    .samples = {{{.in = {{{{3, 4}, Domain::positive}}}}, {.in = {{{{2, 3, 4}, Domain::positive}}}, .attrs = "axis=1"}}},
});

TW_OP(any) = whole({
    .name = "any",
    .doc = "Whether any element along axes is not zero.",
    .names = {"np.any", "ndarray.any"},
    .attrs = schema<AxesAttrs>(kAxesFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<AxesAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {reduced_shape(in[0].shape, a.axis, a.keepdims, "any"), DType::bool_};
    }),
    .types = kAll,
    .kernel = cpu_rule<AxesAttrs>([](auto& a, Call& c) { run_reduction(kernels::Reduction::any, a, c, "any"); }),
    .strided = true,
    .no_grad = "the result is true or false",
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1"}}},
});

TW_OP(all) = whole({
    .name = "all",
    .doc = "Whether all elements along axes are not zero.",
    .names = {"np.all", "ndarray.all"},
    .attrs = schema<AxesAttrs>(kAxesFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<AxesAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {reduced_shape(in[0].shape, a.axis, a.keepdims, "all"), DType::bool_};
    }),
    .types = kAll,
    .kernel = cpu_rule<AxesAttrs>([](auto& a, Call& c) { run_reduction(kernels::Reduction::all, a, c, "all"); }),
    .strided = true,
    .no_grad = "the result is true or false",
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1"}}},
});

inline constexpr Field kArgFields[] = {TW_ATTR(ArgAttrs, axis, "Axis to search; None: the flattened array."),
                                       TW_ATTR(ArgAttrs, keepdims, "Keeps the reduced axis with size one.")};
TW_OP(argmax) = whole({
    .name = "argmax",
    .doc = "Where the first largest element is, int64; the first NaN wins.",
    .names = {"np.argmax", "ndarray.argmax", "nd.argmax"},
    .attrs = schema<ArgAttrs>(kArgFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<ArgAttrs>([](auto& a, SigsIn in, SigsOut out) { infer_arg(a, in, out, "argmax"); }),
    .types = kAll,
    .kernel = cpu_rule<ArgAttrs>([](auto& a, Call& c) { run_arg(a, c, true, "argmax"); }),
    .strided = true,
    .no_grad = "positions are whole numbers",
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1"}}},
});
TW_OP(argmin) = whole({
    .name = "argmin",
    .doc = "Where the first smallest element is, int64; the first NaN wins.",
    .names = {"np.argmin", "ndarray.argmin", "nd.argmin"},
    .attrs = schema<ArgAttrs>(kArgFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<ArgAttrs>([](auto& a, SigsIn in, SigsOut out) { infer_arg(a, in, out, "argmin"); }),
    .types = kAll,
    .kernel = cpu_rule<ArgAttrs>([](auto& a, Call& c) { run_arg(a, c, false, "argmin"); }),
    .strided = true,
    .no_grad = "positions are whole numbers",
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1"}}},
});

inline constexpr Field kVarFields[] = {
    TW_ATTR(VarAttrs, axis, "Axis or axes to reduce; None: all."),
    TW_ATTR(VarAttrs, dtype, "dtype of the result; None: that of a, the default float for integers."),
    TW_ATTR(VarAttrs, ddof, "The sum of squares is divided by n - ddof."),
    TW_ATTR(VarAttrs, keepdims, "Keeps the reduced axes with size one.")};
static Val centred(const VarAttrs& a, const Val& x) { return x - mean(x, a.axis, true); }
static double divisor(const VarAttrs& a, const Val& x, const Val& dy) {
  return static_cast<double>(x->size()) / static_cast<double>(std::max<int64_t>(1, dy->size())) - a.ddof;
}

TW_OP(var) = whole({
    .name = "var",
    .doc = "The variance along axes: the mean squared distance to the mean.",
    .names = {"np.var", "ndarray.var"},
    .attrs = schema<VarAttrs>(kVarFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<VarAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {reduced_shape(in[0].shape, a.axis, a.keepdims, "var"), a.dtype.value_or(float_of(in[0].dtype))};
    }),
    .types = kAll,
    .kernel = cpu_rule<VarAttrs>([](auto& a, Call& c) {
      kernels::variance(c.in[0].dtype, c.out[0].dtype, c.in[0].shape(), c.in[0].data, Strides(c.in[0]),
                        axis_set(a.axis, c.in[0].rank, "var"), a.ddof, nullptr, c.out[0].data);
    }),
    .strided = true,
    .needs = X0,
    .grad = grad_rule<VarAttrs>([](auto& a, const Grad& g) -> Vals {
      Val x = g.x(0);
      return {spread(a, g.dy(), x) * centred(a, x) * (2.0 / divisor(a, x, g.dy()))};
    }),
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=(0, 2), ddof=1.0"}}},
});

TW_OP(std) = whole({
    .name = "std",
    .doc = "The standard deviation along axes: the root of the variance.",
    .names = {"np.std", "ndarray.std"},
    .attrs = schema<VarAttrs>(kVarFields),
    .in = {{{.name = "a"}}},
    .types = kAll,
    .expand = expand_rule<VarAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {sqrt(apply(op_var, a, {in[0]}))};
    }),
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=(0, 2)"}}},
});

inline constexpr Field kNormFields[] = {
    TW_ATTR(NormAttrs, ord, "1: sum of absolute values, 2: root of the sum of squares."),
    TW_ATTR(NormAttrs, axis, "Axis or axes to reduce; None: all."),
    TW_ATTR(NormAttrs, keepdims, "Keeps the reduced axes with size one.")};
TW_OP(norm) = whole({
    .name = "norm",
    .doc = "The 1- or 2-norm along axes.",
    .names = {"npx.norm", "nd.norm"},
    .attrs = schema<NormAttrs>(kNormFields),
    .in = {{{.name = "data"}}},
    .infer = infer_rule<NormAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(a.ord == 1 || a.ord == 2, value, "norm: ord must be 1 or 2; got ", a.ord);
      out[0] = {reduced_shape(in[0].shape, a.axis, a.keepdims, "norm"), float_of(in[0].dtype)};
    }),
    .types = kReals,
    .kernel = cpu_rule<NormAttrs>([](auto& a, Call& c) {
      run_reduction(a.ord == 1 ? kernels::Reduction::sum_abs : kernels::Reduction::sum_squares, a, c, "norm");
      if (a.ord == 1) return;
      dispatch(c.out[0].dtype, [&]<class T>() {
        T* y = c.out[0].template as<T>();
        for (int64_t i = 0; i < c.out[0].size; ++i) {
          if constexpr (std::is_floating_point_v<T>) y[i] = std::sqrt(y[i]);
          else if constexpr (!std::is_integral_v<T>) y[i] = T(std::sqrt(static_cast<float>(y[i])));
        }
      });
    }),
    .strided = true,
    .needs = X0 | Y0,
    .grad = grad_rule<NormAttrs>([](auto& a, const Grad& g) -> Vals {
      Val x = g.x(0), dy = spread(a, g.dy(), x);
      if (a.ord == 1) return {dy * sign(x)};
      Val y = spread(a, g.y(), x);
      return {dy * x / (y + cast(equal(y, 0), y->dtype()))};  // at 0 the gradient is 0
    }),
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{{2, 3, 4}, Domain::positive}}}, .attrs = "ord=1, axis=1"}}},
});

inline constexpr Field kCumsumFields[] = {
    TW_ATTR(CumsumAttrs, axis, "Axis along which to add up; None: the flattened array."),
    TW_ATTR(CumsumAttrs, dtype, "dtype of the result; None: that of a, int64 for integers and bool."),
    TW_ATTR(CumsumAttrs, reverse, "From the end to the start.", .keyword_only = true)};
extern const OpDef op_cumsum;
TW_OP(cumsum) = whole({
    .name = "cumsum",
    .doc = "Running sums along an axis.",
    .names = {"np.cumsum", "ndarray.cumsum", "nd.cumsum"},
    .attrs = schema<CumsumAttrs>(kCumsumFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<CumsumAttrs>([](auto& a, SigsIn in, SigsOut out) {
      if (a.axis) normalize_axis(*a.axis, in[0].rank(), "cumsum");
      out[0] = {a.axis ? in[0].shape : Shape{in[0].shape.size()},
                a.dtype.value_or(is_floating(in[0].dtype) ? in[0].dtype : DType::int64)};
    }),
    .types = kAll,
    .kernel = cpu_rule<CumsumAttrs>([](auto& a, Call& c) {
      const Buffer& x = c.in[0];
      int axis = a.axis ? normalize_axis(*a.axis, x.rank, "cumsum") : 0;
      int64_t outer = 1, inner = 1, n = a.axis ? x.dims[axis] : x.size;
      for (int i = 0; a.axis && i < axis; ++i) outer *= x.dims[i];
      for (int i = axis + 1; a.axis && i < x.rank; ++i) inner *= x.dims[i];
      kernels::scan(kernels::Scan::sum, x.dtype, c.out[0].dtype, outer, n, inner, a.reverse, x.data, c.out[0].data);
    }),
    .grad = grad_rule<CumsumAttrs>([](auto& a, const Grad& g) -> Vals {
      CumsumAttrs back = a;
      back.reverse = !a.reverse;
      back.dtype = {};
      return {reshape_like(apply(op_cumsum, back, {g.dy()}), g.x(0))};
    }),
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1"}}},
});

}  // namespace twibil::ops
