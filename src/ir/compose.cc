// SPDX-License-Identifier: Apache-2.0
#include "ir/compose.h"

namespace twibil {

std::unordered_map<const SymbolNode*, SymbolNodePtr> owners_of(std::span<const SymbolRef> heads) {
  std::unordered_map<const SymbolNode*, SymbolNodePtr> owner;
  for (const SymbolRef& h : heads)
    if (h) owner[h.node.get()] = h.node;
  for (SymbolNode* n : reachable(heads)) {
    for (const SymbolRef& r : n->in)
      if (r) owner[r.node.get()] = r.node;
  }
  return owner;
}

std::string output_name(const SymbolRef& r) {
  const SymbolNode& n = *r.node;
  if (n.is_input()) return n.name;
  if (n.visible_outputs() == 1) return n.name + "_output";
  const char* own = n.kind == SymbolNode::Kind::call ? n.op->out[static_cast<size_t>(r.output)] : nullptr;
  return own ? text(n.name, "_", own) : text(n.name, "_output", r.output);
}

std::vector<SymbolRef> internals_of(std::span<const SymbolRef> heads) {
  auto owner = owners_of(heads);
  std::vector<SymbolRef> all;
  for (SymbolNode* n : reachable(heads))
    for (int k = 0; k < n->visible_outputs(); ++k) all.push_back({owner[n], k});
  return all;
}

static bool wants_parameter(const SymbolNode& call, size_t i) {
  const OpDef& op = *call.op;
  if (op.in[i].kind != SlotKind::optional) return true;
  const Field* f = find_field(op.attrs, text("no_", op.in[i].name));
  return f && f->kind == AttrKind::boolean && !attr_at<bool>(call.attrs.data(), *f);
}

void complete_inputs(SymbolNode& call, std::vector<SymbolRef> in, const std::vector<bool>& refused) {
  const OpDef& op = *call.op;
  if (op.variadic()) {
    TW_CHECK(!in.empty(), type, op.name, ": argument ", op.in[static_cast<size_t>(op.inputs() - 1)].name,
             " is missing");
  } else {
    auto slots = static_cast<size_t>(op.inputs());
    TW_CHECK(in.size() <= slots, type, op.name, ": takes ", slots, slots == 1 ? " input" : " inputs", "; got ",
             in.size());
    in.resize(slots);
    for (size_t i = 0; i < slots; ++i) {
      if (in[i] || (i < refused.size() && refused[i]) || !wants_parameter(call, i)) continue;
      SymbolNodePtr v = make_variable(text(call.name, "_", op.in[i].name));
      v->marks = call.marks;
      in[i] = {std::move(v), 0};
    }
    while (!in.empty() && !in.back()) in.pop_back();
  }
  call.in = std::move(in);
  call.sequence = SymbolNode::next_sequence();  // after the variables that it reads
}

std::vector<SymbolRef> replace_variables(std::span<const SymbolRef> heads, const std::map<std::string, SymbolRef>& by) {
  std::unordered_map<const SymbolNode*, SymbolRef> replaced;  // variables
  std::unordered_map<const SymbolNode*, SymbolNodePtr> made;
  auto moved = [&](const SymbolRef& r) -> SymbolRef {
    if (!r) return r;
    if (auto it = replaced.find(r.node.get()); it != replaced.end()) return it->second;
    auto it = made.find(r.node.get());
    return it == made.end() ? r : SymbolRef{it->second, r.output};
  };
  for (SymbolNode* n : reachable(heads)) {
    if (n->kind == SymbolNode::Kind::variable) {
      if (auto it = by.find(n->name); it != by.end()) replaced[n] = it->second;
      continue;
    }
    std::vector<SymbolRef> in;
    bool changed = n->forward && made.contains(n->forward.get());
    for (const SymbolRef& r : n->in) {
      in.push_back(moved(r));
      changed |= !(in.back() == r);
    }
    if (!changed) continue;
    auto copy = std::make_shared<SymbolNode>(*n);
    copy->sequence = SymbolNode::next_sequence();
    copy->in = std::move(in);
    if (copy->forward)
      if (auto it = made.find(copy->forward.get()); it != made.end()) copy->forward = it->second;
    made[n] = std::move(copy);
  }
  std::vector<SymbolRef> result;
  for (const SymbolRef& h : heads) result.push_back(moved(h));
  return result;
}

}  // namespace twibil
