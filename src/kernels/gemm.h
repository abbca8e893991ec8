// SPDX-License-Identifier: Apache-2.0
// The building block of everything matrix-like: register tiles that accumulate C += sum over blocks of A_i x B_i
// (a batch-reduce GEMM). matmul.cc and convolution*.cc are loops around them.
#pragma once
#include <cstdint>

namespace twibil::kernels {

inline constexpr int kGemmDepth = 16;  // a block of A is so many columns deep
inline constexpr int kGemmMaxRows = 14;
inline constexpr int kGemmMaxVectors = 3;

/// One call of a register tile: `rows` x `columns` of C. T is float or double.
///
/// Block i of A lies at a + i * a_step and holds its rows kGemmDepth elements apart: a row-major matrix packed as
/// [K / 16][M][16], which copies whole cache lines. Block i of B lies at b + b_offsets[i], its row k at + k * b_step,
/// and its columns side by side. So b_offsets express channel blocks, kernel taps and halos.
/// The first `blocks` are 16 deep, `rest_blocks` after them `rest_depth`.
template <class T> struct GemmTile {
  const T* a;
  int64_t a_step;
  const T* b;
  const int64_t* b_offsets;
  int64_t b_step;
  int64_t blocks;
  int64_t rest_blocks = 0;
  int64_t rest_depth = 0;
  T* c;
  int64_t c_step;           // from row to row
  int64_t rows;             // how many of the tile's rows and columns exist: no others are written, though A and B are
  int64_t columns;          // read for the whole tile
  bool accumulate = false;  // C += instead of C =
  const T* row_bias = nullptr;     // added to each row, by row
  const T* column_bias = nullptr;  // added to each row, by column
};

/// The tiles of one instruction set.
template <class T> struct GemmTiles {
  int lanes;                          // elements per vector
  int max_vectors;                    // widest tile
  int max_rows[kGemmMaxVectors + 1];  // by the tile's width in vectors
  using Function = void (*)(const GemmTile<T>&);
  Function tile[kGemmMaxVectors + 1][kGemmMaxRows + 1];  // [vectors][rows]; one that has more rows may stand in

  /// c[j] = bias + sum over t of weights[t] * b[offsets[t] + j], for j < columns; reads a little behind the last
  /// column.
  void (*stencil)(const T* b, const int64_t* offsets, const T* weights, int64_t taps, T bias, int64_t columns, T* c);
  /// sums[t] += sum over i, j of a[i * a_step + j] * b[offsets[t] + i * b_step + j], for i < rows, j < columns.
  void (*correlate)(const T* a, int64_t a_step, const T* b, int64_t b_step, const int64_t* offsets, int64_t taps,
                    int64_t rows, int64_t columns, T* sums);
  /// to[i] = row[start + i] for i < n, zero where the row of `size` elements does not reach. Up to a vector behind
  /// to[n] may be overwritten.
  void (*copy_row)(const T* row, int64_t size, int64_t start, int64_t n, T* to);
  /// dst[j * dst_step + i] = src[i * src_step + j] for i < rows, j < columns.
  void (*transpose)(const T* src, int64_t src_step, int64_t rows, int64_t columns, T* dst, int64_t dst_step);
};

/// The tiles of the instruction set in use (kernels/isa.h).
template <class T> const GemmTiles<T>& gemm_tiles();

/// Equal pieces: ceil(total / pieces) or one less each, where `pieces` is the fewest of at most `most`.
struct EvenSplit {
  int64_t pieces, size, larger;  // the first `larger` pieces have `size`, the others size - 1
  EvenSplit(int64_t total, int64_t most)
      : pieces((total + most - 1) / most),
        size(pieces ? (total + pieces - 1) / pieces : 0),
        larger(pieces ? total - pieces * (size - 1) : 0) {}
  int64_t begin(int64_t i) const { return i <= larger ? i * size : larger * size + (i - larger) * (size - 1); }
};

}  // namespace twibil::kernels
