// SPDX-License-Identifier: Apache-2.0
// Smooth gates: x times something between 0 and 1 that depends on x.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kGeluErf = record([](Expr x) { return 0.5 * x * (1 + erf(x * 0.70710678118654752440)); });
inline constexpr Program kGeluTanh =
    record([](Expr x) { return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))); });
inline constexpr Program kSilu = record([](Expr x) { return x * sigmoid(x); });
// tanh(log(1 + e)) with e = exp(x) is n / (n + 2) with n = e * (e + 2), and 1 where n would overflow.
inline constexpr Program kMish = record([](Expr x) {
  Expr e = exp(x), n = e * (e + 2);
  return select(x > 20, x, x * (n / (n + 2)));
});

TW_OP(gelu_erf) = whole({
    .name = "gelu_erf",
    .doc = "x times the probability that a standard normal number is below x.",
    .in = kData,
    .program = &kGeluErf,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_with_zeros(),
});

TW_OP(gelu_tanh) = whole({
    .name = "gelu_tanh",
    .doc = "An approximation of gelu_erf through tanh.",
    .in = kData,
    .program = &kGeluTanh,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_with_zeros(),
});

struct GeluAttrs {
  Choice approximation;
};
inline constexpr Field kGeluFields[] = {
    TW_ATTR(GeluAttrs, approximation, "erf: exact; tanh: the approximation of the first papers.",
            .choices = "erf|tanh"),
};

TW_OP(gelu) = whole({
    .name = "gelu",
    .doc = "x times the probability that a standard normal number is below x.",
    .names = {"npx.gelu"},
    .attrs = schema<GeluAttrs>(kGeluFields),
    .in = kData,
    .types = kFloats,
    .expand = expand_rule<GeluAttrs>([](auto& a, auto in) -> Vals {
      return {apply(a.approximation ? op_gelu_tanh : op_gelu_erf, {in[0]})};
    }),
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{3, 4}}}, .attrs = "approximation=tanh"}}},
});

TW_OP(silu) = whole({
    .name = "silu",
    .doc = "x times its sigmoid; also called swish.",
    .names = {"npx.silu", "npx.swish"},
    .in = kData,
    .program = &kSilu,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_with_zeros(),
});

TW_OP(mish) = whole({
    .name = "mish",
    .doc = "x * tanh(log(1 + exp(x))) for each element.",
    .names = {"npx.mish", "ndarray.mish", "nd.mish"},
    .onnx = {.names = "Mish"},
    .in = kData,
    .program = &kMish,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_with_zeros(),
});

}  // namespace twibil::ops
