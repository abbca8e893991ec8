// SPDX-License-Identifier: Apache-2.0
// x[key] for integers, slices and new axes: a view; and x[key] = value.
#include "ops/index/basic_index.h"

#include "ops/forms.h"
#include "ops/nn/blocked.h"
#include "ops/strides.h"

namespace twibil::ops {

extern const OpDef op_basic_index, op_basic_index_grad, op_assign_basic_grad;

inline constexpr Field kBasicFields[] = {
    TW_ATTR(BasicIndexAttrs, start, "First index per axis of x."),
    TW_ATTR(BasicIndexAttrs, step, "Distance between elements per axis of x."),
    TW_ATTR(BasicIndexAttrs, size, "Number of elements per axis of x; -1 removes the axis."),
    TW_ATTR(BasicIndexAttrs, new_axes, "Positions of new axes of size one in the result."),
};

/// Whether the n elements at start, start + step, ... lie in an axis of `size`; without a sum that could overflow.
static bool holds_all(int64_t size, int64_t start, int64_t step, int64_t n) {
  if (start < 0 || start >= size) return false;
  if (n <= 1) return true;
  if (step == 0) return false;                                             // one element many times is no slice
  int64_t steps = step > 0 ? (size - 1 - start) / step : -(start / step);  // that lead from start to the axis' end
  return n - 1 <= steps;
}

Layout index_layout(const BasicIndexAttrs& a, const Layout& x) {
  int rank = x.shape.rank();
  TW_CHECK(a.start.size() == rank && a.step.size() == rank && a.size.size() == rank, value,
           "basic_index: start, step and size need ", rank, " entries for x of shape ", x.shape);
  Layout y;
  y.offset = x.offset;
  Shape shape;
  int64_t strides[kMaxRank];
  for (int i = 0; i < rank; ++i) {
    int64_t n = a.size[i];
    if (n != 0)
      TW_CHECK(holds_all(x.shape[i], a.start[i], a.step[i], n), index, "basic_index: axis ", i, " of size ", x.shape[i],
               " does not hold ", std::max<int64_t>(n, 1), " elements from ", a.start[i], " in steps of ", a.step[i]);
    if (n != 0) y.offset += a.start[i] * x.strides[i];
    if (n < 0) continue;
    strides[shape.rank()] = n > 1 ? x.strides[i] * a.step[i] : x.strides[i];  // a step that nobody takes may be huge
    shape.push_back(n);
  }
  for (int64_t at : a.new_axes) {
    TW_CHECK(at >= 0 && at <= shape.rank(), value, "basic_index: no new axis can stand at position ", at);
    std::copy_backward(strides + at, strides + shape.rank(), strides + shape.rank() + (shape.rank() < kMaxRank));
    shape.insert(static_cast<int>(at), 1);
    strides[at] = 0;
  }
  y.shape = shape;
  std::copy(strides, strides + shape.rank(), y.strides);
  return y;
}

static Layout row_major(const Shape& shape) {
  Layout l;
  l.shape = shape;
  contiguous_strides(shape, l.strides);
  return l;
}

/// The elements of a row-major buffer that the key selects.
static Buffer select(const BasicIndexAttrs& a, const Buffer& whole, Layout& layout) {
  layout = index_layout(a, row_major(Shape(whole.shape())));
  Buffer part = whole;
  part.data = whole.data + layout.offset * size_of(whole.dtype);
  part.dims = layout.shape.data();
  part.strides = layout.strides;
  part.rank = static_cast<uint8_t>(layout.shape.rank());
  part.size = layout.shape.size();
  return part;
}

/// Whether the key selects whole blocks of channels, and all of the other axes.
static bool selects_blocks(const BasicIndexAttrs& a, const Shape& x) {
  for (int i = 0; i < x.rank(); ++i)
    if (i != 1 && (a.start[i] != 0 || a.step[i] != 1 || a.size[i] != x[i])) return false;
  return a.new_axes.empty() && a.step[1] == 1 && a.size[1] > 0 && a.start[1] % kChannelBlock == 0 &&
         (a.size[1] % kChannelBlock == 0 || a.start[1] + a.size[1] == x[1]);
}
static Val select_blocks(const BasicIndexAttrs& a, const Val& x) {
  BasicIndexAttrs blocks;
  for (int i = 0; i < x->rank(); ++i) {
    blocks.start.push_back(i == 0 ? a.start[1] / kChannelBlock : 0);
    blocks.step.push_back(1);
    blocks.size.push_back(i == 0 ? channel_blocks(a.size[1]) : x->dims[i]);
  }
  return apply(op_basic_index, blocks, {x});
}

TW_OP(basic_index) = whole({
    .name = "basic_index",
    .doc = "x[key] for a key of integers, slices and new axes, as a view.",
    .attrs = schema<BasicIndexAttrs>(kBasicFields),
    .in = {{{.name = "x"}}},
    .types = kAll,
    .view = view_rule<BasicIndexAttrs>([](auto& a, const Layout& x) { return index_layout(a, x); }),
    .grad = grad_rule<BasicIndexAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_basic_index_grad, a, {g.dy(), g.x(0)})};
    }),
    .blocked = {blocked_plan_rule<BasicIndexAttrs>([](auto& a, const BlockedQuery& q) {
                  return BlockedPlan{.possible = can_block(q.in[0]) && selects_blocks(a, q.in[0].shape), .inputs = X0};
                }),
                blocked_rule<BasicIndexAttrs>([](auto& a, const BlockedQuery&, std::span<const Val> in) {
                  return select_blocks(a, in[0]);
                })},
    .samples = {{{.in = {{{4, 5}}}, .attrs = "start=(3, 1), step=(-2, 1), size=(2, -1)"}}},
});

