// SPDX-License-Identifier: Apache-2.0
// Chooses one of two layouts for each node so that conversions and lost gains cost least: a minimum cut. A value that
// is read in both layouts is converted once.
#pragma once
#include <cstddef>
#include <vector>

namespace twibil::passes {

class LayoutCut {
 public:
  static constexpr double kForbidden = 1e30;

  /// Nodes 0 to n - 1.
  explicit LayoutCut(int n) : first_(static_cast<std::size_t>(n) + 2, -1), nodes_(n) {}

  /// What it costs when the node is plain, or in blocks.
  void cost_of_plain(int node, double cost) { add(kBlocks, node + 2, cost, 0); }
  void cost_of_blocks(int node, double cost) { add(node + 2, kPlain, cost, 0); }
  /// A value made by `from` that `readers` take in their own layouts, at the cost of one conversion.
  void value(int from, const std::vector<int>& readers, double conversion);

  /// For each node, whether it is in blocks.
  std::vector<bool> solve();

 private:
  static constexpr int kBlocks = 0, kPlain = 1;
  struct Edge {
    int to, next;
    double room;
  };
  void add(int from, int to, double room, double back);
  int add_node() {
    first_.push_back(-1);
    return static_cast<int>(first_.size()) - 1;
  }
  bool find_levels();
  double push(int node, double flow);

  std::vector<int> first_, level_, next_;
  std::vector<Edge> edges_;  // with its reverse at i ^ 1
  int nodes_;
};

}  // namespace twibil::passes
