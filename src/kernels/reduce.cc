// SPDX-License-Identifier: Apache-2.0
// Plans reductions: which axes stay, what accumulates, how results are cast. reduce_loops.cc has the loops.
#include "kernels/reduce.h"

#include <cmath>
#include <limits>
#include <memory>

#include "kernels/copy.h"
#include "kernels/copy_convert.h"
#include "kernels/reduce_job.h"

namespace twibil::kernels {
namespace {

template <class T, class A> void load_as(const void* src, int64_t stride, int64_t n, void* to) {
  const T* x = static_cast<const T*>(src);
  A* y = static_cast<A*>(to);
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<A>(load(x, i));
  else
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<A>(load(x, i * stride));
}

template <class T> void load_truth(const void* src, int64_t stride, int64_t n, void* to) {
  const T* x = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(to)[i] = load(x, i * stride) != 0;
}

DType dtype_of_accumulator(Accumulate a) {
  return a == Accumulate::int64 ? DType::int64 : a == Accumulate::float32 ? DType::float32 : DType::float64;
}

Accumulate accumulator_for(DType t, bool real) {
  if (t == DType::float64) return Accumulate::float64;
  if (is_floating(t)) return Accumulate::float32;
  return real ? Accumulate::float64 : Accumulate::int64;
}

Fold fold_of(Reduction op) {
  switch (op) {
    case Reduction::prod: return Fold::prod;
    case Reduction::max:
    case Reduction::any: return Fold::max;
    case Reduction::min:
    case Reduction::all: return Fold::min;
    case Reduction::sum_abs: return Fold::sum_abs;
    case Reduction::sum_squares: return Fold::sum_squares;
    case Reduction::sum:
    case Reduction::mean: break;
  }
  return Fold::sum;
}

Scalar result_of_nothing(Reduction op, bool real) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case Reduction::prod:
    case Reduction::all: return Scalar(1);
    case Reduction::max: return real ? Scalar(-kInfinity) : Scalar(INT64_MIN);
    case Reduction::min: return real ? Scalar(kInfinity) : Scalar(INT64_MAX);
    case Reduction::mean: return Scalar(std::nan(""));
    default: return Scalar(0);
  }
}

template <class A> void divide_as(void* at, int64_t n, A by) {
  for (int64_t i = 0; i < n; ++i) static_cast<A*>(at)[i] /= by;
}
void divide(Accumulate type, void* at, int64_t n, double by) {
  if (type == Accumulate::float32) divide_as(at, n, static_cast<float>(by));
  else divide_as(at, n, by);
}

// A place for n accumulators: the destination itself when types agree.
class Result {
 public:
  Result(Accumulate type, DType out, void* dst, int64_t n) : type_(type), out_(out), dst_(dst), n_(n) {
    if (dtype_of_accumulator(type) == out) at_ = dst;
    else if (n * 8 <= static_cast<int64_t>(sizeof small_)) at_ = small_;
    else at_ = (large_ = std::make_unique<double[]>(n)).get();
  }
  void* at() const { return at_; }
  void divide(double by) { kernels::divide(type_, at_, n_, by); }
  void write() const {
    if (at_ != dst_) convert_row(dtype_of_accumulator(type_), out_, at_, dst_, n_);
  }

 private:
  Accumulate type_;
  DType out_;
  void *dst_, *at_;
  int64_t n_;
  std::unique_ptr<double[]> large_;
  double small_[64];
};

void fill_flat(DType t, void* dst, int64_t n, const Scalar& value) {
  const int64_t shape[] = {n}, strides[] = {1};
  fill(t, shape, dst, strides, value);
}

// Small contiguous arrays are the everyday case: planning would cost more than the sum.
bool is_small(const SmallReduce& r) {
  int64_t size = r.outer * r.n * r.inner;
  return size > 0 && size <= 8192 && (r.inner == 1 ? r.n <= kBlock : r.inner >= 4 && r.n <= 32);
}

}  // namespace

