// SPDX-License-Identifier: Apache-2.0
// Copies past the caches: for results larger than them, which otherwise would be read before they are written.
#pragma once
#include <cstddef>

namespace twibil::kernels {

inline constexpr size_t kStreamAlign = 64;

/// `to` must be a multiple of kStreamAlign. The stores are seen by other threads after stream_fence().
void stream_copy(void* to, const void* from, size_t bytes);
void stream_fence();

}  // namespace twibil::kernels
