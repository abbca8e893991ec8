// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "passes/graph_maker.h"
#include "passes/pack_arena.h"
#include "passes/plan_checker.h"

namespace twibil::passes {
namespace {

MemoryPlan planned(Graph& g, MemoryOptions options = {}, std::vector<std::string> without = {}) {
  std::vector<bool> donate = options.donate;
  MemoryPlan plan = run_pipeline(g, {.without = std::move(without), .memory = std::move(options)});
  EXPECT_EQ(PlanChecker(g, plan, donate).run(), "");
  EXPECT_GE(plan.arena_bytes, plan.lower_bound);
  return plan;
}

// ---- the seed's figures ----

Graph toy() {
  GraphMaker m;
  SymbolRef a = m.variable({10}, false, DType::float64), b = m.variable({10}, false, DType::float64);
  SymbolRef c = call("multiply", {b, a});
  return m.lowered({call("add", {c, {make_constant(Val(1.0)), 0}})});
}

TEST(PlanMemory, ToyProgramNeeds240BytesWhenTheCallerKeepsItsInputs) {
  Graph g = toy();
  EXPECT_EQ(planned(g).planned_bytes(), 240);
}
TEST(PlanMemory, ToyProgramNeeds160BytesWhenOneInputIsDonated) {
  Graph g = toy();
  MemoryPlan plan = planned(g, {.donate = {false, true}});
  EXPECT_EQ(plan.planned_bytes(), 160);
  EXPECT_EQ(plan.output_is_argument[0], 1);
}
TEST(PlanMemory, ToyProgramNeeds320BytesWithoutAPlan) {
  Graph g = toy();
  MemoryPlan plan = planned(g, {}, {"everything"});
  EXPECT_GE(plan.planned_bytes(), 320);
}

TEST(PlanMemory, ForwardPartOfManyLayersNeedsTwoBuffers) {
  for (int layers : {4, 5, 30}) {
    GraphMaker m;
    SymbolRef x = m.variable({8, 32});
    for (int i = 0; i < layers; ++i)
      x = call("tanh",
               {call("fully_connected", {x, m.variable({32, 32})}, {{"num_hidden", "32"}, {"no_bias", "True"}})});
    Graph g = m.lowered({x});
    EXPECT_EQ(planned(g).arena_bytes, 2 * 8 * 32 * 4) << layers;
  }
}

// ---- sharing ----

TEST(PlanMemory, JoinedInputsAreComputedInTheirPlaces) {
  GraphMaker m;
  SymbolRef x = m.variable({1, 4, 8}), w = m.variable({8, 8});
  auto branch = [&] { return call("tanh", {call("matmul", {x, w})}); };
  SymbolRef joined = call("concatenate", {branch(), call("exp", {branch()})}, {{"axis", "1"}});
  Graph g = m.lowered({call("matmul", {joined, w})});
  MemoryPlan plan = planned(g);
  for (const GraphNode& n : g.nodes) {
    if (n.kind != GraphNode::Kind::call || !n.op->joins) continue;
    auto whole = plan.places[static_cast<size_t>(&n - g.nodes.data())][0];
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(plan.places[static_cast<size_t>(n.in[i].node)][0].offset, whole.offset + static_cast<int64_t>(i) * 128);
  }
}
TEST(PlanMemory, JoinAcrossABatchIsCopied) {
  GraphMaker m;
  SymbolRef x = m.variable({2, 4, 8}), w = m.variable({8, 8});
  SymbolRef a = call("matmul", {x, w}), b = call("exp", {a});
  Graph g = m.lowered({call("exp", {call("concatenate", {a, b}, {{"axis", "1"}})})});
  planned(g);
}
TEST(PlanMemory, PartThatIsReadTwiceOrUpdatedStaysOutOfTheJoin) {
  GraphMaker m;
  SymbolRef x = m.variable({1, 16}), a = call("exp", {x});
  SymbolRef twice = call("concatenate", {a, a}, {{"axis", "1"}});
  Graph g = m.lowered({call("exp", {twice}), call("add", {twice, call("concatenate", {a, a}, {{"axis", "1"}})})});
  planned(g);
}
TEST(PlanMemory, ForwardOutputThatTheCallerMayOverwriteHoldsNothingOfTheBackwardPart) {
  GraphMaker m;
  SymbolRef x = m.variable({1, 16}, true), a = call("exp", {x});  // the gradient of exp reads its result
  Graph g = m.lowered({call("concatenate", {a, call("sin", {x})}, {{"axis", "1"}})});
  MemoryPlan plan = planned(g);
  for (size_t i = static_cast<size_t>(g.forward_nodes); i < g.nodes.size(); ++i)
    for (Edge e : g.nodes[i].in)
      if (e.present()) {
        const Place& p = plan.places[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)];
        EXPECT_FALSE(p.kind == Place::Kind::output && p.index < g.forward_outputs);
      }
}
TEST(PlanMemory, ZeroSizesTakeNoBytes) {
  GraphMaker m;
  SymbolRef x = m.variable({0, 8}), y = call("exp", {call("sin", {x})});
  Graph g = m.lowered({call("concatenate", {y, y}, {{"axis", "0"}}), call("sum", {y})});
  MemoryPlan plan = planned(g);
  EXPECT_EQ(plan.arena_bytes, 0);
}

// ---- random graphs ----

class RandomMaker {
 public:
  explicit RandomMaker(unsigned seed) : random_(seed) {}

