// SPDX-License-Identifier: Apache-2.0
#include "kernels/isa.h"

#include <gtest/gtest.h>

namespace twibil::kernels {

TEST(Isa, EachNameRunsItsOwnCode) {
  const Isa before = isa();
  constexpr int kBytes[] = {16, 32, 64};
  for (Isa one : kIsas) {
    if (!isa_available(one)) continue;
    set_isa(one);
    EXPECT_EQ(isa(), one);
    EXPECT_EQ(vector_bytes(), kBytes[static_cast<int>(one)]) << name_of(one);
  }
  set_isa(before);
}

}  // namespace twibil::kernels
