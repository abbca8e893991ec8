// SPDX-License-Identifier: Apache-2.0
// float32 and float64: register tiles that read A and B as they stand wherever they can (gemm_direct.h), and sums along
// the rows of both where one side is thin (gemm_dots.h). 16-bit floats compute in float32; integers in plain loops.
#include "kernels/matmul.h"

#include <algorithm>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/gemm.h"
#include "kernels/gemm_direct.h"
#include "kernels/gemm_dots.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

template <class T> struct Problem {
  MatmulShape s;
  const T* a;
  const T* b;
  T* c;
  bool accumulate;
  const T* bias = nullptr;  // per column of C; this and the bounds only where C has contiguous rows
  double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
};

// A product of fewer multiply-adds than this runs on one thread: waking another costs a few microseconds.
constexpr int64_t kThreadWork = int64_t{1} << 19;
constexpr int64_t kFewestTasks = 8;
constexpr int64_t kDirectSide = 32;    // at most so many rows and columns are done before they are planned
constexpr int64_t kSliceBytes = 2048;  // of a row of A: with a panel of B as deep they stay in the L1 and L2 caches
constexpr int64_t kThinRows = 14;      // of A: B goes by once
constexpr int64_t kThinSlice = 8;      // rows of B that go by together
constexpr int64_t kDotRows = 48;       // of the thin side
constexpr int64_t kDotColumns = 8;

bool is_small(const MatmulShape& s) {
  return s.rows <= kDirectSide && s.columns <= kDirectSide && s.depth <= 4 * kDirectSide;
}
bool is_parallel(const MatmulShape& s) { return s.rows * s.columns * s.depth > kThreadWork; }

/// Rows and columns [m0, m1) x [n0, n1) of C for the depth [k0, k1), with b as the rows of B in place or copied.
template <class T>
DirectProduct<T> part(const Problem<T>& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1, int64_t k0, int64_t k1) {
  const MatmulShape& s = p.s;
  DirectProduct<T> g{.a = p.a + m0 * s.a_row + k0 * s.a_depth,
                     .a_row_step = s.a_row,
                     .a_depth_step = s.a_depth,
                     .b = p.b + k0 * s.b_depth + n0 * s.b_column,
                     .b_step = s.b_depth,
                     .c = p.c + m0 * s.c_row + n0,
                     .c_step = s.c_row,
                     .rows = m1 - m0,
                     .columns = n1 - n0,
                     .depth = k1 - k0,
                     .accumulate = p.accumulate || k0 > 0};
  if (k1 == s.depth) {
    g.column_bias = p.bias ? p.bias + n0 : nullptr;
    g.lower = static_cast<T>(p.lower);
    g.upper = static_cast<T>(p.upper);
  }
  return g;
}

/// From how many rows of A on B is used often enough to be copied, by the distance of its rows. Copies follow each
/// other; rows a multiple of 2 KiB apart share a few sets of the caches, and far ones lie in different pages.
int64_t copy_rows(int64_t step_bytes) {
  if (step_bytes % 2048 == 0) return 56;
  return step_bytes >= 4096 ? 256 : std::numeric_limits<int64_t>::max();
}

// ---- Large products -------------------------------------------------------------------------------------------------

/// Rows [k0, k1) of B for columns [n0, n1) as panels, each [k1 - k0][width].
template <class T> void copy_b(const Problem<T>& p, int64_t n0, int64_t n1, int64_t k0, int64_t k1, T* to) {
  const MatmulShape& s = p.s;
  const DirectKernels<T>& kernels = direct_kernels<T>();
  const T* from = p.b + k0 * s.b_depth + n0 * s.b_column;
  const int64_t width = kernels.width, depth = k1 - k0;
  if (s.b_column == 1) return kernels.pack(from, s.b_depth, depth, n1 - n0, to, width * depth);
  for (int64_t n = n0; n < n1; n += width, from += width * s.b_column, to += width * depth) {
    const int64_t columns = std::min(width, n1 - n);
    if (s.b_depth == 1) {
      gemm_tiles<T>().transpose(from, s.b_column, columns, depth, to, width);
      continue;
    }
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < columns; ++j) to[k * width + j] = from[k * s.b_depth + j * s.b_column];
    }
  }
}

/// The tiles of a block of C, from panels of B.
template <class T> void run_panels(DirectProduct<T> g, const T* panels) {
  const DirectKernels<T>& kernels = direct_kernels<T>();
  const int64_t width = kernels.width, columns = g.columns;
  g.b_step = width;
  for (int64_t n = 0; n < columns; n += width, g.c += width, panels += width * g.depth) {
    g.columns = std::min(width, columns - n);
    g.b = panels;
    kernels.run(g);
    if (g.column_bias) g.column_bias += width;
  }
}

