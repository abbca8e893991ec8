// SPDX-License-Identifier: Apache-2.0
//   %2 = multiply(%1, %0)   80 B     at 0 of the arena
//   %3 = add(%2, 1)         80 B     over %2                     (nobody reads %2 any more)
//   return %3                        -> the output itself: the arena is not needed
//
// Gives every value its place: over an input that is read for the last time where the operator allows, else at an
// offset of one arena by lifetime, so that values that never live together share bytes. Views and updates have the
// place of what they look at; inputs of a join are computed in their part of the result. The plan is compared with the
// largest sum of bytes that live at once, which no plan can go below.
#pragma once
#include "ir/graph.h"

namespace twibil::passes {

struct Place {
  enum class Kind : uint8_t { none, arena, argument, output, constant } kind = Kind::none;
  int32_t index = 0;   // of the argument, output or (node) constant
  int64_t offset = 0;  // bytes; of a view: of its first element
  bool strided = false;
  Layout layout;  // when strided
};

/// One piece of the arena, for pictures.
struct PlannedBuffer {
  int64_t bytes = 0, offset = 0;
  int first = 0, last = 0;  // nodes between which it lives
  Edge value;               // the first one that lives there
};

struct MemoryPlan {
  std::vector<std::vector<Place>> places;  // of each output of each node
  std::vector<PlannedBuffer> buffers;
  std::vector<int32_t> output_is_argument;       // outputs that stand in a donated argument; -1: in memory of their own
  int64_t arena_bytes = 0, lower_bound = 0;      // of the arena
  int64_t argument_bytes = 0, output_bytes = 0;  // outputs in donated arguments are not counted again
  int64_t planned_bytes() const { return arena_bytes + argument_bytes + output_bytes; }
  int64_t lower_bound_bytes() const { return lower_bound + argument_bytes + output_bytes; }
};

struct MemoryOptions {
  std::vector<bool> donate;  // arguments whose memory may be written over
  bool in_place = true, share = true;
};
MemoryPlan plan_memory(const Graph& g, const MemoryOptions& options);

}  // namespace twibil::passes
