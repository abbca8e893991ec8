// SPDX-License-Identifier: Apache-2.0
// Dropout, and embeddings.
#include "ops/nn/dropout.h"

#include <vector>

#include "base/recycled.h"
#include "ir/modes.h"
#include "kernels/index.h"
#include "kernels/random.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

enum DropoutMode { kTraining, kAlways };
extern const OpDef op_dropout_mask;

inline constexpr Field kDropoutFields[] = {
    TW_ATTR(DropoutAttrs, p, "Fraction of elements set to 0."),
    TW_ATTR(DropoutAttrs, mode, "When elements are dropped.", .choices = "training|always"),
    TW_ATTR(DropoutAttrs, axes, "Axes along which one decision holds for all elements."),
    TW_ATTR(DropoutAttrs, cudnn_off, "Accepted for compatibility."),
};

TW_OP(dropout) = whole({
    .name = "dropout",
    .doc = "Sets a random fraction p of data to 0 and divides the rest by 1 - p; in prediction it is the identity.",
    .names = {"npx.dropout", "nd.Dropout"},
    .attrs = schema<DropoutAttrs>(kDropoutFields),
    .in = {{{.name = "data"}}},
    .types = kFloats,
    .expand = expand_rule<DropoutAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(a.p >= 0 && a.p <= 1, value, "dropout: p must be in [0, 1]; got ", a.p);
      if ((a.mode == kTraining && !modes.training) || a.p == 0) return {in[0]};
      return {in[0] * apply(op_dropout_mask, a, {in[0]})};
    }),
    .no_grad = "its parts have",
    .random = true,
    .trains = true,
    .samples = {{{.in = {{{4, 5}}}, .attrs = "p=0.3"}}},
});

TW_OP(dropout_mask) = whole({
    .name = "dropout_mask",
    .doc = "1 / (1 - p) with probability 1 - p, else 0, in the shape of `like`.",
    .attrs = schema<DropoutAttrs>(kDropoutFields),
    .in = {{{.name = "like", .shape_only = true}}},
    .infer = infer_rule<DropoutAttrs>([](auto& a, SigsIn in, SigsOut out) {
      Shape shape = in[0].shape;
      for (int64_t axis : a.axes) shape[normalize_axis(axis, shape.rank(), "dropout")] = 1;
      out[0] = {shape, in[0].dtype};
    }),
    .types = kFloats,
    .kernel = cpu_rule<DropoutAttrs>([](auto& a, Call& c) {
      double keep = 1 - a.p;
      kernels::random_bernoulli({c.key.seed, c.key.counter}, keep, c.out[0].dtype, c.out[0].size, c.out[0].data,
                                Scalar(keep > 0 ? 1 / keep : 0.0));
    }),
    .strided = true,
    .no_grad = "the mask does not depend on the values",
    .random = true,
    .samples = {{{.in = {{{4, 5}}}, .attrs = "p=0.3"}}},
});

struct EmbeddingAttrs {
  int64_t input_dim = 0, output_dim = 0;
  Maybe<DType> dtype;
  bool sparse_grad = false;
};
extern const OpDef op_embedding, op_embedding_grad;
inline constexpr Field kEmbeddingFields[] = {
    TW_ATTR(EmbeddingAttrs, input_dim, "Number of rows; 0: that of the weight."),
    TW_ATTR(EmbeddingAttrs, output_dim, "Length of a row; 0: that of the weight."),
    TW_ATTR(EmbeddingAttrs, dtype, "Accepted for compatibility."),
    TW_ATTR(EmbeddingAttrs, sparse_grad, "Accepted for compatibility: gradients are dense."),
};

/// Offsets of the rows that `indices` name in a table; an index error names the first bad one.
static Recycled<int64_t> row_offsets(const Buffer& indices, const Buffer& table) {
  int64_t rows = table.dim(0), width = table.dim(1);
  Recycled<int64_t> offsets(static_cast<size_t>(indices.size));
  Strides strides(indices);
  kernels::IndexTerm term{indices.dtype, indices.data, strides, rows, width};
  if (kernels::BadIndex bad = kernels::index_offsets({&term, 1}, indices.shape(), offsets.data()))
    throw_error(ErrorKind::index, text("embedding: index ", bad.value, " is out of range for ", rows, " rows"));
  return offsets;
}

