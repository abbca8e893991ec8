// SPDX-License-Identifier: Apache-2.0
// The loops of the reductions. Rows: the reduced axis is walked along memory (or gathered into a buffer first).
// Columns: the kept axis is contiguous, and whole rows are added to each other. Lanes are a fixed 256 bytes on every
// instruction set, so that the tree is the same.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_loops.cc"
// clang-format off
#include "kernels/isa.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "kernels/reduce_job.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace {

// Integers are added as uint64 (wrapping is defined) and compared as int64.
template <class A> using SignedOf = std::conditional_t<std::is_same_v<A, uint64_t>, int64_t, A>;

struct Sum {
  template <class A> static constexpr A identity() { return A{0}; }
  template <class X> static HWY_INLINE X map(X x, X) { return x; }
  template <class X> static HWY_INLINE X combine(X a, X b) { return a + b; }
};
struct SumAbs : Sum {
  template <class X> static HWY_INLINE X map(X x, X) {
    if constexpr (std::is_same_v<X, uint64_t>) return static_cast<int64_t>(x) < 0 ? -x : x;
    else if constexpr (std::is_floating_point_v<X>) return x < 0 ? -x : x + X{0};
    else return abs_vector(x);
  }
  template <class X> static HWY_INLINE X abs_vector(X x) {
    if constexpr (std::is_unsigned_v<std::remove_reference_t<decltype(x[0])>>) return (x >> 63) != 0 ? -x : x;
    else return x < 0 ? -x : x + 0;
  }
};
struct SumSquares : Sum {
  template <class X> static HWY_INLINE X map(X x, X) { return x * x; }
};
struct SumCenteredSquares : Sum {
  template <class X> static HWY_INLINE X map(X x, X center) { return (x - center) * (x - center); }
};
struct Prod {
  template <class A> static constexpr A identity() { return A{1}; }
  template <class X> static HWY_INLINE X map(X x, X) { return x; }
  template <class X> static HWY_INLINE X combine(X a, X b) { return a * b; }
};
struct Max {  // b != b: NaN wins, and once in `a` nothing is greater
  template <class A> static constexpr A identity() {
    return std::is_floating_point_v<A> ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
  }
  template <class X> static HWY_INLINE X map(X x, X) { return x; }
  template <class X> static HWY_INLINE X combine(X a, X b) { return ((b > a) | (b != b)) ? b : a; }
};
struct Min {
  template <class A> static constexpr A identity() {
    return std::is_floating_point_v<A> ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
  }
  template <class X> static HWY_INLINE X map(X x, X) { return x; }
  template <class X> static HWY_INLINE X combine(X a, X b) { return ((b < a) | (b != b)) ? b : a; }
};

constexpr int kVectorBytes = HWY_MAX_BYTES <= 64 ? HWY_MAX_BYTES : 16;
constexpr int kVectors = 256 / kVectorBytes;
template <class A> struct VectorOf { typedef A type __attribute__((vector_size(kVectorBytes), may_alias)); };
template <class A> using Vector = typename VectorOf<A>::type;
template <class A> constexpr int kLanes = kVectorBytes / sizeof(A);
template <class A> constexpr int64_t kStep = 256 / sizeof(A);

