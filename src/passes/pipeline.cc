// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "passes/attach_epilogues.h"
#include "passes/choose_layouts.h"
#include "passes/commute_pooling.h"
#include "passes/cut_shapes.h"
#include "passes/fold_batch_norm.h"
#include "passes/fold_constants.h"
#include "passes/fuse_pointwise.h"
#include "passes/fuse_rows.h"
#include "passes/merge_branches.h"
#include "passes/merge_equal.h"
#include "passes/recompute.h"
#include "passes/remove_dead.h"
#include "passes/settle_inputs.h"
#include "passes/simplify.h"
#include "passes/split_prologue.h"
#include "passes/verify.h"

namespace twibil::passes {

static constexpr Pass kPasses[] = {
    {"remove_dead", "removes what no result needs", remove_dead},
    {"cut_shapes", "keeps only the shape of what is read for its shape", cut_shapes},
    {"fold_constants", "computes what depends on constants alone", fold_constants},
    {"simplify", "removes what changes nothing", simplify},
    {"merge_equal", "computes equal values once", merge_equal},
    {"remove_dead", "removes what no result needs", remove_dead},
    {"fold_batch_norm", "puts scales and shifts of channels into the weights before them", fold_batch_norm},
    {"commute_pooling", "averages after channels were mixed, where those are fewer", commute_pooling},
    {"merge_branches", "computes the channels of several convolutions of one array in one call", merge_branches},
    {"choose_layouts", "computes in blocks of channels where that is faster", choose_layouts},
    {"attach_epilogues", "puts sums and clamps into the operators before them", attach_epilogues},
    {"recompute", "computes values of the forward part again instead of keeping them, on request", recompute},
    {"fuse_pointwise", "joins pointwise operators into one program", fuse_pointwise},
    {"settle_inputs", "writes out the casts and copies that kernels need", settle_inputs, true},
    {"remove_dead", "removes what no result needs", remove_dead},
    {"fuse_rows", "runs operators that treat rows alike together, a few rows at a time", fuse_rows},
};

std::span<const Pass> pipeline() { return kPasses; }

static bool left_out(const Pass& p, const PipelineOptions& o) {
  return !p.needed &&
         std::ranges::any_of(o.without, [&](const std::string& s) { return s == p.name || s == "everything"; });
}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

MemoryPlan run_pipeline(Graph& g, const PipelineOptions& options, PipelineReport* report, Graph* prologue) {
  for (const std::string& name : options.without)
    TW_CHECK(name == "everything" || name == "plan_memory" || name == "split_prologue" ||
                 std::ranges::any_of(kPasses, [&](const Pass& p) { return name == p.name && !p.needed; }),
             value, "compile: there is no pass ", name, " that can be left out");
  auto timed = [&](const char* name, auto&& work) {
    PassReport r{name, now(), static_cast<int>(g.nodes.size()), 0};
    work();
    r.seconds = now() - r.seconds;
    r.nodes_after = static_cast<int>(g.nodes.size());
    if (report) report->passes.push_back(r);
  };
  if (report && report->explain) {
    report->before = print(g);
    report->first = g;
    for (size_t i = 0; i < g.nodes.size(); ++i) g.nodes[i].parts = {static_cast<int32_t>(i)};
  }
  if (options.verify) verify(g, "lower");
  for (const Pass& p : kPasses) {
    if (left_out(p, options)) continue;
    timed(p.name, [&] { p.run(g); });
    if (options.verify) verify(g, p.name);
  }
  if (prologue && !left_out({"split_prologue", "", nullptr}, options)) {
    timed("split_prologue", [&] { *prologue = split_prologue(g); });
    if (options.verify) verify(g, "split_prologue"), verify(*prologue, "split_prologue");
  }
  MemoryPlan plan;
  MemoryOptions memory = options.memory;
  if (left_out({"plan_memory", "", nullptr}, options)) memory.in_place = memory.share = false;
  timed("plan_memory", [&] { plan = plan_memory(g, memory); });
  if (report && report->explain) report->after = print(g);
  return plan;
}

}  // namespace twibil::passes
