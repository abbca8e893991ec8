// SPDX-License-Identifier: Apache-2.0
// Working memory of kernels: packed panels, padded strips, partial sums. One stack per thread that grows when it must
// and is kept for the next call; a worker may read what the thread that split the work has taken.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

namespace twibil::kernels {

/// Takes memory from this thread's stack and gives it all back at the end of the scope. Frames nest.
class ScratchFrame {
 public:
  ScratchFrame();
  ~ScratchFrame();
  ScratchFrame(const ScratchFrame&) = delete;
  ScratchFrame& operator=(const ScratchFrame&) = delete;

  /// Room for `count` elements, aligned to 64 bytes and not initialised. One more vector behind them may be read.
  template <class T> T* take(int64_t count) { return static_cast<T*>(take_bytes(count, sizeof(T))); }

 private:
  void* take_bytes(int64_t count, size_t size);
  size_t block_, used_;
};

/// Gives this thread's idle scratch memory back to the system.
void release_scratch();
/// Bytes that this thread keeps.
int64_t scratch_bytes();

}  // namespace twibil::kernels
