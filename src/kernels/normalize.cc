// SPDX-License-Identifier: Apache-2.0
// Cuts normalisation into planes or rows, and joins their sums in a fixed order.
#include "kernels/normalize.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/recycled.h"
#include "kernels/copy_dims.h"
#include "kernels/normalize_job.h"
#include "kernels/reduce.h"

namespace twibil::kernels {
namespace {

template <class Body> void in_statistics_type(DType t, const Body& body) {
  TW_ASSERT(is_floating(t));
  if (t == DType::float64) body.template operator()<double>();
  else body.template operator()<float>();
}

int64_t items_of(const ChannelShape& s) { return s.inner == 1 ? s.batch : s.batch * s.channels; }
int64_t item_size(const ChannelShape& s) { return s.inner == 1 ? s.channels : s.inner; }

void run_items(BatchNormStep step, const BatchNormJob& job) {
  if (item_size(job.shape) == 0) return;
  parallel_for(items_of(job.shape), std::max<int64_t>(1, kPiece / item_size(job.shape)),
               [&](int64_t begin, int64_t end) { run_batch_norm(step, job, begin, end); });
}

// Then there may be 2^60 of whatever is left.
bool has_no_elements(const ChannelShape& s) { return s.batch == 0 || s.channels == 0 || s.inner == 0; }

void fill_channels(const ChannelShape& s, double value, void* a, void* b) {
  in_statistics_type(s.dtype, [&]<class A>() {
    for (void* to : {a, b}) std::fill_n(static_cast<A*>(to), s.channels, static_cast<A>(value));
  });
}

template <class A> Recycled<A> inverse_deviation(const ChannelShape& s, double eps, const void* var) {
  Recycled<A> inv(s.channels);
  for (int64_t c = 0; c < s.channels; ++c)
    inv[c] = static_cast<A>(1 / std::sqrt(static_cast<double>(static_cast<const A*>(var)[c]) + eps));
  return inv;
}

}  // namespace

void batch_norm_statistics(const ChannelShape& s, const void* x, void* mean, void* var) {
  if (has_no_elements(s)) {
    fill_channels(s, std::numeric_limits<double>::quiet_NaN(), mean, var);
    return;
  }
  if (s.inner == 1) {
    const int64_t shape[] = {s.batch, s.channels}, strides[] = {s.channels, 1};
    DType out = s.dtype == DType::float64 ? DType::float64 : DType::float32;
    return variance(s.dtype, out, shape, x, strides, 1, 0, mean, var);
  }
  Recycled<double> partial(static_cast<size_t>(2 * items_of(s)));
  run_items(BatchNormStep::statistics, {.shape = s, .x = x, .partial = partial.data()});
  in_statistics_type(s.dtype, [&]<class A>() {
    for (int64_t c = 0; c < s.channels; ++c) {
      double center = 0, squares = 0;
      for (int64_t b = 0; b < s.batch; ++b) center += partial[2 * (b * s.channels + c)];
      center /= static_cast<double>(s.batch);  // planes are of equal size
      for (int64_t b = 0; b < s.batch; ++b) {
        double d = partial[2 * (b * s.channels + c)] - center;
        squares += partial[2 * (b * s.channels + c) + 1] + d * d * static_cast<double>(s.inner);
      }
      static_cast<A*>(mean)[c] = static_cast<A>(center);
      static_cast<A*>(var)[c] = static_cast<A>(squares / (static_cast<double>(s.batch) * static_cast<double>(s.inner)));
    }
  });
}

void batch_norm_apply(const ChannelShape& s, double eps, const void* mean, const void* var, const void* gamma,
                      const void* beta, const void* x, void* y) {
  in_statistics_type(s.dtype, [&]<class A>() {
    Recycled<A> factor = inverse_deviation<A>(s, eps, var), shift(s.channels);
    if (gamma)
      for (int64_t c = 0; c < s.channels; ++c) factor[c] *= static_cast<const A*>(gamma)[c];
    if (beta) std::copy_n(static_cast<const A*>(beta), s.channels, shift.begin());
    run_items(BatchNormStep::apply,
              {.shape = s, .x = x, .y = y, .mean = mean, .factor = factor.data(), .shift = shift.data()});
  });
}

void batch_norm_backward_sums(const ChannelShape& s, double eps, const void* mean, const void* var, const void* x,
                              const void* dy, void* dgamma, void* dbeta) {
  if (has_no_elements(s)) {
    fill_channels(s, 0, dgamma, dbeta);
    return;
  }
  in_statistics_type(s.dtype, [&]<class A>() {
    Recycled<A> inv = inverse_deviation<A>(s, eps, var);
    A *to_gamma = static_cast<A*>(dgamma), *to_beta = static_cast<A*>(dbeta);
    if (s.inner == 1) {
      constexpr int64_t kRows = 64;  // summed in A; these chunks are then joined in float64
      int64_t chunks = (s.batch + kRows - 1) / kRows, n = s.channels;
      Recycled<A> part(2 * chunks * n);
      int64_t grain = std::max<int64_t>(1, kPiece / (kRows * std::max<int64_t>(1, n)));
      parallel_for(chunks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          BatchNormJob job{.shape = s, .x = x, .dy = dy, .mean = mean, .row_sums = part.data() + 2 * k * n};
          run_batch_norm(BatchNormStep::sums, job, k * kRows, std::min(s.batch, (k + 1) * kRows));
        }
      });
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0, sum_x = 0;
        for (int64_t k = 0; k < chunks; ++k) sum += part[2 * k * n + c], sum_x += part[(2 * k + 1) * n + c];
        to_beta[c] = static_cast<A>(sum);
        to_gamma[c] = static_cast<A>(sum_x * static_cast<double>(inv[c]));
      }
      return;
    }
    Recycled<double> partial(static_cast<size_t>(2 * items_of(s)));
    run_items(BatchNormStep::sums,
              {.shape = s, .x = x, .dy = dy, .mean = mean, .factor = inv.data(), .partial = partial.data()});
    for (int64_t c = 0; c < s.channels; ++c) {
      double sum = 0, sum_x = 0;
      for (int64_t b = 0; b < s.batch; ++b) {
        sum += partial[2 * (b * s.channels + c)];
        sum_x += partial[2 * (b * s.channels + c) + 1];
      }
      to_beta[c] = static_cast<A>(sum);
      to_gamma[c] = static_cast<A>(sum_x);
    }
  });
}