/// C is cut into blocks of rows x panels, the tasks; their sizes depend on the shape alone.
struct Blocks {
  EvenSplit rows, panels;
  Blocks(const MatmulShape& s, int64_t width, int64_t tile_rows) : rows(0, 1), panels(0, 1) {
    const int64_t all = (s.columns + width - 1) / width;
    int64_t most_rows = 10 * tile_rows, most_panels = 8;
    const auto split = [&] { rows = EvenSplit(s.rows, most_rows), panels = EvenSplit(all, most_panels); };
    split();
    if (!is_parallel(s)) return;
    for (; count() < kFewestTasks && most_panels > 1; split()) most_panels /= 2;
    for (; count() < kFewestTasks && most_rows > 2 * tile_rows; split()) most_rows /= 2;
  }
  int64_t count() const { return rows.pieces * panels.pieces; }
};

template <class T> void multiply_blocks(const Problem<T>& p) {
  const MatmulShape& s = p.s;
  const DirectKernels<T>& kernels = direct_kernels<T>();
  const int64_t width = kernels.width;
  const Blocks blocks(s, width, kernels.max_rows);
  const EvenSplit slices(s.depth, kSliceBytes / static_cast<int64_t>(sizeof(T)));
  const bool copied = s.b_column != 1 || s.rows >= copy_rows(s.b_depth * static_cast<int64_t>(sizeof(T)));
  const bool shared = copied && blocks.rows.pieces > 1;  // else each panel serves one task, which copies it
  const bool parallel = is_parallel(s);
  const auto run_block = [&](int64_t task, int64_t k0, int64_t k1, const T* panels) {
    const int64_t i = task / blocks.panels.pieces, j = task % blocks.panels.pieces;
    const int64_t n0 = blocks.panels.begin(j) * width, n1 = std::min(s.columns, blocks.panels.begin(j + 1) * width);
    const auto g = part(p, blocks.rows.begin(i), blocks.rows.begin(i + 1), n0, n1, k0, k1);
    if (panels) return run_panels(g, panels + n0 * (k1 - k0));
    if (!copied) return kernels.run(g);
    ScratchFrame frame;
    T* own = frame.take<T>((n1 - n0 + width) * (k1 - k0));
    copy_b(p, n0, n1, k0, k1, own);
    run_panels(g, own);
  };
  if (!shared) {
    return parallel_for(blocks.count(), parallel ? 1 : blocks.count(), [&](int64_t task, int64_t end) {
      for (; task < end; ++task) {
        for (int64_t i = 0; i < slices.pieces; ++i) run_block(task, slices.begin(i), slices.begin(i + 1), nullptr);
      }
    });
  }
  ScratchFrame frame;
  const int64_t panels = (s.columns + width - 1) / width;
  T* b = frame.take<T>(checked_mul(panels * width, slices.size));
  for (int64_t i = 0; i < slices.pieces; ++i) {
    const int64_t k0 = slices.begin(i), k1 = slices.begin(i + 1);
    parallel_for(panels, parallel ? 8 : panels, [&](int64_t first, int64_t end) {
      copy_b(p, first * width, std::min(s.columns, end * width), k0, k1, b + first * width * (k1 - k0));
    });
    parallel_for(blocks.count(), parallel ? 1 : blocks.count(), [&](int64_t task, int64_t end) {
      for (; task < end; ++task) run_block(task, k0, k1, b);
    });
  }
}

// ---- Thin products: each element of the large matrix is read once, in place, at the speed of memory
// ------------------

enum class Form : uint8_t { blocks, rows, dots, turned_dots };

Form form_of(const MatmulShape& s, int64_t lanes) {
  // Along the depth of both; the thin side is copied, so it may lie as it likes.
  if (s.depth >= lanes) {
    if (s.b_depth == 1 && s.rows <= kDotRows && s.rows <= s.columns) return Form::dots;
    if (s.a_depth == 1 && s.columns <= (s.b_depth == 1 ? kDotRows : kDotColumns) && s.columns < s.rows)
      return Form::turned_dots;
  }
  return s.b_column == 1 && s.rows <= kThinRows ? Form::rows : Form::blocks;
}

/// Columns are cut for threads, depth so that few rows of B are open at a time.
template <class T> void multiply_rows(const Problem<T>& p) {
  const MatmulShape& s = p.s;
  const EvenSplit slices(s.depth, s.columns <= 64 ? s.depth : kThinSlice);
  parallel_for(s.columns, is_parallel(s) ? 512 : s.columns, [&](int64_t n, int64_t end) {
    for (int64_t i = 0; i < slices.pieces; ++i) {
      direct_kernels<T>().run(part(p, 0, s.rows, n, end, slices.begin(i), slices.begin(i + 1)));
    }
  });
}

