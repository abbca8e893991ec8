// SPDX-License-Identifier: Apache-2.0
// Small bridges from buffers to the strided kernels.
#pragma once
#include "ir/op.h"
#include "kernels/copy.h"

namespace twibil::ops {

/// The strides of a buffer, made explicit.
struct Strides {
  int64_t items[kMaxRank];
  int rank;
  explicit Strides(const Buffer& b) : rank(b.rank) {
    if (b.strides) std::copy(b.strides, b.strides + b.rank, items);
    else contiguous_strides(b.shape(), items);
  }
  /// Of `b` seen with the (larger) shape it is broadcast to.
  Strides(const Buffer& b, std::span<const int64_t> shape) : rank(static_cast<int>(shape.size())) {
    Strides own(b);
    int shift = rank - b.rank;
    for (int i = 0; i < rank; ++i) items[i] = i < shift || b.dims[i - shift] == 1 ? 0 : own.items[i - shift];
  }
  operator std::span<const int64_t>() const { return {items, static_cast<size_t>(rank)}; }
};

/// A Python int that is written into integers must fit them, as in NumPy 2.
inline void check_number(const char* op, const Scalar& number, DType t) {
  TW_CHECK(number.is_real() || number.is_boolean() || holds(t, number.integer), overflow, op, ": the number ",
           number.integer, " must fit the dtype of the array, ", t);
}
inline void check_number(const char* op, const Sig& value, DType t) {
  if (value.weak && value.dtype == DType::int64) check_number(op, Scalar(value.number), t);
}

/// Copies x to y with broadcasting and conversion.
inline void copy_buffer(const Buffer& x, const Buffer& y) {
  bool there = x.data == y.data && x.dtype == y.dtype && x.size == y.size && !x.strides && !y.strides;
  if (there) return;  // a plan had x computed in its place
  kernels::convert(x.dtype, y.dtype, y.shape(), x.data, Strides(x, y.shape()), y.data, Strides(y));
}
/// Sums x into y, over the axes that y lacks or has with size one.
void sum_to(const Buffer& x, const Buffer& y);

}  // namespace twibil::ops
