// SPDX-License-Identifier: Apache-2.0
// Walks the tape backwards and delivers gradients.
#pragma once
#include "ir/node.h"

namespace twibil {

struct BackwardOptions {
  bool retain_graph = false;  // keep what the tape saved, so that backward can run again
  bool create_graph = false;  // record the gradients themselves
  bool training = true;       // the mode in which gradients run
  bool allow_unused = false;  // grad(): a variable that the heads do not depend on has no gradient (null)
};

/// Adds the gradients of all heads into the variables that were marked, as their grad_req says. A null head gradient
/// means ones. Throws if a head was not recorded, or if a value that a gradient reads was overwritten.
void backward(std::span<const Val> heads, std::span<const Val> head_grads, const BackwardOptions& options);
/// The gradients with respect to `variables`, which keep their own gradients untouched. A variable that the heads do
/// not depend on is a value error.
Vals grad(std::span<const Val> heads, std::span<const Val> variables, std::span<const Val> head_grads,
          const BackwardOptions& options);

/// Makes `v` a variable with a gradient array of its own (or `into`).
void attach_grad(Value& v, GradReq req, Val into = {});
/// Links values to a gradient that the user wrote.
void record_custom(std::span<Value* const> in, std::span<Value* const> out, std::unique_ptr<CustomGradient> gradient);

}  // namespace twibil
