// SPDX-License-Identifier: Apache-2.0
#include "ir/symbol.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "ir/registry.h"

namespace twibil {

uint64_t SymbolNode::next_sequence() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Graphs can be long chains, so the last handle of one works through a list instead of recursing.
SymbolNode::~SymbolNode() {
  static thread_local std::vector<SymbolNodePtr>* releasing = nullptr;
  std::vector<SymbolNodePtr> own;
  bool outermost = releasing == nullptr;
  if (outermost) releasing = &own;
  for (SymbolRef& r : in)
    if (r.node.use_count() == 1) releasing->push_back(std::move(r.node));
  if (forward.use_count() == 1) releasing->push_back(std::move(forward));
  if (!outermost) return;
  while (!own.empty()) {
    SymbolNodePtr next = std::move(own.back());
    own.pop_back();
    next.reset();
  }
  releasing = nullptr;
}

const char* SymbolNode::op_name() const {
  switch (kind) {
    case Kind::variable:
    case Kind::captured: return "null";
    case Kind::constant: return "constant";
    case Kind::call: return op->name;
    case Kind::function: return function->name();
    case Kind::backward: return "backward";
  }
  return "";
}

SymbolNodePtr make_variable(std::string name, Hint hint) {
  auto n = std::make_shared<SymbolNode>();
  n->name = std::move(name);
  n->hint = hint;
  return n;
}

SymbolNodePtr make_constant(Val value) {
  auto n = std::make_shared<SymbolNode>();
  n->kind = SymbolNode::Kind::constant;
  n->value = std::move(value);
  n->name = text("constant", n->sequence);
  return n;
}

static std::string numbered(const std::string& base) {
  static std::mutex mutex;
  static std::unordered_map<std::string, int> counts;
  std::lock_guard lock(mutex);
  return base + std::to_string(counts[base]++);
}

SymbolNodePtr make_call(const OpDef& op, const void* attrs, std::vector<SymbolRef> in, std::string name) {
  auto n = std::make_shared<SymbolNode>();
  n->kind = SymbolNode::Kind::call;
  n->op = &op;
  n->in = std::move(in);
  n->outputs = op.count ? op.count(attrs ? attrs : op.attrs.defaults) : op.outputs();
  if (op.attrs.size) {
    const auto* from = static_cast<const std::byte*>(attrs ? attrs : op.attrs.defaults);
    n->attrs.assign(from, from + op.attrs.size);
  }
  n->name = name.empty() ? numbered(op.name) : std::move(name);
  return n;
}

SymbolNodePtr make_function(std::shared_ptr<const GraphFunction> f, std::vector<SymbolRef> in, int outputs,
                            std::string name) {
  auto n = std::make_shared<SymbolNode>();
  n->kind = SymbolNode::Kind::function;
  n->function = std::move(f);
  n->in = std::move(in);
  n->outputs = outputs;
  n->name = name.empty() ? numbered(n->function->name()) : std::move(name);
  return n;
}

std::vector<SymbolNode*> reachable(std::span<const SymbolRef> heads) {
  std::vector<SymbolNode*> found, stack;
  std::unordered_set<SymbolNode*> seen;
  auto visit = [&](const SymbolRef& r) {
    if (r && seen.insert(r.node.get()).second) stack.push_back(r.node.get());
  };
  for (const SymbolRef& h : heads) visit(h);
  while (!stack.empty()) {
    SymbolNode* n = stack.back();
    stack.pop_back();
    found.push_back(n);
    for (const SymbolRef& r : n->in) visit(r);
  }
  std::ranges::sort(found, {}, &SymbolNode::sequence);
  return found;
}

std::vector<SymbolNode*> variables_of(std::span<const SymbolRef> heads) {
  // The order of MXNet: as a walk from the heads, inputs first, meets them.
  std::vector<SymbolNode*> found;
  std::unordered_set<SymbolNode*> seen;
  struct Frame {
    SymbolNode* node;
    size_t next;
  };
  std::vector<Frame> stack;
  for (const SymbolRef& h : heads) {
    if (h && seen.insert(h.node.get()).second) stack.push_back({h.node.get(), 0});
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next < f.node->in.size()) {
        SymbolNode* child = f.node->in[f.next++].node.get();
        if (child && seen.insert(child).second) stack.push_back({child, 0});
        continue;
      }
      if (f.node->kind == SymbolNode::Kind::variable) found.push_back(f.node);
      stack.pop_back();
    }
  }
  return found;
}

