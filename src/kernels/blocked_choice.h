// SPDX-License-Identifier: Apache-2.0
// Which algorithm of the menu (blocked.h) a convolution takes: the fastest by the algorithms' own predictions among
// those that can, or the fastest that was measured.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kernels/blocked.h"

namespace twibil::kernels {

struct BlockedRules {
  bool exact = false;     // only algorithms that sum the products as they stand
  bool autotune = false;  // measures, unless this shape was measured on this machine before
};

struct BlockedChoice {
  const BlockedAlgorithm* algorithm;  // never null: plain loops take every shape
  double seconds;                     // predicted or measured
  bool measured;
};
BlockedChoice choose_blocked(const BlockedShape& s, const BlockedRules& rules);

/// What was said of each algorithm: why it was not taken, as a sentence, or what it would cost.
struct BlockedVerdict {
  const BlockedAlgorithm* algorithm;
  std::string refusal;  // empty: it can
  double seconds = 0;
  bool measured = false;
};
std::vector<BlockedVerdict> judge_blocked(const BlockedShape& s, const BlockedRules& rules);

/// The entry of the menu with this name; an error where a graph of another version names one that is gone.
const BlockedAlgorithm& blocked_algorithm(std::string_view name);

/// Facts of this machine that predictions use. Estimates from the instruction set and the number of processors, so that
/// the same machine chooses the same algorithms, and gives the same bits, every time and for any number of threads.
const BlockedMachine& blocked_machine();

}  // namespace twibil::kernels
