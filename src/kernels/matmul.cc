// SPDX-License-Identifier: Apache-2.0
// float32 and float64: packs A and B into panels and runs the register tiles of gemm.h over them; small or thin
// products run on the matrices as they stand. 16-bit floats compute in float32; integers in plain loops.
#include "kernels/matmul.h"

#include <algorithm>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/gemm.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

template <class T> struct Problem {
  MatmulShape s;
  const T* a;
  const T* b;
  T* c;
  const T* bias;  // per column of C, or null
  bool accumulate;
};

// A product of fewer multiply-adds than this runs on one thread: waking another costs a few microseconds.
constexpr int64_t kThreadWork = int64_t{1} << 19;
constexpr int64_t kFewestTasks = 8;
constexpr int64_t kDirectSide = 32;   // at most so many rows and columns are not worth packing
constexpr int64_t kPanelDepth = 256;  // a panel of B (256 x 32 floats) and a row tile of A stay in the L1 cache

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Rows [begin, end) and depth [k0, k0 + depth) of A into [depth / 16][rows][16], zeros behind the end of the depth.
template <class T>
void pack_a(const GemmTiles<T>& tiles, const Problem<T>& p, int64_t rows_all, int64_t begin, int64_t end, int64_t k0,
            int64_t depth, T* to) {
  const MatmulShape& s = p.s;
  for (int64_t k = 0; k < depth; k += kGemmDepth) {
    const int64_t n = std::min<int64_t>(kGemmDepth, depth - k);
    T* block = to + k * rows_all;
    const T* from = p.a + (k0 + k) * s.a_depth;
    if (s.a_row == 1) {
      tiles.transpose(from + begin, s.a_depth, n, end - begin, block + begin * kGemmDepth, kGemmDepth);
    } else if (s.a_depth == 1 && n == kGemmDepth) {
      for (int64_t m = begin; m < end; ++m) std::copy_n(from + m * s.a_row, kGemmDepth, block + m * kGemmDepth);
    } else {
      for (int64_t m = begin; m < end; ++m) {
        for (int64_t j = 0; j < n; ++j) block[m * kGemmDepth + j] = from[m * s.a_row + j * s.a_depth];
      }
    }
  }
}

/// Panel number `panel` of B as [depth][width]; columns that do not exist are zero.
template <class T>
void pack_panel(const GemmTiles<T>& tiles, const Problem<T>& p, int64_t width, int64_t panel, int64_t k0, int64_t depth,
                T* to) {
  const MatmulShape& s = p.s;
  const int64_t n0 = panel * width, n = std::min(width, s.columns - n0);
  const T* from = p.b + k0 * s.b_depth + n0 * s.b_column;
  if (s.b_depth == 1) {
    tiles.transpose(from, s.b_column, n, depth, to, width);
  } else if (s.b_column == 1 && n == width) {
    for (int64_t k = 0; k < depth; ++k) std::copy_n(from + k * s.b_depth, width, to + k * width);
  } else {
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < n; ++j) to[k * width + j] = from[k * s.b_depth + j * s.b_column];
    }
  }
  if (n < width) {
    for (int64_t k = 0; k < depth; ++k) std::fill(to + k * width + n, to + (k + 1) * width, T{});
  }
}

/// One slice of depth, [k0, k0 + depth): A packed, and B either packed too or (null) packed panel by panel on the way.
template <class T> struct Slice {
  const T* a;
  const T* b;
  int64_t k0, depth;
  bool first, last;
};

/// The part of C that one task computes: all its register tiles for one slice of depth.
template <class T>
void multiply_block(const GemmTiles<T>& tiles, const Problem<T>& p, const Slice<T>& slice, int64_t m0, int64_t m1,
                    int64_t panel0, int64_t panel1) {
  const MatmulShape& s = p.s;
  const int64_t width = 2 * tiles.lanes, depth = slice.depth;
  int64_t offsets[kPanelDepth / kGemmDepth + 1];
  const int64_t blocks = depth / kGemmDepth, rest = depth % kGemmDepth;
  for (int64_t i = 0; i <= blocks; ++i) offsets[i] = i * kGemmDepth * width;
  const EvenSplit split(m1 - m0, tiles.max_rows[2]);
  ScratchFrame frame;
  T* own_panel = slice.b ? nullptr : frame.take<T>(width * depth);
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    const int64_t n0 = panel * width;
    const int64_t columns = std::min(width, s.columns - n0);
    if (own_panel) pack_panel(tiles, p, width, panel, slice.k0, depth, own_panel);
    GemmTile<T> g{.a = nullptr,
                  .a_step = s.rows * kGemmDepth,
                  .b = own_panel ? own_panel : slice.b + n0 * depth,
                  .b_offsets = offsets,
                  .b_step = width,
                  .blocks = blocks,
                  .rest_blocks = rest ? 1 : 0,
                  .rest_depth = rest,
                  .c = nullptr,
                  .c_step = s.c_row,
                  .rows = 0,
                  .columns = columns};
    g.accumulate = p.accumulate || !slice.first;
    if (slice.last && p.bias) g.column_bias = p.bias + n0;
    const int vectors = columns <= tiles.lanes ? 1 : 2;
    for (int64_t i = 0; i < split.pieces; ++i) {
      const int64_t m = m0 + split.begin(i);
      g.rows = m0 + split.begin(i + 1) - m;
      g.a = slice.a + m * kGemmDepth;
      g.c = p.c + m * s.c_row + n0;
      tiles.tile[vectors][g.rows](g);
    }
  }
}

