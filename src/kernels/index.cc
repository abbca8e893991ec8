// SPDX-License-Identifier: Apache-2.0
// From indices and masks to offsets; one_hot and where.
#include "kernels/index.h"

#include <atomic>
#include <vector>

#include "kernels/copy.h"
#include "kernels/copy_convert.h"

namespace twibil::kernels {
namespace {

// An index as it stands; NaN is none, so it becomes one that no size holds.
template <class T> int64_t index_of(const T* row, int64_t at) {
  auto v = load(row, at);
  if constexpr (std::is_floating_point_v<decltype(v)>)
    if (v != v) return INT64_MIN;
  return convert_value<int64_t>(v);
}

// Maps an index into [0, size) or says no.
template <IndexMode kMode> bool resolve(int64_t& i, int64_t size) {
  if constexpr (kMode == IndexMode::clip) {
    i = i < 0 ? 0 : i >= size ? size - 1 : i;
  } else if constexpr (kMode == IndexMode::wrap) {
    if (size == 0) return false;
    i %= size;
    i += i < 0 ? size : 0;
  } else {
    i += i < 0 ? size : 0;
  }
  return static_cast<uint64_t>(i) < static_cast<uint64_t>(size);
}

// Adds index * stride to offsets [begin, end); returns the first bad position, or end.
template <IndexMode kMode, class T>
int64_t add_term(const IndexTerm& term, const LoopNest<1>& nest, int64_t begin, int64_t end, int64_t* offsets) {
  const T* index = static_cast<const T*>(term.data);
  int64_t n = nest.inner(), step = nest.inner_stride(0);
  RowWalk<1> walk(nest, begin / n);
  int64_t j = begin % n;
  for (int64_t p = begin; p < end; walk.next(), j = 0) {
    const T* row = index + walk.offset[0];
    for (; j < n && p < end; ++j, ++p) {
      int64_t i = index_of(row, j * step);
      if (!resolve<kMode>(i, term.size)) return p;
      offsets[p] += i * term.stride;
    }
  }
  return end;
}

template <class T>
int64_t add_term_in_mode(const IndexTerm& term, const LoopNest<1>& nest, int64_t begin, int64_t end, int64_t* offsets) {
  switch (term.mode) {
    case IndexMode::clip: return add_term<IndexMode::clip, T>(term, nest, begin, end, offsets);
    case IndexMode::wrap: return add_term<IndexMode::wrap, T>(term, nest, begin, end, offsets);
    case IndexMode::raise: break;
  }
  return add_term<IndexMode::raise, T>(term, nest, begin, end, offsets);
}

int64_t value_at(const IndexTerm& term, Dims shape, int64_t position) {
  int64_t at = 0, value = 0;
  for (size_t a = shape.size(); a-- > 0; position /= shape[a]) at += position % shape[a] * term.strides[a];
  dispatch(term.dtype, [&]<class T>() { value = index_of(static_cast<const T*>(term.data), at); });
  return value;
}

// Adds one term to all offsets, in parallel; returns the first bad position or -1.
int64_t add_term_everywhere(const IndexTerm& term, Dims shape, int64_t* offsets) {
  auto nest = make_nest<1>(shape, {term.strides});
  int64_t count = nest.rows(0);
  std::atomic<int64_t> bad{count};
  dispatch(term.dtype, [&]<class T>() {
    parallel_for(count, kPiece, [&](int64_t begin, int64_t end) {
      int64_t at = add_term_in_mode<T>(term, nest, begin, end, offsets);
      int64_t first = bad.load();
      while (at < end && at < first && !bad.compare_exchange_weak(first, at)) {
      }
    });
  });
  return bad < count ? bad.load() : -1;
}

template <class T, class Visit>
void visit_nonzero(const LoopNest<1>& nest, const T* src, const Visit& visit) {  // visit(position)
  int64_t rows = nest.rows(), n = nest.inner(), step = nest.inner_stride(0);
  if (rows == 0 || n == 0) return;
  RowWalk<1> walk(nest, 0);
  for (int64_t r = 0; r < rows; ++r, walk.next())
    for (int64_t j = 0; j < n; ++j)
      if (load(src + walk.offset[0], j * step) != 0) visit(r * n + j);
}

}  // namespace

BadIndex index_offsets(std::span<const IndexTerm> terms, Dims shape, int64_t* offsets) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  std::fill_n(offsets, count, int64_t{0});
  BadIndex bad;
  if (count == 0) return bad;
  for (size_t k = 0; k < terms.size(); ++k) {
    int64_t at = add_term_everywhere(terms[k], shape, offsets);
    if (at >= 0 && (!bad || at < bad.position)) bad = {static_cast<int>(k), at, value_at(terms[k], shape, at)};
  }
  return bad;
}

