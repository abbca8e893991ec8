// SPDX-License-Identifier: Apache-2.0
// Logarithms.
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kLog = record([](Expr x) { return log(x); });
inline constexpr Program kLog2 = record([](Expr x) { return log2(x); });
inline constexpr Program kLog10 = record([](Expr x) { return log10(x); });
inline constexpr Program kLog1p = record([](Expr x) { return log1p(x); });
inline constexpr Program kLogaddexp = record([](Expr x, Expr y) { return logaddexp(x, y); });

TW_OP(log) = whole({
    .name = "log",
    .doc = "The natural logarithm of each element; -infinity for 0, NaN for negative ones.",
    .names = {"np.log", "ndarray.log", "nd.log"},
    .onnx = {.names = "Log"},
    .in = kX,
    .program = &kLog,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

TW_OP(log2) = whole({
    .name = "log2",
    .doc = "The logarithm of each element to base 2.",
    .names = {"np.log2", "ndarray.log2", "nd.log2"},
    .in = kX,
    .program = &kLog2,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

TW_OP(log10) = whole({
    .name = "log10",
    .doc = "The logarithm of each element to base 10.",
    .names = {"np.log10", "ndarray.log10", "nd.log10"},
    .in = kX,
    .program = &kLog10,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::positive),
});

TW_OP(log1p) = whole({
    .name = "log1p",
    .doc = "log(1 + x), exact near 0.",
    .names = {"np.log1p", "ndarray.log1p", "nd.log1p"},
    .in = kX,
    .program = &kLog1p,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = samples_of(Domain::unit),
});

TW_OP(logaddexp) = whole({
    .name = "logaddexp",
    .doc = "log(exp(x1) + exp(x2)), without overflow on the way.",
    .names = {"np.logaddexp"},
    .in = kX1X2,
    .program = &kLogaddexp,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0 | X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      Val share = sigmoid(g.x(0) - g.x(1));  // of x1; the formula's own derivative would be wrong at ties
      return {g.wants(0) ? g.dy() * share : Val(), g.wants(1) ? g.dy() * (1 - share) : Val()};
    }),
    .inplace = kOverEither,
    .samples = {{{.in = {{{3, 4}, {3, 4}}}},
                 {.in = {{{2, 3, 4}, {3, 1}}}},
                 {.in = {{{3, 4}, {3, 4}}}, .smooth = false}}},
});

}  // namespace twibil::ops
