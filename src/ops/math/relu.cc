// SPDX-License-Identifier: Apache-2.0
#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kRelu = record([](Expr x) { return max(x, 0); });

TW_OP(relu) = whole({
    .name = "relu",
    .doc = "Keeps positive elements of x and sets the others to zero; NaN stays NaN. Its gradient at 0 is 0.",
    .names = {"npx.relu", "ndarray.relu", "nd.relu"},
    .onnx = {.names = "Relu"},
    .in = kData,
    .program = &kRelu,
    .types = kReals,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {where(greater(g.y(), 0), g.dy(), 0)}; }),
    .inplace = kOverX,
    .samples = samples_with_kinks(Domain::real),
});

}  // namespace twibil::ops
