// SPDX-License-Identifier: Apache-2.0
// pad, tile and repeat as a few strided copies each.
#include <vector>

#include "kernels/copy.h"

namespace twibil::kernels {
namespace {

char* shift(void* p, DType t, int64_t elements) { return static_cast<char*>(p) + elements * size_of(t); }

// Position of index i (counted from the first source element, may lie outside) in a source of n elements.
int64_t source_index(PadMode mode, int64_t i, int64_t n) {
  auto modulo = [](int64_t a, int64_t b) { return ((a % b) + b) % b; };
  switch (mode) {
    case PadMode::constant: return i >= 0 && i < n ? i : -1;
    case PadMode::edge: return std::clamp<int64_t>(i, 0, n - 1);
    case PadMode::wrap: return modulo(i, n);
    case PadMode::symmetric: {
      int64_t m = modulo(i, 2 * n);
      return m < n ? m : 2 * n - 1 - m;
    }
    case PadMode::reflect: {
      if (n == 1) return 0;
      int64_t m = modulo(i, 2 * n - 2);
      return m < n ? m : 2 * n - 2 - m;
    }
  }
  return -1;
}

}  // namespace

void pad_map(PadMode mode, int64_t size, int64_t before, int64_t after, int64_t* map) {
  for (int64_t i = 0; i < before + size + after; ++i) map[i] = source_index(mode, i - before, size);
}

void pad(DType dtype, Dims shape, const void* src, Dims src_strides, Dims before, Dims after, PadMode mode,
         const Scalar& value, void* dst, Dims dst_strides) {
  int rank = static_cast<int>(shape.size());
  for (int a = 0; a < rank; ++a)
    if (before[a] + shape[a] + after[a] == 0) return;  // nothing, however far the other axes reach
  int64_t corner = 0;
  for (int a = 0; a < rank; ++a) corner += before[a] * dst_strides[a];
  copy(dtype, shape, src, src_strides, shift(dst, dtype, corner), dst_strides);
  // Axis by axis, fills the slabs on both sides of what is already there: earlier axes are complete by then.
  int64_t part[kMaxDims];
  std::copy(shape.begin(), shape.end(), part);
  Dims slab(part, shape.size());
  for (int a = 0; a < rank; ++a) {
    corner -= before[a] * dst_strides[a];
    auto plane = [&](int64_t i) { return shift(dst, dtype, corner + i * dst_strides[a]); };
    int64_t behind = before[a] + shape[a], full = behind + after[a];
    if (mode == PadMode::constant) {
      part[a] = before[a];
      fill(dtype, slab, plane(0), dst_strides, value);
      part[a] = after[a];
      fill(dtype, slab, plane(behind), dst_strides, value);
    } else {
      part[a] = 1;
      for (int64_t i = 0; i < full; ++i) {
        if (i == before[a]) i = behind;
        if (i >= full) break;
        copy(dtype, slab, plane(before[a] + source_index(mode, i - before[a], shape[a])), dst_strides, plane(i),
             dst_strides);
      }
    }
    part[a] = full;
  }
}

void tile(DType dtype, Dims shape, const void* src, Dims src_strides, Dims reps, void* dst, Dims dst_strides) {
  TW_ASSERT(shape.size() * 2 <= static_cast<size_t>(kMaxDims));
  int64_t view[kMaxDims], from[kMaxDims], to[kMaxDims];
  size_t n = 0;
  for (size_t a = 0; a < shape.size(); ++a) {
    view[n] = reps[a], from[n] = 0, to[n++] = dst_strides[a] * shape[a];
    view[n] = shape[a], from[n] = src_strides[a], to[n++] = dst_strides[a];
  }
  copy(dtype, {view, n}, src, {from, n}, dst, {to, n});
}

void repeat(DType dtype, Dims shape, const void* src, Dims src_strides, int axis, int64_t times, void* dst,
            Dims dst_strides) {
  int64_t view[kMaxDims], from[kMaxDims], to[kMaxDims];
  size_t n = 0;
  for (size_t a = 0; a < shape.size(); ++a) {
    bool here = static_cast<int>(a) == axis;
    view[n] = shape[a], from[n] = src_strides[a], to[n++] = dst_strides[a] * (here ? times : 1);
    if (here) view[n] = times, from[n] = 0, to[n++] = dst_strides[a];
  }
  copy(dtype, {view, n}, src, {from, n}, dst, {to, n});
}

}  // namespace twibil::kernels
