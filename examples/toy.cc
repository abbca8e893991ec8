// SPDX-License-Identifier: Apache-2.0
// The smallest program: arithmetic on arrays, its memory, and a gradient.
#include <cstdio>

#include "memory/allocator.h"
#include "twibil/array.h"

int main() {
  using namespace twibil;
  Array a = Array::ones({10}, DType::float64);
  Array b = Array::ones({10}, DType::float64) * 2;
  auto c = b * a;
  auto d = c + 1;
  std::printf("d = %s\n", to_string(d).c_str());
  std::printf("%lld bytes live: four arrays of ten float64\n", static_cast<long long>(memory_stats().current_bytes));

  Array x = Array::full({}, 1), y = Array::full({}, 2);
  x.attach_grad();
  y.attach_grad();
  Array z;
  {
    Record scope;
    z = y * x + 1;
  }
  z.backward();
  std::printf("z = %g, dz/dx = %g, dz/dy = %g\n", z.item(), x.grad().item(), y.grad().item());

  try {
    Array bad = Array::ones({2, 3}) + Array::ones({4});
  } catch (const Error& e) {
    std::printf("an error is an exception: %s\n", e.what());
  }
  return 0;
}