template <class A> HWY_INLINE Vector<A> load_vector(const A* p) {
  Vector<A> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class A> HWY_INLINE Vector<A> broadcast(A x) { return Vector<A>{} + x; }

// Folds the upper half of the lanes onto the lower half until one is left.
template <class Op, class A, int kHalf, int... kLane>
HWY_INLINE A fold_lanes(Vector<A> v, std::integer_sequence<int, kLane...> lanes) {
  if constexpr (kHalf == 0) return v[0];
  else {
    Vector<A> upper = __builtin_shufflevector(v, v, ((kLane + kHalf) % kLanes<A>)...);
    return fold_lanes<Op, A, kHalf / 2>(Op::combine(v, upper), lanes);
  }
}

template <class Op, class A> HWY_INLINE A fold_vectors(Vector<A>* acc) {
#pragma GCC unroll 16
  for (int half = kVectors / 2; half > 0; half /= 2)
#pragma GCC unroll 16
    for (int i = 0; i < half; ++i) acc[i] = Op::combine(acc[i], acc[i + half]);
  return fold_lanes<Op, A, kLanes<A> / 2>(acc[0], std::make_integer_sequence<int, kLanes<A>>());
}

// Folds n <= kBlock contiguous elements.
template <class Op, class A> A fold_block(const A* x, int64_t n, A center) {
  if (n <= 8) {
    A acc = Op::template identity<A>();
    for (int64_t i = 0; i < n; ++i) acc = Op::combine(acc, Op::map(x[i], center));
    return acc;
  }
  Vector<A> acc[kVectors], c = broadcast(center);
#pragma GCC unroll 16
  for (auto& a : acc) a = broadcast(Op::template identity<A>());
  int64_t i = 0;
  for (; i + kStep<A> <= n; i += kStep<A>)
#pragma GCC unroll 16
    for (int k = 0; k < kVectors; ++k) acc[k] = Op::combine(acc[k], Op::map(load_vector(x + i + k * kLanes<A>), c));
  int k = 0;
  for (; i + kLanes<A> <= n; i += kLanes<A>, ++k) acc[k] = Op::combine(acc[k], Op::map(load_vector(x + i), c));
  if (i < n) {  // lanes beyond the end stay as they are
    A tail[kLanes<A>];
    std::memcpy(tail, &acc[k], sizeof tail);
    for (int64_t j = 0; i + j < n; ++j) tail[j] = Op::combine(tail[j], Op::map(x[i + j], center));
    acc[k] = load_vector(tail);
  }
  return fold_vectors<Op, A>(acc);
}

// The elements of one output, as a list of blocks: pieces of long rows, or several short rows together.
template <class Op, class A> class Rows {
 public:
  explicit Rows(const ReduceJob& job)
      : job_(job),
        size_(size_of(job.dtype)),
        inner_(job.reduced.inner()),
        stride_(job.reduced.inner_stride(0)),
        rows_(job.reduced.rows()),
        together_(inner_ <= kBlock / 8 && rows_ > 1 ? kBlock / std::max<int64_t>(inner_, 1) : 1),
        pieces_((inner_ + kBlock - 1) / kBlock) {}

  int64_t blocks() const { return together_ > 1 ? (rows_ + together_ - 1) / together_ : rows_ * pieces_; }

  A fold(const char* src, int64_t begin, int64_t end, A center) const {
    if (end - begin == 1) return block(src, begin, center);
    int64_t middle = begin + (end - begin + 1) / 2;
    return Op::combine(fold(src, begin, middle, center), fold(src, middle, end, center));
  }

 private:
  A block(const char* src, int64_t i, A center) const {
    if (together_ > 1) return short_rows(src, i * together_, std::min(rows_, (i + 1) * together_), center);
    int64_t row = pieces_ == 1 ? i : i / pieces_, first = pieces_ == 1 ? 0 : i % pieces_ * kBlock;
    if (rows_ > 1) src += RowWalk<1>(job_.reduced, row).offset[0] * size_;
    src += first * stride_ * size_;
    int64_t n = std::min(kBlock, inner_ - first);
    if (!job_.load && stride_ == 1) return fold_block<Op, A>(reinterpret_cast<const A*>(src), n, center);
    A buffer[kBlock];
    gather(src, n, buffer);
    return fold_block<Op, A>(buffer, n, center);
  }
  A short_rows(const char* src, int64_t begin, int64_t end, A center) const {
    A buffer[kBlock];
    A* to = buffer;
    RowWalk<1> walk(job_.reduced, begin);
    for (int64_t r = begin; r < end; ++r, walk.next(), to += inner_) gather(src + walk.offset[0] * size_, inner_, to);
    return fold_block<Op, A>(buffer, to - buffer, center);
  }
  void gather(const char* src, int64_t n, A* to) const {
    if (job_.load) return job_.load(src, stride_, n, to);
    const A* x = reinterpret_cast<const A*>(src);
    for (int64_t i = 0; i < n; ++i) to[i] = x[i * stride_];
  }

  const ReduceJob& job_;
  int64_t size_, inner_, stride_, rows_, together_, pieces_;
};

constexpr int64_t kBlocksPerTask = 32;

template <class Op, class A> void reduce_by_rows(const ReduceJob& job) {
  Rows<Op, A> rows(job);
  A* dst = static_cast<A*>(job.dst);
  const A* center = static_cast<const A*>(job.center);
  int64_t size = size_of(job.dtype), blocks = rows.blocks(), outer = job.kept.rows(), inner = job.kept.inner();
  int64_t step = job.kept.inner_stride(0) * size;
  auto each = [&](int64_t begin, int64_t end, auto&& body) {  // body(output, its first element)
    int64_t row = begin == 0 ? 0 : begin / inner, j = begin - row * inner;
    RowWalk<1> walk(job.kept, row);
    for (int64_t o = begin; o < end; walk.next(), j = 0) {
      const char* src = job.src + walk.offset[0] * size + j * step;
      for (; j < inner && o < end; ++j, ++o, src += step) body(o, src);
    }
  };
  if (blocks < 2 * kBlocksPerTask) {
    auto some_outputs = [&](int64_t begin, int64_t end) {
      each(begin, end,
           [&](int64_t o, const char* src) { dst[o] = rows.fold(src, 0, blocks, center ? center[o] : A{0}); });
    };
    if (outer * inner * job.count <= kPiece) some_outputs(0, outer * inner);
    else parallel_for(outer * inner, std::max<int64_t>(1, kPiece / job.count), some_outputs);
    return;
  }
  int64_t tasks = (blocks + kBlocksPerTask - 1) / kBlocksPerTask;
  std::unique_ptr<A[]> partial(new A[tasks * job.outputs]);
  parallel_for(job.outputs * tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t o = i / tasks, first = i % tasks * kBlocksPerTask;
      each(o, o + 1, [&](int64_t, const char* src) {
        partial[i] = rows.fold(src, first, std::min(blocks, first + kBlocksPerTask), center ? center[o] : A{0});
      });
    }
  });
  struct Join {
    static A run(const A* p, int64_t n) {
      return n == 1 ? *p : Op::combine(run(p, (n + 1) / 2), run(p + (n + 1) / 2, n / 2));
    }
  };
  for (int64_t o = 0; o < job.outputs; ++o) dst[o] = Join::run(partial.get() + o * tasks, tasks);
}

