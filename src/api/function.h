// SPDX-License-Identifier: Apache-2.0
// Inside api: makes a Function of a compiled graph whose first inputs are the named ones.
#pragma once
#include "runtime/compiled_graph.h"
#include "twibil/symbol.h"

namespace twibil {

class FunctionMaker {
 public:
  static Function make(std::shared_ptr<CompiledGraph> graph, std::vector<std::string> names);
};

}  // namespace twibil
