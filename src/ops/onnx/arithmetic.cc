// SPDX-License-Identifier: Apache-2.0
// Elementwise operators in which ONNX differs from NumPy.
#include "ops/math/elementwise.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(mod)
TW_DECLARE(fmod)
TW_DECLARE(left_shift)
TW_DECLARE(right_shift)
TW_DECLARE(clip)
TW_DECLARE(cumsum)
TW_DECLARE(gelu)
TW_DECLARE(log_softmax)
TW_DECLARE(isinf)
TW_DECLARE(isposinf)
TW_DECLARE(isneginf)
TW_DECLARE(argmax)
TW_DECLARE(elu)
TW_DECLARE(expm1)
TW_DECLARE(hard_sigmoid)

namespace {

struct ModAttrs {
  bool fmod = false;
};
struct ShiftAttrs {
  Choice direction;
};
struct CumulativeAttrs {
  bool exclusive = false, reverse = false;
};
struct GeluFormAttrs {
  Choice approximate;
};
struct AlphaAttrs {
  double alpha = 1;
};
struct SeluAttrs {
  double alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875;
};
struct ShrinkAttrs {
  double lambd = 0.5, bias = 0;
};
struct FromAxisAttrs {
  int64_t axis = 1;
};
struct InfinityAttrs {
  bool detect_negative = true, detect_positive = true;
};

/// Whole numbers rounded towards zero.
Val truncated_quotient(const Val& x, const Val& y) {
  if (x->dtype() == DType::uint8) return floor_divide(x, y);
  return floor_divide(absolute(x), absolute(y)) * (sign(x) * sign(y));
}

/// Until opset 12 the axes from one on counted as a single one.
Vals over_trailing(const FromAxisAttrs& a, const Val& x, const OpDef& op, const char* who) {
  int rank = x->rank(), axis = normalize_axis(a.axis, rank + (rank == 0), who);
  if (axis == rank - 1) return {With(op).set("axis", axis)({x})};
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < rank; ++i) (i < axis ? rows : columns) *= x->dims[i];
  return {reshape(With(op).set("axis", 1)({reshape(x, Shape{rows, columns})}), shape_of(x))};
}

template <class F> Vals folded(std::span<const Val> in, F f) {
  Val y = in[0];
  for (size_t i = 1; i < in.size(); ++i) y = f(y, in[i]);
  return {y};
}

Val softmax_of_largest(const Val& x, int axis) {  // Hardmax: one for the first of the largest elements
  Val i = With(op_argmax).set("axis", axis).set("keepdims", true)({x});
  check_table(x->dims[axis], "Hardmax");
  Shape s;
  std::vector<int64_t> steps;
  for (int64_t k = 0; k < x->dims[axis]; ++k) steps.push_back(k);
  for (int k = 0; k < x->rank(); ++k) s.push_back(k == axis ? x->dims[k] : 1);
  return cast(equal(cast(i, DType::int64), int_array(steps, s)), x->dtype());
}

}  // namespace

inline constexpr Field kOnnxModFields[] = {
    TW_ATTR(ModAttrs, fmod, "The result has the sign of the dividend; else of the divisor.")};
inline constexpr Field kOnnxShiftFields[] = {
    TW_ATTR(ShiftAttrs, direction, "Which way.", .choices = "RIGHT|LEFT", .required = true)};
inline constexpr Field kOnnxCumulativeFields[] = {
    TW_ATTR(CumulativeAttrs, exclusive, "Each sum leaves out its own element."),
    TW_ATTR(CumulativeAttrs, reverse, "Sums run from the end.")};
inline constexpr Field kOnnxGeluFormFields[] = {
    TW_ATTR(GeluFormAttrs, approximate, "none: exact.", .choices = "none|tanh")};
inline constexpr Field kOnnxAlphaFields[] = {TW_ATTR(AlphaAttrs, alpha, "The factor in the formula.")};
inline constexpr Field kOnnxSeluFields[] = {TW_ATTR(SeluAttrs, alpha, "Factor of negative elements."),
                                            TW_ATTR(SeluAttrs, gamma, "Factor of all.")};
inline constexpr Field kOnnxShrinkFields[] = {TW_ATTR(ShrinkAttrs, lambd, "Elements nearer to zero become 0."),
                                              TW_ATTR(ShrinkAttrs, bias, "How much the others move towards zero.")};
inline constexpr Field kOnnxFromAxisFields[] = {TW_ATTR(FromAxisAttrs, axis, "First of the axes that count as one.")};
inline constexpr Field kOnnxLastAxisFields[] = {TW_ATTR(FromAxisAttrs, axis, "The axis.")};
inline constexpr Field kOnnxInfinityFields[] = {TW_ATTR(InfinityAttrs, detect_negative, "Whether -inf counts."),
                                                TW_ATTR(InfinityAttrs, detect_positive, "Whether +inf counts.")};