// Adds four rows to a row of results.
template <class Op, class A>
HWY_INLINE void add_four(const A* a, const A* b, const A* c, const A* d, const A* center, int64_t n,
                         A* HWY_RESTRICT out) {
  for (int64_t j = 0; j < n; ++j) {
    A m = center ? center[j] : A{0};
    A ab = Op::combine(Op::map(a[j], m), Op::map(b[j], m)), cd = Op::combine(Op::map(c[j], m), Op::map(d[j], m));
    out[j] = Op::combine(out[j], Op::combine(ab, cd));
  }
}

// A tile of up to kColumns neighbouring outputs; `reduced` is walked row by row.
template <class Op, class A> class Columns {
 public:
  Columns(const ReduceJob& job, const char* src, const A* center, int64_t width)
      : job_(job), src_(src), center_(center), width_(width), size_(size_of(job.dtype)) {}

  void fold(int64_t begin, int64_t end, A* out) const {
    if (end - begin <= 32) return leaf(begin, end, out);
    int64_t middle = begin + (end - begin + 1) / 2;
    A other[kColumns];
    fold(begin, middle, out);
    fold(middle, end, other);
    for (int64_t j = 0; j < width_; ++j) out[j] = Op::combine(out[j], other[j]);
  }

 private:
  void leaf(int64_t begin, int64_t end, A* HWY_RESTRICT out) const {
    A buffer[4][kColumns];
    RowWalk<1> walk(job_.reduced, begin, 0);
    for (int64_t j = 0; j < width_; ++j) out[j] = Op::template identity<A>();
    int64_t r = begin;
    for (; r + 4 <= end; r += 4) {
      const A *a = row(walk, buffer[0]), *b = row(walk, buffer[1]), *c = row(walk, buffer[2]),
              *d = row(walk, buffer[3]);
      add_four<Op>(a, b, c, d, center_, width_, out);
    }
    for (; r < end; ++r) {
      const A* a = row(walk, buffer[0]);
      for (int64_t j = 0; j < width_; ++j) out[j] = Op::combine(out[j], Op::map(a[j], center_ ? center_[j] : A{0}));
    }
  }
  const A* row(RowWalk<1>& walk, A* buffer) const {
    const char* p = src_ + walk.offset[0] * size_;
    walk.next();
    if (!job_.load) return reinterpret_cast<const A*>(p);
    job_.load(p, 1, width_, buffer);
    return buffer;
  }

  const ReduceJob& job_;
  const char* src_;
  const A* center_;
  int64_t width_, size_;
};

