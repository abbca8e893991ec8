// SPDX-License-Identifier: Apache-2.0
// What declarations of elementwise operators share: slots, in-place facts, samples and the gradient that is zero.
#pragma once
#include "ops/forms.h"

namespace twibil::ops {

inline constexpr std::array<Slot, 14> kX = {{{.name = "x"}}};
inline constexpr std::array<Slot, 14> kData = {{{.name = "data"}}};
inline constexpr std::array<Slot, 14> kX1X2 = {{{.name = "x1"}, {.name = "x2"}}};

inline constexpr std::array<Pair, 3> kOverX = {{{0, 0}}};
inline constexpr std::array<Pair, 3> kOverEither = {{{0, 0}, {0, 1}}};

/// One array, two arrays of one shape, two that broadcast: with elements of a domain.
constexpr std::array<Sample, 6> samples_of(Domain d) { return {{{.in = {{{{3, 4}, d}}}}}}; }
constexpr std::array<Sample, 6> samples_of(Domain d, Domain e) {
  return {{{.in = {{{{3, 4}, d}, {{3, 4}, e}}}}, {.in = {{{{2, 3, 4}, d}, {{3, 1}, e}}}}}};
}
/// The same for functions with kinks: a smooth part of the domain, and one with zeros and ties, for values only.
constexpr std::array<Sample, 6> samples_with_kinks(Domain smooth) {
  return {{{.in = {{{{3, 4}, smooth}}}}, {.in = {{{{3, 4}, Domain::real}}}, .smooth = false}}};
}
constexpr std::array<Sample, 6> samples_with_ties() {
  return {{{.in = {{{3, 4}, {3, 4}}}}, {.in = {{{2, 3, 4}, {3, 1}}}}, {.in = {{{3, 4}, {3, 4}}}, .smooth = false}}};
}
constexpr std::array<Sample, 6> samples_not_smooth(Domain d, Domain e) {
  return {{{.in = {{{{3, 4}, d}, {{3, 4}, e}}}, .smooth = false},
           {.in = {{{{2, 3, 4}, d}, {{3, 1}, e}}}, .smooth = false}}};
}
constexpr std::array<Sample, 6> samples_not_smooth(Domain d) { return {{{.in = {{{{3, 4}, d}}}, .smooth = false}}}; }

/// Smooth everywhere, although the formula may hold abs or max: zeros among the elements.
constexpr std::array<Sample, 6> samples_with_zeros() {
  return {{{.in = {{{3, 4}}}}, {.in = {{{{3, 4}, Domain::integer}}}}}};
}

/// For steps, such as floor: zero wherever there is a slope at all.
inline constexpr GradFunction kZeroGrad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
  Vals dx;
  for (int i = 0; i < g.inputs(); ++i) dx.push_back(g.wants(i) ? zeros_like(g.dy()) : Val());
  return dx;
});

inline constexpr const char* kNoGradOfBool = "the result is true or false";
inline constexpr const char* kNoGradOfIntegers = "integers have no gradient";

}  // namespace twibil::ops
