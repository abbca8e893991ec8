// SPDX-License-Identifier: Apache-2.0
// Loops and branches whose course depends on values, as functions inside a graph: a sub-graph that is compiled on its
// own and run as often as needed.
//
//   x0 ─┐                          ┌─ outputs of all steps, one above the other
//   s0 ─┼─> loop( body, condition )┼─ last states
//   w ──┘                          ┘      body: (rows of x0..., states..., w...) -> (outputs..., new states...)
#pragma once
#include "runtime/compiled_graph.h"

namespace twibil {

using SubGraph = std::shared_ptr<CompiledGraph>;

struct LoopShape {
  int data = 0, states = 0;    // inputs that are walked along their first axis, and states that go from step to step
  int64_t max_iterations = 0;  // of a loop with a condition; its outputs are as long, with zeros after the last step
};

/// A loop. Inputs: data, states, the body's other inputs, the condition's other inputs. The condition (null: one step
/// for each row of the data) reads the states. Outputs: those of the steps, then the last states, then where its random
/// numbers begin (two int64, for its gradient).
std::shared_ptr<const GraphFunction> make_loop(SubGraph body, SubGraph condition, LoopShape shape);
/// A choice. Inputs: one truth value, the inputs of `yes`, those of `no`. Outputs: those of the branch that ran, then
/// where its random numbers begin.
std::shared_ptr<const GraphFunction> make_branch(SubGraph yes, SubGraph no);

}  // namespace twibil
