// SPDX-License-Identifier: Apache-2.0
// Which values of a graph are views of others, and where their elements lie: a reshape, a slice or a transpose moves
// nothing.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

struct View {
  Edge root;      // the value whose memory this one looks at; itself, if it is no view
  Layout layout;  // inside the root
  bool row_major = true;
};

/// For output 0 of each node (other outputs are never views): see View. A node that updates an input has that input's
/// root.
std::vector<View> find_views(const Graph& g);
/// Whether node i only looks at its input in another way.
bool is_view(const std::vector<View>& views, size_t i);
Edge root_of(const std::vector<View>& views, Edge e);

}  // namespace twibil::passes
