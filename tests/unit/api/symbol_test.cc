// SPDX-License-Identifier: Apache-2.0
// Symbols from C++: the paradigm text's programs, looking at graphs, putting them together, errors.
#include "twibil/symbol.h"

#include <gtest/gtest.h>

#include <cmath>

#include "twibil/ops.h"

using namespace twibil;

namespace {

std::vector<double> elements(const Array& a) { return a.to_vector<double>(); }
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

struct Toy {
  Symbol a = Variable("A"), b = Variable("B");
  Symbol c = b * a;
  Symbol d = c + Constant(1);
};

TEST(Symbol, TheToyProgramRunsByNameAndByPosition) {
  Toy toy;
  Function f = compile(toy.d);
  Array ones = Array::ones({10}), twos = Array::ones({10}) * 2;
  EXPECT_EQ(elements(f({{"B", twos}, {"A", ones}})), std::vector<double>(10, 3));
  EXPECT_EQ(f.arguments(), (std::vector<std::string>{"B", "A"}));  // as a walk from the head meets them
  EXPECT_EQ(elements(f(twos, ones)), std::vector<double>(10, 3));
  EXPECT_EQ(f(twos, ones).dtype(), DType::float32);
}

TEST(Symbol, TheToyProgramNeedsTheBytesOfTheText) {
  Toy toy;
  Array ones = Array::ones({10}, DType::float64), twos = Array::ones({10}, DType::float64) * 2;
  Function kept = compile(toy.d), given = compile(toy.d, {.donate = {"B"}});
  kept({{"A", ones}, {"B", twos}});
  EXPECT_EQ(kept.planned_bytes(), 240);
  Array result = given({{"A", ones}, {"B", twos}});
  EXPECT_EQ(given.planned_bytes(), 160);
  EXPECT_EQ(given.lower_bound_bytes(), 160);
  EXPECT_EQ(result.value().get(), twos.value().get());  // B's array now holds the result
  EXPECT_EQ(elements(result), std::vector<double>(10, 3));
  EXPECT_GE(kept.num_kernels(), 1);
  EXPECT_TRUE(says(kept.explain(), "planned 240 B"));
}

TEST(Symbol, GradientsAreGraphs) {
  Toy toy;
  Symbol g = toy.d.grad({"A", "B"});
  std::vector<Array> out = compile(g).all({{"A", row({1, 2})}, {"B", row({3, 4})}});
  EXPECT_EQ(elements(out[0]), (std::vector<double>{3, 4}));
  EXPECT_EQ(elements(out[1]), (std::vector<double>{1, 2}));
  Symbol x = Variable("x");
  Symbol first = (x * x * x).grad({x})[0], second = first.grad({x})[0], third = second.grad({x})[0];
  Function f = compile({first, second, third + first});  // extended
  out = f.all({row({2})});
  EXPECT_EQ(elements(out[0]), std::vector<double>{12});
  EXPECT_EQ(elements(out[1]), std::vector<double>{12});
  EXPECT_EQ(elements(out[2]), std::vector<double>{18});
}

TEST(Symbol, GradientsTakeHeadGradientsAndGiveZerosWhereNothingDepends) {
  Symbol x = Variable("x"), y = Variable("y");
  Symbol g = (x * 3).grad({x, y}, {Variable("dy")});
  std::vector<Array> out = compile(g).all({{"x", row({1, 1})}, {"y", row({7})}, {"dy", row({2, 5})}});
  EXPECT_EQ(elements(out[0]), (std::vector<double>{6, 15}));
  EXPECT_EQ(elements(out[1]), (std::vector<double>{0}));
}

TEST(Symbol, OperatorsOfTheRegistryTakeSymbols) {
  Symbol x = Variable("x");
  Symbol s = op::softmax(x, {.axis = 1}), total = op::sum(op::maximum(s, 0.25));
  Array a = Array::from(std::vector<float>{0, 0, 1, 3}, Shape{2, 2});
  EXPECT_NEAR(compile(total)(a).item(), op::sum(op::maximum(op::softmax(a, {.axis = 1}), 0.25)).item(), 1e-6);
  EXPECT_EQ(compile(op::concatenate({x, x, x * 2}))(a).shape(), (Shape{6, 2}));
  Symbol targets = op::multibox_target(Variable("anchors"), Variable("labels"), Variable("scores"));
  ASSERT_EQ(targets.size(), 3u);
  EXPECT_EQ(targets[2].size(), 1u);
  EXPECT_EQ(elements(compile(op::symbol::arange(3) + op::symbol::ones({3})).all(std::vector<Array>{})[0]),
            (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(op::maximum(1, 2).item(), 2);  // numbers alone are arrays
}

TEST(Symbol, MissingParametersBecomeVariables) {
  Symbol x = Variable("x"), h = op::fully_connected(x, {}, {}, {.num_hidden = 4}).named("fc1");
  Symbol y = op::fully_connected(op::relu(h), {}, {.num_hidden = 3, .no_bias = true}).named("fc2");
  EXPECT_EQ(y.list_arguments(), (std::vector<std::string>{"x", "fc1_weight", "fc1_bias", "fc2_weight"}));
  EXPECT_EQ(y.list_outputs(), std::vector<std::string>{"fc2_output"});
  Symbol::Inferred found = y.infer_shape({{"x", {5, 7}}});
  EXPECT_EQ(found.arguments[1].shape, (Shape{4, 7}));
  EXPECT_EQ(found.arguments[2].shape, (Shape{4}));
  EXPECT_EQ(found.arguments[3].shape, (Shape{3, 4}));
  EXPECT_EQ(found.outputs[0].shape, (Shape{5, 3}));
  EXPECT_FALSE(y.infer_shape({}, true).outputs[0].present());
  EXPECT_TRUE(says(error_of([&] { y.infer_shape({}); }), "x"));
  Symbol b = op::batch_norm(x, {}, {}, {}, {});
  EXPECT_EQ(b.list_auxiliary_states().size(), 2u);
  EXPECT_EQ(b.list_arguments().size(), 3u);
}

TEST(Symbol, GraphsAreCutAndPutTogether) {
  Symbol x = Variable("x"), h = op::tanh(x).named("h"), y = (h * 2).named("y");
  Symbol inside = y.get_internals();
  EXPECT_EQ(inside.list_outputs().front(), "x");
  Array a = row({0.5f});
  EXPECT_EQ(elements(compile(inside["h_output"])(a)), elements(op::tanh(a)));
  EXPECT_EQ(y.get_children()[0].name(), "h");
  Symbol deeper = y({{"x", y}});
  EXPECT_NEAR(compile(deeper)(a).item(), 2 * std::tanh(2 * std::tanh(0.5)), 1e-6);
  EXPECT_EQ(elements(compile(y)(a)), elements(op::tanh(a) * 2));  // the old graph is as it was
  Symbol both = Group({y, h});
  EXPECT_EQ(both.size(), 2u);
  EXPECT_EQ(compile(both).all({a}).size(), 2u);
  // What does not depend on the replaced variable is shared, so its variables are still the same ones.
  Symbol w = Variable("w"), product = x * w, moved = product({{"x", op::exp(Variable("z"))}});
  std::vector<Array> dw = compile(moved.grad({w})).all({{"z", row({0})}, {"w", row({3})}});
  EXPECT_EQ(elements(dw[0]), std::vector<double>{1});
}

TEST(Symbol, AttributesStayWithTheNode) {
  Symbol w = Variable("w", {.shape = Shape{2, 2}});
  w.set_attr("lr_mult", "0.1");
  EXPECT_EQ(w.attr("lr_mult"), "0.1");
  EXPECT_EQ(w.attr("wd_mult"), "");
  EXPECT_EQ(op::exp(w).infer_shape({}).outputs[0].shape, (Shape{2, 2}));
}

TEST(Symbol, ConstantsAreArraysAsTheyWere) {
  Array a = row({1, 2});
  Symbol s = Variable("x") + Constant(a);
  a.assign(Array(0));
  EXPECT_EQ(elements(compile(s)(row({10, 10}))), (std::vector<double>{11, 12}));
}

TEST(Symbol, UpdatesInsideTheGraphWriteTheGivenArray) {
  Symbol w = Variable("w"), g = Variable("g");
  Function step = compile(op::sgd_update(w, g, 0.5));
  Array weight = row({1, 2});
  EXPECT_EQ(elements(step({{"w", weight}, {"g", row({2, 2})}})), (std::vector<double>{0, 1}));
  EXPECT_EQ(elements(weight), (std::vector<double>{0, 1}));
}

TEST(Symbol, CompiledFunctionsAreOnTheTape) {
  Toy toy;
  Function f = compile(toy.d);
  Array a = row({2, 3}), b = row({5, 7});
  a.attach_grad();
  {
    Record scope;
    op::sum(f({{"A", a}, {"B", b}}) * 10).backward();
  }
  EXPECT_EQ(elements(a.grad()), (std::vector<double>{50, 70}));
}

TEST(Symbol, ExecutorsRunForwardAndBackward) {
  Symbol x = Variable("x"), w = Variable("w"), y = op::sum(x * w);
  Array input = row({1, 2, 3}), weight = row({4, 5, 6});
  Executor e(y, {{"x", input}, {"w", weight}}, "add");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(e.forward(true)[0].item(), 32);
    e.backward();
  }
  EXPECT_EQ(elements(e.grad("w")), (std::vector<double>{2, 4, 6}));
  EXPECT_FALSE(weight.grad());            // the caller's handle is as it was
  e.array("w").assign(Array::ones({3}));  // its elements are shared
  EXPECT_EQ(elements(weight), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(e.forward()[0].item(), 6);
  EXPECT_TRUE(says(error_of([&] { e.backward(); }), "forward(true)"));
}

TEST(Symbol, MistakesAreErrorsThatSayWhatToDo) {
  Toy toy;
  Function f = compile(toy.d);
  Array a = Array::ones({2});
  EXPECT_TRUE(says(error_of([&] { f({{"A", a}}); }), "argument B is missing"));
  EXPECT_TRUE(says(error_of([&] { f({{"A", a}, {"B", a}, {"AA", a}}); }), "no argument AA"));
  EXPECT_TRUE(says(error_of([&] { f({{"A", a}, {"A", a}, {"B", a}}); }), "twice"));
  EXPECT_TRUE(says(error_of([&] { f(a); }), "takes 2 arrays; got 1"));
  EXPECT_TRUE(says(error_of([&] { f(Array::ones({2}), Array::ones({3})); }), "broadcast"));
  EXPECT_EQ(elements(f(a, a)), (std::vector<double>{2, 2}));  // and it still works
  EXPECT_TRUE(says(error_of([&] { compile(toy.d).planned_bytes(); }), "not called yet"));
  EXPECT_TRUE(says(error_of([&] { compile(toy.d, {.donate = {"X"}}); }), "X"));
  EXPECT_TRUE(says(error_of([&] { compile(toy.d, {.without = {"nonsense"}})(a, a); }), "nonsense"));
  EXPECT_TRUE(says(error_of([&] { compile(Variable("A") + Variable("A")); }), "two variables"));
  EXPECT_TRUE(says(error_of([&] { compile(Symbol()); }), "empty"));
  EXPECT_TRUE(says(error_of([&] { toy.d.grad({"Q"}); }), "Q"));
  EXPECT_TRUE(says(error_of([&] { toy.d["nothing"]; }), "no output nothing"));
  EXPECT_TRUE(says(error_of([&] { toy.d[3]; }), "1 output"));
  EXPECT_TRUE(says(error_of([&] { compose("no_such_operator", {toy.d}); }), "no_such_operator"));
  EXPECT_TRUE(says(error_of([&] { compose("softmax", {toy.d}, {{"axes", int64_t{1}}}); }), "axes"));
  EXPECT_TRUE(says(error_of([&] { compose("exp", {toy.d, toy.d}); }), "takes 1 input"));
  EXPECT_TRUE(says(error_of([&] { Variable("v", {.shape = Shape{-2}}); }), "-1"));
  EXPECT_TRUE(says(error_of([&] { Function()(a); }), "empty"));
  EXPECT_TRUE(says(error_of([&] { compile(Group({toy.d, toy.c}))(a, a); }), "all()"));
}

}  // namespace