/// turned: A is the large side, and the sums are those of the transposed product.
template <class T> void multiply_dots(const Problem<T>& p, bool turned) {
  const DotKernels<T>& kernels = dot_kernels<T>();
  const MatmulShape& s = p.s;
  const int64_t rows = turned ? s.columns : s.rows, columns = turned ? s.rows : s.columns;
  ScratchFrame frame;
  T* x = frame.take<T>(kernels.packed_size(rows, s.depth));
  if (turned) kernels.pack(p.b, s.b_column, s.b_depth, rows, s.depth, x);
  else kernels.pack(p.a, s.a_row, s.a_depth, rows, s.depth, x);
  DotProducts<T> all{.x = x,
                     .rows = rows,
                     .w = p.b,
                     .w_step = s.b_column,
                     .columns = columns,
                     .depth = s.depth,
                     .y = p.c,
                     .y_row = s.c_row,
                     .y_column = 1,
                     .accumulate = p.accumulate,
                     .column_bias = p.bias,
                     .row_bias = nullptr,
                     .lower = static_cast<T>(p.lower),
                     .upper = static_cast<T>(p.upper)};
  if (turned) {
    all.w = p.a, all.w_step = s.a_row;
    all.y_row = 1, all.y_column = s.c_row;
    std::swap(all.column_bias, all.row_bias);
  }
  const int64_t grain = std::max<int64_t>(32, kThreadWork / (rows * s.depth) / 8 * 8);
  parallel_for(columns, is_parallel(s) ? grain : columns, [&](int64_t n, int64_t end) {
    DotProducts<T> g = all;
    g.columns = end - n;
    g.w += n * g.w_step;
    g.y += n * g.y_column;
    if (g.column_bias) g.column_bias += n;
    kernels.run(g);
  });
}

/// C without contiguous rows and columns takes one more copy.
template <class T> void multiply(const Problem<T>& p);

template <class T> void multiply_through_copy_of_c(const Problem<T>& p) {
  const MatmulShape& s = p.s;
  ScratchFrame frame;
  Problem<T> q = p;
  q.c = frame.take<T>(checked_mul(s.rows, s.columns));
  q.s.c_row = s.columns;
  q.s.c_column = 1;
  q.accumulate = false;
  multiply(q);
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      T& to = p.c[i * s.c_row + j * s.c_column];
      to = p.accumulate ? to + q.c[i * s.columns + j] : q.c[i * s.columns + j];
    }
  }
}

/// C without contiguous rows: C^T = B^T x A^T.
MatmulShape transposed(const MatmulShape& s) {
  return {s.columns, s.rows, s.depth, s.b_column, s.b_depth, s.a_depth, s.a_row, s.c_column, s.c_row};
}

template <class T> void multiply(const Problem<T>& p) {
  const MatmulShape& s = p.s;
  const auto at_once = [&] { direct_kernels<T>().run(part(p, 0, s.rows, 0, s.columns, 0, s.depth)); };
  if (is_small(s) && s.b_column == 1 && s.c_column == 1) return at_once();  // a few hundred cycles: nothing to plan
  if (s.rows == 0 || s.columns == 0) return;
  if (s.c_column != 1 && s.columns > 1) {
    if (s.c_row != 1 || p.bias) return multiply_through_copy_of_c(p);
    Problem<T> q = p;
    q.s = transposed(s);
    std::swap(q.a, q.b);
    return multiply(q);
  }
  if (s.depth == 0) return at_once();  // an empty sum: zeros and the bias
  switch (form_of(s, direct_kernels<T>().width / 2)) {
    case Form::rows: return multiply_rows(p);
    case Form::dots: return multiply_dots(p, false);
    case Form::turned_dots: return multiply_dots(p, true);
    case Form::blocks: return multiply_blocks(p);
  }
}

/// Row-major float32 copy of a matrix of 16-bit floats.
template <class T>
const float* widened(ScratchFrame& frame, const T* from, int64_t rows, int64_t columns, int64_t row, int64_t column) {
  float* to = frame.take<float>(checked_mul(rows, columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = static_cast<float>(from[i * row + j * column]);
  }
  return to;
}

template <class T> void multiply_half(const Problem<T>& p) {
  const MatmulShape& s = p.s;
  ScratchFrame frame;
  Problem<float> q{};
  q.s = row_major(s.rows, s.columns, s.depth);
  q.a = widened(frame, p.a, s.rows, s.depth, s.a_row, s.a_depth);
  q.b = widened(frame, p.b, s.depth, s.columns, s.b_depth, s.b_column);
  q.bias = p.bias ? widened(frame, p.bias, 1, s.columns, 0, 1) : nullptr;
  float* c = frame.take<float>(checked_mul(s.rows, s.columns));
  q.c = c;
  q.lower = p.lower;
  q.upper = p.upper;
  multiply(q);
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      T& to = p.c[i * s.c_row + j * s.c_column];
      to = T(p.accumulate ? static_cast<float>(to) + c[i * s.columns + j] : c[i * s.columns + j]);
    }
  }
}

