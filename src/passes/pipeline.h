// SPDX-License-Identifier: Apache-2.0
// The order of the passes. Each is timed, can be left out by its name, and is verified.
#pragma once
#include <string>
#include <vector>

#include "passes/plan_memory.h"

namespace twibil::passes {

struct Pass {
  const char* name;
  const char* summary;
  void (*run)(Graph&);
  bool needed = false;  // the executable cannot do without
};
/// In their order.
std::span<const Pass> pipeline();

struct PipelineOptions {
  std::vector<std::string> without;  // names of passes that are left out; "everything" for every one that may be
  MemoryOptions memory;
  bool verify = true;
};
struct PassReport {
  std::string name;
  double seconds = 0;
  int nodes_before = 0, nodes_after = 0;
};
struct PipelineReport {
  std::vector<PassReport> passes;
  bool explain = false;
  std::string before, after;  // the graph, printed; these three are filled when `explain` is asked for
  Graph first;                // the graph before the passes; GraphNode::parts of the later one lead to it
};
/// `prologue`: gets the part that depends on parameters alone, see split_prologue.h; null: nothing is split off.
MemoryPlan run_pipeline(Graph& g, const PipelineOptions& options, PipelineReport* report = nullptr,
                        Graph* prologue = nullptr);

}  // namespace twibil::passes
