// SPDX-License-Identifier: Apache-2.0
// Finds the calls that fuse_rows.h joins: connected ones that treat the positions of the same leading axes apart.
#pragma once
#include "ir/graph.h"
#include "passes/views.h"

namespace twibil::passes {

/// How a call reads an input, or what it makes, when it runs on a block of rows.
enum class RowKind : uint8_t {
  rows,   // the block's part of it
  whole,  // all of it: it is the same for all rows
  part    // of outputs: a reduction of the block's rows
};

struct RowGroup {
  std::vector<size_t> members;  // nodes, in order
  Shape lead;                   // sizes of the leading axes of all that is read and made by rows
  int axes = 0;                 // how many of them all members treat apart
  int64_t bytes = 0;            // of what is read and made by rows
};

/// How node n, which treats the first `axes` axes apart, reads input k; the input is present.
RowKind kind_of_input(const Graph& g, const GraphNode& n, size_t k, const Shape& lead, int axes);
/// `rows` or `part`: what node n makes.
RowKind kind_of_output(const Graph& g, const GraphNode& n, int axes);

std::vector<RowGroup> find_row_groups(const Graph& g, const std::vector<View>& views);

}  // namespace twibil::passes