void batch_norm_backward_dx(const ChannelShape& s, double eps, const void* mean, const void* var, const void* gamma,
                            const void* dgamma, const void* dbeta, const void* x, const void* dy, void* dx) {
  in_statistics_type(s.dtype, [&]<class A>() {
    Recycled<A> scale = inverse_deviation<A>(s, eps, var), a(s.channels), b(s.channels);
    A count = static_cast<A>(s.batch) * static_cast<A>(s.inner);
    for (int64_t c = 0; c < s.channels; ++c) {
      if (dbeta) a[c] = static_cast<const A*>(dbeta)[c] / count;
      if (dgamma) b[c] = static_cast<const A*>(dgamma)[c] * scale[c] / count;
      if (gamma) scale[c] *= static_cast<const A*>(gamma)[c];
    }
    run_items(
        BatchNormStep::dx,
        {.shape = s, .x = x, .dy = dy, .y = dx, .mean = mean, .shift = scale.data(), .a = a.data(), .b = b.data()});
  });
}

void layer_norm(DType dtype, int64_t rows, int64_t n, double eps, const void* gamma, const void* beta, const void* x,
                void* y, void* mean, void* inv_std) {
  TW_ASSERT(is_floating(dtype));
  LayerNormJob job{.dtype = dtype, .rows = rows, .n = n, .eps = eps, .gamma = gamma, .beta = beta, .x = x, .y = y};
  job.mean = mean, job.inv_std = inv_std;
  parallel_for(rows, std::max<int64_t>(1, kPiece / std::max<int64_t>(1, n)),
               [&](int64_t begin, int64_t end) { run_layer_norm(job, begin, end); });
}

void layer_norm_backward(DType dtype, int64_t rows, int64_t n, const void* gamma, const void* mean, const void* inv_std,
                         const void* x, const void* dy, void* dx, void* dgamma, void* dbeta) {
  if (n == 0) return;
  in_statistics_type(dtype, [&]<class A>() {
    int64_t chunk = std::max<int64_t>(16, kPiece / std::max<int64_t>(1, n)), chunks = (rows + chunk - 1) / chunk;
    bool sums = dgamma || dbeta;
    Recycled<A> part(sums ? 2 * chunks * n : 0);
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        LayerNormJob job{.dtype = dtype, .rows = rows, .n = n, .eps = 0, .gamma = gamma, .x = x, .dy = dy, .y = dx};
        job.mean = const_cast<void*>(mean), job.inv_std = const_cast<void*>(inv_std), job.backward = true;
        if (sums) job.dgamma = part.data() + 2 * k * n, job.dbeta = part.data() + (2 * k + 1) * n;
        run_layer_norm(job, k * chunk, std::min(rows, (k + 1) * chunk));
      }
    });
    for (int64_t i = 0; i < n && sums; ++i) {
      double sum = 0, sum_x = 0;
      for (int64_t k = 0; k < chunks; ++k) sum_x += part[2 * k * n + i], sum += part[(2 * k + 1) * n + i];
      if (dgamma) static_cast<A*>(dgamma)[i] = static_cast<A>(sum_x);
      if (dbeta) static_cast<A*>(dbeta)[i] = static_cast<A>(sum);
    }
  });
}

}  // namespace twibil::kernels
