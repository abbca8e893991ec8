// SPDX-License-Identifier: Apache-2.0
// Uses the installed library as a stranger would.
#include <cstdio>

#include "base/dtype.h"

int main() {
  std::printf("%d\n", static_cast<int>(twibil::size_of(twibil::dtype_from_name("float32"))));
  return 0;
}
