// SPDX-License-Identifier: Apache-2.0
// One recorded operation of the autograd tape, or a leaf that collects the gradient of a variable.
#pragma once
#include <memory>

#include "ir/op.h"

namespace twibil {

enum class GradReq : uint8_t { null, write, add };

/// A gradient written by a user (autograd.Function); owned by its node.
struct CustomGradient {
  virtual ~CustomGradient() = default;
  /// Gradients of the inputs. `keep`: it will be asked again, so what it needs must stay.
  virtual Vals backward(std::span<const Val> dy, bool keep) = 0;
  virtual const char* name() const = 0;
};

struct NodeInput {
  Node* node = nullptr;      // counted; where the gradient of this input goes. Null: nowhere
  uint32_t output = 0;       // which output of that node
  uint32_t version = 0;      // of the value's root when it was recorded
  Value* value = nullptr;    // counted; the data when the rule reads it, else a ghost
  bool like_output = false;  // has the shape and dtype of output 0, which saves the ghost
  bool present = false;
  bool overwritten = false;  // the operation itself wrote over this input
};

/// An output is alive (not counted: it holds this node) or kept (counted: its last handle is gone).
/// So a node that reads its own output does not form a cycle with it.
struct NodeOutput {
  Value* value = nullptr;
  uint32_t version = 0;
  bool kept = false;
  bool overwritten = false;  // the array was reused in place for the result of a later operation
};

struct Node {
  std::atomic<uint32_t> count{1};
  uint16_t inputs = 0, outputs = 0;
  uint32_t bytes = 0;         // of this block
  const OpDef* op = nullptr;  // null: a leaf, or a custom gradient
  uint64_t sequence = 0;      // order of recording: inputs come before outputs
  RandomKey key;
  std::unique_ptr<CustomGradient> custom;
  Value* grad = nullptr;  // of a leaf: counted
  GradReq grad_req = GradReq::null;
  bool training = false;
  bool consumed = false;          // backward released what this node had kept
  std::atomic<uint64_t> mark{0};  // the backward pass that has this node, 0: none; and where it keeps its gradients
  int64_t slot = 0;

  NodeInput* in() { return reinterpret_cast<NodeInput*>(this + 1); }
  NodeOutput* out() { return reinterpret_cast<NodeOutput*>(in() + inputs); }
  void* attrs() { return out() + outputs; }
  bool is_leaf() const { return !op && !custom; }
  const char* name() const { return op ? op->name : custom ? custom->name() : "variable"; }
};

Node* new_node(const OpDef* op, const void* attrs, int inputs, int outputs);
inline Node* share(Node* n) {
  n->count.fetch_add(1, std::memory_order_relaxed);
  return n;
}
void release(Node* n);
/// One count of a node, given back at the end of its scope.
class NodeHolder {
 public:
  explicit NodeHolder(Node* n) : node_(n) {}
  NodeHolder(const NodeHolder&) = delete;
  ~NodeHolder() {
    if (node_) release(node_);
  }
  Node* get() const { return node_; }
  Node* leak() { return std::exchange(node_, nullptr); }

 private:
  Node* node_;
};
/// Gives back everything that the node keeps for its gradient.
void forget_saved(Node* n);
/// Called when the last handle of output `v` goes: true when the node took the block over.
bool keep_output(Value* v);
/// Called before `v` becomes the output of another node: the old node is told that its output is gone.
void abandon_output(Value* v);

}  // namespace twibil
