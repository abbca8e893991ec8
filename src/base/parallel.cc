// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>

namespace twibil {

void parallel_chunks(int64_t n, int64_t grain, const void* context, ChunkFunction run) {
  for (int64_t begin = 0; begin < n; begin += grain) run(context, begin, std::min(n, begin + grain));
}
int num_threads() { return 1; }
void set_num_threads(int) {}

}  // namespace twibil
