// SPDX-License-Identifier: Apache-2.0
// The larger and the smaller of two, and clip. At ties the gradient is split evenly.
#include <limits>

#include "ops/math/elementwise.h"

namespace twibil::ops {

inline constexpr Program kMaximum = record([](Expr x, Expr y) { return max(x, y); });
inline constexpr Program kMinimum = record([](Expr x, Expr y) { return min(x, y); });
inline constexpr Program kFmax = record([](Expr x, Expr y) { return fmax(x, y); });
inline constexpr Program kFmin = record([](Expr x, Expr y) { return fmin(x, y); });
inline constexpr Program kShareOfLarger =
    record([](Expr x, Expr y, Expr dy) { return select(x > y || formula::isnan(y), dy, select(x == y, dy * 0.5, 0)); });
inline constexpr Program kClamp = record([](Expr x, Expr low, Expr high) { return min(max(x, low), high); });
inline constexpr Program kPassBetween =
    record([](Expr x, Expr low, Expr high, Expr dy) { return select(x >= low && x <= high, dy, 0); });

TW_DECLARE(share_of_larger)
TW_DECLARE(pass_between)
static Val share_of_larger(const Val& x, const Val& y, const Val& dy) { return apply(op_share_of_larger, {x, y, dy}); }
static Val pass_between(const Val& x, const Val& low, const Val& high, const Val& dy) {
  return apply(op_pass_between, {x, low, high, dy});
}

TW_OP(share_of_larger) = whole({
    .name = "share_of_larger",
    .doc =
        "dy where x1 is larger than x2 or x2 is NaN, half of it where they are equal, else 0: the gradient of maximum.",
    .in = {{{.name = "x1"}, {.name = "x2"}, {.name = "dy"}}},
    .program = &kShareOfLarger,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0 | X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.wants(0) ? zeros_like(g.dy()) : Val(), g.wants(1) ? zeros_like(g.dy()) : Val(),
              g.wants(2) ? share_of_larger(g.x(0), g.x(1), g.dy()) : Val()};
    }),
    .samples = {{{.in = {{{3, 4}, {3, 4}, {3, 4}}}}}},
});

/// Each operand's share of dy, where the larger one wins.
static constexpr GradFunction kToTheLarger = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
  return {g.wants(0) ? share_of_larger(g.x(0), g.x(1), g.dy()) : Val(),
          g.wants(1) ? share_of_larger(g.x(1), g.x(0), g.dy()) : Val()};
});
/// What the extremes of two arrays share.
static constexpr OpDef extreme(OpDef d) {
  d.in = kX1X2;
  d.needs = X0 | X1;
  d.inplace = kOverEither;
  d.samples = samples_with_ties();
  return whole(d);
}

extern const OpDef op_maximum_scalar, op_minimum_scalar;  // legacy/scalar.cc
TW_OP(maximum) = extreme({
    .name = "maximum",
    .doc = "The larger of x1 and x2; NaN if one of them is NaN.",
    .names = {"np.maximum", "nd.broadcast_maximum", "nd.maximum"},
    .graph = {.names = "broadcast_maximum _maximum _Maximum _npi_maximum", .inputs = "lhs rhs"},
    .scalar_form = &op_maximum_scalar,
    .reversed_scalar_form = &op_maximum_scalar,
    .program = &kMaximum,
    .types = kAll,
    .grad = kToTheLarger,
});

TW_OP(minimum) = extreme({
    .name = "minimum",
    .doc = "The smaller of x1 and x2; NaN if one of them is NaN.",
    .names = {"np.minimum", "nd.broadcast_minimum", "nd.minimum"},
    .graph = {.names = "broadcast_minimum _minimum _Minimum _npi_minimum", .inputs = "lhs rhs"},
    .scalar_form = &op_minimum_scalar,
    .reversed_scalar_form = &op_minimum_scalar,
    .program = &kMinimum,
    .types = kAll,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {g.wants(0) ? share_of_larger(g.x(1), g.x(0), g.dy()) : Val(),
              g.wants(1) ? share_of_larger(g.x(0), g.x(1), g.dy()) : Val()};
    }),
});

TW_OP(fmax) = extreme({
    .name = "fmax",
    .doc = "The larger of x1 and x2; the other one if one of them is NaN.",
    .names = {"np.fmax"},
    .program = &kFmax,
    .types = kReals,
    .grad = kToTheLarger,
});