/// Wraps around like NumPy: unsigned arithmetic of the same width.
template <class T> void multiply_integer(const Problem<T>& p) {
  using U = std::conditional_t<std::is_same_v<T, bool>, bool,
                               std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, int, T>>>;
  const MatmulShape& s = p.s;
  const int64_t grain = std::max<int64_t>(1, kThreadWork / std::max<int64_t>(1, s.columns * s.depth));
  parallel_for(s.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* c = p.c + i * s.c_row;
      if (!p.accumulate) {
        for (int64_t j = 0; j < s.columns; ++j) c[j * s.c_column] = T{};
      }
      for (int64_t k = 0; k < s.depth; ++k) {
        const U left = static_cast<U>(p.a[i * s.a_row + k * s.a_depth]);
        const T* b = p.b + k * s.b_depth;
        for (int64_t j = 0; j < s.columns; ++j) {
          T& to = c[j * s.c_column];
          if constexpr (std::is_same_v<T, bool>) to = to | (left & b[j * s.b_column]);
          else to = static_cast<T>(static_cast<U>(to) + static_cast<U>(left * static_cast<U>(b[j * s.b_column])));
        }
      }
    }
  });
}

template <class T> void multiply_any(const Problem<T>& p) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) multiply(p);
  else if constexpr (is_half(dtype_of<T>)) multiply_half(p);
  else multiply_integer(p);
}

template <class T>
Problem<T> problem(const MatmulShape& shape, const void* a, const void* b, void* c, bool accumulate) {
  return {shape, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), accumulate};
}

}  // namespace

MatmulShape row_major(int64_t rows, int64_t columns, int64_t depth, bool a_transposed, bool b_transposed) {
  return {.rows = rows,
          .columns = columns,
          .depth = depth,
          .a_row = a_transposed ? 1 : depth,
          .a_depth = a_transposed ? rows : 1,
          .b_depth = b_transposed ? 1 : columns,
          .b_column = b_transposed ? depth : 1,
          .c_row = columns,
          .c_column = 1};
}

const char* matmul_algorithm(DType t, const MatmulShape& shape) {
  if (!is_floating(t)) return "plain loops";
  const bool turned = shape.c_column != 1 && shape.columns > 1 && shape.c_row == 1;
  const MatmulShape s = turned ? transposed(shape) : shape;
  if (is_small(s) && s.b_column == 1) return "register tiles";
  switch (form_of(s, t == DType::float64 ? direct_kernels<double>().width / 2 : direct_kernels<float>().width / 2)) {
    case Form::rows: return "register tiles, B once";
    case Form::dots: return "sums along the rows of B, once";
    case Form::turned_dots: return "sums along the rows of A, once";
    case Form::blocks: break;
  }
  return s.b_column == 1 ? "register tiles" : "register tiles, B copied";
}

void matmul(DType t, const MatmulShape& shape, const void* a, const void* b, void* c, bool accumulate) {
  if (t == DType::float32) return multiply(problem<float>(shape, a, b, c, accumulate));
  dispatch(t, [&]<class T>() { multiply_any(problem<T>(shape, a, b, c, accumulate)); });
}

void matmul(DType t, const MatmulShape& shape, const MatmulBatch& batch, const void* a, const void* b, void* c,
            bool accumulate) {
  const int64_t work = std::max<int64_t>(1, shape.rows * shape.columns * shape.depth);
  dispatch(t, [&]<class T>() {
    parallel_for(batch.count, std::max<int64_t>(1, kThreadWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        multiply_any(problem<T>(shape, static_cast<const T*>(a) + i * batch.a_step,
                                static_cast<const T*>(b) + i * batch.b_step, static_cast<T*>(c) + i * batch.c_step,
                                accumulate));
      }
    });
  });
}

void dense(DType t, int64_t rows, int64_t units, int64_t depth, const void* x, const void* weight,
           const DenseEpilogue& e, void* y) {
  TW_CHECK(is_floating(t), type, "dense: dtype must be a float; got ", t);
  const MatmulShape shape = row_major(rows, units, depth, false, true);
  dispatch(t, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>)) {
      Problem<T> p = problem<T>(shape, x, weight, y, false);
      p.bias = static_cast<const T*>(e.bias);
      p.lower = e.lower;
      p.upper = e.upper;
      multiply_any(p);
    }
  });
}

}  // namespace twibil::kernels
