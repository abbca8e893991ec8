// SPDX-License-Identifier: Apache-2.0
// The C++ edge: arithmetic, memory, gradients of both seeds' examples, errors, queued work.
#include "twibil/array.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/engine.h"
#include "memory/allocator.h"
#include "twibil/nn.h"

namespace twibil {
namespace {

TEST(Array, ToyProgramKeepsFourArraysAlive) {
  int64_t before = memory_stats().current_bytes;
  Array a = Array::ones({10}, DType::float64), b = Array::ones({10}, DType::float64) * 2;
  auto c = b * a;
  auto d = c + 1;
  EXPECT_EQ(memory_stats().current_bytes - before, 320);
  for (double v : d.to_vector<double>()) EXPECT_EQ(v, 3.0);
}

TEST(Array, GradientsOfTheSmallExample) {
  Array a = Array::full({}, 1), b = Array::full({}, 2);
  a.attach_grad();
  b.attach_grad();
  Array d;
  {
    Record scope;
    d = b * a + 1;
  }
  d.backward();
  EXPECT_EQ(d.item(), 3);
  EXPECT_EQ(a.grad().item(), 2);
  EXPECT_EQ(b.grad().item(), 1);
}

TEST(Array, PrintsEveryDigit) {
  EXPECT_EQ(to_string(Array::from(std::vector<int64_t>{INT64_MAX, INT64_MIN, (int64_t{1} << 53) + 1}, Shape{3})),
            "array([9223372036854775807, -9223372036854775808, 9007199254740993], int64)");
  EXPECT_EQ(to_string(Array::full({1, 2}, 0.1)), "array([[0.1, 0.1]], float32)");
}

TEST(Array, NothingIsRecordedUnderNoGradient) {
  Array x = Array::ones({3});
  x.attach_grad();
  Record scope;
  Array y;
  {
    NoGradient quiet;
    y = x * 2;
  }
  EXPECT_THROW(y.backward(), Error);
}

TEST(Array, ViewsShareElements) {
  Array x = Array::zeros({2, 3});
  x[1].assign(Array::ones({3}));
  x.transpose()[2].assign(Array(5));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 0, 5, 1, 1, 5}));
}

TEST(Array, ErrorsSayWhatDoesNotFit) {
  try {
    Array::ones({2, 3}) + Array::ones({4});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    EXPECT_NE(e.message().find("add: shapes [2, 3] and [4]"), std::string::npos) << e.message();
  }
  EXPECT_THROW(call("no_such_operator", {}), Error);
  EXPECT_THROW(call("relu", {Array::ones({2})}, {{"wrong", int64_t{1}}}), Error);
}

TEST(Array, AnEmptyOneAnswersWithAnError) {
  Array none;
  EXPECT_FALSE(none);
  EXPECT_EQ(to_string(none), "array()");
  for (const std::function<void()>& ask : std::vector<std::function<void()>>{
           [&] { none.shape(); }, [&] { none.size(); }, [&] { none.dim(0); }, [&] { none.rank(); },
           [&] { none.dtype(); }, [&] { none.to_vector<float>(); }, [&] { none.item(); }, [&] { none.wait_to_read(); },
           [&] { none[0]; }, [&] { none.slice(0, 1); }, [&] { none.detach(); }, [&] { none.assign(Array(1)); },
           [&] { Array::ones({2}).assign(none); }, [&] { none.attach_grad(); }, [&] { none.grad(); },
           [&] { none.backward(); }}) {
    try {
      ask();
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::value);
      EXPECT_NE(e.message().find("empty"), std::string::npos) << e.message();
    }
  }
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] { none.copy(); }, [&] { none.astype(DType::int64); }, [&] { none.transpose(); },
           [&] { none.reshape({}); }, [&] { none + 1; }, [&] { none += 1; }, [&] { -none; }})
    EXPECT_THROW(use(), Error);
}

