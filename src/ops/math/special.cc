// SPDX-License-Identifier: Apache-2.0
// The error function, the gamma function and their kin.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kErf = record([](Expr x) { return erf(x); });
inline constexpr Program kErfinv = record([](Expr x) { return erfinv(x); });
inline constexpr Program kGamma = record([](Expr x) { return gamma(x); });
inline constexpr Program kGammaln = record([](Expr x) { return lgamma(x); });
inline constexpr Program kDigamma = record([](Expr x) { return digamma(x); });

TW_OP(erf) = whole({
    .name = "erf",
    .doc = "The error function of each element.",
    .names = {"npx.erf", "nd.erf"},
    .onnx = {.names = "Erf"},
    .in = kData,
    .program = &kErf,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::real),
});

TW_OP(erfinv) = whole({
    .name = "erfinv",
    .doc = "The number whose error function is x; NaN outside -1 to 1.",
    .names = {"npx.erfinv", "nd.erfinv"},
    .in = kData,
    .program = &kErfinv,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::unit),
});

TW_OP(gamma) = whole({
    .name = "gamma",
    .doc = "The gamma function of each element: (x - 1)! for whole numbers.",
    .names = {"npx.gamma", "nd.gamma"},
    .in = kData,
    .program = &kGamma,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

TW_OP(gammaln) = whole({
    .name = "gammaln",
    .doc = "The logarithm of the magnitude of the gamma function of each element.",
    .names = {"npx.gammaln", "nd.gammaln"},
    .in = kData,
    .program = &kGammaln,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

TW_OP(digamma) = whole({
    .name = "digamma",
    .doc = "The derivative of the logarithm of the gamma function at each element.",
    .names = {"npx.digamma", "nd.digamma"},
    .in = kData,
    .program = &kDigamma,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

}  // namespace twibil::ops
