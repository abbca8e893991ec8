// SPDX-License-Identifier: Apache-2.0
// Groups that are contiguous (inner = 1) run as rows, others as tiles of neighbouring columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
// clang-format off
#include "kernels/isa.h"
#include "base/recycled.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include "kernels/softmax.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/parallel.h"
#include "kernels/copy_convert.h"
#include "kernels/copy_dims.h"

#ifndef TWIBIL_SOFTMAX_JOB
#define TWIBIL_SOFTMAX_JOB
namespace twibil::kernels {
struct SoftmaxJob {
  SoftmaxShape shape;
  bool log, backward;
  double temperature;
  SoftmaxMask mask;
  const void *x, *dy;  // backward: x is the result y
  void* y;             // backward: dx
  bool by_tiles;       // items are tiles of columns, not groups
};
}  // namespace twibil::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace {

// exp(x) for x <= 0, at most 1 ULP off: 2^n * p(r), |r| <= ln(2) / 2. The rounding constant leaves n in the low bits of
// t. Below -104 the result is 0; NaN stays NaN.
HWY_INLINE float exp_negative(float x) {
  constexpr float kRound = 12582912.0f;
  x = x < -104.0f ? -104.0f : x;
  float t = x * 1.44269504f + kRound;
  int32_t n = std::bit_cast<int32_t>(t) - std::bit_cast<int32_t>(kRound);
  float k = t - kRound, r = x - k * 0.693359375f;
  r = r + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  int32_t half = n >> 1;  // two factors, so that results below the normal range come out right
  return p * std::bit_cast<float>(static_cast<uint32_t>(half + 127) << 23) *
         std::bit_cast<float>(static_cast<uint32_t>(n - half + 127) << 23);
}
HWY_INLINE double exp_negative(double x) { return std::exp(x); }

constexpr int kLane = 32;

