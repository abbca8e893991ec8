// SPDX-License-Identifier: Apache-2.0
// Products of matrices, or of stacks of them, with NumPy's rules for one dimension and for broadcasting.
#include "kernels/matmul.h"

#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

/// Both operands as stacks of matrices: a vector on the left is a row, on the right a column.
struct Product {
  Shape batch, result;
  int64_t rows, columns, depth;
  Product(const Shape& a, const Shape& b) {
    TW_CHECK(a.rank() > 0 && b.rank() > 0, value, "matmul: operands must have at least one dimension; got shapes ", a,
             " and ", b, ". Use multiply for numbers");
    rows = a.rank() > 1 ? a[a.rank() - 2] : 1;
    columns = b.rank() > 1 ? b[b.rank() - 1] : 1;
    depth = a[a.rank() - 1];
    int64_t other = b[b.rank() > 1 ? b.rank() - 2 : 0];
    TW_CHECK(depth == other, value, "matmul: the last dimension of a, ", depth, ", must equal the ",
             b.rank() > 1 ? "second to last" : "only", " dimension of b, ", other, "; shapes are ", a, " and ", b);
    if (a.rank() > 2 || b.rank() > 2) result = batch = broadcast(batch_of(a), batch_of(b), "matmul");
    if (a.rank() > 1) result.push_back(rows);
    if (b.rank() > 1) result.push_back(columns);
  }
  static Shape batch_of(const Shape& s) {
    return Shape(s.span().first(static_cast<size_t>(std::max(0, s.rank() - 2))));
  }
};

/// Strides of one operand over the batch axes of the product.
void batch_strides(const Buffer& x, const Strides& own, const Shape& batch, int64_t* out) {
  int axes = std::max(0, x.rank - 2), shift = batch.rank() - axes;
  for (int i = 0; i < batch.rank(); ++i) out[i] = i < shift || x.dims[i - shift] == 1 ? 0 : own.items[i - shift];
}

/// The batch axes as one step each, when all three operands allow it; so that one call does all products.
bool collapse(const Shape& batch, const int64_t* a, const int64_t* b, const int64_t* c, kernels::MatmulBatch* out) {
  *out = {1, 0, 0, 0};
  bool first = true;
  for (int i = batch.rank() - 1; i >= 0; --i) {
    if (batch[i] == 1) continue;
    if (first) *out = {batch[i], a[i], b[i], c[i]};
    else if (a[i] != out->a_step * out->count || b[i] != out->b_step * out->count || c[i] != out->c_step * out->count)
      return false;
    else out->count *= batch[i];
    first = false;
  }
  return true;
}

/// Two matrices, without a stack: small products are as many as large ones, so they skip what stacks need.
kernels::MatmulShape shape_of_matrices(const Buffer& a, const Buffer& b) {
  const int64_t depth = a.dims[1], columns = b.dims[1];
  return {.rows = a.dims[0],
          .columns = columns,
          .depth = depth,
          .a_row = a.strides ? a.strides[0] : depth,
          .a_depth = a.strides ? a.strides[1] : 1,
          .b_depth = b.strides ? b.strides[0] : columns,
          .b_column = b.strides ? b.strides[1] : 1,
          .c_row = columns,
          .c_column = 1};
}

