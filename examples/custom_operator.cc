// SPDX-License-Identifier: Apache-2.0
// Operators of your own (operators/my_operators.cc, and a formula made here) are operators like any other: they run,
// are differentiated, stand in symbols, are traced and compiled.
#include <cmath>
#include <cstdio>

#include "twibil/jit.h"
#include "twibil/operator.h"
#include "twibil/ops.h"

using namespace twibil;

/// Whether the gradient of sum(f(x)) agrees with differences.
template <class F> static bool gradient_agrees(F f, Array x) {
  x.attach_grad();
  {
    Record scope;
    op::sum(f(x)).backward();
  }
  std::vector<double> dx = x.grad().to_vector<double>(), at = x.to_vector<double>();
  for (size_t i = 0; i < at.size(); ++i) {
    auto sum_at = [&](double step) {
      std::vector<double> moved = at;
      moved[i] += step;
      return op::sum(f(Array::from(moved, x.shape()))).item();
    };
    double difference = (sum_at(1e-5) - sum_at(-1e-5)) / 2e-5;
    if (std::abs(difference - dx[i]) > 1e-7 * (1 + std::abs(dx[i]))) return false;
  }
  return true;
}

int main() try {
  // Straight-through: the value is rounded, the gradient passes as if it were not.
  register_pointwise(
      "my_round", [](Expr x) { return rint(x); }, [](Expr, Expr dy) { return dy; });

  Array x = Array::from(std::vector<double>{-1.5, 0.25, 0.75, 2}, Shape{2, 2});
  Array angle = Array::from(std::vector<double>{0.5}, Shape{1});
  auto mish = [](const Array& a) { return call("my_mish", {a}); };
  auto turned = [&](const Array& a) { return call("my_rotate", {a, angle}) * a; };
  std::printf("my_mish   %s\n", to_string(mish(x)).c_str());
  std::printf("my_rotate %s\n", to_string(call("my_rotate", {x, angle})).c_str());
  std::printf("my_round  %s\n", to_string(call("my_round", {x})).c_str());

  bool agree = gradient_agrees(mish, x) && gradient_agrees(turned, x);
  std::printf("gradients %s\n", agree ? "agree with differences" : "ARE WRONG");

  Symbol s = Variable("x"), graph = compose("my_mish", {s * 2 + 1}) * compose("my_round", {s});
  Function f = compile(graph);
  Array eager = mish(x * 2 + 1) * call("my_round", {x});
  auto traced = jit([&](const Array& a) { return mish(a * 2 + 1) * call("my_round", {a}); });
  bool same = f(x).to_vector<double>() == eager.to_vector<double>() &&
              traced(x).to_vector<double>() == eager.to_vector<double>();
  std::printf("eager, symbolic and traced results %s; %d kernels\n", same ? "are equal" : "DIFFER", f.num_kernels());

  try {
    register_pointwise("my_mish", [](Expr v) { return v; });
  } catch (const Error& e) {
    std::printf("an error says: %s\n", e.what());
    return agree && same ? 0 : 1;
  }
  return 1;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
