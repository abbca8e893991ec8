// SPDX-License-Identifier: Apache-2.0
// C++ functions that are traced and compiled, and C++ functions inside graphs.
#include "twibil/jit.h"

#include <gtest/gtest.h>

#include <thread>

#include "twibil/nn.h"
#include "twibil/ops.h"

using namespace twibil;

namespace {

std::vector<float> elements(const Array& a) { return a.to_vector<float>(); }
Array row(std::vector<float> v) { return Array::from(v, Shape{static_cast<int64_t>(v.size())}); }
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Jit, RunsWhatTheFunctionSays) {
  int runs = 0;
  auto f = jit([&](const Array& x, const Array& y) {
    ++runs;
    return op::tanh(x * y) + 1;
  });
  Array x = row({0.5f, 1}), y = row({2, 3});
  Array want = op::tanh(x * y) + 1;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(elements(f(x, y)), elements(want));
  EXPECT_EQ(runs, 1);  // traced once
  f(row({1, 2, 3}), row({1, 2, 3}));
  EXPECT_EQ(f.num_traces(), 2);
  EXPECT_NE(f.explain().find("tanh"), std::string::npos);
}

TEST(Jit, GradientsAreThoseOfTheFunction) {
  auto f = jit([](const Array& x, const Array& w) { return op::sum(op::exp(x * w)); });
  Array x = row({0.1f, 0.2f}), w = row({1, 2});
  w.attach_grad();
  auto gradient = [&](auto&& function) {
    Record scope;
    Array y = function(x, w);
    y.backward();
    return elements(w.grad());
  };
  auto eager = gradient([](const Array& a, const Array& b) { return op::sum(op::exp(a * b)); });
  EXPECT_EQ(gradient(f), eager);
}

TEST(Jit, ArraysOfTheOutsideAreReadAnewAndWritten) {
  Array scale = row({2}), count = row({0});
  auto f = jit([&](const Array& x) {
    count.assign(count + 1);
    return x * scale;
  });
  EXPECT_EQ(elements(f(row({3}))), std::vector<float>{6});
  scale.assign(Array(10));
  EXPECT_EQ(elements(f(row({3}))), std::vector<float>{30});
  EXPECT_EQ(elements(count), std::vector<float>{2});
}

TEST(Jit, SeveralResultsArgumentsThatAreReturnedAndNumbers) {
  auto f = jit([](const Array& x, const Array& y) { return Arrays{x, x + y, y}; });
  Arrays out = f(row({1}), 2);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(elements(out[0]), std::vector<float>{1});
  EXPECT_EQ(elements(out[1]), std::vector<float>{3});
  EXPECT_EQ(out[2].rank(), 0);
}

TEST(Jit, LayersMayMeetTheirFirstInputInsideATrace) {
  seed(3);
  auto net = nn::sequential({nn::dense(4), nn::relu(), nn::batch_norm(), nn::dense(2)});
  auto f = jit([&](const Array& x) { return (*net)(x); });
  // Two examples would be normalised to -1 and 1 whatever they are, and leave no gradient.
  Array x = Array::from(std::vector<float>{1, 2, 3, 4, 5, 6, -3, 2, -7, 1, 0, 2}, Shape{4, 3});
  Array y = f(x);
  EXPECT_EQ(y.shape(), (Shape{4, 2}));
  for (const nn::Parameter& p : net->parameters()) EXPECT_EQ(p.data.value()->has(kTraced), false) << p.name;
  EXPECT_EQ(elements(f(x)), elements((*net)(x)));
  {
    Record scope;  // training: another trace, running statistics are written
    Array z = f(x);
    op::sum(z * z).backward();
  }
  EXPECT_EQ(f.num_traces(), 2);
  EXPECT_NE(elements(net->parameters()[0].data.grad()), std::vector<float>(12, 0));
}

TEST(Jit, ElementsCannotBeLookedAtInsideATrace) {
  auto f = jit([](const Array& x) { return x.item() > 0 ? x : -x; });
  EXPECT_NE(error_of([&] { f(row({1})); }).find("not known yet"), std::string::npos);
  auto g = jit([](const Array& x) { return op::unique(x); });
  EXPECT_NE(error_of([&] { g(row({1})); }), "no error");
  EXPECT_EQ(elements(row({1}) + 1), std::vector<float>{2});  // nothing of the trace is left
}

