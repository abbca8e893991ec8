// SPDX-License-Identifier: Apache-2.0
// Strided copies by element width, casts by dtype pair, fills.
#include "kernels/copy.h"

#include <cstring>

#include "kernels/copy_convert.h"

namespace twibil::kernels {
namespace {

template <class U> void copy_row(const U* src, int64_t src_stride, U* dst, int64_t dst_stride, int64_t n) {
  if (dst_stride == 1 && src_stride == 1) {
    if (n * sizeof(U) >= 64) std::memcpy(dst, src, n * sizeof(U));
    else
      for (int64_t i = 0; i < n; ++i) dst[i] = src[i];
  } else if (dst_stride == 1 && src_stride == 0) {
    std::fill_n(dst, n, *src);
  } else if (dst_stride == 1 && src_stride == -1) {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * dst_stride] = src[i * src_stride];
  }
}

// A transposition: dst runs along the columns, src along the rows. Blocks of 16 x 16 pass through a buffer, so that
// every cache line is touched once: lines a power of two apart would push each other out.
template <class U>
void copy_transposed(const U* src, int64_t src_col, U* dst, int64_t dst_row, int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = 16;
  U block[kBlock][kBlock];
  for (int64_t r = 0; r < rows; r += kBlock)
    for (int64_t c = 0; c < cols; c += kBlock) {
      int64_t height = std::min(kBlock, rows - r), width = std::min(kBlock, cols - c);
      for (int64_t j = 0; j < width; ++j) std::copy_n(src + r + (c + j) * src_col, height, block[j]);
      for (int64_t i = 0; i < height; ++i) {
        U* to = dst + (r + i) * dst_row + c;
        for (int64_t j = 0; j < width; ++j) to[j] = block[j][i];
      }
    }
}

// Moves the dimension along which src is contiguous next to the innermost one; false when there is none.
bool make_transposition(LoopNest<2>& nest) {
  if (nest.rank < 2 || nest.inner_stride(1) != 1 || nest.inner_stride(0) == 1) return false;
  for (int i = nest.rank - 2; i >= 0; --i)
    if (nest.stride[0][i] == 1 && nest.shape[i] >= 4 && nest.inner() >= 4) {
      for (int j = i; j < nest.rank - 2; ++j) nest.swap_dims(j, j + 1);
      return true;
    }
  return false;
}

template <class U> void copy_transposed_nest(const LoopNest<2>& nest, const U* src, U* dst) {
  int r = nest.rank - 2;
  int64_t rows = nest.shape[r], cols = nest.inner(), outer = nest.rows(2);
  int64_t band = std::max<int64_t>(16, kPiece / cols / 16 * 16), bands = (rows + band - 1) / band;
  parallel_for(outer * bands, std::max<int64_t>(1, kPiece / (std::min(band, rows) * cols)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   RowWalk<2> walk(nest, i / bands, 2);
                   int64_t first = i % bands * band;
                   copy_transposed(src + walk.offset[0] + first, nest.inner_stride(0),
                                   dst + walk.offset[1] + first * nest.stride[1][r], nest.stride[1][r],
                                   std::min(band, rows - first), cols);
                 }
               });
}

template <class U> void copy_nest(LoopNest<2>& nest, const U* src, U* dst) {
  if (nest.rows() == 0 || nest.inner() == 0) return;
  if (make_transposition(nest)) return copy_transposed_nest(nest, src, dst);
  prefer_long_rows(nest);
  int64_t ss = nest.inner_stride(0), ds = nest.inner_stride(1);
  for_each_row(nest, [&](const int64_t(&at)[2], int64_t n) { copy_row(src + at[0], ss, dst + at[1], ds, n); });
}

template <class From, class To> void convert_strided(const From* src, int64_t ss, To* dst, int64_t ds, int64_t n) {
  if (ss == 1 && ds == 1)
    for (int64_t i = 0; i < n; ++i) store(dst, i, load(src, i));
  else
    for (int64_t i = 0; i < n; ++i) store(dst, i * ds, load(src, i * ss));
}

}  // namespace

void copy(DType dtype, Dims shape, const void* src, Dims src_strides, void* dst, Dims dst_strides) {
  auto nest = make_nest<2>(shape, {src_strides, dst_strides}, Order::by_last_operand);
  dispatch_width(dtype, [&]<class U>() { copy_nest(nest, static_cast<const U*>(src), static_cast<U*>(dst)); });
}

void convert(DType from, DType to, Dims shape, const void* src, Dims src_strides, void* dst, Dims dst_strides) {
  if (from == to) {
    if (src != dst) copy(from, shape, src, src_strides, dst, dst_strides);
    return;
  }
  auto nest = make_nest<2>(shape, {src_strides, dst_strides}, Order::by_last_operand);
  prefer_long_rows(nest);
  int64_t ss = nest.inner_stride(0), ds = nest.inner_stride(1);
  dispatch(from, [&]<class From>() {
    dispatch(to, [&]<class To>() {
      for_each_row(nest, [&](const int64_t(&at)[2], int64_t n) {
        convert_strided(static_cast<const From*>(src) + at[0], ss, static_cast<To*>(dst) + at[1], ds, n);
      });
    });
  });
}

void convert_row(DType from, DType to, const void* src, void* dst, int64_t n) {
  if (n == 0) return;  // then there may be no memory either
  if (from == to) {
    std::memcpy(dst, src, n * size_of(from));
    return;
  }
  dispatch(from, [&]<class From>() {
    dispatch(to, [&]<class To>() { convert_strided(static_cast<const From*>(src), 1, static_cast<To*>(dst), 1, n); });
  });
}

void fill(DType dtype, Dims shape, void* dst, Dims dst_strides, const Scalar& value) {
  auto nest = make_nest<1>(shape, {dst_strides}, Order::by_last_operand);
  prefer_long_rows(nest);
  uint64_t bits = 0;
  dispatch(dtype, [&]<class T>() {
    T v = scalar_as<T>(value);
    std::memcpy(&bits, &v, sizeof v);
  });
  dispatch_width(dtype, [&]<class U>() {
    U v = static_cast<U>(bits);
    int64_t stride = nest.inner_stride(0);
    for_each_row(nest, [&](const int64_t(&at)[1], int64_t n) {
      U* row = static_cast<U*>(dst) + at[0];
      if (stride == 1) std::fill_n(row, n, v);
      else
        for (int64_t i = 0; i < n; ++i) row[i * stride] = v;
    });
  });
}

}  // namespace twibil::kernels
