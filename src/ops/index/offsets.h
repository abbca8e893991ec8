// SPDX-License-Identifier: Apache-2.0
// The element offsets that indices name. Most calls have a few of them, which need no block from the heap.
#pragma once
#include <cstdint>
#include <vector>

#include "base/recycled.h"

namespace twibil::ops {

class Offsets {
 public:
  void resize(int64_t count) {
    count_ = count;
    if (count > kFew) many_.resize(static_cast<size_t>(count));
  }
  int64_t count() const { return count_; }
  int64_t* data() { return count_ > kFew ? many_.data() : few_; }
  const int64_t* data() const { return count_ > kFew ? many_.data() : few_; }

 private:
  static constexpr int64_t kFew = 16;
  int64_t count_ = 0;
  int64_t few_[kFew];
  Recycled<int64_t> many_;
};

}  // namespace twibil::ops
