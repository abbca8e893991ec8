// SPDX-License-Identifier: Apache-2.0
#include "ir/node.h"

#include <cstring>
#include <new>
#include <vector>

#include "memory/allocator.h"

namespace twibil {

static std::atomic<uint64_t> next_sequence{1};

Node* new_node(const OpDef* op, const void* attrs, int inputs, int outputs) {
  size_t attr_bytes = op ? op->attrs.size : 0;
  size_t bytes = sizeof(Node) + inputs * sizeof(NodeInput) + outputs * sizeof(NodeOutput) + attr_bytes;
  Node* n = new (allocate_block(bytes)) Node;
  n->bytes = static_cast<uint32_t>(bytes);
  n->op = op;
  n->inputs = static_cast<uint16_t>(inputs);
  n->outputs = static_cast<uint16_t>(outputs);
  n->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i < inputs; ++i) new (n->in() + i) NodeInput;
  for (int k = 0; k < outputs; ++k) new (n->out() + k) NodeOutput;
  if (attr_bytes) std::memcpy(n->attrs(), attrs, attr_bytes);
  return n;
}

// Chains of nodes can be long, so releasing one works through a list instead of recursing.
static thread_local std::vector<Node*>* releasing = nullptr;

static void destroy(Node* n) {
  forget_saved(n);
  for (int i = 0; i < n->inputs; ++i)
    if (Node* from = n->in()[i].node) release(from);
  if (n->grad) release(n->grad);
  size_t bytes = n->bytes;
  n->~Node();
  free_block(n, bytes);
}

void release(Node* n) {
  if (n->count.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (releasing) return releasing->push_back(n);
  std::vector<Node*> list{n};
  releasing = &list;
  while (!list.empty()) {
    Node* next = list.back();
    list.pop_back();
    destroy(next);
  }
  releasing = nullptr;
}

void forget_saved(Node* n) {
  for (int i = 0; i < n->inputs; ++i)
    if (Value* v = std::exchange(n->in()[i].value, nullptr)) release(v);
  for (int k = 0; k < n->outputs; ++k) {
    NodeOutput& out = n->out()[k];
    if (!out.value) continue;
    Value* v = std::exchange(out.value, nullptr);
    if (std::exchange(out.kept, false)) release(v);
  }
}

static NodeOutput* output_of(Value* v) {
  Node* n = v->node;
  if (v->node_output >= n->outputs) return nullptr;
  NodeOutput& out = n->out()[v->node_output];
  return out.value == v && !out.kept ? &out : nullptr;
}

bool keep_output(Value* v) {
  Node* n = v->node;
  NodeOutput* out = output_of(v);
  if (!out) return false;
  if (n->count.load(std::memory_order_acquire) == 1 || n->consumed) {
    out->value = nullptr;
    return false;
  }
  out->kept = true;
  v->node = nullptr;
  v->count.store(1, std::memory_order_relaxed);
  bool read = n->op && (n->op->needs & Y(static_cast<int>(out - n->out()))) && !out->overwritten;
  if (!read) become_ghost(v);  // only its shape can be asked for
  release(n);
  return true;
}

void abandon_output(Value* v) {
  if (!v->node) return;
  if (NodeOutput* out = output_of(v)) {
    out->value = new_ghost(*v);
    out->kept = true;
    out->overwritten = true;
  }
}

}  // namespace twibil