inline constexpr std::array<Slot, 14> kOnnxMany = {{{.name = "inputs", .kind = SlotKind::variadic}}};
inline constexpr std::array<Slot, 14> kOnnxAB = {{{.name = "A"}, {.name = "B"}}};

TW_OP(onnx_div) = whole({
    .name = "onnx_div",
    .doc = "A / B; whole numbers are rounded towards zero.",
    .onnx = {.names = "Div:7"},
    .in = kOnnxAB,
    .types = kReals,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      bool floats = is_floating(in[0]->dtype()) || is_floating(in[1]->dtype());
      return {floats ? true_divide(in[0], as_weak(in[1])) : truncated_quotient(in[0], in[1])};
    },
    .samples = samples_of(Domain::real, Domain::positive),
});

TW_OP(onnx_pow) = whole({
    .name = "onnx_pow",
    .doc = "X to the power of Y, in the dtype of X.",
    .onnx = {.names = "Pow:7"},
    .in = {{{.name = "X"}, {.name = "Y"}}},
    .types = kReals,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      DType t = in[0]->dtype();
      bool exact = is_floating(t) || !is_floating(in[1]->dtype());
      bool same_shape = in[1]->rank() <= in[0]->rank();
      if (exact && same_shape) return {cast(power(in[0], as_weak(in[1])), t)};
      return {cast(power(exact ? in[0] : cast(in[0], in[1]->dtype()), in[1]), t)};
    },
    .samples = samples_of(Domain::positive, Domain::real),
});

TW_OP(onnx_mod) = whole({
    .name = "onnx_mod",
    .doc = "The rest of A / B.",
    .onnx = {.names = "Mod:10"},
    .attrs = schema<ModAttrs>(kOnnxModFields),
    .in = kOnnxAB,
    .types = kReals,
    .expand = expand_rule<ModAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {apply(a.fmod ? op_fmod : op_mod, {in[0], in[1]})};
    }),
    .samples = {{{.in = {{{3, 4}, {{3, 4}, Domain::positive}}}, .smooth = false}}},
});

TW_OP(onnx_bit_shift) = whole({
    .name = "onnx_bit_shift",
    .doc = "Bits moved to the left or to the right.",
    .onnx = {.names = "BitShift:11"},
    .attrs = schema<ShiftAttrs>(kOnnxShiftFields),
    .in = {{{.name = "X"}, {.name = "Y"}}},
    .types = kInts,
    .expand = expand_rule<ShiftAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {apply(a.direction == 1 ? op_left_shift : op_right_shift, {in[0], in[1]})};
    }),
});

TW_OP(onnx_max) = whole({
    .name = "onnx_max",
    .doc = "The largest of the elements of several arrays.",
    .onnx = {.names = "Max"},
    .in = kOnnxMany,
    .types = kReals,
    .expand = [](const void*,
                 std::span<const Val> in) { return folded(in, [](auto& x, auto& y) { return maximum(x, y); }); },
    .samples = {{{.in = {{{3, 4}, {3, 4}, {3, 4}}}}}},
});

TW_OP(onnx_min) = whole({
    .name = "onnx_min",
    .doc = "The smallest of the elements of several arrays.",
    .onnx = {.names = "Min"},
    .in = kOnnxMany,
    .types = kReals,
    .expand = [](const void*,
                 std::span<const Val> in) { return folded(in, [](auto& x, auto& y) { return minimum(x, y); }); },
    .samples = {{{.in = {{{3, 4}, {3, 4}, {3, 4}}}}}},
});

TW_OP(onnx_sum) = whole({
    .name = "onnx_sum",
    .doc = "The sum of several arrays.",
    .onnx = {.names = "Sum"},
    .in = kOnnxMany,
    .types = kReals,
    .expand = [](const void*, std::span<const Val> in) { return folded(in, [](auto& x, auto& y) { return x + y; }); },
    .samples = {{{.in = {{{3, 4}, {3, 4}, {4}}}}}},
});

TW_OP(onnx_mean) = whole({
    .name = "onnx_mean",
    .doc = "The mean of several arrays.",
    .onnx = {.names = "Mean"},
    .in = kOnnxMany,
    .types = kFloats,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      return {folded(in, [](auto& x, auto& y) { return x + y; })[0] / Val(static_cast<double>(in.size()))};
    },
    .samples = {{{.in = {{{3, 4}, {3, 4}, {4}}}}}},
});