template <class Op, class A> void reduce_by_columns(const ReduceJob& job) {
  int64_t inner = job.kept.inner(), width = std::min(inner, kColumns), tiles = (inner + width - 1) / width;
  int64_t total = job.kept.rows() * tiles, size = size_of(job.dtype);
  int64_t chunk = std::max<int64_t>(64, 2 * kPiece / width), chunks = (job.count + chunk - 1) / chunk;
  A* dst = static_cast<A*>(job.dst);
  const A* center = static_cast<const A*>(job.center);
  std::unique_ptr<A[]> partial(chunks > 1 ? new A[(chunks - 1) * job.outputs] : nullptr);
  int64_t grain = std::max<int64_t>(1, kPiece / (width * std::max<int64_t>(1, std::min(chunk, job.count))));
  parallel_for(total * chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t c = i / total, row = i % total / tiles, first = i % tiles * width, at = row * inner + first;
      RowWalk<1> walk(job.kept, row);
      Columns<Op, A> columns(job, job.src + (walk.offset[0] + first) * size, center ? center + at : nullptr,
                             std::min(width, inner - first));
      A* out = c == 0 ? dst : partial.get() + (c - 1) * job.outputs;
      columns.fold(c * chunk, std::min(job.count, (c + 1) * chunk), out + at);
    }
  });
  for (int64_t live = chunks; live > 1; live = (live + 1) / 2) {  // joins neighbours until one is left
    auto part = [&](int64_t c) { return c == 0 ? dst : partial.get() + (c - 1) * job.outputs; };
    int64_t gap = (live + 1) / 2;
    for (int64_t c = 0; c + gap < live; ++c)
      for (int64_t j = 0; j < job.outputs; ++j) part(c)[j] = Op::combine(part(c)[j], part(c + gap)[j]);
  }
}

