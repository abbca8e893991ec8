// SPDX-License-Identifier: Apache-2.0
// Random programs over random layouts and dtypes against the reference evaluation, element by element.
#include "kernels/tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/parallel.h"
#include "ir/formula.h"
#include "kernels/cast.h"

namespace twibil::kernels {
namespace {

constexpr Program kRelu = record([](Expr x) { return max(x, 0); });
constexpr Program kAdd = record([](Expr x, Expr y) { return x + y; });
constexpr Program kMix =
    record([](Mask m, Expr x, Expr y, Param p) { return select(m && x < y, x * p + 0.5, exp(-abs(y))); });
constexpr Program kLess = record([](Expr x, Expr y) { return x < y; });
constexpr Program kOne = record([](Expr) { return Expr(1); });
constexpr Program kPick = record([](Mask m) { return select(m, 3, 4); });

struct Array {
  std::vector<char> bytes;
  std::vector<int64_t> strides;
  int64_t origin = 0;  // element
  DType dtype = DType::float64;

  char* data() { return bytes.data() + origin * size_of(dtype); }
  double at(std::span<const int64_t> index) {
    int64_t o = 0;
    for (size_t i = 0; i < index.size(); ++i) o += index[i] * strides[i];
    double v;
    cast(data() + o * size_of(dtype), dtype, &v, DType::float64, 1);
    return v;
  }
};

// Any layout: permuted, broadcast, stepped, reversed, padded.
Array random_array(std::mt19937& rng, const std::vector<int64_t>& shape, DType dtype, bool output) {
  auto below = [&](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
  Array a;
  a.dtype = dtype;
  std::vector<size_t> order(shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (below(3) == 0) std::shuffle(order.begin(), order.end(), rng);
  a.strides.assign(shape.size(), 0);
  int64_t span = 1, low = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t k = order[i];
    if (!output && below(4) == 0) continue;
    const int64_t step = below(4) == 0 ? 2 : 1;
    a.strides[k] = span * step;
    span *= std::max<int64_t>(shape[k], 1) * step;
    if (below(6) == 0 && shape[k] > 0) {
      low += a.strides[k] * (shape[k] - 1);
      a.strides[k] = -a.strides[k];
    }
  }
  a.origin = low;
  std::vector<double> values(static_cast<size_t>(span + 1));
  for (double& v : values)
    v = dtype == DType::bool_   ? below(2)
        : dtype == DType::uint8 ? below(4)
                                : (below(33) - 16) * (is_floating(dtype) ? 0.125 : 1);
  a.bytes.resize(values.size() * size_of(dtype));
  cast(values.data(), DType::float64, a.bytes.data(), dtype, static_cast<int64_t>(values.size()));
  return a;
}

void check(const Program& p, DType work, std::vector<Array>& in, std::vector<double> params, Array& out,
           const std::vector<int64_t>& shape) {
  std::vector<Operand> operands;
  for (Array& a : in) operands.push_back({a.data(), a.strides.data(), a.dtype});
  std::vector<Scalar> scalars(params.begin(), params.end());
  run_program(p, work, operands, scalars, {out.data(), out.strides.data(), out.dtype}, shape);
  std::vector<int64_t> index(shape.size(), 0);
  int64_t count = 1;
  for (int64_t s : shape) count *= s;
  for (int64_t k = 0; k < count; ++k) {
    std::vector<double> x;
    for (int i = 0; i < p.input_count; ++i) {
      x.push_back(in[static_cast<size_t>(i)].at(index));
      if (!p.reads_mask(i)) cast(&x.back(), DType::float64, &x.back(), DType::float64, 1);
    }
    double want = evaluate(p, x, params), got = out.at(index);
    const double eps = is_half(out.dtype) ? 0x1p-7 : 1e-5;
    if (is_integer(out.dtype)) want = std::trunc(want);
    if (out.dtype == DType::bool_) want = want != 0;
    if (std::isnan(want) && std::isnan(got)) want = got = 0;
    ASSERT_NEAR(got, want, eps * (1 + std::fabs(want))) << to_text(p) << " at " << k;
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

std::vector<int64_t> random_shape(std::mt19937& rng) {
  static const std::vector<int64_t> sizes[] = {{0, 1, 2, 3, 5, 7}, {1, 2, 3, 33, 64, 65}, {1, 100, 513, 1030}};
  std::vector<int64_t> shape(rng() % 5);
  int64_t left = 6000;
  for (int64_t& s : shape) {
    const auto& from = sizes[rng() % 3];
    s = std::min<int64_t>(from[rng() % from.size()], std::max<int64_t>(left, 1));
    if (s > 0) left /= s;
  }
  return shape;
}

TEST(Tile, RandomLayoutsAndDTypes) {
  std::mt19937 rng(7);
  const DType floats[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                          DType::int32,   DType::bool_,   DType::int8};
  const Program* programs[] = {&kRelu, &kAdd, &kMix, &kLess, &kOne, &kPick};
  for (int round = 0; round < 600; ++round) {
    const Program& p = *programs[rng() % 6];
    const std::vector<int64_t> shape = random_shape(rng);
    std::vector<Array> in;
    for (int i = 0; i < p.input_count; ++i) in.push_back(random_array(rng, shape, floats[rng() % 7], false));
    Array out = random_array(rng, shape, p.mask_output() && rng() % 2 ? DType::bool_ : floats[rng() % 5], true);
    check(p, rng() % 2 ? DType::float32 : DType::float64, in, std::vector<double>(p.param_count, 1.5), out, shape);
    if (HasFatalFailure()) return;
  }
}

Program random_program(std::mt19937& rng) {
  static constexpr Prim kSafe[] = {Prim::add,         Prim::sub,       Prim::mul,    Prim::max,   Prim::min,
                                   Prim::neg,         Prim::abs,       Prim::lt,     Prim::ge,    Prim::logical_and,
                                   Prim::logical_not, Prim::from_mask, Prim::select, Prim::floor, Prim::fma,
                                   Prim::tanh,        Prim::sigmoid};
  formula::Recorder r;
  std::vector<formula::Id> pool = {r.argument(false), r.argument(true), r.argument(false),
                                   r.param(),         r.number(0.5),    r.number(2)};
  const int length = 1 + static_cast<int>(rng() % 40);
  for (int i = 0; i < length; ++i) {
    Prim prim = kSafe[rng() % std::size(kSafe)];
    formula::Id o[3] = {formula::kNoId, formula::kNoId, formula::kNoId};
    for (int j = 0; j < info_of(prim).arity; ++j)
      o[j] = pool[rng() % 2 ? pool.size() - 1 - rng() % std::min<size_t>(6, pool.size()) : rng() % pool.size()];
    // Products of products leave the range of doubles: squash now and then.
    formula::Id x = r.emit(prim, o[0], o[1], o[2]);
    if (!r.is_mask(x) && i % 4 == 3) x = r.emit(Prim::tanh, x);
    pool.push_back(x);
  }
  return r.finish(pool.back());
}

TEST(Tile, RandomPrograms) {
  std::mt19937 rng(11);
  for (int round = 0; round < 400; ++round) {
    const Program p = random_program(rng);
    const std::vector<int64_t> shape = random_shape(rng);
    std::vector<Array> in;
    for (int i = 0; i < p.input_count; ++i) in.push_back(random_array(rng, shape, DType::float64, false));
    Array out = random_array(rng, shape, DType::float64, true);
    check(p, DType::float64, in, std::vector<double>(p.param_count, 0.75), out, shape);
    if (HasFatalFailure()) return;
  }
}

// The same bits for any number of threads and any cut into tiles.
TEST(Tile, ThreadsDoNotMatter) {
  const int64_t n = 300'001;
  std::vector<float> x(n), y(n), one(n), many(n);
  for (int64_t i = 0; i < n; ++i)
    x[static_cast<size_t>(i)] = static_cast<float>(i % 97) * 0.03f,
    y[static_cast<size_t>(i)] = static_cast<float>(i % 89) * 0.04f;
  const Operand in[] = {
      {x.data(), nullptr, DType::float32}, {x.data(), nullptr, DType::float32}, {y.data(), nullptr, DType::float32}};
  const Scalar params[] = {Scalar(2.0)};
  const int before = num_threads();
  set_num_threads(1);
  run_program(kMix, DType::float32, in, params, {one.data(), nullptr, DType::float32}, std::vector<int64_t>{n});
  set_num_threads(3);
  run_program(kMix, DType::float32, in, params, {many.data(), nullptr, DType::float32}, std::vector<int64_t>{n});
  set_num_threads(before);
  EXPECT_EQ(one, many);
}

TEST(Tile, IntegersAreExact) {
  const int64_t big = (int64_t{1} << 62) + 1;
  const int64_t x[] = {big, -big, 7};
  int64_t out[3];
  const Operand in[] = {{x, nullptr, DType::int64}, {x, nullptr, DType::int64}};
  run_program(kAdd, DType::int64, in, {}, {out, nullptr, DType::int64}, std::vector<int64_t>{3});
  EXPECT_EQ(out[0], static_cast<int64_t>(2 * static_cast<uint64_t>(big)));
  const int8_t small[] = {127, -128, 1}, two[] = {1, -1, 1};
  int8_t sum[3];
  const Operand in8[] = {{small, nullptr, DType::int8}, {two, nullptr, DType::int8}};
  run_program(kAdd, DType::int8, in8, {}, {sum, nullptr, DType::int8}, std::vector<int64_t>{3});
  EXPECT_EQ(sum[0], -128);
  EXPECT_EQ(sum[1], 127);
}

TEST(Tile, RankZeroAndInPlace) {
  float x = -3;
  const Operand in[] = {{&x, nullptr, DType::float32}};
  run_program(kRelu, DType::float32, in, {}, {&x, nullptr, DType::float32}, {});
  EXPECT_EQ(x, 0);
  std::vector<float> v(1000, -1);
  const Operand in_v[] = {{v.data(), nullptr, DType::float32}};
  run_program(kRelu, DType::float32, in_v, {}, {v.data(), nullptr, DType::float32}, std::vector<int64_t>{10, 100});
  EXPECT_EQ(v, std::vector<float>(1000, 0));
}

TEST(Tile, LimitsOfTheWorkingDType) {
  constexpr Program p = record([](Expr x) { return select(x > 0, formula::highest(), formula::lowest()); });
  const int8_t x[] = {1, -1};
  int8_t out[2];
  const Operand in[] = {{x, nullptr, DType::int8}};
  run_program(p, DType::int8, in, {}, {out, nullptr, DType::int8}, std::vector<int64_t>{2});
  EXPECT_EQ(out[0], 127);
  EXPECT_EQ(out[1], -128);
}

TEST(Tile, AMaskIsReadInItsOwnDType) {
  const double tiny[] = {0.25, 0, NAN};
  int32_t out[3];
  const Operand in[] = {{tiny, nullptr, DType::float64}};
  run_program(kPick, DType::int32, in, {}, {out, nullptr, DType::int32}, std::vector<int64_t>{3});
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[1], 4);
  EXPECT_EQ(out[2], 3);
}

TEST(Tile, RunsIn) {
  EXPECT_TRUE(kMix.runs_in(DType::float16));
  EXPECT_FALSE(kMix.runs_in(DType::int32));
  EXPECT_TRUE(kRelu.runs_in(DType::bool_));
}

}  // namespace
}  // namespace twibil::kernels
