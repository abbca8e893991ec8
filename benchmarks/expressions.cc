// SPDX-License-Identifier: Apache-2.0
// a * b + 1 and a longer chain: an expression template, the loop written by hand, the operators one by one, and the
// compiled graph, which runs them in tiles. Sizes in elements of float32; bytes are those that must move.
#include <benchmark/benchmark.h>

#include "twibil/expr.h"
#include "twibil/ops.h"

using namespace twibil;

namespace {

struct Data {
  Array a, b, out;
  explicit Data(int64_t n)
      : a(op::arange(n, {.dtype = DType::float32}) * (1.0 / static_cast<double>(n))), b(a + 1), out(a.copy()) {
    wait_all();
  }
};
void report(benchmark::State& state, int arrays) {
  state.SetBytesProcessed(state.iterations() * state.range(0) * arrays * 4);
}

void by_hand(benchmark::State& state) {
  Data d(state.range(0));
  auto *a = reinterpret_cast<const float*>(d.a.value()->data), *b = reinterpret_cast<const float*>(d.b.value()->data);
  auto* out = reinterpret_cast<float*>(d.out.value()->data);
  for (auto _ : state) {
    parallel_for(state.range(0), 32768, [&](int64_t begin, int64_t end) {
      const float* __restrict x = a, * __restrict y = b;
      float* __restrict z = out;
      for (int64_t i = begin; i < end; ++i) z[i] = x[i] * y[i] + 1.0f;
    });
    benchmark::ClobberMemory();
  }
  report(state, 3);
}
void expression_into(benchmark::State& state) {
  Data d(state.range(0));
  for (auto _ : state) expr(d.out) = expr(d.a) * d.b + 1.0f;
  report(state, 3);
}
void expression_new(benchmark::State& state) {
  Data d(state.range(0));
  for (auto _ : state) d.out = expr(d.a) * d.b + 1.0f;
  report(state, 3);
}
void operators(benchmark::State& state) {
  Data d(state.range(0));
  for (auto _ : state) {
    d.out = d.a * d.b + 1.0;
    d.out.wait_to_read();
  }
  report(state, 3);
}
void compiled(benchmark::State& state) {
  Data d(state.range(0));
  Symbol a = Variable("a"), b = Variable("b");
  Function f = compile(a * b + 1.0);
  for (auto _ : state) {
    d.out = f(d.a, d.b);
    d.out.wait_to_read();
  }
  report(state, 3);
}

// max((a * b + a) * (b - 0.5), a) - b * b
void chain_expression(benchmark::State& state) {
  Data d(state.range(0));
  for (auto _ : state)
    expr(d.out) = expression::max((expr(d.a) * d.b + d.a) * (expr(d.b) - 0.5), d.a) - expr(d.b) * d.b;
  report(state, 3);
}
void chain_operators(benchmark::State& state) {
  Data d(state.range(0));
  for (auto _ : state) {
    d.out = op::maximum((d.a * d.b + d.a) * (d.b - 0.5), d.a) - d.b * d.b;
    d.out.wait_to_read();
  }
  report(state, 3);
}
void chain_compiled(benchmark::State& state) {
  Data d(state.range(0));
  Symbol a = Variable("a"), b = Variable("b");
  Function f = compile(op::maximum((a * b + a) * (b - 0.5), a) - b * b);
  for (auto _ : state) {
    d.out = f(d.a, d.b);
    d.out.wait_to_read();
  }
  report(state, 3);
}

#define CASE(f) BENCHMARK(f)->Arg(1024)->Arg(16384)->Arg(16 << 20)->UseRealTime()
CASE(by_hand);
CASE(expression_into);
CASE(expression_new);
CASE(operators);
CASE(compiled);
CASE(chain_expression);
CASE(chain_operators);
CASE(chain_compiled);

}  // namespace

BENCHMARK_MAIN();
