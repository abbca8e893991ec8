// SPDX-License-Identifier: Apache-2.0
// Reductions whose axes stand in an array (or in an attribute, in older opsets).
#include <cmath>
#include <limits>

#include "ops/axes.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(max)
TW_DECLARE(min)
TW_DECLARE(prod)

namespace {

struct ReduceAttrs {
  bool keepdims = true, noop_with_empty_axes = false;
};

struct Axes {
  IntList list;
  bool none = false;  // nothing is reduced
};
Axes reduced_axes(const ReduceAttrs& a, std::span<const Val> in, const char* who) {
  Axes result;
  std::vector<int64_t> given = in.size() > 1 && in[1] ? ints_of(in[1], who) : std::vector<int64_t>();
  if (given.empty()) {
    result.none = a.noop_with_empty_axes;
    for (int i = 0; i < in[0]->rank(); ++i) result.list.push_back(i);
  }
  for (int axis : axes_of(given, in[0]->rank(), who)) result.list.push_back(axis);
  return result;
}
using Reduce = Val (*)(const Val& x, const IntList& axes, bool keepdims);
Vals reduce(Reduce f, const ReduceAttrs& a, std::span<const Val> in, const char* who) {
  Axes axes = reduced_axes(a, in, who);
  if (axes.none) axes.list = {};
  return {cast(f(in[0], axes.list, a.keepdims), in[0]->dtype())};
}

/// Without axes an element is its own sum.
Val sum_of(const Val& x, const IntList& axes, bool keep) {
  if (axes.empty()) return x;
  return apply(op_sum, SumAttrs{axes, {}, keep}, {x});
}
Val extreme_of(const OpDef& op, const Val& x, const IntList& axes, bool keep) {
  if (axes.empty()) return x;
  Shape s = reduced_shape(shape_of(x), Maybe<IntList>(axes), keep, "reduce");
  if (x->size() == 0) {  // the largest of nothing is the smallest number, as in ONNX
    bool largest = &op == &op_max;
    DType t = x->dtype();
    Scalar v = is_floating(t) ? Scalar(largest ? -HUGE_VAL : HUGE_VAL) : dispatch(t, [&]<class T>() {
      if constexpr (std::is_same_v<T, bool>) return Scalar(!largest);
      else if constexpr (std::is_integral_v<T>)
        return Scalar(static_cast<int64_t>(largest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max()));
      else return Scalar(0);
    });
    return full(s, v, t);
  }
  Val y = x->dtype() == DType::bool_ ? cast(x, DType::uint8) : x;
  return cast(apply(op, AxesAttrs{axes, keep}, {y}), x->dtype());
}
Val log_sum_exp(const Val& x, const IntList& axes, bool keep) {
  if (axes.empty()) return x;
  if (x->size() == 0) return log(sum_of(exp(x), axes, keep));
  Val most = extreme_of(op_max, x, axes, true);
  most = where(isfinite(most), most, zeros_like(most));
  Val y = log(sum_of(exp(x - most), axes, true)) + most;
  return keep ? y : reshape(y, reduced_shape(shape_of(x), Maybe<IntList>(axes), false, "ReduceLogSumExp"));
}

}  // namespace

inline constexpr Field kOnnxReduceFields[] = {
    TW_ATTR(ReduceAttrs, keepdims, "Reduced axes stay, with size one."),
    TW_ATTR(ReduceAttrs, noop_with_empty_axes, "No axes mean that nothing is reduced; else all are.")};

#define TW_REDUCTION(id, onnx_name, text, kinds, ...)                                                             \
  TW_OP(id) = whole({                                                                                             \
      .name = #id,                                                                                                \
      .doc = text,                                                                                                \
      .onnx = {.names = onnx_name},                                                                               \
      .attrs = schema<ReduceAttrs>(kOnnxReduceFields),                                                            \
      .in = {{{.name = "data"}, {.name = "axes", .kind = SlotKind::optional, .value = true}}},                    \
      .types = kinds,                                                                                             \
      .expand = expand_rule<ReduceAttrs>([](auto& a, std::span<const Val> in) {                                   \
        return reduce([](const Val& x, const IntList& axes, bool keep) -> Val { __VA_ARGS__ }, a, in, onnx_name); \
      }),                                                                                                         \
      .unfolds = true,                                                                                            \
      .samples = {{{.in = {{{{3, 4}, Domain::positive}}}, .smooth = false}}},                                     \
  })

TW_REDUCTION(onnx_reduce_sum, "ReduceSum", "The sum along axes.", kReals, return sum_of(x, axes, keep););
TW_REDUCTION(onnx_reduce_mean, "ReduceMean", "The mean along axes.", kReals,
             return axes.empty() ? x : mean(x, Maybe<IntList>(axes), keep););
TW_REDUCTION(onnx_reduce_max, "ReduceMax", "The largest element along axes.", kAll,
             return extreme_of(op_max, x, axes, keep););
TW_REDUCTION(onnx_reduce_min, "ReduceMin", "The smallest element along axes.", kAll,
             return extreme_of(op_min, x, axes, keep););
TW_REDUCTION(onnx_reduce_prod, "ReduceProd", "The product along axes.", kReals,
             return axes.empty() ? x : apply(op_prod, SumAttrs{axes, {}, keep}, {x}););
TW_REDUCTION(onnx_reduce_l1, "ReduceL1", "The sum of absolute values along axes.", kReals,
             return sum_of(absolute(x), axes, keep););
TW_REDUCTION(onnx_reduce_l2, "ReduceL2", "The root of the sum of squares along axes.", kReals,
             return sqrt(sum_of(square(x), axes, keep)););
TW_REDUCTION(onnx_reduce_sum_square, "ReduceSumSquare", "The sum of squares along axes.", kReals,
             return sum_of(square(x), axes, keep););
TW_REDUCTION(onnx_reduce_log_sum, "ReduceLogSum", "The logarithm of the sum along axes.", kReals,
             return log(sum_of(x, axes, keep)););
TW_REDUCTION(onnx_reduce_log_sum_exp, "ReduceLogSumExp", "The logarithm of the sum of exponentials along axes.", kReals,
             return log_sum_exp(x, axes, keep););

}  // namespace twibil::ops
