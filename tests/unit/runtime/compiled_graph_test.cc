// SPDX-License-Identifier: Apache-2.0
// Compiled graphs: signatures, updates, views, donated arguments, data-dependent shapes, errors, threads, long chains.
#include "runtime/compiled_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "passes/pipeline.h"
#include "twibil/jit.h"
#include "twibil/ops.h"

using namespace twibil;

namespace {

std::vector<double> elements(const Array& a) { return a.to_vector<double>(); }
Array row(std::vector<float> v) { return Array::from(v, Shape{static_cast<int64_t>(v.size())}); }

/// A small network of most kinds of nodes.
Symbol network() {
  Symbol x = Variable("x"), w = Variable("w");
  Symbol h = op::tanh(op::dot(x, w)), turned = op::transpose(h);
  Symbol cut = op::reshape(turned, {-1}) * 2, scaled = op::softmax(op::reshape(cut, {4, -1}));
  return op::sum(scaled * op::exp(h.grad({w})[0]) + 1, {.axis = std::vector<int64_t>{0}});
}
Array input(int64_t rows, int64_t columns, double scale) {
  return op::reshape(op::arange(rows * columns), {rows, columns}) * scale;
}

TEST(CompiledGraph, OneCompilationForEachSignature) {
  Symbol x = Variable("x");
  Function f = compile(x * 2 + 1);
  EXPECT_EQ(f.num_compilations(), 0);
  for (int i = 0; i < 3; ++i) f(row({1, 2}));
  EXPECT_EQ(f.num_compilations(), 1);
  f(row({1, 2, 3}));
  f(Array::ones({2}, DType::float64));
  EXPECT_EQ(f.num_compilations(), 3);
  EXPECT_EQ(elements(f(row({4, 5}))), (std::vector<double>{9, 11}));
  EXPECT_EQ(f.num_compilations(), 3);
}

TEST(CompiledGraph, TheAnswerIsTheSameWithoutAnyPass) {
  Symbol y = network();
  Array x = input(4, 4, 0.1), w = input(4, 4, 0.05);
  std::vector<double> want = elements(compile(y)(x, w));
  std::vector<std::string> passes{"everything", "plan_memory"};
  for (const passes::Pass& p : passes::pipeline())
    if (!p.needed) passes.emplace_back(p.name);
  for (const std::string& p : passes) {
    std::vector<double> got = elements(compile(y, {.without = {p}})(x, w));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5 * std::abs(want[i])) << p;
  }
}

