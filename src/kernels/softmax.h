// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along one axis, with temperature, valid lengths or a mask, and their gradients.
#pragma once
#include "base/dtype.h"

namespace twibil::kernels {

/// A contiguous array seen as [outer, n, inner]; the softmax runs over n. Floating dtypes; halves compute in float32.
struct SoftmaxShape {
  DType dtype;
  int64_t outer, n, inner;
};

/// What is left out of the softmax; at most one of the two. Elements left out get 0 (log-softmax: -inf), as do all
/// elements of a group without a member. Their gradient is 0.
struct SoftmaxMask {
  const int64_t* lengths = nullptr;  // [outer, inner]: only the first lengths[o, i] of the n take part
  const void* mask = nullptr;        // bool, contiguous [outer, n, inner]: only true elements take part
};

/// y = exp(x / temperature) / sum, without overflow (the maximum is taken off); log: y = its logarithm, computed
/// directly. A group of -inf only, or with a NaN or +inf, gives NaN. y may be x.
void softmax(const SoftmaxShape& shape, bool log, double temperature, const SoftmaxMask& mask, const void* x, void* y);

/// dx from the result y: y * (dy - sum(dy * y)) / temperature; log: (dy - exp(y) * sum(dy)) / temperature. Elements
/// that were left out have y = 0 (-inf) and so get 0; for log pass dy = 0 there. dx may be dy.
void softmax_backward(const SoftmaxShape& shape, bool log, double temperature, const void* y, const void* dy, void* dx);

}  // namespace twibil::kernels
