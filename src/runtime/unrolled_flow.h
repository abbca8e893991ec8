// SPDX-License-Identifier: Apache-2.0
// Branches and loops of models from elsewhere: where the condition or the count is known when the graph is made for the
// shapes at hand, the branch taken and the steps done stand in the graph. Else the graph runs node by node.
#pragma once
#include "ir/symbol.h"

namespace twibil {

/// A graph inside a graph: its variables, in the order in which values are given, and its results.
struct SubSymbol {
  std::vector<SymbolNodePtr> inputs;
  std::vector<SymbolRef> heads;
};

/// Inputs: a truth value, the inputs of `yes`, those of `no`.
std::shared_ptr<const GraphFunction> make_choice(SubSymbol yes, SubSymbol no);
/// Inputs: a count and a condition (both may be absent), states, the body's other inputs. The body reads the number of
/// the step, the condition, states and the rest; it gives the next condition, states, and results that are stacked.
std::shared_ptr<const GraphFunction> make_repetition(SubSymbol body, int states);

/// How a scan walks: the axes of its data and results, and which of them backwards.
struct ScanForm {
  int states = 0, data = 0;
  std::vector<int64_t> data_axes, result_axes;            // empty: 0
  std::vector<int64_t> data_backwards, result_backwards;  // empty: forwards
};
/// Inputs: states, data, the body's other inputs. Outputs: last states, stacked results.
std::shared_ptr<const GraphFunction> make_scan(SubSymbol body, ScanForm form);

}  // namespace twibil
