// SPDX-License-Identifier: Apache-2.0
// Operators of your own. They get everything that built-in ones get: they run on arrays, stand in symbols, are traced,
// fused and differentiated, and are called by name from C++ and Python.
//
// A formula, at any time:
//
//   register_pointwise("swish", [](Expr x) { return x * sigmoid(x); });
//   Array y = call("swish", {x});
//
// A full declaration, in a source file of its own (src/ir/op.h has the fields, src/ops/ two hundred examples):
//
//   TW_OP(rotate_pairs) = whole({.name = "rotate_pairs", .doc = "...", .names = {"npx.rotate_pairs"}, ...});
//
// Link that file into the program, or make a library of it that load_operators() (Python: mx.library.load) reads:
//
//   add_library(my_operators MODULE my_operators.cc)
//   target_link_libraries(my_operators PRIVATE twibil::headers)
#pragma once
#include "base/parallel.h"
#include "ir/apply.h"
#include "ir/formula.h"
#include "ir/registry.h"
#include "twibil/array.h"

namespace twibil {

struct PointwiseOptions {
  std::string doc = {};                  // one sentence
  std::vector<std::string> inputs = {};  // their names; else x, or x1, x2 ...
  std::vector<std::string> names = {};   // public names; else "npx.NAME" and "nd.NAME"
  /// By each input: a formula of (inputs..., dy). None: derived from the formula.
  std::vector<Program> gradient = {};
  Domain domain = Domain::real;  // of the elements that tests draw
  bool smooth = true;            // no kinks and ties: finite differences give the gradient
};
/// Makes an operator of a formula and returns its definition, which lives to the end of the program. Where the formula
/// has no meaning on integers, they become floats first. A value error if the name is taken.
TW_API const OpDef& register_pointwise(const std::string& name, const Program& formula,
                                       const PointwiseOptions& options = {});

/// The same from lambdas: the formula, then by each input the gradient as a formula of (inputs..., dy), or none.
template <class F, class... G>
requires(!std::is_convertible_v<F, Program> && (!std::is_convertible_v<G, PointwiseOptions> &&
                                                ...)) const OpDef& register_pointwise(const std::string& name,
                                                                                      F formula, G... gradient) {
  return register_pointwise(name, record(formula), {.gradient = {record(gradient)...}});
}
template <class F>
requires(!std::is_convertible_v<F, Program>) const OpDef& register_pointwise(const std::string& name, F formula,
                                                                             const PointwiseOptions& options) {
  return register_pointwise(name, record(formula), options);
}

/// Loads a library and adds the operators that it declares, all or none; returns their definitions. The library stays
/// loaded. A program that links the static library must export its symbols (CMake: ENABLE_EXPORTS).
TW_API std::vector<const OpDef*> load_operators(const std::string& path);

/// For .grad of a declaration, when it is easier written on arrays: what it may read as arrays, and back.
inline Array as_array(Val v) { return Array(std::move(v)); }
template <class... A> Vals as_vals(const A&... arrays) { return {arrays.value()...}; }

}  // namespace twibil
