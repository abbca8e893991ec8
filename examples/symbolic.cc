// SPDX-License-Identifier: Apache-2.0
// The toy program in its three forms: declared and compiled, traced, and as one loop that the C++ compiler makes.
#include <cstdio>

#include "twibil/expr.h"
#include "twibil/jit.h"
#include "twibil/ops.h"

using namespace twibil;

int main() try {
  // Symbolic: nothing is computed before the last line.
  Symbol A = Variable("A"), B = Variable("B");
  Symbol C = B * A;
  Symbol D = C + Constant(1);
  Function f = compile(D, {.donate = {"B"}});
  Array d = f({{"A", Array::ones({10}, DType::float64)}, {"B", Array::ones({10}, DType::float64) * 2}});
  std::printf("d = %s\nplanned: %lld bytes\n", to_string(d).c_str(), static_cast<long long>(f.planned_bytes()));

  // The gradient is a graph as well.
  Function g = compile(D.grad({"A", "B"}));
  std::vector<Array> grads = g.all({{"A", Array::ones({2})}, {"B", Array::ones({2}) * 2}});
  std::printf("dD/dA = %s, dD/dB = %s\n", to_string(grads[0]).c_str(), to_string(grads[1]).c_str());

  // A plain function, compiled when it is first called.
  auto h = jit([](const Array& a, const Array& b) { return 1.0 / (1.0 + op::exp(-(a * b))); });
  std::printf("sigmoid(a b) = %s\n", to_string(h(Array::ones({3}), Array::ones({3}) * 2)).c_str());

  // An expression template: one loop, no array in between.
  Array a = Array::ones({3}), b = a * 2, out = expr(a) * b + 1.0f;
  expr(out) *= 2;
  std::printf("2 (a b + 1) = %s\n", to_string(out).c_str());
  std::printf("%s", f.explain().c_str());
  return 0;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
