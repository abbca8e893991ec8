// SPDX-License-Identifier: Apache-2.0
#include "ops/math/elementwise.h"

namespace twibil::ops {

// Value and slope of the two pieces agree where they meet, so the automatic derivative is right there and at 0.
inline constexpr Program kSmoothL1 = record([](Expr x, Param scalar) {
  Expr s = scalar * scalar, near = 1 / s;
  return select(abs(x) < near, 0.5 * s * x * x, abs(x) - 0.5 * near);
});

struct SmoothL1Attrs {
  double scalar = 1;
};
inline constexpr Field kSmoothL1Fields[] = {TW_ATTR(SmoothL1Attrs, scalar, "The pieces meet at |x| = 1 / scalar**2.")};

TW_OP(smooth_l1) = whole({
    .name = "smooth_l1",
    .doc = "Half the square of scalar * x near 0, and the magnitude of x, less a constant, further out.",
    .names = {"npx.smooth_l1", "nd.smooth_l1"},
    .graph = {.names = "smooth_l1", .attrs = "scalar"},
    .attrs = schema<SmoothL1Attrs>(kSmoothL1Fields),
    .in = kData,
    .program = &kSmoothL1,
    .rule = Rule::floating,
    .types = kFloats,
    .auto_grad = true,
    .inplace = kOverX,
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{3, 4}}}, .attrs = "scalar=2.0"}, {.in = {{{3, 4}}}, .smooth = false}}},
});

}  // namespace twibil::ops
