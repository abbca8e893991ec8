// SPDX-License-Identifier: Apache-2.0
#include "runtime/record.h"

#include <algorithm>

#include "ir/modes.h"

namespace twibil {

bool must_record(const OpDef& op, std::span<Value* const> in) {
  if (!modes.recording || op.no_grad) return false;
  for (const Value* v : in)
    if (v && v->node) return true;
  return false;
}

void record_call(const OpDef& op, const void* attrs, std::span<Value* const> in, std::span<Value* const> out,
                 bool training, RandomKey key) {
  NodeHolder holder(new_node(&op, attrs, static_cast<int>(in.size()), static_cast<int>(out.size())));
  Node* node = holder.get();
  node->training = training;
  node->key = key;
  bool all = op.needs == kAllInputs || op.auto_grad;
  auto writes = [&](const Value* x) {
    return !op.view && std::ranges::any_of(out, [&](const Value* y) { return y && y->root == x->root; });
  };
  for (size_t i = 0; i < in.size(); ++i) {
    Value* x = in[i];
    if (!x) continue;
    NodeInput& slot = node->in()[i];
    slot.present = true;
    if (x->node && is_floating(x->dtype())) slot.node = share(x->node), slot.output = x->node_output;
    bool read = all || (i < 16 && op.needs & X(static_cast<int>(i)));
    if (read && writes(x)) {  // its old elements are gone
      slot.value = new_ghost(*x);
      slot.overwritten = true;
    } else if (read) {
      retain(x);
      slot.value = x;
      slot.version = x->root->version;
    } else if (out[0] && x->dtype() == out[0]->dtype() && std::ranges::equal(x->shape(), out[0]->shape())) {
      slot.like_output = true;
    } else {
      slot.value = new_ghost(*x);
    }
  }
  for (size_t k = 0; k < out.size(); ++k) {
    Value* y = out[k];
    if (!y) continue;
    if (static_cast<int>(k) < op.visible_outputs() && is_floating(y->dtype())) {
      set_node(y, share(node), static_cast<uint32_t>(k));
    } else if (static_cast<int>(k) < op.visible_outputs() && !(op.needs & Y(static_cast<int>(k)))) {
      node->out()[k] = {.value = new_ghost(*y), .kept = true};
    } else {  // saved for the gradient: whole numbers that it reads, or what nobody else will have a handle on
      retain(y);
      node->out()[k] = {.value = y, .version = y->root->version, .kept = true};
    }
  }
}

}  // namespace twibil
