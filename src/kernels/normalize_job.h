// SPDX-License-Identifier: Apache-2.0
// Work items of normalisation, between normalize.cc, which cuts the work, and normalize_loops.cc, which does it.
#pragma once
#include "kernels/normalize.h"

namespace twibil::kernels {

/// Planes (inner > 1): item p is plane p = (batch, channel). Rows (inner = 1): item r is row r of all channels.
struct BatchNormJob {
  ChannelShape shape;
  const void *x, *dy;
  void* y;                    // result of apply and backward_dx
  const void *mean, *factor;  // per channel; apply: gamma * inv_std; backward: inv_std
  const void *shift, *a, *b;  // apply: beta. dx: factor * scale of dy, dy_mean, xhat_mean
  double*
      partial;     // planes: statistics [items][2] mean and squares; sums [items][2] of dy and dy * (x - mean) * factor
  void* row_sums;  // rows: [2][channels], added to, of dy and dy * (x - mean)
};
enum class BatchNormStep : uint8_t { statistics, apply, sums, dx };

struct LayerNormJob {
  DType dtype;
  int64_t rows, n;
  double eps;
  const void *gamma, *beta, *x, *dy;
  void *y, *mean, *inv_std;
  void *dgamma, *dbeta;  // of these rows only: [n] each, added to
  bool backward;
};

void run_batch_norm(BatchNormStep step, const BatchNormJob& job, int64_t begin, int64_t end);
void run_layer_norm(const LayerNormJob& job, int64_t begin, int64_t end);

}  // namespace twibil::kernels