// The sum of f(0) ... f(n - 1) in a fixed order.
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
template <class A> HWY_INLINE A max_of(const A* x, int64_t n) {  // NaN may get lost: the sum finds it
  constexpr A kLowest = -std::numeric_limits<A>::infinity();
  if (n < kLane) {
    A top = kLowest;
    for (int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
    return top;
  }
  A lane[kLane];
  for (A& v : lane) v = kLowest;
  int64_t i = 0;
  for (; i + kLane <= n; i += kLane)
    for (int j = 0; j < kLane; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  for (int j = 0; i + j < n; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  for (int j = 1; j < kLane; ++j) lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
  return lane[0];
}

// A group of at most kLane elements: padded with -inf, so that every loop has a fixed length.
template <class A> void softmax_short_row(A* z, int64_t n) {
  A e[kLane], sum[kLane / 2], top = -std::numeric_limits<A>::infinity();
  for (int64_t i = 0; i < n; ++i) top = z[i] > top ? z[i] : top;
  for (A& v : e) v = -std::numeric_limits<A>::infinity();
  for (int64_t i = 0; i < n; ++i) e[i] = z[i];
  if (n <= 16)
    for (int i = 0; i < 16; ++i) e[i] = exp_negative(e[i] - top), e[i + 16] = 0;
  else
    for (A& v : e) v = exp_negative(v - top);
  for (int i = 0; i < 16; ++i) sum[i] = e[i] + e[i + 16];
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  A factor = 1 / sum[0];
  for (int64_t i = 0; i < n; ++i) z[i] = e[i] * factor;
}

// One group in place, z = x / temperature already.
template <class A> void softmax_row(A* z, int64_t n, bool log) {
  if (n <= kLane && !log) return softmax_short_row(z, n);
  A top = max_of(z, n);
  if (log) {
    A sum = sum_of<A>(n, [&](int64_t i) HWY_ATTR { return exp_negative(z[i] - top); });
    A shift = std::log(sum);
    for (int64_t i = 0; i < n; ++i) z[i] = z[i] - top - shift;
    return;
  }
  for (int64_t i = 0; i < n; ++i) z[i] = exp_negative(z[i] - top);
  A factor = 1 / sum_of<A>(n, [&](int64_t i) HWY_ATTR { return z[i]; });
  for (int64_t i = 0; i < n; ++i) z[i] *= factor;
}

template <class A> void backward_row(const A* y, const A* dy, A* dx, int64_t n, bool log, A scale) {
  if (log) {
    A sum = sum_of<A>(n, [&](int64_t i) HWY_ATTR { return dy[i]; });
    for (int64_t i = 0; i < n; ++i) dx[i] = (dy[i] - exp_negative(y[i]) * sum) * scale;
  } else {
    A sum = sum_of<A>(n, [&](int64_t i) HWY_ATTR { return dy[i] * y[i]; });
    for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - sum) * scale;
  }
}

// n elements `inner` apart, to and from a row of accumulators.
template <class T, class A> HWY_INLINE void load_row(const T* x, int64_t inner, int64_t n, A scale, A* row) {
  if (inner == 1)
    for (int64_t i = 0; i < n; ++i) row[i] = load(x, i) * scale;
  else
    for (int64_t i = 0; i < n; ++i) row[i] = load(x, i * inner) * scale;
}
template <class T, class A> HWY_INLINE void store_row(const A* row, int64_t inner, int64_t n, T* y) {
  if (inner == 1)
    for (int64_t i = 0; i < n; ++i) store(y, i, row[i]);
  else
    for (int64_t i = 0; i < n; ++i) store(y, i * inner, row[i]);
}

template <class T> class Groups {
 public:
  using A = native_t<T>;
  explicit Groups(const SoftmaxJob& job)
      : job_(job), n_(job.shape.n), inner_(job.shape.inner), scale_(static_cast<A>(1 / job.temperature)) {
    bool direct = std::is_same_v<T, A> && inner_ == 1 && !job.mask.lengths && !job.mask.mask;
    if (!direct) buffer_.resize(job.backward ? 2 * n_ : n_);
  }

  void run(int64_t g) {  // group g = (outer, inner)
    int64_t at = inner_ == 1 ? g * n_ : g / inner_ * n_ * inner_ + g % inner_;
    const T* x = static_cast<const T*>(job_.x) + at;
    T* y = static_cast<T*>(job_.y) + at;
    if (job_.backward) return run_backward(x, static_cast<const T*>(job_.dy) + at, y);
    if constexpr (std::is_same_v<T, A>)
      if (buffer_.empty()) {
        load_row(x, 1, n_, scale_, y);
        return softmax_row(y, n_, job_.log);
      }
    A* row = buffer_.data();
    if (job_.mask.mask) return run_masked(x, static_cast<const bool*>(job_.mask.mask) + at, y);
    int64_t length = job_.mask.lengths ? std::clamp<int64_t>(job_.mask.lengths[g], 0, n_) : n_;
    load_row(x, inner_, length, scale_, row);
    softmax_row(row, length, job_.log);
    for (int64_t i = length; i < n_; ++i) row[i] = left_out();
    store_row(row, inner_, n_, y);
  }

 private:
  A left_out() const { return job_.log ? -std::numeric_limits<A>::infinity() : A{0}; }

  void run_backward(const T* y, const T* dy, T* dx) {
    if constexpr (std::is_same_v<T, A>)
      if (buffer_.empty()) return backward_row(y, dy, dx, n_, job_.log, scale_);
    A *row = buffer_.data(), *grad = row + n_;
    load_row(y, inner_, n_, A{1}, row);
    load_row(dy, inner_, n_, A{1}, grad);
    backward_row(row, grad, grad, n_, job_.log, scale_);
    store_row(grad, inner_, n_, dx);
  }
  // Members move together to the front, so that a NaN outside the mask does no harm.
  void run_masked(const T* x, const bool* mask, T* y) {
    A* row = buffer_.data();
    int64_t members = 0;
    for (int64_t i = 0; i < n_; ++i)
      if (load(mask, i * inner_)) row[members++] = load(x, i * inner_) * scale_;
    softmax_row(row, members, job_.log);
    int64_t next = 0;
    for (int64_t i = 0; i < n_; ++i) store(y, i * inner_, load(mask, i * inner_) ? row[next++] : left_out());
  }

  const SoftmaxJob& job_;
  int64_t n_, inner_;
  A scale_;
  Recycled<A> buffer_;
};

// kColumns groups side by side, through buffers [n][kColumns]; the loops run across the groups.
constexpr int64_t kColumns = 64;
template <class T> class SoftmaxTiles {
 public:
  using A = native_t<T>;
  explicit SoftmaxTiles(const SoftmaxJob& job)
      : job_(job),
        n_(job.shape.n),
        inner_(job.shape.inner),
        scale_(static_cast<A>(1 / job.temperature)),
        z_(n_ * kColumns),
        dy_(job.backward ? n_ * kColumns : 0) {}

  void run(int64_t tile) {
    int64_t tiles = (inner_ + kColumns - 1) / kColumns, first = tile % tiles * kColumns;
    int64_t at = tile / tiles * n_ * inner_ + first, width = std::min(kColumns, inner_ - first);
    fetch(static_cast<const T*>(job_.x) + at, width, job_.backward ? A{1} : scale_, z_.data());
    if (job_.backward) {
      fetch(static_cast<const T*>(job_.dy) + at, width, A{1}, dy_.data());
      backward();
    } else {
      forward();
    }
    T* y = static_cast<T*>(job_.y) + at;
    for (int64_t j = 0; j < n_; ++j)
      for (int64_t i = 0; i < width; ++i) store(y, j * inner_ + i, z_[j * kColumns + i]);
  }

 private:
  void fetch(const T* x, int64_t width, A scale, A* to) const {
    for (int64_t j = 0; j < n_; ++j, x += inner_, to += kColumns) {
      for (int64_t i = 0; i < width; ++i) to[i] = load(x, i) * scale;
      for (int64_t i = width; i < kColumns; ++i) to[i] = 0;
    }
  }
  // sum[i] = f(j, i) over j, in chunks of 32 so that the error stays small.
  template <class F> HWY_INLINE void sum_down(A* sum, const F& f) const {
    for (int64_t i = 0; i < kColumns; ++i) sum[i] = 0;
    for (int64_t j = 0; j < n_; j += 32) {
      A part[kColumns] = {};
      for (int64_t k = j; k < std::min(n_, j + 32); ++k)
        for (int64_t i = 0; i < kColumns; ++i) part[i] += f(k * kColumns + i, i);
      for (int64_t i = 0; i < kColumns; ++i) sum[i] += part[i];
    }
  }
  void forward() {
    A top[kColumns], sum[kColumns], *z = z_.data();
    for (A& v : top) v = -std::numeric_limits<A>::infinity();
    for (int64_t j = 0; j < n_; ++j)
      for (int64_t i = 0; i < kColumns; ++i) top[i] = z[j * kColumns + i] > top[i] ? z[j * kColumns + i] : top[i];
    if (job_.log) {
      sum_down(sum, [&](int64_t k, int64_t i) HWY_ATTR { return exp_negative(z[k] - top[i]); });
      for (int64_t i = 0; i < kColumns; ++i) sum[i] = std::log(sum[i]);
      for (int64_t j = 0; j < n_; ++j)
        for (int64_t i = 0; i < kColumns; ++i) z[j * kColumns + i] = z[j * kColumns + i] - top[i] - sum[i];
      return;
    }
    sum_down(sum, [&](int64_t k, int64_t i) HWY_ATTR { return z[k] = exp_negative(z[k] - top[i]); });
    for (A& v : sum) v = 1 / v;
    for (int64_t j = 0; j < n_; ++j)
      for (int64_t i = 0; i < kColumns; ++i) z[j * kColumns + i] *= sum[i];
  }
  void backward() {
    A sum[kColumns], *z = z_.data(), *dy = dy_.data();
    if (job_.log) sum_down(sum, [&](int64_t k, int64_t) HWY_ATTR { return dy[k]; });
    else sum_down(sum, [&](int64_t k, int64_t) HWY_ATTR { return dy[k] * z[k]; });
    for (int64_t j = 0; j < n_; ++j, z += kColumns, dy += kColumns)
      for (int64_t i = 0; i < kColumns; ++i)
        z[i] = (job_.log ? dy[i] - exp_negative(z[i]) * sum[i] : z[i] * (dy[i] - sum[i])) * scale_;
  }

  const SoftmaxJob& job_;
  int64_t n_, inner_;
  A scale_;
  Recycled<A> z_, dy_;
};

template <class T> void run_groups(const SoftmaxJob& job, int64_t begin, int64_t end) {
  auto run = [&](auto worker) {
    for (int64_t i = begin; i < end; ++i) worker.run(i);
  };
  if (job.by_tiles) run(SoftmaxTiles<T>(job));
  else run(Groups<T>(job));
}

}  // namespace

void softmax_groups(const SoftmaxJob& job, int64_t begin, int64_t end) {
  switch (job.shape.dtype) {
    case DType::float16: return run_groups<float16>(job, begin, end);
    case DType::bfloat16: return run_groups<bfloat16>(job, begin, end);
    case DType::float32: return run_groups<float>(job, begin, end);
    default: return run_groups<double>(job, begin, end);
  }
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(softmax_groups);
namespace {

void run_softmax(SoftmaxJob job) {
  const SoftmaxShape& s = job.shape;
  TW_ASSERT(is_floating(s.dtype));
  if (s.n == 0) return;
  constexpr int64_t kColumns = 64;
  job.by_tiles = s.inner > 1 && !job.mask.lengths && !job.mask.mask;
  int64_t items = s.outer * (job.by_tiles ? (s.inner + kColumns - 1) / kColumns : s.inner);
  int64_t width = job.by_tiles ? std::min(s.inner, kColumns) : 1;
  parallel_for(items, std::max<int64_t>(1, kPiece / 4 / (s.n * width)), [&](int64_t begin, int64_t end) {
    TW_DISPATCH(softmax_groups)(job, begin, end);
  });
}

}  // namespace

void softmax(const SoftmaxShape& shape, bool log, double temperature, const SoftmaxMask& mask, const void* x, void* y) {
  run_softmax({shape, log, false, temperature, mask, x, nullptr, y, false});
}
void softmax_backward(const SoftmaxShape& shape, bool log, double temperature, const void* y, const void* dy,
                      void* dx) {
  run_softmax({shape, log, true, temperature, {}, y, dy, dx, false});
}

}  // namespace twibil::kernels
#endif