BadIndex along_axis_offsets(Dims shape, Dims x_strides, int axis, int64_t size, DType index_dtype, const void* index,
                            Dims index_strides, IndexMode mode, int64_t* offsets) {
  // The other axes walk by themselves: their offsets are those of x with a zero stride on `axis`.
  int64_t others[kMaxDims], count = 1;
  std::copy(x_strides.begin(), x_strides.end(), others);
  others[axis] = 0;
  for (int64_t d : shape) count *= d;
  if (count == 0) return {};
  auto nest = make_nest<1>(shape, {Dims(others, shape.size())});
  int64_t n = nest.inner(), step = nest.inner_stride(0), rows = nest.rows();
  RowWalk<1> walk(nest, 0);
  for (int64_t r = 0; r < rows; ++r, walk.next())
    for (int64_t j = 0; j < n; ++j) offsets[r * n + j] = walk.offset[0] + j * step;
  IndexTerm term{index_dtype, index, index_strides, size, x_strides[axis], mode};
  int64_t at = add_term_everywhere(term, shape, offsets);
  return at < 0 ? BadIndex{} : BadIndex{0, at, value_at(term, shape, at)};
}

int64_t count_nonzero(DType dtype, Dims shape, const void* src, Dims strides) {
  auto nest = make_nest<1>(shape, {strides}, Order::by_last_operand);
  std::atomic<int64_t> total{0};
  int64_t step = nest.inner_stride(0);
  dispatch(dtype, [&]<class T>() {
    for_each_row(nest, [&](const int64_t(&at)[1], int64_t n) {
      const T* row = static_cast<const T*>(src) + at[0];
      int64_t found = 0;
      for (int64_t j = 0; j < n; ++j) found += load(row, j * step) != 0;
      total.fetch_add(found, std::memory_order_relaxed);
    });
  });
  return total;
}

void nonzero(DType dtype, Dims shape, const void* src, Dims strides, int64_t* out, int64_t step, int64_t axis_step) {
  auto nest = make_nest<1>(shape, {strides});
  dispatch(dtype, [&]<class T>() {
    visit_nonzero(nest, static_cast<const T*>(src), [&](int64_t position) {
      for (size_t a = shape.size(); a-- > 0; position /= shape[a]) out[a * axis_step] = position % shape[a];
      out += step;
    });
  });
}

void mask_offsets(DType dtype, Dims shape, const void* mask, Dims mask_strides, Dims x_strides, int64_t* offsets) {
  auto nest = make_nest<2>(shape, {mask_strides, x_strides});
  int64_t rows = nest.rows(), n = nest.inner(), step = nest.inner_stride(0), x_step = nest.inner_stride(1);
  if (rows == 0 || n == 0) return;
  dispatch(dtype, [&]<class T>() {
    RowWalk<2> walk(nest, 0);
    for (int64_t r = 0; r < rows; ++r, walk.next()) {
      const T* row = static_cast<const T*>(mask) + walk.offset[0];
      for (int64_t j = 0; j < n; ++j)
        if (load(row, j * step) != 0) *offsets++ = walk.offset[1] + j * x_step;
    }
  });
}

void one_hot(DType index_dtype, int64_t count, const void* index, int64_t depth, DType out, const Scalar& on,
             const Scalar& off, void* dst) {
  const int64_t shape[] = {count * depth}, strides[] = {1};
  fill(out, shape, dst, strides, off);
  dispatch(index_dtype, [&]<class I>() {
    dispatch(out, [&]<class T>() {
      T hot = scalar_as<T>(on);
      for (int64_t p = 0; p < count; ++p) {
        int64_t i = index_of(static_cast<const I*>(index), p);
        if (i >= 0 && i < depth) static_cast<T*>(dst)[p * depth + i] = hot;
      }
    });
  });
}

void where(DType condition_dtype, DType dtype, Dims shape, const void* condition, Dims condition_strides, const void* a,
           Dims a_strides, const void* b, Dims b_strides, void* dst, Dims dst_strides) {
  auto nest = make_nest<4>(shape, {condition_strides, a_strides, b_strides, dst_strides}, Order::by_last_operand);
  int64_t cs = nest.inner_stride(0), as = nest.inner_stride(1), bs = nest.inner_stride(2), ds = nest.inner_stride(3);
  dispatch(condition_dtype, [&]<class C>() {
    dispatch_width(dtype, [&]<class U>() {
      for_each_row(nest, [&](const int64_t(&at)[4], int64_t n) {
        const C* c = static_cast<const C*>(condition) + at[0];
        const U *x = static_cast<const U*>(a) + at[1], *y = static_cast<const U*>(b) + at[2];
        U* to = static_cast<U*>(dst) + at[3];
        if (cs == 1 && as == 1 && bs == 1 && ds == 1)
          for (int64_t i = 0; i < n; ++i) {
            U u = x[i], v = y[i];
            to[i] = load(c, i) != 0 ? u : v;
          }
        else
          for (int64_t i = 0; i < n; ++i) to[i * ds] = load(c, i * cs) != 0 ? x[i * as] : y[i * bs];
      });
    });
  });
}

}  // namespace twibil::kernels