TW_OP(fmin) = extreme({
    .name = "fmin",
    .doc = "The smaller of x1 and x2; the other one if one of them is NaN.",
    .names = {"np.fmin"},
    .program = &kFmin,
    .types = kReals,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      // In the result's dtype: bool and unsigned numbers have no negatives.
      Val x = -cast(g.x(0), g.dy()->dtype()), y = -cast(g.x(1), g.dy()->dtype());
      return {g.wants(0) ? share_of_larger(x, y, g.dy()) : Val(), g.wants(1) ? share_of_larger(y, x, g.dy()) : Val()};
    }),
});

TW_OP(pass_between) = whole({
    .name = "pass_between",
    .doc = "dy where low <= x <= high, else 0: the gradient of clip.",
    .in = {{{.name = "x"}, {.name = "low"}, {.name = "high"}, {.name = "dy"}}},
    .program = &kPassBetween,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = X0 | X1 | X2,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      Val zero = zeros_like(g.dy());
      return {zero, zero, zero, g.wants(3) ? pass_between(g.x(0), g.x(1), g.x(2), g.dy()) : Val()};
    }),
    .samples = {{{.in = {{{3, 4}, {{3, 4}, Domain::unit}, {{3, 4}, Domain::above_one}, {3, 4}}}}}},
});

TW_OP(clamp) = whole({
    .name = "clamp",
    .doc = "The number in [low, high] nearest to x. The gradient passes where x is inside, bounds included.",
    .in = {{{.name = "x"}, {.name = "low"}, {.name = "high"}}},
    .program = &kClamp,
    .types = kReals,
    .needs = X0 | X1 | X2,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      Val x = g.x(0), low = g.x(1), high = g.x(2);
      return {g.wants(0) ? pass_between(x, low, high, g.dy()) : Val(),
              g.wants(1) ? where(logical_and(less(x, low), less_equal(low, high)), g.dy(), 0) : Val(),
              g.wants(2) ? where(logical_or(greater(x, high), greater(low, high)), g.dy(), 0) : Val()};
    }),
    .inplace = kOverX,
    .samples = {{{.in = {{{3, 4}, {{3, 4}, Domain::unit}, {{3, 4}, Domain::above_one}}}}}},
});

// One bound alone: where there is a gradient, an infinite other one keeps the gradient of clip at the bound.
static Val clip(const Val& x, const Val& low, const Val& high) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!low && !high) return copy(x);
  if (!is_floating(x->dtype()) && !low) return minimum(x, high);
  if (!is_floating(x->dtype()) && !high) return maximum(x, low);
  return apply(op_clamp, {x, low ? low : Val(-kInfinity), high ? high : Val(kInfinity)});
}

TW_OP(clip) = whole({
    .name = "clip",
    .doc = "The number between a_min and a_max nearest to each element. The gradient passes at the bounds themselves.",
    .names = {"np.clip", "ndarray.clip", "nd.clip"},
    .in = {{{.name = "a"},
            {.name = "a_min", .kind = SlotKind::optional, .doc = "Lower bound; None: there is none.", .renames = "min"},
            {.name = "a_max",
             .kind = SlotKind::optional,
             .doc = "Upper bound; None: there is none. Where it is below a_min, the result is a_max.",
             .renames = "max"}}},
    .types = kReals,
    .expand = expand_rule<NoAttrs>([](auto&, std::span<const Val> in) -> Vals {
      return {clip(in[0], in.size() > 1 ? in[1] : Val(), in.size() > 2 ? in[2] : Val())};
    }),
    .samples = {{{.in = {{{3, 4}, {{3, 4}, Domain::unit}, {{3, 4}, Domain::above_one}}}},
                 {.in = {{{2, 3, 4}, {{3, 1}, Domain::unit}, {{4}, Domain::above_one}}}},
                 {.in = {{{3, 4}, {{4}, Domain::unit}}}},
                 {.in = {{{3, 4}, kAbsent, {{4}, Domain::above_one}}}},
                 {.in = {{{3, 4}, {3, 4}, {3, 4}}}, .smooth = false},
                 {.in = {{{3, 4}}}}}},
});

}  // namespace twibil::ops