template <class T> void multiply_packed(const GemmTiles<T>& tiles, const Problem<T>& p) {
  const MatmulShape& s = p.s;
  const int64_t width = 2 * tiles.lanes;
  const int64_t panels = (s.columns + width - 1) / width;
  // Tasks are blocks of C, about as tall as wide, at least a few; their sizes depend on the shape alone.
  const bool parallel = s.rows * s.columns * s.depth > kThreadWork;
  int64_t most_rows = parallel ? int64_t{10} * tiles.max_rows[2] : s.rows, most_panels = parallel ? 8 : panels;
  const auto task_count = [&] { return EvenSplit(s.rows, most_rows).pieces * EvenSplit(panels, most_panels).pieces; };
  while (parallel && task_count() < kFewestTasks && most_panels > 1) most_panels /= 2;
  while (parallel && task_count() < kFewestTasks && most_rows > 2 * tiles.max_rows[2]) most_rows /= 2;
  const EvenSplit row_split(s.rows, most_rows), panel_split(panels, most_panels);
  const int64_t tasks = row_split.pieces * panel_split.pieces;

  ScratchFrame frame;
  const int64_t slice = std::min(kPanelDepth, s.depth);
  T* a = frame.take<T>(checked_mul(s.rows + tiles.max_rows[2], round_up(slice, kGemmDepth)));
  // Few rows are one block: then each panel of B serves once, and is packed by the task that needs it.
  T* b = row_split.pieces == 1 ? nullptr : frame.take<T>(checked_mul(panels * width, slice));
  for (int64_t k0 = 0; k0 < s.depth; k0 += slice) {
    const int64_t depth = std::min(slice, s.depth - k0);
    const Slice<T> part{a, b, k0, depth, k0 == 0, k0 + depth == s.depth};
    parallel_for(s.rows, parallel ? 256 : s.rows,
                 [&](int64_t i, int64_t end) { pack_a(tiles, p, s.rows, i, end, k0, depth, a); });
    if (b) {
      parallel_for(panels, parallel ? 8 : panels, [&](int64_t i, int64_t end) {
        for (; i < end; ++i) pack_panel(tiles, p, width, i, k0, depth, b + i * width * depth);
      });
    }
    parallel_for(tasks, parallel ? 1 : tasks, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t i = task / panel_split.pieces, j = task % panel_split.pieces;
        multiply_block(tiles, p, part, row_split.begin(i), row_split.begin(i + 1), panel_split.begin(j),
                       panel_split.begin(j + 1));
      }
    });
  }
}

/// Thin products read each element of the large matrix once: no packing, one pass at the speed of memory.
enum class Thin : uint8_t { no, rows, dots };

bool is_small(const MatmulShape& s) {
  return s.rows <= kDirectSide && s.columns <= kDirectSide && s.depth <= 4 * kDirectSide;
}
Thin thin_form(const MatmulShape& s, int64_t lanes) {
  if (!is_small(s) && s.rows > 8) return Thin::no;
  if (s.b_column == 1) return Thin::rows;
  return s.a_depth == 1 && s.b_depth == 1 && s.depth >= lanes ? Thin::dots : Thin::no;
}

