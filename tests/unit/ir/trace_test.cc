// SPDX-License-Identifier: Apache-2.0
// Traced values: what they know, what they refuse, and that a trace leaves nothing behind.
#include "ir/trace.h"

#include <gtest/gtest.h>

#include "ir/modes.h"
#include "runtime/symbol_tracer.h"
#include "twibil/ops.h"

using namespace twibil;

namespace {

struct TraceTest : testing::Test {
  SymbolTracer t;
  Array input(const Shape& shape, DType dtype = DType::float32) { return Array(t.input("x", {shape, dtype})); }
};

TEST_F(TraceTest, ShapesAndDtypesAreKnown) {
  TraceScope scope(&t);
  Array x = input({2, 3}), y = op::dot(x, Array::ones({3, 5})), z = op::sum(y > 0);
  EXPECT_TRUE(y.value()->has(kTraced));
  EXPECT_EQ(y.shape(), (Shape{2, 5}));
  EXPECT_EQ(z.shape(), Shape{});
  EXPECT_EQ(z.dtype(), op::sum(Array::ones({1}) > 0).dtype());
  EXPECT_EQ(x.astype(DType::float64).dtype(), DType::float64);
}

TEST_F(TraceTest, ShapeErrorsAreThoseOfTheOperators) {
  TraceScope scope(&t);
  Array x = input({2, 3});
  EXPECT_THROW(x + Array::ones({4}), Error);
  EXPECT_THROW(op::softmax(x, {.axis = 5}), Error);
  EXPECT_THROW(x.item(), Error);
  EXPECT_THROW(x.to_vector<float>(), Error);
  EXPECT_EQ((x + 1).shape(), (Shape{2, 3}));  // the trace goes on
}

TEST_F(TraceTest, ViewsShareTheirArray) {
  TraceScope scope(&t);
  Array x = input({4, 3}), y = x * 2, row = y[1];
  EXPECT_EQ(row.shape(), Shape{3});
  EXPECT_THROW(row.assign(Array(0)), Error);  // a view cannot be written in a trace
  EXPECT_THROW(y.assign(Array(0)), Error);    // nor what a view is in use of
  row = Array();
  y.assign(Array(0));
}

TEST_F(TraceTest, WritesMoveTheArrayOn) {
  TraceScope scope(&t);
  Array x = input({3}), y = x * 2;
  SymbolRef before = t.ref(edge_of(*y.value()));
  y += 1;
  SymbolRef after = t.ref(edge_of(*y.value()));
  EXPECT_FALSE(before == after);
  EXPECT_TRUE(t.effects().empty());
  x.assign(y);
  EXPECT_EQ(t.effects().size(), 1u);
}

TEST_F(TraceTest, OutsideArraysBecomeInputsOnce) {
  Array w = Array::ones({3});
  TraceScope scope(&t);
  Array x = input({3}), y = x * w + w;
  ASSERT_EQ(t.captured().size(), 1u);
  EXPECT_EQ(t.captured()[0]->value.get(), w.value().get());
}

TEST_F(TraceTest, NothingIsLeftBehind) {
  Array kept;
  {
    TraceScope scope(&t);
    kept = input({3}) * 2;
    EXPECT_EQ(tracer, &t);
  }
  EXPECT_EQ(tracer, nullptr);
  EXPECT_THROW(kept + 1, Error);
  EXPECT_THROW(kept.item(), Error);
  EXPECT_EQ((Array::ones({2}) + 1).to_vector<float>(), (std::vector<float>{2, 2}));
  try {
    TraceScope scope(&t);
    throw_error(ErrorKind::value, "out of the trace");
  } catch (const Error&) {
  }
  EXPECT_EQ(tracer, nullptr);
}

TEST_F(TraceTest, AnotherTracersValueIsRefused) {
  SymbolTracer other;
  Array stranger(other.input("y", {Shape{3}, DType::float32}));
  TraceScope scope(&t);
  EXPECT_THROW(input({3}) + stranger, Error);
}

TEST_F(TraceTest, ManyValuesMayBeGivenUpInAnyOrder) {
  TraceScope scope(&t);
  std::vector<Array> values{input({2})};
  for (int i = 0; i < 5000; ++i) values.push_back(values.back() * 2);
  values.erase(values.begin(), values.begin() + 2500);
  EXPECT_EQ((values.back() + values.front()).shape(), Shape{2});
}

}  // namespace
