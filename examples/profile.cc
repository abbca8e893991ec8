// SPDX-License-Identifier: Apache-2.0
// Where time goes: writes profile.json, a trace for ui.perfetto.dev, and prints a table of operators.
#include <iostream>

#include "twibil/array.h"
#include "twibil/ops.h"
#include "twibil/profiler.h"

using namespace twibil;

int main() {
  Array x = Array::ones({256, 512}), w = Array::ones({512, 512}), y;
  profiler::run();
  {
    profiler::Scope scope("steps");
    for (int i = 0; i < 10; ++i) y = op::softmax(op::dot(x, w) * 0.1);
  }
  profiler::dump();  // profile.json
  std::cout << profiler::dumps();
}
