// SPDX-License-Identifier: Apache-2.0
// Orders along one axis: sort, argsort, topk, unique, searchsorted. Arrays are contiguous and seen as [outer, n,
// inner]; the order runs along n. Everywhere NaN comes last (also when descending), -0 equals 0, and ties keep their
// order.
#pragma once
#include "base/dtype.h"

namespace twibil::kernels {

/// values (dtype of x) and indices (int64), both of x's shape; either may be null. Stable.
void sort(DType dtype, int64_t outer, int64_t n, int64_t inner, bool descending, const void* x, void* values,
          int64_t* indices);

/// The k <= n largest or smallest, best first, lower index first on ties: values and indices have shape [outer, k,
/// inner]. mask (uint8, x's shape) is 1 at the chosen elements, else 0. Any of the three may be null.
void topk(DType dtype, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest, const void* x, void* values,
          int64_t* indices, uint8_t* mask);

/// numpy.unique of n elements: the distinct values in ascending order (all NaN are one); returns their number. first:
/// index of the first occurrence of each; inverse (n elements): the place of each element's value; counts. values,
/// first and counts need room for n; all but values may be null.
int64_t unique(DType dtype, int64_t n, const void* x, void* values, int64_t* first, int64_t* inverse, int64_t* counts);

/// numpy.searchsorted: for each of m values the index in `sorted` (n elements, ascending) before which it belongs;
/// right: after equal ones.
void search_sorted(DType dtype, int64_t n, const void* sorted, int64_t m, const void* values, bool right, int64_t* dst);

}  // namespace twibil::kernels
