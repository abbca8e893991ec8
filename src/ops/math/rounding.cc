// SPDX-License-Identifier: Apache-2.0
// Rounding. Integers and bool stay as they are, except for rint, which as in NumPy gives floating point.
#include <cmath>

#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kRint = record([](Expr x) { return rint(x); });
inline constexpr Program kFloor = record([](Expr x) { return floor(x); });
inline constexpr Program kCeil = record([](Expr x) { return ceil(x); });
inline constexpr Program kTrunc = record([](Expr x) { return trunc(x); });
inline constexpr Program kRoundAway = record([](Expr x) { return round(x); });
inline constexpr Program kRoundScaled =
    record([](Expr x, Param up, Param down) { return rint(x * up / down) / up * down; });

TW_OP(rint) = whole({
    .name = "rint",
    .doc = "The nearest whole number, halves to the even one.",
    .names = {"np.rint", "ndarray.rint", "nd.rint"},
    .onnx = {.names = "Round"},
    .in = kX,
    .program = &kRint,
    .rule = Rule::floating,
    .types = kFloats,
    .grad = kZeroGrad,
    .inplace = kOverX,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(floor) = whole({
    .name = "floor",
    .doc = "The largest whole number not above each element.",
    .names = {"np.floor", "ndarray.floor", "nd.floor"},
    .onnx = {.names = "Floor"},
    .in = kX,
    .program = &kFloor,
    .types = kAll,
    .grad = kZeroGrad,
    .inplace = kOverX,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(ceil) = whole({
    .name = "ceil",
    .doc = "The smallest whole number not below each element.",
    .names = {"np.ceil", "ndarray.ceil", "nd.ceil"},
    .onnx = {.names = "Ceil"},
    .in = kX,
    .program = &kCeil,
    .types = kAll,
    .grad = kZeroGrad,
    .inplace = kOverX,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(trunc) = whole({
    .name = "trunc",
    .doc = "The nearest whole number towards zero.",
    .names = {"np.trunc", "np.fix", "ndarray.trunc", "ndarray.fix", "nd.trunc", "nd.fix"},
    .in = kX,
    .program = &kTrunc,
    .types = kAll,
    .grad = kZeroGrad,
    .inplace = kOverX,
    .samples = samples_not_smooth(Domain::real),
});

TW_OP(round_away) = whole({
    .name = "round_away",
    .doc = "The nearest whole number, halves away from zero, as MXNet's nd.round does it.",
    .names = {"nd.round"},
    .in = kData,
    .program = &kRoundAway,
    .types = kAll,
    .grad = kZeroGrad,
    .inplace = kOverX,
    .samples = samples_not_smooth(Domain::real),
});

struct ScaleAttrs {
  double up = 1, down = 1;
};
inline constexpr Field kScaleFields[] = {
    TW_ATTR(ScaleAttrs, up, "Multiplies before rounding."),
    TW_ATTR(ScaleAttrs, down, "Divides before rounding."),
};

TW_OP(round_scaled) = whole({
    .name = "round_scaled",
    .doc = "Rounds to multiples of down / up, halves to the even one.",
    .attrs = schema<ScaleAttrs>(kScaleFields),
    .in = kX,
    .program = &kRoundScaled,
    .types = kFloats,
    .grad = kZeroGrad,
    .inplace = kOverX,
    .samples = {{{.in = {{{3, 4}}}, .attrs = "up=10.0", .smooth = false}}},
});

struct RoundAttrs {
  int64_t decimals = 0;
};
inline constexpr Field kRoundFields[] = {
    TW_ATTR(RoundAttrs, decimals, "Decimal places to keep; negative: places left of the point.")};

static Val round_to(const Val& x, int64_t decimals) {
  TW_CHECK(decimals >= -300 && decimals <= 300, value, "round: decimals must be between -300 and 300; got ", decimals);
  DType t = x->dtype();
  if (is_floating(t)) {
    if (decimals == 0) return apply(op_rint, {x});
    double scale = std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals));
    return apply(op_round_scaled, decimals > 0 ? ScaleAttrs{scale, 1} : ScaleAttrs{1, scale}, {x});
  }
  if (decimals >= 0) return copy(x);
  return cast(round_to(cast(x, DType::float64), decimals), t);
}

TW_OP(round) = whole({
    .name = "round",
    .doc = "Rounds to the given number of decimals, halves to the even digit.",
    .names = {"np.round", "np.around", "np.round_", "ndarray.round"},
    .attrs = schema<RoundAttrs>(kRoundFields),
    .in = {{{.name = "a"}}},
    .types = kAll,
    .expand = expand_rule<RoundAttrs>([](auto& a, auto in) -> Vals { return {round_to(in[0], a.decimals)}; }),
    .samples = {{{.in = {{{3, 4}}}, .smooth = false},
                 {.in = {{{3, 4}}}, .attrs = "decimals=2", .smooth = false},
                 {.in = {{{3, 4}}}, .attrs = "decimals=-1", .smooth = false}}},
});

}  // namespace twibil::ops
