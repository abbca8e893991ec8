// SPDX-License-Identifier: Apache-2.0
// x[i, :, j] for integer arrays i, j, and assignment through them.
#include "ops/index/advanced_index.h"

#include <vector>

#include "base/recycled.h"
#include "kernels/index.h"
#include "ops/forms.h"
#include "ops/index/offsets.h"
#include "ops/strides.h"

namespace twibil::ops {

extern const OpDef op_advanced_index_grad, op_advanced_put_grad;

inline constexpr Field kAdvancedFields[] = {
    TW_ATTR(AdvancedIndexAttrs, axes, "The axes of x that the index arrays walk, ascending."),
    TW_ATTR(AdvancedIndexAttrs, front, "Puts their dimensions in front in any case.")};

namespace {

/// Index arrays against an array: the shapes of both halves and how the result is made of them.
struct Plan {
  Shape index_shape;   // of the broadcast index arrays
  int kept[kMaxRank];  // axes of x that are not indexed
  int kept_count = 0;
  int position = 0;  // of the index dimensions in the result
  Shape result;
};

/// `shape_of(k)` is the shape of index array k.
template <class ShapeOf> Plan make_plan(const AdvancedIndexAttrs& a, const Shape& x, size_t indices, ShapeOf shape_of) {
  TW_CHECK(a.axes.size() == static_cast<int>(indices) && a.axes.size() > 0, value, "advanced_index: ", a.axes.size(),
           " axes for ", indices, " index arrays");
  Plan p;
  uint32_t indexed = 0;
  for (int k = 0; k < a.axes.size(); ++k) {
    TW_CHECK(a.axes[k] >= 0 && a.axes[k] < x.rank() && (k == 0 || a.axes[k] > a.axes[k - 1]), value,
             "advanced_index: axes ", a.axes.span(), " must ascend within x of shape ", x);
    indexed |= 1u << a.axes[k];
    p.index_shape = k ? broadcast(p.index_shape, shape_of(k), "advanced_index") : shape_of(k);
  }
  bool neighbours = a.axes[a.axes.size() - 1] - a.axes[0] == a.axes.size() - 1;
  p.position = neighbours && !a.front ? static_cast<int>(a.axes[0]) : 0;
  for (int i = 0; i < x.rank(); ++i)
    if (!(indexed >> i & 1)) p.kept[p.kept_count++] = i;
  p.result.resize(p.index_shape.rank() + p.kept_count);
  int at = 0;
  for (int i = 0; i <= p.kept_count; ++i) {
    if (i == p.position)
      for (int64_t d : p.index_shape) p.result[at++] = d;
    if (i < p.kept_count) p.result[at++] = x[p.kept[i]];
  }
  checked_product(p.result);  // gradients walk a result that nobody allocates
  return p;
}

Plan plan_of(const AdvancedIndexAttrs& a, const Shape& x, SigsIn in, size_t first) {
  SigsIn indices = in.subspan(std::min(first, in.size()));
  for (const Sig& i : indices)
    TW_CHECK(is_integer(i.dtype), index, "advanced_index: index arrays must be integers; got ", i.dtype);
  return make_plan(a, x, indices.size(), [&](int k) { return indices[static_cast<size_t>(k)].shape; });
}

/// Where every index leads to in x, and the strides of a slice on both sides.
struct Places {
  Plan plan;
  Offsets offsets;
  Shape slice;
  int64_t x_strides[kMaxRank], y_strides[kMaxRank];
  int64_t y_step = 1;
  std::span<const int64_t> x() const { return {x_strides, static_cast<size_t>(slice.rank())}; }
  std::span<const int64_t> y() const { return {y_strides, static_cast<size_t>(slice.rank())}; }
};

Places find_places(const AdvancedIndexAttrs& a, const Buffer& x, std::span<const Buffer> indices) {
  Places p;
  p.plan = make_plan(a, Shape(x.shape()), indices.size(),
                     [&](int k) { return Shape(indices[static_cast<size_t>(k)].shape()); });
  Strides own(x);
  int64_t strides[kMaxRank][kMaxRank];  // the axes ascend, so there are at most as many terms
  kernels::IndexTerm terms[kMaxRank];
  for (size_t k = 0; k < indices.size(); ++k) {
    Strides walk(indices[k], p.plan.index_shape);
    std::copy(walk.items, walk.items + walk.rank, strides[k]);
    int axis = static_cast<int>(a.axes[static_cast<int>(k)]);
    terms[k] = {
        indices[k].dtype, indices[k].data, {strides[k], static_cast<size_t>(walk.rank)}, x.dims[axis], own.items[axis]};
  }
  p.offsets.resize(p.plan.index_shape.size());
  if (kernels::BadIndex bad = kernels::index_offsets({terms, indices.size()}, p.plan.index_shape, p.offsets.data()))
    throw_error(ErrorKind::index, text("index ", bad.value, " is out of range for axis ", a.axes[bad.term],
                                       " with size ", x.dims[a.axes[bad.term]]));
  int64_t result_strides[kMaxRank];
  contiguous_strides(p.plan.result, result_strides);
  int lead = p.plan.position, width = p.plan.index_shape.rank();
  for (int i = 0; i < p.plan.kept_count; ++i) {
    int axis = p.plan.kept[i];
    p.slice.push_back(x.dims[axis]);
    p.x_strides[i] = own.items[axis];
    p.y_strides[i] = result_strides[i < lead ? i : i + width];
  }
  for (int i = lead + width; i < p.plan.result.rank(); ++i) p.y_step *= p.plan.result[i];
  return p;
}

}  // namespace

TW_OP(advanced_index) = whole({
    .name = "advanced_index",
    .doc = "Gathers elements of x by integer arrays, as NumPy's x[i, :, j]. An index out of range is an index error.",
    .attrs = schema<AdvancedIndexAttrs>(kAdvancedFields),
    .in = {{{.name = "x"}, {.name = "indices", .kind = SlotKind::variadic}}},
    .infer = infer_rule<AdvancedIndexAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {plan_of(a, in[0].shape, in, 1).result, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<AdvancedIndexAttrs>([](auto& a, Call& c) {
      Places p = find_places(a, c.in[0], c.in.subspan(1));
      kernels::gather(c.in[0].dtype, p.offsets.count(), p.offsets.data(), p.slice, c.in[0].data, p.x(), c.out[0].data,
                      p.y_step, p.y());
    }),
    .strided = true,
    .needs = kAllInputs & ~X0,
    .grad = grad_rule<AdvancedIndexAttrs>([](auto& a, const Grad& g) -> Vals {
      std::vector<Val> in{g.dy(), g.x(0)};
      for (int i = 1; i < g.inputs(); ++i) in.push_back(g.x(i));
      return {apply_all(op_advanced_index_grad, &a, in)[0]};
    }),
    .samples = {{{.in = {{{4, 5}, {{3}, Domain::index, 4}}}, .attrs = "axes=(0,)"},
                 {.in = {{{4, 5, 3}, {{2, 1}, Domain::index, 4}, {{3}, Domain::index, 3}}}, .attrs = "axes=(0, 2)"}}},
});

TW_OP(advanced_index_grad) = whole({
    .name = "advanced_index_grad",
    .doc = "Zeros in the shape of `like`, with dy added where the index arrays lead.",
    .attrs = schema<AdvancedIndexAttrs>(kAdvancedFields),
    .in = {{{.name = "dy"}, {.name = "like", .shape_only = true}, {.name = "indices", .kind = SlotKind::variadic}}},
    .infer = infer_rule<AdvancedIndexAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(plan_of(a, in[1].shape, in, 2).result == in[0].shape, value, "advanced_index_grad: dy of shape ",
               in[0].shape, " does not fit");
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<AdvancedIndexAttrs>([](auto& a, Call& c) {
      kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, Strides(c.out[0]), Scalar(0));
      Places p = find_places(a, c.out[0], c.in.subspan(2));
      kernels::scatter_add(c.in[0].dtype, p.offsets.count(), p.offsets.data(), p.slice, c.in[0].data, p.y_step, p.y(),
                           c.out[0].data, p.x());
    }),
    .needs = kAllInputs & ~(X0 | X1),
    .grad = grad_rule<AdvancedIndexAttrs>([](auto& a, const Grad& g) -> Vals {
      std::vector<Val> in{g.dy()};
      for (int i = 2; i < g.inputs(); ++i) in.push_back(g.x(i));
      return {apply_all(op_advanced_index, &a, in)[0]};
    }),
    .samples = {{{.in = {{{3, 5}, {4, 5}, {{3}, Domain::index, 4}}}, .attrs = "axes=(0,)"}}},
});

TW_OP(advanced_put) = whole({
    .name = "advanced_put",
    .doc = "x[i, :, j] = value: writes through integer arrays; for equal indices the last value stays.",
    .attrs = schema<AdvancedIndexAttrs>(kAdvancedFields),
    .in = {{{.name = "x", .kind = SlotKind::aux}, {.name = "value"}, {.name = "indices", .kind = SlotKind::variadic}}},
    .infer = infer_rule<AdvancedIndexAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_number("advanced_put", in[1], in[0].dtype);
      Shape part = plan_of(a, in[0].shape, in, 2).result;
      TW_CHECK(broadcasts_to(in[1].shape, part), value, "advanced_put: a value of shape ", in[1].shape,
               " does not broadcast to the selected shape ", part);
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<AdvancedIndexAttrs>([](auto& a, Call& c) {
      Places p = find_places(a, c.out[0], c.in.subspan(2));
      Recycled<std::byte> cast(static_cast<size_t>(p.plan.result.size() * size_of(c.out[0].dtype)));
      int64_t strides[kMaxRank];
      contiguous_strides(p.plan.result, strides);
      Buffer value{.data = cast.data(),
                   .dims = p.plan.result.data(),
                   .size = p.plan.result.size(),
                   .dtype = c.out[0].dtype,
                   .rank = static_cast<uint8_t>(p.plan.result.rank())};
      copy_buffer(c.in[1], value);
      kernels::scatter(c.out[0].dtype, p.offsets.count(), p.offsets.data(), p.slice, value.data, p.y_step, p.y(),
                       c.out[0].data, p.x());
    }),
    .strided = true,
    .needs = kAllInputs & ~(X0 | X1),
    .grad = grad_rule<AdvancedIndexAttrs>([](auto& a, const Grad& g) -> Vals {
      std::vector<Val> in{g.dy()};
      for (int i = 2; i < g.inputs(); ++i) in.push_back(g.x(i));
      Val part = g.wants(1) ? sum_to_like(apply_all(op_advanced_index, &a, in)[0], g.x(1)) : Val();
      return {g.wants(0) ? apply_all(op_advanced_put_grad, &a, in)[0] : Val(), part};
    }),
    .updates = {{{0, 0}}},
    .samples = {{{.in = {{{4, 5}, {5}, {{2}, Domain::index, 4}}}, .attrs = "axes=(0,)", .smooth = false}}},
});

TW_OP(advanced_put_grad) = whole({
    .name = "advanced_put_grad",
    .doc = "dy with zeros where the index arrays lead.",
    .attrs = schema<AdvancedIndexAttrs>(kAdvancedFields),
    .in = {{{.name = "dy"}, {.name = "indices", .kind = SlotKind::variadic}}},
    .infer = infer_rule<AdvancedIndexAttrs>([](auto& a, SigsIn in, SigsOut out) {
      plan_of(a, in[0].shape, in, 1);
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<AdvancedIndexAttrs>([](auto& a, Call& c) {
      copy_buffer(c.in[0], c.out[0]);
      Places p = find_places(a, c.out[0], c.in.subspan(1));
      uint64_t zero = 0;
      int64_t still[kMaxRank] = {};
      kernels::scatter(c.out[0].dtype, p.offsets.count(), p.offsets.data(), p.slice, &zero, 0,
                       {still, static_cast<size_t>(p.slice.rank())}, c.out[0].data, p.x());
    }),
    .strided = true,
    .needs = kAllInputs & ~X0,
    .grad = grad_rule<AdvancedIndexAttrs>([](auto& a, const Grad& g) -> Vals {
      std::vector<Val> in{g.dy()};
      for (int i = 1; i < g.inputs(); ++i) in.push_back(g.x(i));
      return {apply_all(op_advanced_put_grad, &a, in)[0]};
    }),
    .samples = {{{.in = {{{4, 5}, {{2}, Domain::index, 4}}}, .attrs = "axes=(0,)"}}},
});

}  // namespace twibil::ops
