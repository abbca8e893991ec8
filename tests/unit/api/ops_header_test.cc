// SPDX-License-Identifier: Apache-2.0
// The generated functions: arguments arrive where they belong.
#include <gtest/gtest.h>

#include "twibil/ops.h"

using namespace twibil;

namespace {

std::vector<float> elements(const Array& a) { return a.to_vector<float>(); }

TEST(OpsHeader, OptionsReadLikeKeywords) {
  Array x = Array::from(std::vector<float>{1, 2, 3, 4}, Shape{2, 2});
  EXPECT_EQ(elements(op::sum(x, {.axis = std::vector<int64_t>{0}})), (std::vector<float>{4, 6}));
  EXPECT_EQ(op::sum(x, {.axis = std::vector<int64_t>{1}, .keepdims = true}).shape(), (Shape{2, 1}));
  EXPECT_EQ(elements(op::clip(x, 2, 3.5)), (std::vector<float>{2, 2, 3, 3.5f}));
  EXPECT_EQ(op::argmax(x, {.axis = 1}).dtype(), DType::int64);
}

TEST(OpsHeader, WhatHasNoDefaultStandsByPosition) {
  Array x = Array::from(std::vector<float>{1, 2, 3, 4}, Shape{2, 2});
  EXPECT_EQ(op::reshape(x, {4, 1}).shape(), (Shape{4, 1}));
  EXPECT_EQ(op::one_hot(Array::from(std::vector<int64_t>{1, 0}, Shape{2}), 3).shape(), (Shape{2, 3}));
  EXPECT_THROW(call("one_hot", {x}), Error);  // by name it is missed all the same
}

TEST(OpsHeader, ListsOptionalArraysAndSeveralResults) {
  Array x = Array::from(std::vector<float>{3, 1, 2}, Shape{1, 3}), w = Array::ones({2, 3});
  EXPECT_EQ(op::concatenate({x, x, x}).shape(), (Shape{3, 3}));
  Array without = op::fully_connected(x, w, {.no_bias = true}), with = op::fully_connected(x, w, Array::ones({2}));
  EXPECT_EQ(elements(without), (std::vector<float>{6, 6}));
  EXPECT_EQ(elements(with), (std::vector<float>{7, 7}));
  Array anchors = op::multibox_prior(Array::zeros({1, 3, 4, 4}), {.sizes = {0.5}, .ratios = {1}});
  Array label = Array::from(std::vector<float>{0, 0.1f, 0.1f, 0.6f, 0.6f}, Shape{1, 1, 5});
  std::vector<Array> targets = op::multibox_target(anchors, label, Array::zeros({1, 2, 16}));
  ASSERT_EQ(targets.size(), 3u);
  EXPECT_EQ(targets[2].shape(), (Shape{1, 16}));
}

TEST(OpsHeader, GradientsFlowThroughThem) {
  Array x = Array::from(std::vector<float>{-1, 2}, Shape{2});
  x.attach_grad();
  {
    Record scope;
    op::sum(op::square(op::relu(x))).backward();
  }
  EXPECT_EQ(elements(x.grad()), (std::vector<float>{0, 4}));
}

}  // namespace