TW_OP(onnx_clip) = whole({
    .name = "onnx_clip",
    .doc = "Elements below a bound, or above another, become the bound.",
    .onnx = {.names = "Clip"},
    .in = {{{.name = "input"},
            {.name = "min", .kind = SlotKind::optional},
            {.name = "max", .kind = SlotKind::optional}}},
    .types = kReals,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      bool known = (!in[1] || is_known(in[1])) && (!in[2] || is_known(in[2]));
      if (known && (in[1] || in[2])) {
        // Whole numbers stay in their dtype; bounds that do not fit it would not.
        bool floats = is_floating(in[0]->dtype());
        if (floats) {
          Val low = in[1] ? as_weak(in[1]) : Val(), high = in[2] ? as_weak(in[2]) : Val();
          bool crossed = low && high && real_of(in[1], "Clip") > real_of(in[2], "Clip");  // then max wins
          if (!crossed) return {apply(op_clip, {in[0], low, high})};
        }
      }
      Val y = in[1] ? maximum(in[0], in[1]) : in[0];
      return {in[2] ? minimum(y, in[2]) : y};
    },
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(onnx_cum_sum) = whole({
    .name = "onnx_cum_sum",
    .doc = "Sums of the elements up to each one, along an axis.",
    .onnx = {.names = "CumSum:11"},
    .attrs = schema<CumulativeAttrs>(kOnnxCumulativeFields),
    .in = {{{.name = "x"}, {.name = "axis", .value = true}}},
    .types = kReals,
    .expand = expand_rule<CumulativeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(int_of(in[1], "CumSum"), in[0]->rank(), "CumSum");
      Val x = in[0];
      if (a.exclusive && x->dims[axis] > 0) {  // the elements one step on, with a zero in front
        std::vector<int64_t> before(static_cast<size_t>(x->rank())), after = before;
        auto i = static_cast<size_t>(axis);
        before[i] = a.reverse ? -1 : 1, after[i] = a.reverse ? 1 : -1;
        x = pad_or_cut(x, before, after, "constant", Scalar(0));
      }
      return {With(op_cumsum).set("axis", axis).set("reverse", a.reverse).set("dtype", in[0]->dtype())({x})};
    }),
    .unfolds = true,
});

TW_OP(onnx_is_inf) = whole({
    .name = "onnx_is_inf",
    .doc = "Whether elements are infinite.",
    .onnx = {.names = "IsInf:10"},
    .attrs = schema<InfinityAttrs>(kOnnxInfinityFields),
    .in = {{{.name = "X"}}},
    .types = kFloats,
    .expand = expand_rule<InfinityAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      if (a.detect_negative && a.detect_positive) return {apply(op_isinf, {in[0]})};
      if (!a.detect_negative && !a.detect_positive) return {logical_and(isnan(in[0]), logical_not(isnan(in[0])))};
      return {apply(a.detect_negative ? op_isneginf : op_isposinf, {in[0]})};
    }),
    .samples = {{{.in = {{{3, 4}}}, .smooth = false}}},
});

// ---- activations ----

TW_OP(hard_swish) = whole({
    .name = "hard_swish",
    .doc = "x * hard_sigmoid(x) with slope 1/6 and offset 1/2.",
    .names = {"npx.hard_swish"},
    .onnx = {.names = "HardSwish:14"},
    .in = {{{.name = "X"}}},
    .types = kFloats,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      return {in[0] * With(op_hard_sigmoid).set("alpha", 1.0 / 6).set("beta", 0.5)({in[0]})};
    },
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(onnx_gelu) = whole({
    .name = "onnx_gelu",
    .doc = "x times the probability that a normal number is smaller.",
    .onnx = {.names = "Gelu:20 com.microsoft.Gelu"},
    .attrs = schema<GeluFormAttrs>(kOnnxGeluFormFields),
    .in = {{{.name = "X"}}},
    .types = kFloats,
    .expand = expand_rule<GeluFormAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {With(op_gelu).set("approximation", a.approximate == 1 ? "tanh" : "erf")({in[0]})};
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "approximate=tanh"}}},
});

