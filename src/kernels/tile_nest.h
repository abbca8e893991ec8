// SPDX-License-Identifier: Apache-2.0
// The loop nest of a tile program: its index space after merging dimensions, walked as one run of elements in C order,
// and how any stretch of that run is collected from, or spread to, a strided operand.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/dtype.h"
#include "base/error.h"
#include "base/program.h"

namespace twibil::kernels {

inline constexpr int kMaxTileDims = 16;
inline constexpr int kMaxTileOperands = kMaxInputs + 1;

struct TileNest {
  int rank = 0;
  int64_t count = 1;  // elements
  int64_t shape[kMaxTileDims];
  int64_t stride[kMaxTileOperands][kMaxTileDims];

  int64_t inner() const { return shape[rank - 1]; }
  int64_t inner_stride(int operand) const { return stride[operand][rank - 1]; }
  /// True if the operand's elements stand in memory in the order of the run.
  bool is_flat(int operand) const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; expected *= shape[i], --i)
      if (stride[operand][i] != expected) return false;
    return true;
  }
  /// True if only the dimensions from `first` on move the operand.
  bool is_constant_before(int first, int operand) const {
    for (int i = 0; i < first; ++i)
      if (stride[operand][i] != 0) return false;
    return true;
  }
  bool is_constant(int operand) const { return is_constant_before(rank, operand); }
};

/// Drops dimensions of size 1 and merges neighbours that all operands walk as one. Null strides: contiguous. A nest of
/// no dimension becomes one of size 1; count is 0 if any size is.
inline void make_tile_nest(TileNest& nest, std::span<const int64_t> shape, std::span<const int64_t* const> strides) {
  const int operands = static_cast<int>(strides.size());
  TW_ASSERT(shape.size() <= kMaxTileDims && operands <= kMaxTileOperands);
  for (int64_t size : shape) nest.count *= size;
  bool all_contiguous = true;
  for (const int64_t* s : strides) all_contiguous = all_contiguous && s == nullptr;
  if (all_contiguous) {
    nest.rank = 1;
    nest.shape[0] = nest.count;
    for (int k = 0; k < operands; ++k) nest.stride[k][0] = 1;
    return;
  }
  int64_t contiguous = 1;
  int64_t next[kMaxTileOperands];  // from the inside out, reversed at the end
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; contiguous *= shape[static_cast<size_t>(i)], --i) {
    const int64_t size = shape[static_cast<size_t>(i)];
    if (size == 1) continue;
    bool merge = nest.rank > 0;
    for (int k = 0; k < operands; ++k) {
      next[k] = strides[static_cast<size_t>(k)] ? strides[static_cast<size_t>(k)][i] : contiguous;
      merge = merge && next[k] == nest.stride[k][nest.rank - 1] * nest.shape[nest.rank - 1];
    }
    if (merge) {
      nest.shape[nest.rank - 1] *= size;
      continue;
    }
    nest.shape[nest.rank] = size;
    for (int k = 0; k < operands; ++k) nest.stride[k][nest.rank] = next[k];
    ++nest.rank;
  }
  if (nest.rank == 0) {
    nest.shape[nest.rank++] = 1;
    for (int k = 0; k < operands; ++k) nest.stride[k][0] = 1;
  }
  if (nest.rank == 1) return;
  std::reverse(nest.shape, nest.shape + nest.rank);
  for (int k = 0; k < operands; ++k) std::reverse(nest.stride[k], nest.stride[k] + nest.rank);
}

/// Walks the innermost rows: offset[k] is where operand k's row begins.
class RowCursor {
 public:
  RowCursor(const TileNest& nest, int operands, int64_t row) : nest_(nest), operands_(operands) {
    for (int k = 0; k < operands; ++k) offset[k] = 0;
    for (int i = nest.rank - 2; i >= 0; --i) {
      index_[i] = i > 0 ? row % nest.shape[i] : row;
      if (i > 0) row /= nest.shape[i];
      for (int k = 0; k < operands; ++k) offset[k] += index_[i] * nest.stride[k][i];
    }
  }
  void next() {
    for (int i = nest_.rank - 2; i >= 0; --i) {
      for (int k = 0; k < operands_; ++k) offset[k] += nest_.stride[k][i];
      if (++index_[i] < nest_.shape[i]) return;
      for (int k = 0; k < operands_; ++k) offset[k] -= index_[i] * nest_.stride[k][i];
      index_[i] = 0;
    }
  }
  int64_t offset[kMaxTileOperands];

