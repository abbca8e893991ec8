// SPDX-License-Identifier: Apache-2.0
// The loops of batch and layer normalisation. Data goes through the first cache in blocks: each block is read from
// memory once, halves are widened there, and its sums are joined in float64.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/normalize_loops.cc"
// clang-format off
#include "kernels/isa.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/copy_convert.h"
#include "kernels/normalize_job.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t kNormBlock = 1024;
constexpr int kLane = 32;

// A block in arithmetic type: the data itself, or a widened copy.
template <class T> HWY_INLINE const native_t<T>* view(const T* x, int64_t n, native_t<T>* buffer) {
  if constexpr (std::is_same_v<T, native_t<T>>) return x;
  else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = load(x, i);
    return buffer;
  }
}

template <class A, class F> HWY_INLINE A sum_of(int64_t n, const F& f) {
  A lane[kLane] = {};
  int64_t i = 0;
  for (; i + kLane <= n; i += kLane)
    for (int j = 0; j < kLane; ++j) lane[j] += f(i + j);
  for (int j = 0; i + j < n; ++j) lane[j] += f(i + j);
  for (int half = kLane / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
  return lane[0];
}

// Count, mean and sum of squared distances of a growing set (Chan, Golub, LeVeque 1979).
struct Spread {
  double count = 0, mean = 0, squares = 0;
  void add(double n, double other_mean, double other_squares) {
    double total = count + n, delta = other_mean - mean;
    mean += delta * (n / total);
    squares += other_squares + delta * delta * (count * n / total);
    count = total;
  }
};

template <class T> Spread spread_of(const T* x, int64_t n) {
  using A = native_t<T>;
  A buffer[kNormBlock];
  Spread all;
  for (int64_t at = 0; at < n; at += kNormBlock) {
    int64_t m = std::min(kNormBlock, n - at);
    const A* v = view(x + at, m, buffer);
    A mean = sum_of<A>(m, [&](int64_t i) HWY_ATTR { return v[i]; }) / static_cast<A>(m);
    A squares = sum_of<A>(m, [&](int64_t i) HWY_ATTR { return (v[i] - mean) * (v[i] - mean); });
    all.add(static_cast<double>(m), mean, squares);
  }
  return all;
}

template <class T> class BatchNorm {
 public:
  using A = native_t<T>;
  explicit BatchNorm(const BatchNormJob& job)
      : job_(job), rows_(job.shape.inner == 1), n_(rows_ ? job.shape.channels : job.shape.inner) {}

  void run(BatchNormStep step, int64_t item) const {
    const T* x = static_cast<const T*>(job_.x) + item * n_;
    const T* dy = static_cast<const T*>(job_.dy) + item * n_;
    T* y = static_cast<T*>(job_.y) + item * n_;
    int64_t c = rows_ ? 0 : item % job_.shape.channels;
    switch (step) {
      case BatchNormStep::statistics: return statistics(x, job_.partial + 2 * item);
      case BatchNormStep::apply: return apply(x, y, c);
      case BatchNormStep::sums: return rows_ ? add_row(x, dy) : sums(x, dy, c, job_.partial + 2 * item);
      case BatchNormStep::dx: return backward(x, dy, y, c);
    }
  }

 private:
  // In planes a channel's number is the same for all elements; in rows each element has its own.
  HWY_INLINE A of(const void* values, int64_t c, int64_t i, bool rows) const {
    return static_cast<const A*>(values)[rows ? i : c];
  }
  template <class F> HWY_INLINE void each(const F& f) const {  // f(rows) with a constant inside
    if (rows_) f(std::true_type());
    else f(std::false_type());
  }

  void statistics(const T* x, double* out) const {
    Spread s = spread_of(x, n_);
    out[0] = s.mean, out[1] = s.squares;
  }
  void apply(const T* x, T* y, int64_t c) const {
    each([&](auto rows) HWY_ATTR {
      for (int64_t i = 0; i < n_; ++i)
        store(y, i,
              (load(x, i) - of(job_.mean, c, i, rows)) * of(job_.factor, c, i, rows) + of(job_.shift, c, i, rows));
    });
  }
  void add_row(const T* x, const T* dy) const {
    const A* mean = static_cast<const A*>(job_.mean);
    A *sum = static_cast<A*>(job_.row_sums), *sum_x = sum + n_;
    for (int64_t i = 0; i < n_; ++i) {
      A d = load(dy, i);
      sum[i] += d;
      sum_x[i] += d * (load(x, i) - mean[i]);
    }
  }
  void sums(const T* x, const T* dy, int64_t c, double* out) const {
    A mean = of(job_.mean, c, 0, false), buffer[2][kNormBlock];
    double sum = 0, sum_x = 0;
    for (int64_t at = 0; at < n_; at += kNormBlock) {
      int64_t m = std::min(kNormBlock, n_ - at);
      const A *v = view(x + at, m, buffer[0]), *d = view(dy + at, m, buffer[1]);
      sum += sum_of<A>(m, [&](int64_t i) HWY_ATTR { return d[i]; });
      sum_x += sum_of<A>(m, [&](int64_t i) HWY_ATTR { return d[i] * (v[i] - mean); });
    }
    out[0] = sum, out[1] = sum_x * static_cast<double>(of(job_.factor, c, 0, false));
  }
  // dx = shift * (dy - a - (x - mean) * b)
  void backward(const T* x, const T* dy, T* dx, int64_t c) const {
    each([&](auto rows) HWY_ATTR {
      for (int64_t i = 0; i < n_; ++i) {
        A centered = load(x, i) - of(job_.mean, c, i, rows);
        A d = load(dy, i) - of(job_.a, c, i, rows) - centered * of(job_.b, c, i, rows);
        store(dx, i, d * of(job_.shift, c, i, rows));
      }
    });
  }

  const BatchNormJob& job_;
  bool rows_;
  int64_t n_;
};

template <class T> class LayerNorm {
 public:
  using A = native_t<T>;
  explicit LayerNorm(const LayerNormJob& job)
      : job_(job), gamma_(static_cast<const A*>(job.gamma)), beta_(static_cast<const A*>(job.beta)) {}

  void forward(int64_t row) const {
    const T* x = static_cast<const T*>(job_.x) + row * job_.n;
    T* y = static_cast<T*>(job_.y) + row * job_.n;
    Spread s = spread_of(x, job_.n);
    A mean = static_cast<A>(s.mean);
    A inv_std = static_cast<A>(1 / std::sqrt(s.squares / static_cast<double>(job_.n) + job_.eps));
    for (int64_t i = 0; i < job_.n; ++i)
      store(y, i, (load(x, i) - mean) * inv_std * (gamma_ ? gamma_[i] : A{1}) + (beta_ ? beta_[i] : A{0}));
    if (job_.mean) static_cast<A*>(job_.mean)[row] = mean;
    if (job_.inv_std) static_cast<A*>(job_.inv_std)[row] = inv_std;
  }

  void backward(int64_t row) const {
    const T *x = static_cast<const T*>(job_.x) + row * job_.n, *dy = static_cast<const T*>(job_.dy) + row * job_.n;
    A mean = static_cast<const A*>(job_.mean)[row], inv_std = static_cast<const A*>(job_.inv_std)[row];
    if (job_.dgamma) {
      A *dgamma = static_cast<A*>(job_.dgamma), *dbeta = static_cast<A*>(job_.dbeta);
      for (int64_t i = 0; i < job_.n; ++i) {
        A d = load(dy, i);
        dgamma[i] += d * ((load(x, i) - mean) * inv_std);
        dbeta[i] += d;
      }
    }
    if (!job_.y) return;
    A n = static_cast<A>(job_.n);
    auto scaled = [&](int64_t i) HWY_ATTR { return load(dy, i) * (gamma_ ? gamma_[i] : A{1}); };
    A sum = sum_of<A>(job_.n, scaled) / n;
    A sum_x = sum_of<A>(job_.n, [&](int64_t i) HWY_ATTR { return scaled(i) * (load(x, i) - mean); }) * inv_std / n;
    T* dx = static_cast<T*>(job_.y) + row * job_.n;
    for (int64_t i = 0; i < job_.n; ++i)
      store(dx, i, inv_std * (scaled(i) - sum - (load(x, i) - mean) * inv_std * sum_x));
  }

 private:
  const LayerNormJob& job_;
  const A *gamma_, *beta_;
};

template <class T> void batch_norm_items(BatchNormStep step, const BatchNormJob& job, int64_t begin, int64_t end) {
  BatchNorm<T> norm(job);
  for (int64_t i = begin; i < end; ++i) norm.run(step, i);
}
template <class T> void layer_norm_items(const LayerNormJob& job, int64_t begin, int64_t end) {
  LayerNorm<T> norm(job);
  for (int64_t i = begin; i < end; ++i) job.backward ? norm.backward(i) : norm.forward(i);
}

}  // namespace