bool is_auxiliary(std::span<SymbolNode* const> nodes, const SymbolNode* variable) {
  for (const SymbolNode* n : nodes) {
    if (n->kind != SymbolNode::Kind::call) continue;
    for (size_t i = 0; i < n->in.size(); ++i) {
      if (n->in[i].node.get() != variable) continue;
      const OpDef& op = *n->op;
      int slot = std::min(static_cast<int>(i), op.inputs() - 1);
      if (slot >= 0 && op.in[static_cast<size_t>(slot)].kind == SlotKind::aux && op.trains) return true;
    }
  }
  return false;
}

// ---- gradients ----------------------------------------------------------------------------------------------------

namespace {

SymbolRef call_role(Role role, std::vector<SymbolRef> in) {
  const OpDef& op = op_with_role(role);
  return {make_call(op, op.attrs.defaults, std::move(in)), 0};
}

bool has_gradient(const SymbolNode& n) {
  if (n.no_gradient) return false;
  switch (n.kind) {
    case SymbolNode::Kind::call: return !n.op->no_grad || n.op->expand;
    case SymbolNode::Kind::function: return n.function->has_gradient();
    case SymbolNode::Kind::backward: return true;
    default: return false;
  }
}

SymbolNodePtr make_backward(const SymbolNodePtr& forward, std::span<const SymbolRef> dy) {
  auto n = std::make_shared<SymbolNode>();
  n->kind = SymbolNode::Kind::backward;
  n->forward = forward;
  n->in.assign(dy.begin(), dy.end());
  n->in.insert(n->in.end(), forward->in.begin(), forward->in.end());
  for (int k = 0; k < forward->outputs; ++k) n->in.push_back({forward, k});
  n->outputs = static_cast<int>(forward->in.size());
  n->name = forward->name + "_backward";
  return n;
}

}  // namespace

std::vector<SymbolRef> gradient(std::span<const SymbolRef> heads, std::span<const SymbolRef> wrt,
                                std::span<const SymbolRef> head_grads) {
  std::vector<SymbolNode*> nodes = reachable(heads);
  std::unordered_map<SymbolNode*, SymbolNodePtr> owner;
  for (const SymbolRef& h : heads) owner[h.node.get()] = h.node;
  for (SymbolNode* n : nodes)
    for (const SymbolRef& r : n->in)
      if (r) owner[r.node.get()] = r.node;

  // Only what depends on a wanted value needs a gradient.
  std::unordered_set<const SymbolNode*> depends;
  auto wanted = [&](const SymbolNode* n) {
    return std::ranges::any_of(wrt, [&](const SymbolRef& w) { return w.node.get() == n; });
  };
  for (SymbolNode* n : nodes) {
    bool any = wanted(n);
    if (!any && has_gradient(*n))
      for (const SymbolRef& r : n->in) any |= r && depends.contains(r.node.get());
    if (any) depends.insert(n);
  }

  std::unordered_map<SymbolNode*, std::vector<SymbolRef>> grads;
  auto add = [&](const SymbolRef& to, SymbolRef dx) {
    auto& list = grads[to.node.get()];
    list.resize(static_cast<size_t>(to.node->outputs));
    SymbolRef& place = list[static_cast<size_t>(to.output)];
    place = place ? call_role(Role::accumulate, {place, dx}) : std::move(dx);
  };
  for (size_t i = 0; i < heads.size(); ++i) {
    if (!depends.contains(heads[i].node.get())) continue;
    bool given = i < head_grads.size() && head_grads[i];
    add(heads[i], given ? head_grads[i] : call_role(Role::ones_like, {heads[i]}));
  }
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    SymbolNode* n = *it;
    auto found = grads.find(n);
    if (found == grads.end() || n->is_input() || !has_gradient(*n)) continue;
    bool reaches = std::ranges::any_of(n->in, [&](const SymbolRef& r) { return r && depends.contains(r.node.get()); });
    if (!reaches) continue;
    SymbolNodePtr back = make_backward(owner[n], found->second);
    for (size_t i = 0; i < n->in.size(); ++i)
      if (n->in[i] && depends.contains(n->in[i].node.get())) add(n->in[i], {back, static_cast<int>(i)});
  }
  std::vector<SymbolRef> result;
  for (const SymbolRef& w : wrt) {
    auto found = grads.find(w.node.get());
    bool any = found != grads.end() && found->second[static_cast<size_t>(w.output)];
    result.push_back(any ? found->second[static_cast<size_t>(w.output)] : call_role(Role::zeros_like, {w}));
  }
  return result;
}

}  // namespace twibil
