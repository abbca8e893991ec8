// SPDX-License-Identifier: Apache-2.0
// Splits loops over one persistent team of threads that every caller shares. Chunks depend on n and grain only,
// never on the number of threads, so that a kernel that reduces per chunk gives the same bits everywhere.
#pragma once
#include <cstdint>

#include "base/export.h"

namespace twibil {

using ChunkFunction = void (*)(const void* context, int64_t begin, int64_t end);
TW_API void parallel_chunks(int64_t n, int64_t grain, const void* context, ChunkFunction run);

/// Calls body(begin, end) for chunks of at most `grain` of [0, n), on several threads when there is more than one
/// chunk. Returns when all are done. Exceptions thrown by a chunk reach the caller (the first one). May be nested.
template <class Body> void parallel_for(int64_t n, int64_t grain, const Body& body) {
  if (n <= 0) return;
  if (n <= grain) return body(int64_t{0}, n);
  parallel_chunks(n, grain, &body, [](const void* context, int64_t begin, int64_t end) {
    (*static_cast<const Body*>(context))(begin, end);
  });
}

TW_API int
num_threads();  // the team's size including the caller: TWIBIL_NUM_THREADS, else what cgroup and affinity allow
void set_num_threads(int n);  // for tests and embedders; results do not depend on it

}  // namespace twibil