 private:
  const TileNest& nest_;
  int operands_;
  int64_t index_[kMaxTileDims];
};

/// The first `count` elements of a row that is repeated without end, from element `phase` on.
template <class U>
void repeat_row(const U* row, int64_t period, int64_t step, int64_t phase, int64_t count, U* buffer) {
  int64_t done = std::min(count, period), first = std::min(done, period - phase);
  for (int64_t j = 0; j < first; ++j) buffer[j] = row[(phase + j) * step];
  for (int64_t j = first; j < done; ++j) buffer[j] = row[(j - first) * step];
  for (; done < count; done += std::min(done, count - done))
    std::memcpy(buffer + done, buffer, static_cast<size_t>(std::min(done, count - done)) * sizeof(U));
}

template <bool to_operand, class U> void move_element(U* operand, U* buffer) {
  if constexpr (to_operand) *operand = *buffer;
  else *buffer = *operand;
}

/// `rows` rows of kWidth elements each: a loop whose inner one the compiler unrolls.
template <bool to_operand, int kWidth, class U>
void move_rows(int64_t rows, int64_t row_step, int64_t step, U* memory, U* buffer) {
  for (int64_t r = 0; r < rows; ++r, memory += row_step, buffer += kWidth)
    for (int j = 0; j < kWidth; ++j) move_element<to_operand>(memory + j * step, buffer + j);
}
template <bool to_operand, class U>
void move_rows(int64_t width, int64_t rows, int64_t row_step, int64_t step, U* memory, U* buffer) {
  switch (width) {
    case 2: return move_rows<to_operand, 2>(rows, row_step, step, memory, buffer);
    case 3: return move_rows<to_operand, 3>(rows, row_step, step, memory, buffer);
    case 4: return move_rows<to_operand, 4>(rows, row_step, step, memory, buffer);
    default: break;
  }
  for (int64_t r = 0; r < rows; ++r, memory += row_step, buffer += width)
    for (int64_t j = 0; j < width; ++j) move_element<to_operand>(memory + j * step, buffer + j);
}

/// Moves elements [at, at + count) of the run between an operand and a contiguous buffer.
template <bool to_operand, class U>
void move_stretch(const TileNest& nest, int operand, int64_t at, int64_t count, U* memory, U* buffer) {
  const int last = nest.rank - 1;
  const int64_t* stride = nest.stride[operand];
  int64_t index[kMaxTileDims], offset = 0;
  for (int i = last; i >= 0; --i) {
    index[i] = i > 0 ? at % nest.shape[i] : at;
    offset += index[i] * stride[i];
    at /= nest.shape[i];
  }
  const int64_t step = stride[last], width = nest.shape[last];
  // Carries a full dimension `i` over into the ones outside of it.
  auto carry = [&](int i) {
    while (i > 0 && index[i] == nest.shape[i]) {
      offset += stride[i - 1] - index[i] * stride[i];
      index[i] = 0;
      ++index[--i];
    }
  };
  while (true) {
    if (last > 0 && index[last] == 0 && count >= 2 * width) {  // whole rows, as many as the next dimension has left
      const int64_t rows = std::min(count / width, nest.shape[last - 1] - index[last - 1]);
      move_rows<to_operand>(width, rows, stride[last - 1], step, memory + offset, buffer);
      buffer += rows * width, count -= rows * width;
      if (count == 0) return;
      offset += rows * stride[last - 1];
      index[last - 1] += rows;
      carry(last - 1);
      continue;
    }
    const int64_t n = std::min(count, width - index[last]);
    for (int64_t j = 0; j < n; ++j) move_element<to_operand>(memory + offset + j * step, buffer + j);
    buffer += n, count -= n;
    if (count == 0) return;
    offset += n * step;
    index[last] += n;
    carry(last);
  }
}

}  // namespace twibil::kernels