template <class T> bool multiply_thin(const GemmTiles<T>& tiles, const Problem<T>& p) {
  const MatmulShape& s = p.s;
  const bool small = is_small(s);
  const Thin form = thin_form(s, tiles.lanes);
  if (form == Thin::rows) {
    // Columns are cut for threads, depth so that few rows of B are open at a time.
    const bool parallel = s.rows * s.columns * s.depth > kThreadWork;
    const int64_t slice = small || s.columns <= 64 ? s.depth : 8;
    parallel_for(s.columns, parallel ? 512 : s.columns, [&](int64_t n, int64_t end) {
      for (int64_t k = 0; k < s.depth; k += slice) {
        const bool last = k + slice >= s.depth;
        tiles.direct({.a = p.a + k * s.a_depth,
                      .a_row_step = s.a_row,
                      .a_depth_step = s.a_depth,
                      .b = p.b + k * s.b_depth + n,
                      .b_step = s.b_depth,
                      .c = p.c + n,
                      .c_step = s.c_row,
                      .rows = s.rows,
                      .columns = end - n,
                      .depth = std::min(slice, s.depth - k),
                      .accumulate = p.accumulate || k > 0,
                      .column_bias = last && p.bias ? p.bias + n : nullptr});
      }
    });
    return true;
  }
  if (form == Thin::dots) {
    const bool parallel = s.rows * s.columns * s.depth > kThreadWork;
    const int64_t grain = std::max<int64_t>(16, round_up(kThreadWork / (s.rows * s.depth), 4));
    parallel_for(s.columns, parallel ? grain : s.columns, [&](int64_t n, int64_t end) {
      tiles.dot(p.a, s.a_row, s.rows, p.b + n * s.b_column, s.b_column, end - n, s.depth, p.c + n, s.c_row,
                p.accumulate, p.bias ? p.bias + n : nullptr);
    });
    return true;
  }
  return false;
}

/// C without contiguous rows, or a small B without them, takes one more copy.
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
  if (is_small(s) && s.b_column == 1 && s.c_column == 1) {  // a few hundred cycles of work: nothing to plan
    return gemm_tiles<T>().direct({.a = p.a,
                                   .a_row_step = s.a_row,
                                   .a_depth_step = s.a_depth,
                                   .b = p.b,
                                   .b_step = s.b_depth,
                                   .c = p.c,
                                   .c_step = s.c_row,
                                   .rows = s.rows,
                                   .columns = s.columns,
                                   .depth = s.depth,
                                   .accumulate = p.accumulate,
                                   .column_bias = p.bias});
  }
  if (s.rows == 0 || s.columns == 0) return;
  if (s.c_column != 1 && s.columns > 1) {
    if (s.c_row != 1 || p.bias) return multiply_through_copy_of_c(p);
    Problem<T> q = p;
    q.s = transposed(s);
    std::swap(q.a, q.b);
    return multiply(q);
  }
  const GemmTiles<T>& tiles = gemm_tiles<T>();
  if (s.depth == 0) {  // an empty sum: the direct tile writes zeros and the bias
    tiles.direct({.a = p.a,
                  .a_row_step = 0,
                  .a_depth_step = 0,
                  .b = p.b,
                  .b_step = 0,
                  .c = p.c,
                  .c_step = s.c_row,
                  .rows = s.rows,
                  .columns = s.columns,
                  .depth = 0,
                  .accumulate = p.accumulate,
                  .column_bias = p.bias});
    return;
  }
  if (!multiply_thin(tiles, p)) multiply_packed(tiles, p);
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
Problem<T> problem(const MatmulShape& shape, const void* a, const void* b, void* c, const void* bias, bool accumulate) {
  return {
      shape,     static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), static_cast<const T*>(bias),
      accumulate};
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
  const int64_t lanes = t == DType::float64 ? gemm_tiles<double>().lanes : gemm_tiles<float>().lanes;
  switch (thin_form(turned ? transposed(shape) : shape, lanes)) {
    case Thin::rows: return "register tiles, in place";
    case Thin::dots: return "dot products, in place";
    case Thin::no: break;
  }
  return "register tiles, packed";
}

void matmul(DType t, const MatmulShape& shape, const void* a, const void* b, void* c, bool accumulate) {
  if (t == DType::float32) return multiply(problem<float>(shape, a, b, c, nullptr, accumulate));
  dispatch(t, [&]<class T>() { multiply_any(problem<T>(shape, a, b, c, nullptr, accumulate)); });
}

void matmul(DType t, const MatmulShape& shape, const MatmulBatch& batch, const void* a, const void* b, void* c,
            bool accumulate) {
  const int64_t work = std::max<int64_t>(1, shape.rows * shape.columns * shape.depth);
  dispatch(t, [&]<class T>() {
    parallel_for(batch.count, std::max<int64_t>(1, kThreadWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        multiply_any(problem<T>(shape, static_cast<const T*>(a) + i * batch.a_step,
                                static_cast<const T*>(b) + i * batch.b_step, static_cast<T*>(c) + i * batch.c_step,
                                nullptr, accumulate));
      }
    });
  });
}

void dense(DType t, int64_t rows, int64_t units, int64_t depth, const void* x, const void* weight, const void* bias,
           void* y) {
  TW_CHECK(is_floating(t), type, "dense: dtype must be a float; got ", t);
  const MatmulShape shape = row_major(rows, units, depth, false, true);
  dispatch(t, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>)) multiply_any(problem<T>(shape, x, weight, y, bias, false));
  });
}

}  // namespace twibil::kernels
