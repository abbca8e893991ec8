// SPDX-License-Identifier: Apache-2.0
#include "kernels/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/poison.h"

namespace twibil::kernels {
namespace {

TEST(Scratch, FramesNestAndPiecesDoNotOverlap) {
  ScratchFrame outer;
  int* a = outer.take<int>(100);
  std::fill_n(a, 100, 1);
  double* b;
  {
    ScratchFrame inner;
    b = inner.take<double>(1 << 20);  // more than the first block holds
    std::fill_n(b, 1 << 20, 2.0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 64, 0u);
  }
  int* c = outer.take<int>(100);
  std::fill_n(c, 100, 3);
  EXPECT_TRUE(std::all_of(a, a + 100, [](int v) { return v == 1; }));
}

TEST(Scratch, IdleMemoryIsGivenBack) {
  { ScratchFrame().take<char>(5 << 20); }
  EXPECT_GE(scratch_bytes(), 5 << 20);
  release_scratch();
  EXPECT_EQ(scratch_bytes(), 0);
}

#ifdef TW_ASAN
TEST(Scratch, OneWidestTileBehindAPieceIsOpenAndNoMore) {
  const char* kept;
  {
    ScratchFrame frame;
    for (int64_t n : {1, 16, 61, 64, 1000}) {
      const char* p = kept = frame.take<char>(n);
      EXPECT_FALSE(__asan_region_is_poisoned(const_cast<char*>(p), static_cast<size_t>(n) + 192)) << n;
      EXPECT_TRUE(__asan_address_is_poisoned(p + n + 192)) << n;
    }
  }
  EXPECT_TRUE(__asan_address_is_poisoned(kept));
}
#endif

}  // namespace
}  // namespace twibil::kernels
