// SPDX-License-Identifier: Apache-2.0
// Operators that a user adds, at start-up and while the program runs: they are operators like any other.
#include "twibil/operator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "twibil/jit.h"
#include "twibil/ops.h"

namespace user {

using namespace twibil;

struct ScaledSwishAttrs {
  double beta = 1;
};
inline constexpr Field kFields[] = {TW_ATTR(ScaledSwishAttrs, beta, "Steepness.")};

// A full declaration with attributes, a kernel of its own and a gradient made of operators.
TW_OP(test_scaled_swish) = whole({
    .name = "test_scaled_swish",
    .doc = "x * sigmoid(beta x) for each element.",
    .names = {"npx.test_scaled_swish"},
    .attrs = schema<ScaledSwishAttrs>(kFields),
    .in = {{{.name = "x"}}},
    .infer = infer_rule<ScaledSwishAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(a.beta > 0, value, "test_scaled_swish: beta must be positive; got ", a.beta);
      out[0] = in[0];
    }),
    .types = bit_of(DType::float32) | bit_of(DType::float64),
    .kernel = cpu_rule<ScaledSwishAttrs>([](auto& a, Call& c) {
      dispatch(c.in[0].dtype, [&]<class T>() {
        if constexpr (std::is_floating_point_v<T>)
          for (int64_t i = 0; i < c.in[0].size; ++i) {
            double x = c.in[0].template as<T>()[i];
            c.out[0].template as<T>()[i] = static_cast<T>(x / (1 + std::exp(-a.beta * x)));
          }
      });
    }),
    .needs = X0,
    .grad = grad_rule<ScaledSwishAttrs>([](auto& a, const Grad& g) -> Vals {
      Array x = as_array(g.x(0)), s = op::sigmoid(x * a.beta);
      return as_vals(as_array(g.dy()) * (s + x * a.beta * s * (1 - s)));
    }),
    .samples = {{{.in = {{{3, 4}}}}}},
});

}  // namespace user

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
bool says(const std::string& message, std::string_view part) { return message.find(part) != std::string::npos; }

std::vector<float> gradient(const char* name, const Array& x, const std::vector<Array>& more = {}) {
  x.value()->leaf ? void() : const_cast<Array&>(x).attach_grad();
  Record scope;
  std::vector<Array> in{x};
  in.insert(in.end(), more.begin(), more.end());
  op::sum(call_all(require_op(name), in)[0]).backward();
  return elements(x.grad());
}

TEST(UserOperator, DeclaredAtStartUpItIsThereEverywhere) {
  Array x = row({-1, 0, 2}), want = x * op::sigmoid(x * 2.0);
  std::vector<float> got = elements(call("test_scaled_swish", {x}, {{"beta", 2.0}}));
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], elements(want)[i], 1e-6);
  Symbol s = compose("test_scaled_swish", {Variable("x")});
  EXPECT_EQ(elements(compile(s)(x)), elements(call("test_scaled_swish", {x})));
  std::vector<float> dx = gradient("test_scaled_swish", x);
  x.value();
  Array sigmoid = op::sigmoid(x.detach()), by_hand = sigmoid + x.detach() * sigmoid * (1 - sigmoid);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(dx[i], elements(by_hand)[i], 1e-6);
  EXPECT_TRUE(says(error_of([&] { call("test_scaled_swish", {x}, {{"beta", -1.0}}); }), "beta must be positive"));
}

