// SPDX-License-Identifier: Apache-2.0
#include "passes/layout_cut.h"

#include <algorithm>

namespace twibil::passes {

void LayoutCut::add(int from, int to, double room, double back) {
  auto link = [&](int a, int b, double r) {
    edges_.push_back({b, first_[static_cast<size_t>(a)], r});
    first_[static_cast<size_t>(a)] = static_cast<int>(edges_.size()) - 1;
  };
  link(from, to, room);
  link(to, from, back);
}

void LayoutCut::value(int from, const std::vector<int>& readers, double conversion) {
  if (readers.empty() || conversion <= 0) return;
  if (readers.size() == 1) return add(from + 2, readers[0] + 2, conversion, conversion);
  // `any_plain` falls on the plain side as soon as one reader does, `any_blocks` on the other.
  int any_plain = add_node(), any_blocks = add_node();
  add(from + 2, any_plain, conversion, 0);
  add(any_blocks, from + 2, conversion, 0);
  for (int r : readers) {
    add(any_plain, r + 2, kForbidden, 0);
    add(r + 2, any_blocks, kForbidden, 0);
  }
}

bool LayoutCut::find_levels() {
  level_.assign(first_.size(), -1);
  std::vector<int> queue{kBlocks};
  level_[kBlocks] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (int e = first_[static_cast<size_t>(queue[i])]; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.room <= 0 || level_[static_cast<size_t>(edge.to)] >= 0) continue;
      level_[static_cast<size_t>(edge.to)] = level_[static_cast<size_t>(queue[i])] + 1;
      queue.push_back(edge.to);
    }
  return level_[kPlain] >= 0;
}

/// Sends what fits along a path of rising levels; walked without recursion, as networks are deep.
double LayoutCut::push(int source, double flow) {
  std::vector<int> path;
  int at = source;
  while (at != kPlain) {
    int& e = next_[static_cast<size_t>(at)];
    while (e >= 0 &&
           (edges_[static_cast<size_t>(e)].room <= 0 ||
            level_[static_cast<size_t>(edges_[static_cast<size_t>(e)].to)] != level_[static_cast<size_t>(at)] + 1))
      e = edges_[static_cast<size_t>(e)].next;
    if (e >= 0) {
      path.push_back(e);
      at = edges_[static_cast<size_t>(e)].to;
      continue;
    }
    if (path.empty()) return 0;
    level_[static_cast<size_t>(at)] = -1;  // leads nowhere
    at = edges_[static_cast<size_t>(path.back() ^ 1)].to;
    path.pop_back();
  }
  for (int e : path) flow = std::min(flow, edges_[static_cast<size_t>(e)].room);
  for (int e : path) {
    edges_[static_cast<size_t>(e)].room -= flow;
    edges_[static_cast<size_t>(e ^ 1)].room += flow;
  }
  return flow;
}

std::vector<bool> LayoutCut::solve() {
  while (find_levels()) {
    next_ = first_;
    while (push(kBlocks, kForbidden) > 0) {
    }
  }
  std::vector<bool> blocks;  // what the rest of the room still reaches; ties stay plain
  for (int i = 0; i < nodes_; ++i) blocks.push_back(level_[static_cast<size_t>(i) + 2] >= 0);
  return blocks;
}

}  // namespace twibil::passes