void run(Call& c) {
  const Buffer &a = c.in[0], &b = c.in[1], &y = c.out[0];
  if (y.size == 0) return;  // there may be 2^60 products of nothing
  if (a.rank == 2 && b.rank == 2) return kernels::matmul(y.dtype, shape_of_matrices(a, b), a.data, b.data, y.data);
  Product p(Shape(a.shape()), Shape(b.shape()));
  DType t = y.dtype;
  Strides sa(a), sb(b);
  kernels::MatmulShape m{.rows = p.rows,
                         .columns = p.columns,
                         .depth = p.depth,
                         .a_row = a.rank > 1 ? sa.items[a.rank - 2] : 0,
                         .a_depth = sa.items[a.rank - 1],
                         .b_depth = b.rank > 1 ? sb.items[b.rank - 2] : sb.items[0],
                         .b_column = b.rank > 1 ? sb.items[b.rank - 1] : 0,
                         .c_row = p.columns,
                         .c_column = 1};
  int64_t ba[kMaxRank], bb[kMaxRank], bc[kMaxRank];
  batch_strides(a, sa, p.batch, ba);
  batch_strides(b, sb, p.batch, bb);
  contiguous_strides(p.batch, bc);
  for (int i = 0; i < p.batch.rank(); ++i) bc[i] *= p.rows * p.columns;
  kernels::MatmulBatch batch;
  if (collapse(p.batch, ba, bb, bc, &batch)) {
    if (batch.count > 1 && batch.b_step == 0 && batch.a_step == m.a_row * m.rows && m.a_row) {  // one tall matrix
      m.rows *= batch.count;
      batch = {1, 0, 0, 0};
    }
    return kernels::matmul(t, m, batch, a.data, b.data, y.data);
  }
  int64_t n = p.batch.size(), width = size_of(t);
  for (int64_t i = 0; i < n; ++i) {
    int64_t oa = 0, ob = 0, oc = 0, rest = i;
    for (int d = p.batch.rank() - 1; d >= 0; --d) {
      int64_t k = rest % p.batch[d];
      rest /= p.batch[d];
      oa += k * ba[d], ob += k * bb[d], oc += k * bc[d];
    }
    kernels::matmul(t, m, a.data + oa * width, b.data + ob * width, y.data + oc * width);
  }
}

Val as_matrix(const Val& x, bool left) { return x->rank() > 1 ? x : expand_dims(x, left ? 0 : 1); }
Val swap_last(const Val& x) {
  IntList order;
  for (int i = 0; i < x->rank(); ++i) order.push_back(i);
  std::swap(order[x->rank() - 1], order[x->rank() - 2]);
  return transpose(x, order);
}
/// A gradient of matrix form back in the form of x.
Val fit(const Val& dx, const Val& x) {
  if (x->rank() > 1) return sum_to_like(dx, x);
  Val flat = dx;
  while (flat->rank() > 2) flat = sum(flat, IntList{0});
  return reshape_like(flat, x);
}

}  // namespace

TW_OP(matmul) = whole({
    .name = "matmul",
    .doc = "The matrix product of a and b, over the last two dimensions; earlier ones are stacks that broadcast.",
    .names = {"np.matmul", "nd.matmul"},
    .onnx = {.names = "MatMul"},
    .in = {{{.name = "a"}, {.name = "b"}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      const Shape &a = in[0].shape, &b = in[1].shape;
      out[0].dtype = promote(in[0].dtype, in[1].dtype);
      if (a.rank() != 2 || b.rank() != 2 || a[1] != b[0]) return static_cast<void>(out[0].shape = Product(a, b).result);
      out[0].shape.resize(2);
      out[0].shape[0] = a[0];
      out[0].shape[1] = b[1];
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) { run(c); }),
    .strided = true,
    .same_dtype = true,
    .needs = X0 | X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      Val a = g.x(0), b = g.x(1), dy = g.dy();
      if (a->rank() == 1) dy = expand_dims(dy, b->rank() == 1 ? 0 : dy->rank() - 1);
      if (b->rank() == 1) dy = expand_dims(dy, dy->rank());
      return {g.wants(0) ? fit(matmul(dy, swap_last(as_matrix(b, false))), a) : Val(),
              g.wants(1) ? fit(matmul(swap_last(as_matrix(a, true)), dy), b) : Val()};
    }),
    .heavy = true,
    .cost = cost_rule<NoAttrs>([](auto&, SigsIn in, SigsIn out) {
      double depth = in[0].rank() ? static_cast<double>(in[0].shape[in[0].rank() - 1]) : 1.0;
      return 2.0 * depth * static_cast<double>(out[0].shape.size());
    }),
    .algorithm = algorithm_rule<NoAttrs>([](auto&, const Call& c) {
      if (c.in[0].rank != 2 || c.in[1].rank != 2) return "a stack of products";
      return kernels::matmul_algorithm(c.out[0].dtype, shape_of_matrices(c.in[0], c.in[1]));
    }),
    .samples = {{{.in = {{{3, 4}, {4, 5}}}},
                 {.in = {{{2, 3, 4}, {4, 5}}}},
                 {.in = {{SampleInput({4}), {4, 5}}}},
                 {.in = {{{3, 4}, SampleInput({4})}}},
                 {.in = {{{2, 1, 3, 4}, {3, 4, 2}}}}}},
});

}  // namespace twibil::ops
