// SPDX-License-Identifier: Apache-2.0
// Choosing element by element, and replacing numbers that are not finite.
#include <limits>

#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kWhere = record([](Mask condition, Expr x, Expr y) { return select(condition, x, y); });
inline constexpr Program kReplaceNonfinite = record([](Expr x, Param nan, Param posinf, Param neginf) {
  return select(formula::isnan(x), nan,
                select(x == formula::infinity(), posinf, select(-x == formula::infinity(), neginf, x)));
});

TW_OP(where) = whole({
    .name = "where",
    .doc = "x where the condition is true (not zero), else y.",
    .names = {"np.where"},
    .graph = {.names = "_npi_where where"},
    .onnx = {.names = "Where"},
    .in = {{{.name = "condition"}, {.name = "x"}, {.name = "y"}}},
    .program = &kWhere,
    .types = kAll,
    .needs = X0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {Val(), g.wants(1) ? where(g.x(0), g.dy(), 0) : Val(), g.wants(2) ? where(g.x(0), 0, g.dy()) : Val()};
    }),
    .samples = {{{.in = {{{{3, 4}, Domain::boolean}, {3, 4}, {3, 4}}}},
                 {.in = {{{{3, 1}, Domain::boolean}, {2, 1, 4}, {1, 4}}}}}},
});

struct ReplaceAttrs {
  double nan = 0, posinf = 0, neginf = 0;
};
inline constexpr Field kReplaceFields[] = {
    TW_ATTR(ReplaceAttrs, nan, "Replaces NaN."),
    TW_ATTR(ReplaceAttrs, posinf, "Replaces +infinity."),
    TW_ATTR(ReplaceAttrs, neginf, "Replaces -infinity."),
};

TW_OP(replace_nonfinite) = whole({
    .name = "replace_nonfinite",
    .doc = "Replaces NaN and the two infinities by numbers.",
    .attrs = schema<ReplaceAttrs>(kReplaceFields),
    .in = kX,
    .program = &kReplaceNonfinite,
    .types = kFloats,
    .needs = X0,
    .grad = grad_rule<ReplaceAttrs>([](auto&, const Grad& g) -> Vals { return {where(isfinite(g.x(0)), g.dy(), 0)}; }),
    .inplace = kOverX,
    .samples = {{{.in = {{{3, 4}}}}}},
});

struct NanToNumAttrs {
  bool copy = true;
  double nan = 0;
  Maybe<double> posinf, neginf;
};
inline constexpr Field kNanToNumFields[] = {
    TW_ATTR(NanToNumAttrs, copy, "Ignored: the result is always a new array; say out=x to write into x."),
    TW_ATTR(NanToNumAttrs, nan, "Replaces NaN."),
    TW_ATTR(NanToNumAttrs, posinf, "Replaces +infinity; None: the largest finite number of the dtype."),
    TW_ATTR(NanToNumAttrs, neginf, "Replaces -infinity; None: the lowest finite number of the dtype."),
};

static double largest(DType t) {
  switch (t) {
    case DType::float16: return 65504;
    case DType::bfloat16: return 3.3895313892515355e38;
    case DType::float32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

TW_OP(nan_to_num) = whole({
    .name = "nan_to_num",
    .doc = "Replaces NaN by 0 and infinities by the largest and lowest finite numbers, or by what is given.",
    .names = {"np.nan_to_num"},
    .attrs = schema<NanToNumAttrs>(kNanToNumFields),
    .in = kX,
    .types = kAll,
    .expand = expand_rule<NanToNumAttrs>([](auto& a, auto in) -> Vals {
      DType t = in[0]->dtype();
      if (!is_floating(t)) return {copy(in[0])};
      return {apply(op_replace_nonfinite,
                    ReplaceAttrs{a.nan, a.posinf.value_or(largest(t)), a.neginf.value_or(-largest(t))}, {in[0]})};
    }),
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{3, 4}}}, .attrs = "nan=1.5, posinf=9.0, neginf=-9.0"}}},
});

}  // namespace twibil::ops
