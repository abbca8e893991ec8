// SPDX-License-Identifier: Apache-2.0
// A program that knows the library only through find_package(twibil). It finds operators by name, so it also shows that
// the installed archive kept their registration.
#include <cstdio>

#include "ir/apply.h"
#include "ir/registry.h"
#include "runtime/eager.h"
#include "runtime/launch.h"

using namespace twibil;

int main() try {
  install_runtime();
  const int64_t shape[] = {10};
  Val a = Val::adopt(new_value(DType::float64, shape));
  for (int i = 0; i < 10; ++i) reinterpret_cast<double*>(a->data)[i] = i;
  Val c = apply(require_op("multiply"), {a, a});
  Val d = apply(require_op("add"), {c, 1});
  wait_to_read(*d);
  const double last = reinterpret_cast<const double*>(d->data)[9];
  std::printf("%zu operators; 9 * 9 + 1 = %g\n", registry().size(), last);
  return last == 82 && registry().size() > 100 ? 0 : 1;
} catch (const Error& e) {
  std::printf("%s\n", e.what());
  return 1;
}
