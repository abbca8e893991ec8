// SPDX-License-Identifier: Apache-2.0
#include "ops/forms.h"

namespace twibil::ops {

inline constexpr Program kRelu = record([](Expr x) { return max(x, 0); });

TW_OP(relu) = whole({
    .name = "relu",
    .doc = "Keeps positive elements of x and sets the others to zero; NaN stays NaN.",
    .names = {"npx.relu", "nd.relu"},
    .in = {{{.name = "data"}}},
    .program = &kRelu,
    .types = kReals,
    .needs = Y0,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy() * cast(greater(g.y(), 0), g.dy()->dtype())}; }),
    .inplace = {{{0, 0}}},
    .samples = {{{.in = {{{3, 4}}}}}},
});

}  // namespace twibil::ops