TEST(UserOperator, AFormulaAtRunTimeIsAnOperator) {
  registry();  // looked at before
  register_pointwise("test_cube_plus", [](Expr x, Expr y) { return x * x * x + y; });
  Array x = row({1, 2}), y = row({10, 20});
  EXPECT_EQ(elements(call("test_cube_plus", {x, y})), (std::vector<float>{11, 28}));
  EXPECT_EQ(call("test_cube_plus", {Array::ones({2}, DType::int32), Array::ones({2}, DType::int32)}).dtype(),
            DType::int32);
  EXPECT_EQ(gradient("test_cube_plus", x, {y}), (std::vector<float>{3, 12}));  // derived
  Symbol a = Variable("a"), s = compose("test_cube_plus", {op::exp(a), 1}) * 2;
  Function f = compile(s), g = compile(s.grad({"a"}).grad({"a"}));
  EXPECT_EQ(elements(f(row({0}))), std::vector<float>{4});
  EXPECT_EQ(elements(g(row({0}))), std::vector<float>{18});  // second derivative of 2 exp(3a)
  EXPECT_FALSE(f.explain().empty());
}

TEST(UserOperator, AGradientThatIsGivenIsUsed) {
  // Straight-through: the value is rounded, the gradient passes.
  register_pointwise(
      "test_straight_through", [](Expr x) { return rint(x); }, [](Expr, Expr dy) { return dy; });
  Array x = row({0.4f, 1.6f});
  EXPECT_EQ(elements(call("test_straight_through", {x})), (std::vector<float>{0, 2}));
  EXPECT_EQ(gradient("test_straight_through", x), (std::vector<float>{1, 1}));
  auto f = jit([](const Array& a) { return op::sum(call("test_straight_through", {a * 3})); });
  {
    Record scope;
    f(x).backward();
  }
  EXPECT_EQ(elements(x.grad()), (std::vector<float>{3, 3}));
}

TEST(UserOperator, FloatsWhereTheFormulaNeedsThem) {
  register_pointwise("test_gauss", [](Expr x) { return exp(-x * x); });
  EXPECT_EQ(call("test_gauss", {Array::zeros({2}, DType::int64)}).dtype(), DType::float32);
  register_pointwise("test_is_small", [](Expr x) { return abs(x) < 1; });
  EXPECT_EQ(call("test_is_small", {row({0.5f, 2})}).dtype(), DType::bool_);
  EXPECT_EQ(elements(call("test_is_small", {row({0.5f, 2})})), (std::vector<float>{1, 0}));
}

TEST(UserOperator, WhatIsTakenOrIncompleteIsRefusedAndChangesNothing) {
  size_t before = registry().size();
  auto twice = [](Expr x) { return x * 2; };
  EXPECT_TRUE(says(error_of([&] { register_pointwise("sigmoid", twice); }), "already an operator sigmoid"));
  EXPECT_TRUE(says(error_of([&] { register_pointwise("test_other", twice, PointwiseOptions{.names = {"npx.relu"}}); }),
                   "npx.relu belongs to"));
  EXPECT_TRUE(says(error_of([&] { register_pointwise("bad name", twice); }), "letters"));
  EXPECT_TRUE(says(error_of([&] { register_pointwise("test_p", [](Expr x, Param p) { return x * p; }); }), "TW_OP"));
  EXPECT_TRUE(says(error_of([&] { register_pointwise("test_g", twice, twice); }), "2 arguments"));
  EXPECT_TRUE(says(error_of([&] { register_operator(OpDef{}); }), "name"));
  OpDef empty{.name = "test_empty", .doc = "x"};
  EXPECT_TRUE(says(error_of([&] { register_operator(empty); }), "infer and kernel"));
  EXPECT_EQ(registry().size(), before);
  EXPECT_EQ(find_op("test_other"), nullptr);
  EXPECT_TRUE(says(error_of([&] { load_operators("/nowhere/libnothing.so"); }), "libnothing"));
  EXPECT_TRUE(says(error_of([&] { load_operators("libm.so.6"); }), "declares no operator"));
}

TEST(UserOperator, ThreadsRegisterAndLookUpAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        std::string name = text("test_thread_", t, "_", i);
        register_pointwise(name, [](Expr x) { return x + 1; });
        if (!find_op(name) || !find_op("sigmoid") || call(name.c_str(), {1.0}).item() != 2) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
