// SPDX-License-Identifier: Apache-2.0
// Matrix products on raw memory. Results have the same bits for any number of threads.
#pragma once
#include <cstdint>
#include <limits>

#include "base/dtype.h"

namespace twibil::kernels {

/// C[rows, columns] from A[rows, depth] and B[depth, columns]. Strides count elements and may be anything, so that
/// transposes need no copy; C must not overlap A or B.
struct MatmulShape {
  int64_t rows, columns, depth;
  int64_t a_row, a_depth;     // strides of A along rows and depth
  int64_t b_depth, b_column;  // strides of B along depth and columns
  int64_t c_row, c_column;    // strides of C
};
/// The strides of row-major matrices, A and B optionally stored transposed.
MatmulShape row_major(int64_t rows, int64_t columns, int64_t depth, bool a_transposed = false,
                      bool b_transposed = false);

/// C = A x B, or C += A x B. Floats: every dtype; integers wrap around, bool is "any of all" (as NumPy).
void matmul(DType t, const MatmulShape& shape, const void* a, const void* b, void* c, bool accumulate = false);

/// Which way a product takes, for people.
const char* matmul_algorithm(DType t, const MatmulShape& shape);

/// `batch` products; the steps lead from one matrix to the next and may be 0 for A or B that all share.
struct MatmulBatch {
  int64_t count;
  int64_t a_step, b_step, c_step;
};
void matmul(DType t, const MatmulShape& shape, const MatmulBatch& batch, const void* a, const void* b, void* c,
            bool accumulate = false);

/// What happens to a sum before it is written: y = min(max(sum + bias, lower), upper).
struct DenseEpilogue {
  const void* bias = nullptr;  // by unit, of the dtype of y; may be null
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
};
/// A dense layer: y[rows, units] from x[rows, depth] x W[units, depth]^T, all row-major. W is read once and as it
/// stands where rows are few.
void dense(DType t, int64_t rows, int64_t units, int64_t depth, const void* x, const void* weight,
           const DenseEpilogue& e, void* y);

}  // namespace twibil::kernels