TEST(Array, QueuedWorkGivesTheSameBitsAndItsErrorsSurfaceAtTheLook) {
  Array x = Array::ones({1000, 1000});  // large enough to be queued
  Array y = x;
  for (int i = 0; i < 5; ++i) y = y * 2 + x;
  EXPECT_EQ(call("sum", {y}).item(), 63e6);
  Array table = Array::ones({4, 300000}), rows = Array::from(std::vector<int64_t>{1, 7}, Shape{2});
  Array bad = call("embedding", {rows, table});  // the bad index is found when the work is done
  EXPECT_THROW(bad.wait_to_read(), Error);
  EXPECT_THROW((bad * 2).wait_to_read(), Error);
  engine::wait_all();
  EXPECT_EQ(call("sum", {x}).item(), 1e6);
}

TEST(Nn, ANetworkLearnsAndItsFileGivesTheSameAnswers) {
  seed(3);
  auto net = nn::sequential({nn::dense(16), nn::relu(), nn::dense(2)});
  auto optimizer = nn::adam(0.02);
  Array x = call("random_normal", {}, {{"size", std::vector<int64_t>{64, 4}}});
  Array label = (call("sum", {x}, {{"axis", std::vector<int64_t>{1}}}) > Array(0)).astype(DType::int64);
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    Array loss;
    {
      Record scope;
      loss = nn::softmax_cross_entropy((*net)(x), label);
    }
    loss.backward();
    optimizer->step(*net, 64);
    last = call("mean", {loss}).item();
    if (i == 0) first = last;
  }
  EXPECT_LT(last, 0.3 * first);
  std::string path = ::testing::TempDir() + "net.params";
  nn::save_parameters(*net, path);
  auto other = nn::sequential({nn::dense(16), nn::relu(), nn::dense(2)});
  for (const nn::Parameter& p : other->parameters()) EXPECT_FALSE(p.data) << p.name;
  for (const std::function<void()>& early : std::vector<std::function<void()>>{
           [&] { nn::save_parameters(*other, path); }, [&] { optimizer->step(*other, 64); }}) {
    try {
      early();
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_NE(e.message().find("parameter 0.weight waits for its first input"), std::string::npos) << e.message();
    }
  }
  nn::load_parameters(*other, path);  // tells the shapes
  EXPECT_EQ((*other)(x).to_vector<float>(), (*net)(x).to_vector<float>());
}

struct Pair final : nn::Layer {  // parameters that a user made
  Array first, second;
  Array operator()(const Array& x) override { return x * first; }
  void collect(const std::string& prefix, std::vector<nn::Parameter>& into) const override {
    if (first) into.push_back({prefix + "first", first});
    into.push_back({prefix + "second", second});
  }
};

TEST(Nn, FilesKeepDtypesAndTheOrderOfElements) {
  Pair net, other;
  net.first = Array::from(std::vector<int64_t>{1, (int64_t{1} << 53) + 1}, Shape{2});
  net.second = Array::from(std::vector<double>{1, 2, 3, 4, 5, 1.0 / 3}, Shape{2, 3}).transpose();
  std::string path = ::testing::TempDir() + "pair.params";
  nn::save_parameters(net, path);
  other.first = Array::zeros({2}, DType::int64);
  other.second = Array::zeros({3, 2}, DType::float64);
  nn::load_parameters(other, path);
  EXPECT_EQ(other.first.to_vector<int64_t>(), net.first.to_vector<int64_t>());
  EXPECT_EQ(other.second.to_vector<double>(), (std::vector<double>{1, 4, 2, 5, 3, 1.0 / 3}));
}

TEST(Nn, TheStateOfAParameterIsFoundByItsName) {
  for (bool late : {false, true}) {  // whether another parameter comes before it from the second step on
    Pair net;
    net.second = Array::ones({3});
    net.second.attach_grad();
    auto optimizer = nn::sgd(1.0, 0.5);
    for (int i = 0; i < 2; ++i) {
      if (late && i == 1) {
        net.first = Array::ones({7});
        net.first.attach_grad();
      }
      net.second.grad().assign(Array(1));
      optimizer->step(net, 1);
    }
    EXPECT_EQ(net.second.to_vector<float>(), (std::vector<float>(3, 1 - 1 - 1.5f)));
  }
}

}  // namespace
}  // namespace twibil
