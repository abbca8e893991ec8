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

/// The facts of a reduction with the attributes `axis` and `keepdims`.
template <class A> constexpr Folds folds_of(bool equal_parts = false) {
  return {.axes = [](const void* a, int rank) -> uint32_t {
            return axis_set(static_cast<const A*>(a)->axis, rank, "reduction");
          },
          .over_first =
              [](void* a) {
                static_cast<A*>(a)->axis = IntList{0};
                static_cast<A*>(a)->keepdims = false;
              },
          .equal_parts = equal_parts};
}
/// How many leading sizes two shapes have in common.
inline int common_axes(const Shape& x, const Shape& y) {
  int n = 0;
  while (n < x.rank() && n < y.rank() && x[n] == y[n]) ++n;
  return n;
}
/// Of operators that work along one axis: positions before it stand apart.
template <class A> constexpr RowsFunction rows_before_axis() {
  return [](const void* a, SigsIn in) -> Rows {
    return {normalize_axis(static_cast<const A*>(a)->axis, in[0].rank(), "axis")};
  };
}

}  // namespace twibil::ops