void batch_norm_loops(BatchNormStep step, const BatchNormJob& job, int64_t begin, int64_t end) {
  switch (job.shape.dtype) {
    case DType::float16: return batch_norm_items<float16>(step, job, begin, end);
    case DType::bfloat16: return batch_norm_items<bfloat16>(step, job, begin, end);
    case DType::float32: return batch_norm_items<float>(step, job, begin, end);
    default: return batch_norm_items<double>(step, job, begin, end);
  }
}
void layer_norm_loops(const LayerNormJob& job, int64_t begin, int64_t end) {
  switch (job.dtype) {
    case DType::float16: return layer_norm_items<float16>(job, begin, end);
    case DType::bfloat16: return layer_norm_items<bfloat16>(job, begin, end);
    case DType::float32: return layer_norm_items<float>(job, begin, end);
    default: return layer_norm_items<double>(job, begin, end);
  }
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(batch_norm_loops);
HWY_EXPORT(layer_norm_loops);
void run_batch_norm(BatchNormStep step, const BatchNormJob& job, int64_t begin, int64_t end) {
  TW_DISPATCH(batch_norm_loops)(step, job, begin, end);
}
void run_layer_norm(const LayerNormJob& job, int64_t begin, int64_t end) {
  TW_DISPATCH(layer_norm_loops)(job, begin, end);
}
}  // namespace twibil::kernels
#endif