TEST(Jit, AValueThatOutlivesItsTraceIsNoticed) {
  Array kept;
  auto f = jit([&](const Array& x) { return kept = x * 2; });
  f(row({1}));
  EXPECT_NE(error_of([&] { kept + 1; }), "no error");
  EXPECT_NE(error_of([&] { kept.item(); }), "no error");
  auto g = jit([&](const Array& x) { return x + kept; });
  EXPECT_NE(error_of([&] { g(row({1})); }).find("trace"), std::string::npos);
}

TEST(Jit, OneInsideAnother) {
  auto inner = jit([](const Array& x) { return x * x; });
  auto outer = jit([&](const Array& x) { return inner(x) + inner(x + 1); });
  EXPECT_EQ(elements(outer(row({2}))), std::vector<float>{13});
  EXPECT_EQ(inner.num_traces(), 0);
}

TEST(Jit, ManyThreadsShareOne) {
  auto f = jit([](const Array& x, const Array& w) { return op::softmax(op::dot(x, w)); });
  Array w = op::reshape(op::arange(16), {4, 4}) / 16;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        Array x = Array::full({t % 3 + 1, 4}, 0.1 * t);
        if (elements(f(x, w)) != elements(op::softmax(op::dot(x, w)))) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.num_traces(), 3);
}

HostFunction doubled(int& calls) {
  return {.name = "doubled",
          .run =
              [&calls](const Arrays& in) {
                ++calls;
                return Arrays{Array::from(std::vector<float>{in[0].to_vector<float>()[0] * 2}, Shape{1})};
              },
          .gradient = [](const Arrays&, const Arrays&, const Arrays& dy) { return Arrays{dy[0] * 2}; }};
}

TEST(HostCall, StandsInSymbolsInTracesAndAlone) {
  int calls = 0;
  HostFunction f = doubled(calls);
  Symbol x = Variable("x");
  Function graph = compile(host_call(f, {x}) + 1);
  auto traced = jit([&](const Array& a) { return host_call(f, {a})[0] + 1; });
  for (float v : {3.0f, 4.0f}) {
    EXPECT_EQ(elements(graph(row({v}))), std::vector<float>{2 * v + 1});
    EXPECT_EQ(elements(traced(row({v}))), std::vector<float>{2 * v + 1});
    EXPECT_EQ(elements(host_call(f, {row({v})})[0] + 1), std::vector<float>{2 * v + 1});
  }
  EXPECT_EQ(calls, 6);
}

TEST(HostCall, ItsGradientIsUsedEverywhere) {
  int calls = 0;
  HostFunction f = doubled(calls);
  Array x = row({3});
  x.attach_grad();
  auto traced = jit([&](const Array& a) { return host_call(f, {a * a})[0]; });
  Symbol s = Variable("x");
  EXPECT_EQ(elements(compile(host_call(f, {s * s}).grad({s}))(x)), std::vector<float>{12});
  for (bool eager : {true, false}) {
    Record scope;
    Array y = eager ? host_call(f, {x * x})[0] : traced(x);
    y.backward();
    EXPECT_EQ(elements(x.grad()), std::vector<float>{12});
  }
}

TEST(HostCall, WhatItPromisesIsChecked) {
  HostFunction wrong{.name = "wrong", .run = [](const Arrays&) { return Arrays{row({1, 2, 3})}; }};
  Function f = compile(host_call(wrong, {Variable("x")}));
  EXPECT_NE(error_of([&] { f(row({1})); }).find("wrong: result 0 must have shape [1]"), std::string::npos);
  HostFunction fails{.name = "fails",
                     .run = [](const Arrays&) -> Arrays { throw_error(ErrorKind::value, "the host says no"); }};
  Function g = compile(host_call(fails, {Variable("x")}) + 1);
  EXPECT_NE(error_of([&] { g(row({1})); }).find("the host says no"), std::string::npos);
  EXPECT_NE(error_of([&] { host_call(HostFunction{}, {row({1})}); }), "no error");
}

}  // namespace
