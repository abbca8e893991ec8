// SPDX-License-Identifier: Apache-2.0
// Small typed graphs for tests of passes: symbols by operator name, lowered.
#pragma once
#include <cstring>

#include "ir/registry.h"
#include "passes/pipeline.h"
#include "runtime/lower.h"

namespace twibil {

/// call("concatenate", {a, b}, {{"axis", "1"}}), output 0.
inline SymbolRef call(const char* op_name, std::vector<SymbolRef> in,
                      std::initializer_list<std::pair<const char*, const char*>> attrs = {}) {
  const OpDef& op = require_op(op_name);
  AttrBytes bytes(op.attrs.size);
  if (op.attrs.size) std::memcpy(bytes.data(), op.attrs.defaults, op.attrs.size);
  for (auto [name, value] : attrs) parse_attr(*find_field(op.attrs, name), bytes.data(), value);
  return {make_call(op, bytes.data(), std::move(in)), 0};
}

/// Variables, and a graph of what is made of them.
class GraphMaker {
 public:
  SymbolRef variable(Shape shape, bool wants_gradient = false, DType dtype = DType::float32) {
    SymbolNodePtr n = make_variable("x" + std::to_string(inputs_.size()));
    inputs_.push_back(n);
    arguments_.push_back({n.get(), {shape, dtype}, wants_gradient});
    return {n, 0};
  }
  Graph lowered(std::vector<SymbolRef> heads, std::vector<SymbolRef> effects = {}, bool training = false) const {
    bool gradients = false;
    for (const Argument& a : arguments_) gradients |= a.wants_gradient;
    return lower(heads, effects, arguments_, {.training = training, .gradients = gradients});
  }
  const std::vector<SymbolNodePtr>& inputs() const { return inputs_; }

 private:
  std::vector<SymbolNodePtr> inputs_;
  std::vector<Argument> arguments_;
};

}  // namespace twibil