TW_OP(basic_index_grad) = whole({
    .name = "basic_index_grad",
    .doc = "Zeros in the shape of `like`, with dy where the key selects.",
    .attrs = schema<BasicIndexAttrs>(kBasicFields),
    .in = {{{.name = "dy"}, {.name = "like", .shape_only = true}}},
    .infer = infer_rule<BasicIndexAttrs>([](auto& a, SigsIn in, SigsOut out) {
      Shape part = index_layout(a, row_major(in[1].shape)).shape;
      TW_CHECK(in[0].shape == part, value, "basic_index_grad: dy must have the selected shape ", part, "; got ",
               in[0].shape);
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<BasicIndexAttrs>([](auto& a, Call& c) {
      Strides all(c.out[0]);
      kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, all, Scalar(0));
      Layout layout;
      copy_buffer(c.in[0], select(a, c.out[0], layout));
    }),
    .strided = true,
    .grad = grad_rule<BasicIndexAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_basic_index, a, {g.dy()}), Val()};
    }),
    .samples = {{{.in = {{{2}, {4, 5}}}, .attrs = "start=(3, 1), step=(-2, 1), size=(2, -1)"}}},
});

TW_OP(assign_basic) = whole({
    .name = "assign_basic",
    .doc = "x[key] = value: writes into x where the key selects; value is broadcast and cast.",
    .attrs = schema<BasicIndexAttrs>(kBasicFields),
    .in = {{{.name = "x", .kind = SlotKind::aux}, {.name = "value"}}},
    .infer = infer_rule<BasicIndexAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_number("assign_basic", in[1], in[0].dtype);
      Shape part = index_layout(a, row_major(in[0].shape)).shape;
      Shape value = in[1].shape;
      while (value.rank() > part.rank() && value[0] == 1) value.erase(0);  // as NumPy allows
      TW_CHECK(broadcasts_to(value, part), value, "assign_basic: a value of shape ", in[1].shape,
               " does not broadcast to the selected shape ", part);
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<BasicIndexAttrs>([](auto& a, Call& c) {
      Layout whole;
      whole.shape = Shape(c.out[0].shape());
      Strides own(c.out[0]);
      std::copy(own.items, own.items + own.rank, whole.strides);
      Layout layout = index_layout(a, whole);
      Buffer part = c.out[0];
      part.data += layout.offset * size_of(part.dtype);
      part.dims = layout.shape.data();
      part.strides = layout.strides;
      part.rank = static_cast<uint8_t>(layout.shape.rank());
      part.size = layout.shape.size();
      Buffer value = c.in[1];
      while (value.rank > part.rank) ++value.dims, value.strides += value.strides != nullptr, --value.rank;
      copy_buffer(value, part);
    }),
    .strided = true,
    .grad = grad_rule<BasicIndexAttrs>([](auto& a, const Grad& g) -> Vals {
      Val part = g.wants(1) ? apply(op_basic_index, a, {g.dy()}) : Val();
      Val value = g.x(1);
      while (part && value->rank() > part->rank()) part = expand_dims(part, 0);
      return {g.wants(0) ? apply(op_assign_basic_grad, a, {g.dy()}) : Val(), part ? sum_to_like(part, value) : Val()};
    }),
    .updates = {{{0, 0}}},
    .samples = {{{.in = {{{4, 5}, {2}}}, .attrs = "start=(3, 1), step=(-2, 1), size=(2, -1)"}}},
});

TW_OP(assign_basic_grad) = whole({
    .name = "assign_basic_grad",
    .doc = "dy with zeros where the key selects.",
    .attrs = schema<BasicIndexAttrs>(kBasicFields),
    .in = {{{.name = "dy"}}},
    .infer = infer_rule<BasicIndexAttrs>([](auto&, SigsIn in, SigsOut out) {
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<BasicIndexAttrs>([](auto& a, Call& c) {
      copy_buffer(c.in[0], c.out[0]);
      Layout layout;
      Buffer part = select(a, c.out[0], layout);
      kernels::fill(part.dtype, part.shape(), part.data, {part.strides, part.rank}, Scalar(0));
    }),
    .strided = true,
    .grad = grad_rule<BasicIndexAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_assign_basic_grad, a, {g.dy()})};
    }),
    .samples = {{{.in = {{{4, 5}}}, .attrs = "start=(3, 1), step=(-2, 1), size=(2, -1)"}}},
});

}  // namespace twibil::ops
