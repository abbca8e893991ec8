// SPDX-License-Identifier: Apache-2.0
// The graph that users build: order, names, gradients without shapes, very long chains.
#include "ir/symbol.h"

#include <gtest/gtest.h>

#include "ir/compose.h"
#include "ir/registry.h"

using namespace twibil;

namespace {

SymbolRef variable(const char* name) { return {make_variable(name), 0}; }
SymbolRef call(const char* op, std::vector<SymbolRef> in) {
  return {make_call(require_op(op), nullptr, std::move(in)), 0};
}
int count_kind(std::span<const SymbolRef> heads, SymbolNode::Kind kind) {
  int n = 0;
  for (SymbolNode* node : reachable(heads)) n += node->kind == kind;
  return n;
}

TEST(IrSymbol, NodesComeInTheOrderOfMakingAndOnce) {
  SymbolRef x = variable("x"), y = call("exp", {x}), z = call("add", {y, y}), heads[] = {z, y};
  std::vector<SymbolNode*> nodes = reachable(heads);
  EXPECT_EQ(nodes, (std::vector<SymbolNode*>{x.node.get(), y.node.get(), z.node.get()}));
  EXPECT_EQ(variables_of(heads), std::vector<SymbolNode*>{x.node.get()});
}

TEST(IrSymbol, CallsGetNumberedNames) {
  SymbolRef a = call("tanh", {variable("x")}), b = call("tanh", {variable("x")});
  EXPECT_NE(a.node->name, b.node->name);
  EXPECT_EQ(a.node->name.rfind("tanh", 0), 0u);
  EXPECT_EQ(output_name(a), a.node->name + "_output");
}

TEST(IrSymbol, GradientsNeedNoShapes) {
  SymbolRef x = variable("x"), w = variable("w"), y = call("tanh", {call("multiply", {x, w})});
  SymbolRef wrt[] = {x, w};
  std::vector<SymbolRef> g = gradient({&y, 1}, wrt, {});
  ASSERT_EQ(g.size(), 2u);
  EXPECT_EQ(g[0].node, g[1].node);  // both come from the product's backward node
  EXPECT_EQ(count_kind(g, SymbolNode::Kind::backward), 2);
  std::vector<SymbolRef> second = gradient({&g[0], 1}, {&w, 1}, {});
  EXPECT_GT(count_kind(second, SymbolNode::Kind::backward), 2);
}

TEST(IrSymbol, OnlyWhatDependsIsDifferentiated) {
  SymbolRef x = variable("x"), other = call("exp", {call("sin", {variable("c")})}), y = call("multiply", {x, other});
  std::vector<SymbolRef> g = gradient({&y, 1}, {&x, 1}, {});
  EXPECT_EQ(count_kind(g, SymbolNode::Kind::backward), 1);
  SymbolRef stranger = variable("stranger");
  g = gradient({&y, 1}, {&stranger, 1}, {});
  EXPECT_EQ(g[0].node->op->role, Role::zeros_like);
}

TEST(IrSymbol, SeveralReadersAreAdded) {
  SymbolRef x = variable("x"), y = call("add", {call("exp", {x}), call("sin", {x})});
  std::vector<SymbolRef> g = gradient({&y, 1}, {&x, 1}, {});
  EXPECT_EQ(g[0].node->op->role, Role::accumulate);
}

TEST(IrSymbol, AHeadMayBeTheVariableItself) {
  SymbolRef x = variable("x");
  std::vector<SymbolRef> g = gradient({&x, 1}, {&x, 1}, {});
  EXPECT_EQ(g[0].node->op->role, Role::ones_like);
}

TEST(IrSymbol, ChainsOfAHundredThousandNodesAreNoTrouble) {
  SymbolRef x = variable("x"), y = x;
  for (int i = 0; i < 100000; ++i) y = call("negative", {y});
  EXPECT_EQ(reachable({&y, 1}).size(), 100001u);
  EXPECT_EQ(variables_of({&y, 1}).size(), 1u);
  std::vector<SymbolRef> g = gradient({&y, 1}, {&x, 1}, {});
  EXPECT_EQ(count_kind(g, SymbolNode::Kind::backward), 100000);
  EXPECT_EQ(internals_of({&y, 1}).size(), 100001u);
  std::vector<SymbolRef> moved = replace_variables({&y, 1}, {{"x", variable("z")}});
  EXPECT_EQ(variables_of(moved)[0]->name, "z");
}  // and they are taken apart without recursion

TEST(IrSymbol, AbsentInputsAreFilledWithParameters) {
  SymbolNodePtr n = make_call(require_op("fully_connected"), nullptr, {}, "fc");
  complete_inputs(*n, {variable("x")});
  ASSERT_EQ(n->in.size(), 3u);
  EXPECT_EQ(n->in[1].node->name, "fc_weight");
  EXPECT_EQ(n->in[2].node->name, "fc_bias");
  SymbolNodePtr without = make_call(require_op("fully_connected"), nullptr, {}, "fc");
  complete_inputs(*without, {variable("x")}, {false, false, true});
  EXPECT_EQ(without->in.size(), 2u);
  EXPECT_THROW(complete_inputs(*n, {variable("a"), variable("b"), variable("c"), variable("d")}), Error);
  SymbolNodePtr join = make_call(require_op("concatenate"), nullptr, {}, "join");
  EXPECT_THROW(complete_inputs(*join, {}), Error);
}

}  // namespace
