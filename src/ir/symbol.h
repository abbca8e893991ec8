// SPDX-License-Identifier: Apache-2.0
// The symbolic graph as users build it: calls of operators on variables, without shapes. Nodes are shared by all
// symbols that reach them. runtime/lower.h gives it shapes; api/symbol.h is its public face.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace twibil {

struct SymbolNode;
using SymbolNodePtr = std::shared_ptr<SymbolNode>;

/// One output of a node; empty for an absent optional input.
struct SymbolRef {
  SymbolNodePtr node;
  int output = 0;
  explicit operator bool() const { return node != nullptr; }
  bool operator==(const SymbolRef&) const = default;
};

/// What is known of a variable before data arrives. Sizes may be kUnknownDim.
struct Hint {
  bool has_shape = false;
  Shape shape;
  DType dtype = kUnknownDType;
  bool complete() const {
    return has_shape && std::ranges::none_of(shape.span(), [](int64_t d) { return d < 0; });
  }
};

struct SymbolNode {
  enum class Kind : uint8_t {
    variable,
    captured,  // an array that a traced function used from outside; read at each run
    constant,  // a number or an array that never changes
    call,
    function,
    backward  // the gradients of the inputs of node `forward`; inputs: dy..., x..., y...
  };
  Kind kind = Kind::variable;
  const OpDef* op = nullptr;                      // of a call
  std::shared_ptr<const GraphFunction> function;  // of a function
  SymbolNodePtr forward;                          // of backward
  AttrBytes attrs;
  std::vector<SymbolRef> in;
  int outputs = 1;  // with hidden ones
  Val value;        // of captured and constant
  Hint hint;        // of variables
  std::string name;
  std::map<std::string, std::string>
      marks;                            // attributes that users attach ("lr_mult", "__init__"); no operator reads them
  std::string site;                     // where the user's program made it
  int8_t training = -1;                 // 0, 1: the mode that the user's program set for it; -1: that of the run
  bool no_gradient = false;             // made where the user's program had paused recording
  uint64_t sequence = next_sequence();  // order of making: updates and random numbers happen in it

  SymbolNode() = default;
  SymbolNode(const SymbolNode&) = default;
  ~SymbolNode();
  bool is_input() const { return kind == Kind::variable || kind == Kind::captured; }
  int visible_outputs() const { return kind == Kind::call && !op->count ? op->visible_outputs() : outputs; }
  const char* op_name() const;
  static uint64_t next_sequence();
};

SymbolNodePtr make_variable(std::string name, Hint hint = {});
SymbolNodePtr make_constant(Val value);
/// A call; attributes are copied. An empty name becomes the operator's name with a number ("add0").
SymbolNodePtr make_call(const OpDef& op, const void* attrs, std::vector<SymbolRef> in, std::string name = {});
SymbolNodePtr make_function(std::shared_ptr<const GraphFunction> f, std::vector<SymbolRef> in, int outputs,
                            std::string name = {});

/// All nodes that the heads reach, in the order of making: inputs come before their readers.
std::vector<SymbolNode*> reachable(std::span<const SymbolRef> heads);
/// The variables among them, without and with those that some operator updates (auxiliary states).
std::vector<SymbolNode*> variables_of(std::span<const SymbolRef> heads);
bool is_auxiliary(std::span<SymbolNode* const> nodes, const SymbolNode* variable);

/// Gradients of the sum of all heads with respect to each of `wrt`, as an ordinary graph. `head_grads`: gradients of
/// the heads; empty ones (or none at all) mean ones. What the heads do not depend on gets zeros.
std::vector<SymbolRef> gradient(std::span<const SymbolRef> heads, std::span<const SymbolRef> wrt,
                                std::span<const SymbolRef> head_grads);

}  // namespace twibil
