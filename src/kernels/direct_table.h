// SPDX-License-Identifier: Apache-2.0
// The table behind direct(): filled once per instruction set by the families of primitives, each a file of its own.
#pragma once
#include "kernels/direct.h"

namespace twibil::kernels {

struct DirectTable {
  DirectFunction functions[kPrimCount][kDTypeCount][kModeCount] = {};
  TernaryFunction ternary[kPrimCount][kDTypeCount] = {};

  DirectFunction& at(Prim p, DType t, Mode m) {
    return functions[static_cast<int>(p)][static_cast<int>(t)][static_cast<int>(m)];
  }
  const DirectFunction& at(Prim p, DType t, Mode m) const { return const_cast<DirectTable*>(this)->at(p, t, m); }
};

/// The table of the instruction set in use.
const DirectTable& direct_table();

void fill_arithmetic(DirectTable& table);
void fill_rounding(DirectTable& table);
void fill_integer(DirectTable& table);
void fill_compare(DirectTable& table);
void fill_exponential(DirectTable& table);
void fill_trigonometric(DirectTable& table);
void fill_special(DirectTable& table);

}  // namespace twibil::kernels
