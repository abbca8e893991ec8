// SPDX-License-Identifier: Apache-2.0
// Batch and layer normalisation, forward and backward. Statistics, scales (gamma), shifts (beta) and their gradients
// are float64 for float64 data and float32 for all other dtypes; halves are read and written only. x and y are
// contiguous.
#pragma once
#include "base/dtype.h"

namespace twibil::kernels {

/// x seen as [batch, channels, inner]: the axes before, at and after the channel axis (inner = 1: channels last).
struct ChannelShape {
  DType dtype;
  int64_t batch, channels, inner;
};

/// Mean and biased variance of every channel (float32 data: float32 blocks joined in float64; no cancellation). NaN
/// when there are no elements. One pass over memory.
void batch_norm_statistics(const ChannelShape& shape, const void* x, void* mean, void* var);

/// y = (x - mean) / sqrt(var + eps) * gamma + beta per channel; gamma null: 1, beta null: 0. y may be x. With running
/// statistics this is inference.
void batch_norm_apply(const ChannelShape& shape, double eps, const void* mean, const void* var, const void* gamma,
                      const void* beta, const void* x, void* y);

/// First pass of the gradient: dgamma = sum(dy * xhat), dbeta = sum(dy) with xhat = (x - mean) / sqrt(var + eps).
void batch_norm_backward_sums(const ChannelShape& shape, double eps, const void* mean, const void* var, const void* x,
                              const void* dy, void* dgamma, void* dbeta);

/// Second pass. With batch statistics dx = gamma / sqrt(var + eps) * (dy - dbeta / m - xhat * dgamma / m), m = batch *
/// inner; with running statistics (dgamma, dbeta null) dx = gamma / sqrt(var + eps) * dy. dx may be dy, not x.
void batch_norm_backward_dx(const ChannelShape& shape, double eps, const void* mean, const void* var, const void* gamma,
                            const void* dgamma, const void* dbeta, const void* x, const void* dy, void* dx);

/// Each of `rows` rows of n elements: y = (x - mean) * inv_std * gamma + beta; gamma and beta have n elements or are
/// null. mean and inv_std (1 / sqrt(biased variance + eps)), `rows` each, are written for the gradient unless null. y
/// may be x.
void layer_norm(DType dtype, int64_t rows, int64_t n, double eps, const void* gamma, const void* beta, const void* x,
                void* y, void* mean, void* inv_std);

/// dx may be dy; dx, or dgamma and dbeta (n each), may be null.
void layer_norm_backward(DType dtype, int64_t rows, int64_t n, const void* gamma, const void* mean, const void* inv_std,
                         const void* x, const void* dy, void* dx, void* dgamma, void* dbeta);

}  // namespace twibil::kernels