TEST(CompiledGraph, ViewsOfArgumentsAndStridedArguments) {
  Symbol x = Variable("x");
  Function f = compile({op::transpose(x), op::reshape(x, {-1}), x, op::transpose(x) * 2});
  Array a = input(2, 3, 1);
  for (const Array& given : {a, a.transpose().copy().transpose()}) {
    std::vector<Array> out = f.all({given});
    EXPECT_EQ(elements(out[0]), elements(a.transpose()));
    EXPECT_EQ(elements(out[1]), elements(a));
    EXPECT_EQ(elements(out[2]), elements(a));
    EXPECT_EQ(elements(out[3]), elements(a.transpose() * 2));
  }
  std::vector<Array> out = f.all({a});
  a.assign(Array(0));  // results are arrays of their own
  EXPECT_EQ(elements(out[2]), (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST(CompiledGraph, OneNodeMayBeTwoResults) {
  Symbol x = Variable("x"), y = x + 1;
  std::vector<Array> out = compile({y, y, x, x}).all({row({1})});
  out[0].assign(Array(7));
  EXPECT_EQ(elements(out[1]), std::vector<double>{2});
  out[2].assign(Array(7));
  EXPECT_EQ(elements(out[3]), std::vector<double>{1});
}

TEST(CompiledGraph, UpdatesHappenInTheOrderOfTheProgram) {
  Array state = row({1});
  auto f = jit([&](const Array& x) {
    Array before = state * 1;
    state.assign(state + x);
    Array between = state * 10;
    state.assign(state * 2);
    return Arrays{before, between, state * 100};
  });
  std::vector<Array> out = f(row({3}));
  EXPECT_EQ(elements(out[0]), std::vector<double>{1});
  EXPECT_EQ(elements(out[1]), std::vector<double>{40});
  EXPECT_EQ(elements(out[2]), std::vector<double>{800});
  EXPECT_EQ(elements(state), std::vector<double>{8});
  f(row({2}));
  EXPECT_EQ(elements(state), std::vector<double>{20});
}

TEST(CompiledGraph, DonatedArgumentsTakeTheResult) {
  Symbol x = Variable("x"), y = Variable("y");
  Function f = compile(op::exp(x * y) + 1, {.donate = {"x"}});
  Array a = row({0, 1}), b = row({1, 0});
  Array result = f({{"x", a}, {"y", b}});
  EXPECT_EQ(result.value().get(), a.value().get());
  EXPECT_EQ(elements(a), (std::vector<double>{2, 2}));
  // An argument of another shape or dtype than the result cannot take it.
  Function g = compile(op::sum(x), {.donate = {"x"}});
  Array c = row({1, 2});
  EXPECT_EQ(g(c).item(), 3);
}

TEST(CompiledGraph, ShapesThatDependOnValuesRunWithoutAPlan) {
  Symbol x = Variable("x");
  Function f = compile(op::unique(x)[0] * 2);
  EXPECT_EQ(elements(f(row({3, 1, 3}))), (std::vector<double>{2, 6}));
  EXPECT_EQ(elements(f(row({5, 5, 5}))), (std::vector<double>{10}));
  EXPECT_THROW(f.planned_bytes(), Error);
}

TEST(CompiledGraph, ErrorsNameTheNodeAndLeaveItUsable) {
  Symbol x = Variable("x"), y = op::reshape(x, {2, -1}).named("pairs");
  Function f = compile(y + 1);
  try {
    f(row({1, 2, 3}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("pairs"), std::string::npos) << e.what();
    EXPECT_EQ(e.kind(), ErrorKind::value);
  }
  EXPECT_EQ(f(row({1, 2, 3, 4})).shape(), (Shape{2, 2}));
  Function types = compile(op::bitwise_and(x, x));
  EXPECT_THROW(types(row({1})), Error);
  EXPECT_EQ(elements(types(row({3}).astype(DType::int32))), std::vector<double>{3});
}

TEST(CompiledGraph, EmptyArraysAndRankZero) {
  Symbol x = Variable("x");
  Function f = compile({x * 2 + 1, op::sum(x)});
  std::vector<Array> out = f.all({Array::zeros({0, 3})});
  EXPECT_EQ(out[0].shape(), (Shape{0, 3}));
  EXPECT_EQ(out[1].item(), 0);
  EXPECT_EQ(f.all(Arrays{3.0})[0].item(), 7);
}

TEST(CompiledGraph, SecondOrderThroughTheTape) {
  Symbol x = Variable("x");
  Function f = compile(op::sum(x * x * x));
  Array a = row({2, 3});
  a.attach_grad();
  auto g = jit([&](const Array& v) { return f(v) * 2; });
  {
    Record scope;
    g(a).backward();
  }
  EXPECT_EQ(elements(a.grad()), (std::vector<double>{24, 54}));
  EXPECT_EQ(elements(compile(op::sum(x * x * x).grad({x})[0].grad({x}))(a)), (std::vector<double>{12, 18}));
}

TEST(CompiledGraph, RandomNumbersAreNewAtEachRunAndTheSeedDecides) {
  Function f = compile(op::symbol::random_uniform({.size = std::vector<int64_t>{8}}));
  auto draw = [&] { return elements(f.all(std::vector<Array>{})[0]); };
  seed(3);
  std::vector<double> first = draw(), second = draw();
  EXPECT_NE(first, second);
  seed(3);
  EXPECT_EQ(draw(), first);
  seed(3);
  EXPECT_EQ(elements(op::random_uniform({.size = std::vector<int64_t>{8}})), first);
}

TEST(CompiledGraph, SixteenThreadsGetTheBitsOfOne) {
  Function f = compile(network());
  Array w = input(4, 4, 0.05);
  std::vector<std::vector<double>> want;
  for (int i = 0; i < 8; ++i) want.push_back(elements(f(input(4, 4, 0.1 * i), w)));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i)
        if (elements(f(input(4, 4, 0.1 * ((t + i) % 8)), w)) != want[static_cast<size_t>((t + i) % 8)]) ++wrong;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.num_compilations(), 1);
}

TEST(CompiledGraph, ChainsOfAHundredThousandNodesCompileAndRun) {
  Symbol x = Variable("x"), y = x;
  for (int i = 0; i < 100000; ++i) y = i % 2 ? op::sin(y) : op::negative(y);
  Array eager = row({0.5f});
  for (int i = 0; i < 100000; ++i) eager = i % 2 ? op::sin(eager) : op::negative(eager);
  EXPECT_EQ(elements(compile(y)(row({0.5f}))), elements(eager));
}

TEST(CompiledGraph, GradientsOfLongChains) {
  Symbol x = Variable("x"), y = x;
  for (int i = 0; i < 20000; ++i) y = y * 1.0001;
  std::vector<double> dx = elements(compile(y.grad({x}))(row({2})));
  EXPECT_NEAR(dx[0], std::pow(1.0001, 20000), 1e-2);
}

}  // namespace