TW_OP(embedding) = whole({
    .name = "embedding",
    .doc = "The rows of weight that data names. An index out of range is an index error.",
    .names = {"npx.embedding", "nd.Embedding"},
    .graph = {.names = "Embedding", .attrs = "input_dim output_dim"},
    .attrs = schema<EmbeddingAttrs>(kEmbeddingFields),
    .in = {{{.name = "data", .doc = "Indices, of any shape."}, {.name = "weight", .doc = "(input_dim, output_dim)."}}},
    .infer = infer_rule<EmbeddingAttrs>([](auto& a, SigsIn in, SigsOut out) {
      const Shape& w = in[1].shape;
      TW_CHECK(w.rank() == 2, value, "embedding: weight must have shape (input_dim, output_dim); got ", w);
      TW_CHECK((!a.input_dim || a.input_dim == w[0]) && (!a.output_dim || a.output_dim == w[1]), value,
               "embedding: weight of shape ", w, " is not (", a.input_dim, ", ", a.output_dim, ")");
      Shape y = in[0].shape;
      y.push_back(w[1]);
      out[0] = {y, in[1].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<EmbeddingAttrs>([](auto&, Call& c) {
      Recycled<int64_t> offsets = row_offsets(c.in[0], c.in[1]);
      int64_t width = c.in[1].dim(1), one = 1;
      kernels::gather(c.in[1].dtype, c.in[0].size, offsets.data(), {&width, 1}, c.in[1].data, {&one, 1}, c.out[0].data,
                      width, {&one, 1});
    }),
    .complete = complete_rule<EmbeddingAttrs>([](auto& a, std::span<Sig> in) {
      if (!in[1].present() && a.input_dim > 0 && a.output_dim > 0)
        in[1] = {Shape{a.input_dim, a.output_dim}, a.dtype.value_or(default_float())};
    }),
    .needs = X0,
    .grad = grad_rule<EmbeddingAttrs>([](auto& a, const Grad& g) -> Vals {
      return {Val(), apply(op_embedding_grad, a, {g.x(0), g.dy(), g.x(1)})};
    }),
    .samples = {{{.in = {{{{2, 3}, Domain::index, 5}, {5, 4}}}}}},
});

TW_OP(embedding_grad) = whole({
    .name = "embedding_grad",
    .doc = "The gradient of embedding by its weight: dy added row by row, in the shape of `like`.",
    .attrs = schema<EmbeddingAttrs>(kEmbeddingFields),
    .in = {{{.name = "data"}, {.name = "dy"}, {.name = "like", .shape_only = true}}},
    .infer = infer_rule<EmbeddingAttrs>([](auto&, SigsIn in, SigsOut out) {
      TW_CHECK(in[2].rank() == 2, value, "embedding_grad: like must have two dimensions; got ", in[2].shape);
      Shape rows = in[0].shape;
      rows.push_back(in[2].shape[1]);
      TW_CHECK(in[1].shape == rows, value, "embedding_grad: dy must have shape ", rows, "; got ", in[1].shape);
      out[0] = {in[2].shape, in[1].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<EmbeddingAttrs>([](auto&, Call& c) {
      kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, Strides(c.out[0]), Scalar(0));
      Recycled<int64_t> offsets = row_offsets(c.in[0], c.out[0]);
      int64_t width = c.out[0].dim(1), one = 1;
      kernels::scatter_add(c.out[0].dtype, c.in[0].size, offsets.data(), {&width, 1}, c.in[1].data, width, {&one, 1},
                           c.out[0].data, {&one, 1});
    }),
    .needs = X0,
    .grad = grad_rule<EmbeddingAttrs>([](auto& a, const Grad& g) -> Vals {
      return {Val(), apply(op_embedding, a, {g.x(0), g.dy()}), Val()};
    }),
    .samples = {{{.in = {{{{2, 3}, Domain::index, 5}, {2, 3, 4}, {5, 4}}}}}},
});

}  // namespace twibil::ops