TW_OP(onnx_celu) = whole({
    .name = "onnx_celu",
    .doc = "x where it is positive, else alpha * (exp(x / alpha) - 1).",
    .onnx = {.names = "Celu:12"},
    .attrs = schema<AlphaAttrs>(kOnnxAlphaFields),
    .in = {{{.name = "X"}}},
    .types = kFloats,
    .expand = expand_rule<AlphaAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val zero(0.0), alpha(a.alpha);
      return {maximum(in[0], zero) + minimum(alpha * apply(op_expm1, {in[0] / alpha}), zero)};
    }),
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(onnx_selu) = whole({
    .name = "onnx_selu",
    .doc = "gamma * x where x is positive, else gamma * alpha * (exp(x) - 1).",
    .onnx = {.names = "Selu"},
    .attrs = schema<SeluAttrs>(kOnnxSeluFields),
    .in = {{{.name = "X"}}},
    .types = kFloats,
    .expand = expand_rule<SeluAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {Val(a.gamma) * With(op_elu).set("slope", a.alpha)({in[0]})};
    }),
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(onnx_swish) = whole({
    .name = "onnx_swish",
    .doc = "x * sigmoid(alpha * x).",
    .onnx = {.names = "Swish:24"},
    .attrs = schema<AlphaAttrs>(kOnnxAlphaFields),
    .in = {{{.name = "X"}}},
    .types = kFloats,
    .expand = expand_rule<AlphaAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {in[0] * sigmoid(a.alpha == 1 ? in[0] : in[0] * Val(a.alpha))};
    }),
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(onnx_thresholded_relu) = whole({
    .name = "onnx_thresholded_relu",
    .doc = "x where it is above alpha, else 0.",
    .onnx = {.names = "ThresholdedRelu:10"},
    .attrs = schema<AlphaAttrs>(kOnnxAlphaFields),
    .in = {{{.name = "X"}}},
    .types = kFloats,
    .expand = expand_rule<AlphaAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {where(greater(in[0], Val(a.alpha)), in[0], zeros_like(in[0]))};
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "alpha=0.3", .smooth = false}}},
});

TW_OP(onnx_shrink) = whole({
    .name = "onnx_shrink",
    .doc = "Elements near zero become 0, the others move towards it.",
    .onnx = {.names = "Shrink:9"},
    .attrs = schema<ShrinkAttrs>(kOnnxShrinkFields),
    .in = {{{.name = "input"}}},
    .types = kReals,
    .expand = expand_rule<ShrinkAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val x = in[0], zero = zeros_like(x);
      Val low = where(less(x, Val(-a.lambd)), cast(x + Val(a.bias), x->dtype()), zero);
      return {where(greater(x, Val(a.lambd)), cast(x - Val(a.bias), x->dtype()), low)};
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "bias=0.25", .smooth = false}}},
});

TW_OP(onnx_hardmax_flat) = whole({
    .name = "onnx_hardmax_flat",
    .doc = "One for the first of the largest elements of the axes from one on, 0 elsewhere.",
    .onnx = {.names = "Hardmax:1-12"},
    .attrs = schema<FromAxisAttrs>(kOnnxFromAxisFields),
    .in = {{{.name = "input"}}},
    .types = kFloats,
    .expand = expand_rule<FromAxisAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int rank = in[0]->rank(), axis = normalize_axis(a.axis, rank, "Hardmax");
      int64_t rows = 1, columns = 1;
      for (int i = 0; i < rank; ++i) (i < axis ? rows : columns) *= in[0]->dims[i];
      return {reshape(softmax_of_largest(reshape(in[0], Shape{rows, columns}), 1), shape_of(in[0]))};
    }),
    .samples = {{{.in = {{{3, 4}}}, .smooth = false}}},
});

TW_OP(onnx_hardmax) = whole({
    .name = "onnx_hardmax",
    .doc = "One for the first of the largest elements along an axis, 0 elsewhere.",
    .onnx = {.names = "Hardmax:13", .attrs = "axis=-1"},
    .attrs = schema<FromAxisAttrs>(kOnnxLastAxisFields),
    .in = {{{.name = "input"}}},
    .types = kFloats,
    .expand = expand_rule<FromAxisAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {softmax_of_largest(in[0], normalize_axis(a.axis, in[0]->rank(), "Hardmax"))};
    }),
    .samples = {{{.in = {{{3, 4}}}, .smooth = false}}},
});

TW_OP(onnx_softmax_flat) = whole({
    .name = "onnx_softmax_flat",
    .doc = "Softmax over the axes from one on.",
    .onnx = {.names = "Softmax:1-12"},
    .attrs = schema<FromAxisAttrs>(kOnnxFromAxisFields),
    .in = {{{.name = "input"}}},
    .types = kFloats,
    .expand = expand_rule<FromAxisAttrs>([](auto& a, std::span<const Val> in) {
      return over_trailing(a, in[0], op_softmax, "Softmax");
    }),
    .samples = {{{.in = {{{2, 3, 4}}}}}},
});

TW_OP(onnx_log_softmax_flat) = whole({
    .name = "onnx_log_softmax_flat",
    .doc = "Logarithm of the softmax over the axes from one on.",
    .onnx = {.names = "LogSoftmax:1-12"},
    .attrs = schema<FromAxisAttrs>(kOnnxFromAxisFields),
    .in = {{{.name = "input"}}},
    .types = kFloats,
    .expand = expand_rule<FromAxisAttrs>([](auto& a, std::span<const Val> in) {
      return over_trailing(a, in[0], op_log_softmax, "LogSoftmax");
    }),
    .samples = {{{.in = {{{2, 3, 4}}}}}},
});

}  // namespace twibil::ops