// Contiguous [outer, n, inner] of few elements: the same trees without a plan.
template <class Op, class A> void reduce_small_as(const SmallReduce& r) {
  const A* x = static_cast<const A*>(r.src);
  A* dst = static_cast<A*>(r.dst);
  if (r.inner == 1) {
    int64_t o = 0;
    if (r.n <= 8)  // eight rows at a time: as many independent chains
      for (; o + 8 <= r.outer; o += 8) {
        A acc[8];
#pragma GCC unroll 8
        for (A& a : acc) a = Op::template identity<A>();
        for (int64_t i = 0; i < r.n; ++i)
#pragma GCC unroll 8
          for (int k = 0; k < 8; ++k) acc[k] = Op::combine(acc[k], Op::map(x[(o + k) * r.n + i], A{0}));
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k) dst[o + k] = acc[k];
      }
    for (; o < r.outer; ++o) dst[o] = fold_block<Op, A>(x + o * r.n, r.n, A{0});
    return;
  }
  for (int64_t o = 0; o < r.outer; ++o, x += r.n * r.inner, dst += r.inner) {
    for (int64_t j = 0; j < r.inner; ++j) dst[j] = Op::template identity<A>();
    int64_t i = 0;
    for (; i + 4 <= r.n; i += 4) {
      const A* a = x + i * r.inner;
      add_four<Op>(a, a + r.inner, a + 2 * r.inner, a + 3 * r.inner, static_cast<const A*>(nullptr), r.inner, dst);
    }
    for (; i < r.n; ++i)
      for (int64_t j = 0; j < r.inner; ++j) dst[j] = Op::combine(dst[j], Op::map(x[i * r.inner + j], A{0}));
  }
}

template <class Op, class A> void reduce_as(const ReduceJob& job) {
  bool columns = job.kept.inner_stride(0) == 1 && job.kept.inner() >= 4 && job.reduced.inner_stride(0) != 1;
  int64_t n = job.reduced.inner();
  bool plain_rows = !job.load && !job.center && job.reduced.rank == 1 && job.reduced.inner_stride(0) == 1 &&
                    n <= kBlock && job.kept.rank == 1 && job.kept.inner_stride(0) == n;
  if (columns) return reduce_by_columns<Op, A>(job);
  if (!plain_rows) return reduce_by_rows<Op, A>(job);
  parallel_for(job.outputs, std::max<int64_t>(8, kPiece / n / 8 * 8), [&](int64_t begin, int64_t end) {
    const A* src = reinterpret_cast<const A*>(job.src) + begin * n;
    reduce_small_as<Op, A>({job.fold, job.type, src, static_cast<A*>(job.dst) + begin, end - begin, n, 1});
  });
}

template <class Op, class Job> void reduce_in_type(const Job& job) {
  auto run = [&]<class A>(A) HWY_ATTR {
    if constexpr (std::is_same_v<Job, SmallReduce>) reduce_small_as<Op, A>(job);
    else reduce_as<Op, A>(job);
  };
  using Int = std::conditional_t<std::is_same_v<Op, Max> || std::is_same_v<Op, Min>, int64_t, uint64_t>;
  switch (job.type) {
    case Accumulate::int64: return run(Int{});
    case Accumulate::float32: return run(float{});
    case Accumulate::float64: return run(double{});
  }
}

template <class Job> void reduce_with(const Job& job) {
  switch (job.fold) {
    case Fold::sum: return reduce_in_type<Sum>(job);
    case Fold::prod: return reduce_in_type<Prod>(job);
    case Fold::max: return reduce_in_type<Max>(job);
    case Fold::min: return reduce_in_type<Min>(job);
    case Fold::sum_abs: return reduce_in_type<SumAbs>(job);
    case Fold::sum_squares: return reduce_in_type<SumSquares>(job);
    case Fold::sum_centered_squares:
      if constexpr (std::is_same_v<Job, ReduceJob>) reduce_in_type<SumCenteredSquares>(job);
      return;
  }
}

}  // namespace

void reduce_loops(const ReduceJob& job) { reduce_with(job); }
void reduce_small(const SmallReduce& job) { reduce_with(job); }

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(reduce_loops);
HWY_EXPORT(reduce_small);
void run_reduce(const ReduceJob& job) { TW_DISPATCH(reduce_loops)(job); }
void run_small_reduce(const SmallReduce& job) { TW_DISPATCH(reduce_small)(job); }
}  // namespace twibil::kernels
#endif
