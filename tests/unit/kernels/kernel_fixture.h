// SPDX-License-Identifier: Apache-2.0
// What kernel tests share: every test once per instruction set of this machine, and random data.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/isa.h"

namespace twibil::kernels {

class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!isa_available(GetParam())) GTEST_SKIP() << "this processor lacks it";
    set_isa(GetParam());
  }
  void TearDown() override {
    set_isa(before_);
    set_num_threads(threads_);
  }

 private:
  Isa before_ = isa();
  int threads_ = num_threads();
};
inline std::string isa_of_test(const testing::TestParamInfo<Isa>& info) { return std::string(name_of(info.param)); }

template <class T> std::vector<T> random_values(int64_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(uniform(engine));
  return v;
}

template <class T> double in_double(T x) {
  if constexpr (std::is_same_v<T, double>) return x;
  else return static_cast<double>(static_cast<float>(x));
}

}  // namespace twibil::kernels
