// SPDX-License-Identifier: Apache-2.0
// What operators that work along axes share: checked axis lists and the shapes that follow from them.
#pragma once
#include "ir/apply.h"
#include "kernels/reduce.h"

namespace twibil::ops {

/// None: every axis. A repeated axis is a value error.
kernels::AxisSet axis_set(const Maybe<IntList>& axis, int rank, std::string_view who);
kernels::AxisSet axis_set(const Maybe<int64_t>& axis, int rank, std::string_view who);
Shape reduced_shape(const Shape& x, kernels::AxisSet set, bool keepdims);
inline Shape reduced_shape(const Shape& x, const Maybe<IntList>& axis, bool keepdims, std::string_view who) {
  return reduced_shape(x, axis_set(axis, x.rank(), who), keepdims);
}
/// A reduced value with its lost axes back as size one; `x` tells the rank before the reduction.
Val put_back(const Val& reduced, const Maybe<IntList>& axis, const Val& x);

}  // namespace twibil::ops