  Graph make(bool gradients) {
    gradients_ = gradients;
    for (int i = 0; i < 3; ++i) values_.push_back({m_.variable({1, 4, 6}, gradients && i < 2), {1, 4, 6}});
    int calls = 5 + pick(40);
    for (int i = 0; i < calls; ++i) add();
    std::vector<SymbolRef> heads;
    for (int i = 0; i < 1 + pick(4); ++i) heads.push_back(values_[static_cast<size_t>(pick(size()))].first);
    return m_.lowered(heads, {}, gradients);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int size() const { return static_cast<int>(values_.size()); }
  std::pair<SymbolRef, Shape> any() { return values_[static_cast<size_t>(size() - 1 - pick(std::min(size(), 8)))]; }
  void add() {
    auto [x, shape] = any();
    switch (pick(11)) {
      case 0: return keep(call("relu", {x}), shape);
      case 1: return keep(call("softmax", {x}), shape);
      case 2: return keep(call("tanh", {x}), shape);
      case 3: return keep(call("reshape", {x}, {{"newshape", "(1, -1, 6)"}}), {1, shape.size() / 6, 6});
      case 4: return keep(call("sum", {x}, {{"axis", "1"}, {"keepdims", "True"}}), {1, 1, shape[2]});
      case 5: {
        auto [y, other] = any();
        if (shape[1] + other[1] > 64) return;
        return keep(call("concatenate", {x, y}, {{"axis", "1"}}), {1, shape[1] + other[1], 6});
      }
      case 6: {  // a transposed array, and back, so that shapes stay alike
        SymbolRef there = call("swapaxes", {x}, {{"axis1", "0"}, {"axis2", "1"}});
        return keep(call("swapaxes", {call("exp", {there})}, {{"axis1", "1"}, {"axis2", "0"}}), shape);
      }
      case 7: {
        auto [y, other] = any();
        if (other != shape || gradients_) return;
        return keep(call("assign", {call("exp", {x}), y}), shape);
      }
      default: {
        auto [y, other] = any();
        if (other != shape) return;
        return keep(call(pick(2) ? "add" : "multiply", {x, y}), shape);
      }
    }
  }
  void keep(SymbolRef x, Shape shape) { values_.push_back({std::move(x), shape}); }

  std::mt19937 random_;
  bool gradients_ = false;
  GraphMaker m_;
  std::vector<std::pair<SymbolRef, Shape>> values_;
};

TEST(PlanMemory, RandomGraphsFindTheirValues) {
  int joins = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Graph g = RandomMaker(seed).make(seed % 2);
    std::vector<bool> donate(g.arguments.size());
    if (seed % 3 == 0) donate[2] = true;
    MemoryOptions options{.donate = donate};
    MemoryPlan plan = planned(g, options);
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      const GraphNode& n = g.nodes[i];
      if (n.kind != GraphNode::Kind::call || !n.op->joins || !n.in[0].present()) continue;
      const Place &whole = plan.places[i][0], &part = plan.places[static_cast<size_t>(n.in[0].node)][0];
      joins += whole.kind == part.kind && whole.index == part.index && whole.offset == part.offset;
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(joins, 100);
}

// ---- offsets ----

TEST(PackArena, RandomLivesDoNotOverlap) {
  std::mt19937 random(7);
  int above = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> all;
    for (unsigned i = 0, n = 1 + random() % 120; i < n; ++i) {
      int first = static_cast<int>(random() % 100);
      all.push_back(
          {static_cast<int64_t>(random() % 5 ? random() % 5000 : 0), first, first + static_cast<int>(random() % 30)});
    }
    Packing p = pack_arena(all);
    EXPECT_GE(p.bytes, p.lower_bound);
    above += p.bytes > p.lower_bound;
    EXPECT_LE(static_cast<double>(p.bytes), 1.25 * static_cast<double>(p.lower_bound));
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(p.offsets[i] % kArenaAlignment, 0);
      if (all[i].bytes) EXPECT_LE(p.offsets[i] + all[i].bytes, p.bytes);
      for (size_t j = 0; j < i; ++j) {
        bool together = all[i].first <= all[j].last && all[j].first <= all[i].last;
        bool apart = p.offsets[i] + all[i].bytes <= p.offsets[j] || p.offsets[j] + all[j].bytes <= p.offsets[i];
        EXPECT_TRUE(!together || apart || !all[i].bytes || !all[j].bytes) << round;
      }
    }
  }
  EXPECT_LT(above, 150);
}
TEST(PackArena, WithoutSharingEveryBufferHasItsOwnBytes) {
  std::vector<Lifetime> all{{64, 0, 1}, {100, 5, 6}, {0, 0, 9}};
  Packing p = pack_arena(all, false);
  EXPECT_EQ(p.bytes, 64 + 128);
  EXPECT_EQ(p.lower_bound, 128);
}
TEST(PackArena, NothingNeedsNothing) {
  Packing p = pack_arena({});
  EXPECT_EQ(p.bytes, 0);
}

TEST(PlanMemory, TenThousandNodesArePlannedInWellUnderASecond) {
  GraphMaker m;
  SymbolRef x = m.variable({16, 16}, true);
  for (int i = 0; i < 2500; ++i) x = call("tanh", {call("matmul", {x, m.variable({16, 16}, true)})});
  Graph g = m.lowered({x});
  EXPECT_GT(g.nodes.size(), 10000U);
  auto begin = std::chrono::steady_clock::now();
  MemoryPlan plan = run_pipeline(g, {.without = {}, .memory = {}});
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(seconds, 60.0);
#else
  EXPECT_LT(seconds, 3.0);  // on a loaded machine; it takes about 0.3
#endif
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.05 * static_cast<double>(plan.lower_bound));
  RecordProperty("seconds", std::to_string(seconds));
  std::cout << "10,000 nodes: " << seconds << " s\n";
}

}  // namespace
}  // namespace twibil::passes
