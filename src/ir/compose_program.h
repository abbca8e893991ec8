// SPDX-License-Identifier: Apache-2.0
// Joins pointwise programs into one at run time: for fusion, and to see what a formula comes out as with numbers in it.
#pragma once
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/recorder.h"

namespace twibil {

class Composer {
 public:
  /// exact: every primitive as it is, so that the bits stay the same; simplify: what holds for every value is applied.
  enum class Rules { exact, simplify };
  explicit Composer(Rules rules = Rules::exact) : rules_(rules) {}

  /// The value of argument `index`; arguments must come in order, a repeated one gives the same value.
  formula::Id argument(int index, bool is_mask);
  formula::Id number(const Scalar& s) { return recorder_.constant({ProgramConstant::Kind::number, s}); }
  /// The value as true or false, or a truth value as 0 or 1.
  formula::Id as_mask(formula::Id x);
  formula::Id as_value(formula::Id x);
  bool is_mask(formula::Id x) const { return recorder_.is_mask(x); }
  /// The result of p; inputs that it reads as masks must be masks. Throws when the whole becomes too long.
  formula::Id apply(const Program& p, std::span<const formula::Id> inputs, std::span<const Scalar> params);
  /// Which argument a value is, or -1.
  int is_argument(formula::Id x) const;
  Program finish(formula::Id result) { return recorder_.finish(result); }

 private:
  formula::Id emit(Prim prim, formula::Id a, formula::Id b = formula::kNoId, formula::Id c = formula::kNoId);
  Rules rules_;
  formula::Recorder recorder_;
  std::vector<std::pair<int, formula::Id>> arguments_;
};

/// Parameters of a pointwise node's formula: its numeric attributes, in order.
std::vector<Scalar> params_of(const GraphNode& n);
int formula_params(const OpDef& op, const void* attrs, Scalar* params);
/// Whether the node is a constant of one element that can be looked at now.
bool is_number(const GraphNode& n);

}  // namespace twibil
