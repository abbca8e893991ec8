// SPDX-License-Identifier: Apache-2.0
#include "kernels/scan.h"

#include "kernels/kernel_cases.h"

namespace twibil::kernels {
namespace {

TEST(Scan, AgainstLoop) {
  const int64_t shapes[][3] = {{1, 1, 1}, {2, 0, 3}, {3, 7, 1}, {1, 600, 1}, {2, 5, 4}, {2, 3, 600}};
  for (DType in : kAllDTypes)
    for (auto [outer, n, inner] : shapes)
      for (Scan op : {Scan::sum, Scan::prod})
        for (bool reverse : {false, true}) {
          DType out = is_floating(in) ? in : DType::int64;
          Strided x(in, {outer, n, inner}), y(out, x.shape);
          if (op == Scan::sum) x.randomise(1, 0, 3, true);
          else x.randomise(1, 1, 1.02);
          scan(op, in, out, outer, n, inner, reverse, x.data(), y.data());
          for (int64_t o = 0; o < outer; ++o)
            for (int64_t i = 0; i < inner; ++i) {
              double run = op == Scan::sum ? 0 : 1;
              for (int64_t k = 0; k < n; ++k) {
                int64_t at = (o * n + (reverse ? n - 1 - k : k)) * inner + i;
                run = op == Scan::sum ? run + x.at(at) : run * x.at(at);
                ASSERT_TRUE(close(y.at(at), run, 1e-4 * (in == DType::float32 || is_half(in)) + epsilon_of(out) * 600))
                    << describe(in, x.shape, Layout::contiguous);
              }
            }
        }
}

TEST(Scan, InPlaceWrapsAndThreads) {
  int64_t x[3] = {INT64_MAX, 1, 3};
  scan(Scan::sum, DType::int64, DType::int64, 1, 3, 1, false, x, x);
  EXPECT_EQ(INT64_MIN + 3, x[2]);
  Strided a(DType::float32, {300, 700}), y(DType::float32, a.shape);
  a.randomise(1);
  expect_same_bits(y.bytes, [&] { scan(Scan::sum, a.dtype, a.dtype, 300, 700, 1, false, a.data(), y.data()); });
}

}  // namespace
}  // namespace twibil::kernels
