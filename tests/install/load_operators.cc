// SPDX-License-Identifier: Apache-2.0
// Loads a library of operators into a program that was linked against the installed archive.
#include <cstdio>

#include "twibil/operator.h"

using namespace twibil;

int main(int count, char** words) try {
  if (count != 2) return 2;
  size_t before = registry().size();
  size_t added = load_operators(words[1]).size();
  Array y = call("my_mish", {Array::ones({3})});
  std::printf("%zu operators added; my_mish(1) = %g\n", added, y[0].item());
  bool again = load_operators(words[1]).size() == added && registry().size() == before + added;
  return added == 2 && again && y[0].item() > 0.86 && y[0].item() < 0.87 ? 0 : 1;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
