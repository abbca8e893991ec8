// SPDX-License-Identifier: Apache-2.0
// Models from files: which files belong together, what is checked, and answers for many threads.
#include "twibil/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "api/io/file.h"
#include "api/io/temporary_folder.h"
#include "twibil/ops.h"

using namespace twibil;

namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
bool says(const std::string& message, std::string_view part) { return message.find(part) != std::string::npos; }

struct ModelTest : testing::Test {
  io::TemporaryFolder folder;
  std::string stem = folder / "net";
  Array x = Array::ones({2, 3});

  void write(int epoch, double value) {
    Symbol y = op::fully_connected(Variable("data"), {}, {}, {.num_hidden = 2}).named("fc");
    save_symbol(stem + "-symbol.json", y);
    char end[32];
    std::snprintf(end, sizeof end, "-%04d.params", epoch);
    save_arrays(stem + end, {{"arg:fc_weight", Array::full({2, 3}, value)}, {"arg:fc_bias", Array::zeros({2})}});
  }
};

TEST_F(ModelTest, LoadsGraphAndParameters) {
  write(0, 2);
  Model model(stem);
  EXPECT_EQ(model.inputs(), std::vector<std::string>{"data"});
  EXPECT_EQ(model(x).to_vector<float>(), (std::vector<float>{6, 6, 6, 6}));
  EXPECT_EQ(Model(stem + "-symbol.json")(x).to_vector<float>(), (std::vector<float>{6, 6, 6, 6}));
  EXPECT_EQ(model.stem(), stem);
}

/// A field of bytes of a protocol buffer, shorter than 128.
std::string field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} + content;
}

TEST_F(ModelTest, ReadsOnnx) {
  auto plain = [](int number, int value) {
    return std::string{static_cast<char>(number << 3), static_cast<char>(value)};
  };
  std::string numbers(12, '\0');
  for (int i = 0; i < 3; ++i) {
    auto v = static_cast<float>(i - 1);
    std::memcpy(numbers.data() + 4 * i, &v, 4);
  }
  std::string weight = plain(1, 3) + plain(2, 1) + field(8, "w") + field(9, numbers);
  std::string add = field(1, "x") + field(1, "w") + field(2, "s") + field(4, "Add");
  std::string relu = field(1, "s") + field(2, "y") + field(4, "Relu");
  std::string type = field(1, plain(1, 1));
  std::string graph = field(1, add) + field(1, relu) + field(5, weight) + field(11, field(1, "x") + field(2, type)) +
                      field(12, field(1, "y") + field(2, type));
  std::string bytes = plain(1, 8) + field(7, graph) + field(8, plain(2, 13));
  io::write_atomic(stem + ".onnx", io::bytes_of(bytes));
  Model model(stem + ".onnx");
  EXPECT_EQ(model.inputs(), std::vector<std::string>{"x"});
  EXPECT_EQ(model.stem(), stem);
  EXPECT_EQ(model.parameters().at("w").to_vector<float>(), (std::vector<float>{-1, 0, 1}));
  EXPECT_EQ(model(Array::zeros({3})).to_vector<float>(), (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(model(Array::ones({2, 3})).to_vector<float>(), (std::vector<float>{0, 1, 2, 0, 1, 2}));
  io::write_atomic(stem + ".onnx", io::bytes_of(bytes.substr(0, bytes.size() - 30)));
  EXPECT_TRUE(says(error_of([&] { Model damaged(stem + ".onnx"); }), stem + ".onnx"));
}

TEST_F(ModelTest, TheHighestNumberCountsUnlessOneIsNamed) {
  write(2, 2);
  write(11, 3);
  EXPECT_EQ(Model(stem)(x)[0][0].item(), 9);
  EXPECT_EQ(Model(stem + "-0002.params")(x)[0][0].item(), 6);
}

TEST_F(ModelTest, LabelsAreForTrainingOnly) {
  Symbol y = compose("softmax_output", {Variable("data"), Variable("softmax_label")});
  save_symbol(stem + "-symbol.json", y);
  Model model(stem);
  EXPECT_EQ(model.inputs(), std::vector<std::string>{"data"});
  EXPECT_NEAR(model(x)[0][0].item(), 1 / 3.0, 1e-6);
}

TEST_F(ModelTest, WhatDoesNotFitIsAnErrorThatNamesTheFile) {
  EXPECT_TRUE(says(error_of([&] { Model m(stem); }), "net-symbol.json"));
  write(0, 1);
  save_arrays(stem + "-0000.params", {{"arg:fc_weight", Array::ones({2, 3})}});
  std::string message = error_of([&] { Model m(stem); });
  EXPECT_TRUE(says(message, "fc_bias") && says(message, "net-0000.params")) << message;
  save_arrays(stem + "-0000.params", {{"arg:fc_weight", Array::ones({5, 3})}, {"arg:fc_bias", Array::ones({2})}});
  EXPECT_NE(error_of([&] { Model{stem}(x); }), "no error");
  write(0, 1);
  Model model(stem);
  EXPECT_TRUE(says(error_of([&] { model.all({}); }), "takes 1 inputs; got 0"));
  EXPECT_NE(error_of([&] { model(Array::ones({2, 7})); }), "no error");
  EXPECT_EQ(model(x)[0][0].item(), 3);  // and it goes on
}

TEST_F(ModelTest, ArraysOfAllKindsSurviveAFile) {
  Array turned = op::reshape(op::arange(6), {2, 3}).transpose();
  save_arrays(folder / "a.params", {{"turned", turned}, {"ints", Array::ones({2}, DType::int64)}});
  std::vector<NamedArray> back = load_arrays(folder / "a.params");
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].array.to_vector<float>(), turned.to_vector<float>());
  EXPECT_EQ(back[1].array.dtype(), DType::int64);
}

}  // namespace
