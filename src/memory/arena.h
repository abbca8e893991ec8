// SPDX-License-Identifier: Apache-2.0
// One block of memory cut by offsets: what a planned graph runs in, and scratch space that is given back all at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "memory/allocator.h"

namespace twibil {

class Arena {
 public:
  Arena() = default;
  /// Takes `bytes` of data memory (counted in memory_stats) at once.
  explicit Arena(size_t bytes) : base_(static_cast<char*>(allocate_data(bytes))), bytes_(bytes) {}
  Arena(Arena&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        used_(std::exchange(other.used_, 0)) {}
  Arena& operator=(Arena&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(used_, other.used_);
    return *this;
  }
  ~Arena() {
    if (base_ != nullptr) free_data(base_, bytes_);
  }

  /// A planned place: the plan says what stands at `offset`.
  void* at(size_t offset) const {
    TW_ASSERT(offset <= bytes_);
    return base_ + offset;
  }
  /// The next `bytes`, 64-byte aligned, until reset(); the plan promised that they fit.
  void* take(size_t bytes) {
    size_t start = (used_ + kBlockUnit - 1) / kBlockUnit * kBlockUnit;
    TW_ASSERT(start <= bytes_ && bytes <= bytes_ - start);
    used_ = start + bytes;
    return base_ + start;
  }
  void reset() { used_ = 0; }
  size_t size() const { return bytes_; }
  size_t used() const { return used_; }

 private:
  char* base_ = nullptr;
  size_t bytes_ = 0, used_ = 0;
};

}  // namespace twibil