bool split_contiguous(Dims shape, Dims strides, AxisSet axes, SmallReduce& r) {
  r.outer = r.n = r.inner = 1;
  bool reduced = false;  // seen a reduced axis of more than one element
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    int64_t d = shape[i];
    if (d == 1) continue;
    if (strides[i] != expected) return false;
    expected *= d;
    if (axes >> i & 1) {
      if (r.outer != 1) return false;
      r.n *= d;
      reduced = true;
    } else {
      (reduced ? r.outer : r.inner) *= d;
    }
  }
  if (!reduced) std::swap(r.outer, r.inner);
  return true;
}

ReduceJob plan_reduce(Fold fold, DType dtype, Accumulate type, Dims shape, const void* src, Dims strides, AxisSet axes,
                      Order order) {
  int64_t sizes[2][kMaxDims], steps[2][kMaxDims];
  size_t n[2] = {0, 0};
  for (size_t i = 0; i < shape.size(); ++i) {
    int side = axes >> i & 1;
    sizes[side][n[side]] = shape[i];
    steps[side][n[side]++] = strides[i];
  }
  ReduceJob job{.fold = fold, .type = type, .dtype = dtype, .src = static_cast<const char*>(src)};
  job.kept = make_nest<1>({sizes[0], n[0]}, {{steps[0], n[0]}});
  job.reduced = make_nest<1>({sizes[1], n[1]}, {{steps[1], n[1]}}, order);
  job.outputs = job.kept.rows(0);
  job.count = job.reduced.rows(0);
  if (dtype != dtype_of_accumulator(type))
    dispatch(dtype, [&]<class T>() {
      if constexpr (kIsHalf<T>) job.load = load_as<T, float>;
      else if constexpr (!kIsFloat<T>) job.load = type == Accumulate::int64 ? load_as<T, int64_t> : load_as<T, double>;
      else job.load = load_as<T, double>;
    });
  return job;
}

void reduce(Reduction op, DType in, DType out, Dims shape, const void* src, Dims strides, AxisSet axes, void* dst) {
  bool truth = op == Reduction::any || op == Reduction::all;
  Accumulate type = truth ? Accumulate::int64 : accumulator_for(in, op == Reduction::mean);
  if (in == out && !truth && in == dtype_of_accumulator(type)) {
    SmallReduce small{fold_of(op), type, src, dst, 1, 1, 1};
    if (split_contiguous(shape, strides, axes, small) && is_small(small)) {
      run_small_reduce(small);
      if (op == Reduction::mean) divide(type, dst, small.outer * small.inner, static_cast<double>(small.n));
      return;
    }
  }
  ReduceJob job = plan_reduce(fold_of(op), in, type, shape, src, strides, axes, Order::by_last_operand);
  if (job.outputs == 0) return;
  if (job.count == 0) return fill_flat(out, dst, job.outputs, result_of_nothing(op, type != Accumulate::int64));
  if (truth) dispatch(in, [&]<class T>() { job.load = load_truth<T>; });
  Result result(type, out, dst, job.outputs);
  job.dst = result.at();
  run_reduce(job);
  if (op == Reduction::mean) result.divide(static_cast<double>(job.count));
  result.write();
}

void variance(DType in, DType out, Dims shape, const void* src, Dims strides, AxisSet axes, double ddof, void* mean,
              void* var) {
  Accumulate type = accumulator_for(in, true);
  ReduceJob job = plan_reduce(Fold::sum, in, type, shape, src, strides, axes, Order::by_last_operand);
  if (job.outputs == 0) return;
  if (job.count == 0) {
    if (mean) fill_flat(out, mean, job.outputs, Scalar(std::nan("")));
    if (var) fill_flat(out, var, job.outputs, Scalar(std::nan("")));
    return;
  }
  // The mean stays in accumulator type for the second pass; `mean` itself may be narrower.
  Result centers(type, kUnknownDType, nullptr, job.outputs);
  job.dst = centers.at();
  run_reduce(job);
  centers.divide(static_cast<double>(job.count));
  if (mean) convert_row(dtype_of_accumulator(type), out, centers.at(), mean, job.outputs);
  if (!var) return;
  Result result(type, out, var, job.outputs);
  job.fold = Fold::sum_centered_squares;
  job.center = centers.at();
  job.dst = result.at();
  run_reduce(job);
  result.divide(static_cast<double>(job.count) - ddof);
  result.write();
}

}  // namespace twibil::kernels
