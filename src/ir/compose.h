// SPDX-License-Identifier: Apache-2.0
// What every front end does with symbols: fills in parameters that were not given, cuts graphs open, puts graphs
// together.
#pragma once
#include <map>
#include <unordered_map>

#include "ir/symbol.h"

namespace twibil {

/// A handle for each node that the heads reach.
std::unordered_map<const SymbolNode*, SymbolNodePtr> owners_of(std::span<const SymbolRef> heads);

/// "fc1_output", "split0_output1", or a variable's own name.
std::string output_name(const SymbolRef& r);

/// The outputs of all nodes, inputs before their readers.
std::vector<SymbolRef> internals_of(std::span<const SymbolRef> heads);

/// Gives a call its inputs. Absent ones that the operator cannot do without become variables ("fc1_weight"), and so do
/// optional parameters unless an attribute says no ("no_bias"). refused[i]: absent on purpose.
void complete_inputs(SymbolNode& call, std::vector<SymbolRef> in, const std::vector<bool>& refused = {});

/// The heads with variables replaced, by name. What does not depend on them is shared with the old graph.
std::vector<SymbolRef> replace_variables(std::span<const SymbolRef> heads, const std::map<std::string, SymbolRef>& by);

}  // namespace twibil
