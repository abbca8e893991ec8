// SPDX-License-Identifier: Apache-2.0
// How gradients and composed operators call other operators: plain functions and arithmetic on values. Written by hand,
// because the generated functions of the front ends need the operators to exist first.
#pragma once
#include "ir/apply.h"
#include "ir/formula.h"
#include "ir/registry.h"

namespace twibil::ops {

struct AxesAttrs {  // of reductions
  Maybe<IntList> axis;
  bool keepdims = false;
};
struct SumAttrs {
  Maybe<IntList> axis;
  Maybe<DType> dtype;
  bool keepdims = false;
};
struct DTypeAttrs {
  DType dtype = DType::float32;
};
struct ShapeAttrs {
  IntList shape;
};
struct AxisAttrs {
  int64_t axis = -1;
};
struct ReshapeAttrs {
  IntList newshape;
  bool reverse = false;
};
struct EyeAttrs {
  int64_t N = 0;
  Maybe<int64_t> M;
  int64_t k = 0;
  Maybe<DType> dtype;
};
struct SoftmaxAttrs {
  int64_t axis = -1;
  Maybe<double> temperature;
  Maybe<DType> dtype;
  bool use_length = false;
};
struct OneHotAttrs {
  int64_t depth = 0;
  double on_value = 1, off_value = 0;
  Maybe<DType> dtype;
};
struct PadAttrs {
  IntList before, after;
  Choice mode;
  Scalar constant_values = Scalar(0);
};
struct TransposeAttrs {
  Maybe<IntList> axes;
};

#define TW_FORM_1(name) \
  inline Val name(const Val& x) { return apply(op_##name, {x}); }
#define TW_FORM_2(name) \
  inline Val name(const Val& x, const Val& y) { return apply(op_##name, {x, y}); }
#define TW_DECLARE(name) extern const OpDef op_##name;

// clang-format off
#define TW_UNARY_FORMS(X) \
  X(negative) X(absolute) X(exp) X(log) X(sqrt) X(square) X(sign) X(reciprocal) X(sigmoid) X(tanh) X(floor) X(trunc) \
  X(logical_not) X(isnan) X(isfinite) X(zeros_like) X(ones_like) X(copy)
#define TW_BINARY_FORMS(X) \
  X(add) X(subtract) X(multiply) X(true_divide) X(floor_divide) X(power) X(hypot) X(copysign) X(maximum) X(minimum) \
  X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal) X(logical_and) X(logical_or) X(matmul) \
  X(sum_to_like) X(broadcast_like) X(reshape_like)
// clang-format on
TW_UNARY_FORMS(TW_DECLARE)
TW_BINARY_FORMS(TW_DECLARE)
TW_UNARY_FORMS(TW_FORM_1)
TW_BINARY_FORMS(TW_FORM_2)
TW_DECLARE(sum)
TW_DECLARE(mean)
TW_DECLARE(cast)
TW_DECLARE(reshape)
TW_DECLARE(transpose)
TW_DECLARE(expand_dims)
TW_DECLARE(where)
TW_DECLARE(swapaxes)
TW_DECLARE(broadcast_to)
TW_DECLARE(eye)
TW_DECLARE(softmax)
TW_DECLARE(one_hot)
TW_DECLARE(pad)

inline Val sum(const Val& x, Maybe<IntList> axis = {}, bool keepdims = false) {
  return apply(op_sum, SumAttrs{axis, {}, keepdims}, {x});
}
inline Val mean(const Val& x, Maybe<IntList> axis = {}, bool keepdims = false) {
  return apply(op_mean, SumAttrs{axis, {}, keepdims}, {x});
}
inline Val cast(const Val& x, DType t) { return x->dtype() == t ? x : apply(op_cast, DTypeAttrs{t}, {x}); }
inline Val where(const Val& condition, const Val& x, const Val& y) { return apply(op_where, {condition, x, y}); }
inline Val transpose(const Val& x, IntList axes) { return apply(op_transpose, TransposeAttrs{axes}, {x}); }
inline Val reshape(const Val& x, const Shape& shape) {
  return apply(op_reshape, ReshapeAttrs{IntList(shape.span())}, {x});
}
inline Val softmax(const Val& x, int64_t axis) {
  SoftmaxAttrs a;
  a.axis = axis;
  return apply(op_softmax, a, {x});
}
/// Rows with a one at the position that each integer names, along a new last axis.
inline Val one_hot(const Val& index, int64_t depth, DType t) {
  OneHotAttrs a;
  a.depth = depth;
  a.dtype = t;
  return apply(op_one_hot, a, {index});
}
inline Val expand_dims(const Val& x, int64_t axis) { return apply(op_expand_dims, AxisAttrs{axis}, {x}); }

}  // namespace twibil::ops

namespace twibil {

inline Val operator+(const Val& x, const Val& y) { return ops::add(x, y); }
inline Val operator-(const Val& x, const Val& y) { return ops::subtract(x, y); }
inline Val operator*(const Val& x, const Val& y) { return ops::multiply(x, y); }
inline Val operator/(const Val& x, const Val& y) { return ops::true_divide(x, y); }
inline Val operator-(const Val& x) { return ops::negative(x); }

namespace ops {
/// Weight (channels, ...) and bias of a matrix operator take over a scale and shift of its channels, in the weight's
/// dtype.
inline void absorb_channels(std::span<Val> in, const Affine& f, bool& no_bias) {
  Val weight = in[1];
  Shape per_channel;
  for (int i = 0; i < weight->rank(); ++i) per_channel.push_back(i ? 1 : weight->dims[0]);
  in[1] = cast(weight * reshape(f.scale, per_channel), weight->dtype());
  bool biased = !no_bias && in[2];
  in[2] = cast(biased ? in[2] * f.scale + f.shift : f.shift, weight->dtype());
  no_bias = false;
}
}  // namespace ops

}  // namespace twibil
