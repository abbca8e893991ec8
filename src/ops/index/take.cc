// SPDX-License-Identifier: Apache-2.0
// Picking elements by index arrays: take, pick, gather_nd, one_hot, nonzero.
#include <cstring>
#include <vector>

#include "base/recycled.h"
#include "kernels/index.h"
#include "ops/axes.h"
#include "ops/forms.h"
#include "ops/index/offsets.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

struct TakeAttrs {
  Maybe<int64_t> axis;
  Choice mode;
};
struct PickAttrs {
  int64_t axis = -1;
  Choice mode;
  bool keepdims = false;
};

constexpr const char* kModes = "raise|clip|wrap";
constexpr const char* kModeDoc = "What happens to an index outside: an error, the nearest end, or counting around.";

kernels::IndexMode mode_of(const Choice& c) { return static_cast<kernels::IndexMode>(static_cast<int>(c)); }

[[noreturn]] void bad_index(const char* who, const kernels::BadIndex& bad, int axis, int64_t size) {
  throw_error(ErrorKind::index,
              text(who, ": index ", bad.value, " is out of range for axis ", axis, " with size ", size));
}

/// x along one axis, and the element offsets that the indices name.
struct TakePlan {
  int axis;
  Shape slice;
  int64_t x_strides[kMaxRank], y_strides[kMaxRank], y_step = 1;
  Offsets offsets;
  TakePlan(const TakeAttrs& a, const Buffer& x, const Buffer& indices, const char* who)
      : axis(a.axis ? normalize_axis(*a.axis, x.rank, who) : 0) {
    Strides own(x), si(indices);
    offsets.resize(indices.size);
    kernels::IndexTerm term{indices.dtype, indices.data, si, x.dims[axis], own.items[axis], mode_of(a.mode)};
    if (kernels::BadIndex bad = kernels::index_offsets({&term, 1}, indices.shape(), offsets.data()))
      bad_index(who, bad, axis, x.dims[axis]);
    Shape result;
    for (int i = 0; i < x.rank; ++i) {
      if (i == axis) result.push_back(indices.size);
      else result.push_back(x.dims[i]);
    }
    int64_t all[kMaxRank] = {};
    contiguous_strides(result, all);
    y_step = all[axis];
    for (int i = 0; i < x.rank; ++i) {
      if (i == axis) continue;
      x_strides[slice.rank()] = own.items[i], y_strides[slice.rank()] = all[i];
      slice.push_back(x.dims[i]);
    }
  }
  std::span<const int64_t> xs() const { return {x_strides, static_cast<size_t>(slice.rank())}; }
  std::span<const int64_t> ys() const { return {y_strides, static_cast<size_t>(slice.rank())}; }
};

Shape take_shape(const TakeAttrs& a, const Shape& x, const Shape& indices) {
  TW_CHECK(x.rank() > 0, value, "take: a must have at least one dimension");
  int axis = normalize_axis(*a.axis, x.rank(), "take");
  Shape y;
  for (int i = 0; i < axis; ++i) y.push_back(x[i]);
  for (int64_t d : indices) y.push_back(d);
  for (int i = axis + 1; i < x.rank(); ++i) y.push_back(x[i]);
  return y;
}

void check_indices(const Sig& s, const char* who) {
  TW_CHECK(s.dtype != DType::bool_, type, who, ": indices must be numbers; got bool. Use x[mask] for masks");
}

}  // namespace

extern const OpDef op_take_axis, op_take_grad, op_pick, op_pick_grad, op_gather_nd, op_gather_nd_grad;

inline constexpr Field kTakeFields[] = {TW_ATTR(TakeAttrs, axis, "Axis to take from; None: the flattened array."),
                                        TW_ATTR(TakeAttrs, mode, kModeDoc, .choices = kModes)};
TW_OP(take) = whole({
    .name = "take",
    .doc = "The elements of a at indices along an axis.",
    .names = {"np.take", "ndarray.take"},
    .graph = {.names = "take", .attrs = "axis=0 mode=clip"},
    .attrs = schema<TakeAttrs>(kTakeFields),
    .in = {{{.name = "a"}, {.name = "indices"}}},
    .types = kAll,
    .expand = expand_rule<TakeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TakeAttrs whole = a;
      if (!a.axis) whole.axis = 0;
      return {apply(op_take_axis, whole, {a.axis ? in[0] : reshape(in[0], Shape{in[0]->size()}), in[1]})};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{4, 3}, {{2, 2}, Domain::index, 4}}}, .attrs = "axis=0"},
                 {.in = {{{4, 3}, SampleInput({3}, Domain::index, 12)}}},
                 {.in = {{{4, 3}, SampleInput({3}, Domain::index, 9)}}, .attrs = "axis=-1, mode=wrap"}}},
});
TW_OP(take_axis) = whole({
    .name = "take_axis",
    .doc = "The elements of a at indices along an axis.",
    .attrs = schema<TakeAttrs>(kTakeFields),
    .in = {{{.name = "a"}, {.name = "indices"}}},
    .infer = infer_rule<TakeAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_indices(in[1], "take");
      out[0] = {take_shape(a, in[0].shape, in[1].shape), in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<TakeAttrs>([](auto& a, Call& c) {
      TakePlan p(a, c.in[0], c.in[1], "take");
      kernels::gather(c.in[0].dtype, p.offsets.count(), p.offsets.data(), p.slice, c.in[0].data, p.xs(), c.out[0].data,
                      p.y_step, p.ys());
    }),
    .strided = true,
    .needs = X1,
    .grad = grad_rule<TakeAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_take_grad, a, {g.dy(), g.x(0), g.x(1)}), Val()};
    }),
    .samples = {{{.in = {{{4, 3}, {{2, 2}, Domain::index, 4}}}, .attrs = "axis=0"}}},
});
TW_OP(take_grad) = whole({
    .name = "take_grad",
    .doc = "The gradient of take: dy added where indices point, in the shape of `like`.",
    .attrs = schema<TakeAttrs>(kTakeFields),
    .in = {{{.name = "dy"}, {.name = "like", .shape_only = true}, {.name = "indices"}}},
    .infer = infer_rule<TakeAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(take_shape(a, in[1].shape, in[2].shape) == in[0].shape, value, "take_grad: dy of shape ", in[0].shape,
               " does not fit");
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<TakeAttrs>([](auto& a, Call& c) {
      kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, Strides(c.out[0]), Scalar(0));
      TakePlan p(a, c.out[0], c.in[2], "take");
      kernels::scatter_add(c.out[0].dtype, p.offsets.count(), p.offsets.data(), p.slice, c.in[0].data, p.y_step, p.ys(),
                           c.out[0].data, p.xs());
    }),
    .needs = X2,
    .grad = grad_rule<TakeAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_take_axis, a, {g.dy(), g.x(2)}), Val(), Val()};
    }),
    .samples = {{{.in = {{{2, 2, 3}, {4, 3}, {{2, 2}, Domain::index, 4}}}, .attrs = "axis=0"}}},
});

// ---- pick ----
static Shape picked(const PickAttrs& a, const Shape& x, bool keep) {
  TW_CHECK(x.rank() > 0, value, "pick: data must have at least one dimension");
  Shape y = x;
  int axis = normalize_axis(a.axis, x.rank(), "pick");
  if (keep) y[axis] = 1;
  else y.erase(axis);
  return y;
}
static Offsets pick_offsets(const PickAttrs& a, const Buffer& x, const Buffer& index) {
  int axis = normalize_axis(a.axis, x.rank, "pick");
  Shape keep = picked(a, Shape(x.shape()), true);
  Offsets offsets;
  offsets.resize(keep.size());
  Strides own(x);
  Buffer wide = index;  // the index without the axis, or with it as size one; or one index for all
  Shape dims(index.shape());
  while (dims.rank() < keep.rank()) dims.insert(std::min(axis, dims.rank()), 1);
  wide.dims = dims.data();
  wide.rank = static_cast<uint8_t>(dims.rank());
  Strides si(wide, keep);
  if (kernels::BadIndex bad = kernels::along_axis_offsets(keep, own, axis, x.dims[axis], index.dtype, index.data, si,
                                                          mode_of(a.mode), offsets.data()))
    bad_index("pick", bad, axis, x.dims[axis]);
  return offsets;
}
static void check_pick(const PickAttrs& a, const Sig& x, const Sig& index) {
  check_indices(index, "pick");
  Shape with = picked(a, x.shape, true), without = picked(a, x.shape, false);
  TW_CHECK(index.shape == with || index.shape == without || index.shape.size() == 1, value,
           "pick: index must have shape ", without, " or ", with, "; got ", index.shape);
}
inline constexpr Field kPickFields[] = {TW_ATTR(PickAttrs, axis, "Axis along which one element is picked."),
                                        TW_ATTR(PickAttrs, mode, kModeDoc, .choices = kModes),
                                        TW_ATTR(PickAttrs, keepdims, "Keeps the axis with size one.")};
TW_OP(pick) = whole({
    .name = "pick",
    .doc = "One element along an axis for each position, as index says.",
    .names = {"npx.pick", "nd.pick"},
    .graph = {.names = "pick", .attrs = "mode=clip"},
    .attrs = schema<PickAttrs>(kPickFields),
    .in = {{{.name = "data"}, {.name = "index"}}},
    .infer = infer_rule<PickAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_pick(a, in[0], in[1]);
      out[0] = {picked(a, in[0].shape, a.keepdims), in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<PickAttrs>([](auto& a, Call& c) {
      Offsets offsets = pick_offsets(a, c.in[0], c.in[1]);
      kernels::gather(c.in[0].dtype, offsets.count(), offsets.data(), {}, c.in[0].data, {}, c.out[0].data, 1, {});
    }),
    .needs = X1,
    .grad = grad_rule<PickAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_pick_grad, a, {g.dy(), g.x(0), g.x(1)}), Val()};
    }),
    .rows = rows_before_axis<PickAttrs>(),
    .samples = {{{.in = {{{4, 3}, SampleInput({4}, Domain::index, 3)}}},
                 {.in = {{{4, 3}, {{1, 3}, Domain::index, 4}}}, .attrs = "axis=0, keepdims=True"}}},
});
TW_OP(pick_grad) = whole({
    .name = "pick_grad",
    .doc = "The gradient of pick, in the shape of `like`.",
    .attrs = schema<PickAttrs>(kPickFields),
    .in = {{{.name = "dy"}, {.name = "like", .shape_only = true}, {.name = "index"}}},
    .infer = infer_rule<PickAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_pick(a, in[1], in[2]);
      TW_CHECK(in[0].shape == picked(a, in[1].shape, a.keepdims), value, "pick_grad: dy of shape ", in[0].shape,
               " does not fit");
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<PickAttrs>([](auto& a, Call& c) {
      kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, Strides(c.out[0]), Scalar(0));
      Offsets offsets = pick_offsets(a, c.out[0], c.in[2]);
      kernels::scatter_add(c.out[0].dtype, offsets.count(), offsets.data(), {}, c.in[0].data, 1, {}, c.out[0].data, {});
    }),
    .needs = X2,
    .grad = grad_rule<PickAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_pick, a, {g.dy(), g.x(2)}), Val(), Val()};
    }),
    .rows = rows_rule<PickAttrs>([](auto& a, SigsIn in) -> Rows {
      return {normalize_axis(a.axis, in[1].rank(), "pick_grad")};
    }),
    .samples = {{{.in = {{SampleInput({4}), {4, 3}, SampleInput({4}, Domain::index, 3)}}}}},
});

// ---- gather_nd ----
struct NdPlan {
  Shape positions, slice;
  Offsets offsets;
  int64_t strides[kMaxRank], result[kMaxRank], step = 1;
  NdPlan(const Buffer& x, const Buffer& indices) {
    int depth = static_cast<int>(indices.dims[0]);
    positions = Shape(indices.shape().subspan(1));
    Strides own(x), si(indices);
    offsets.resize(positions.size());
    Recycled<kernels::IndexTerm> terms;
    for (int k = 0; k < depth; ++k)
      terms.push_back({indices.dtype,
                       indices.data + k * si.items[0] * size_of(indices.dtype),
                       {si.items + 1, static_cast<size_t>(positions.rank())},
                       x.dims[k],
                       own.items[k]});
    if (kernels::BadIndex bad = kernels::index_offsets(terms, positions, offsets.data()))
      bad_index("gather_nd", bad, bad.term, x.dims[bad.term]);
    for (int i = depth; i < x.rank; ++i) strides[slice.rank()] = own.items[i], slice.push_back(x.dims[i]);
    contiguous_strides(slice, result);
    step = slice.size();
  }
  std::span<const int64_t> xs() const { return {strides, static_cast<size_t>(slice.rank())}; }
  std::span<const int64_t> ys() const { return {result, static_cast<size_t>(slice.rank())}; }
};
static Shape gathered(const Shape& x, const Sig& indices) {
  check_indices(indices, "gather_nd");
  TW_CHECK(indices.rank() >= 1 && indices.shape[0] >= 1 && indices.shape[0] <= x.rank(), value,
           "gather_nd: indices must have shape (m, ...) with 1 <= m <= ", x.rank(), "; got ", indices.shape);
  Shape y(indices.shape.span().subspan(1));
  for (int i = static_cast<int>(indices.shape[0]); i < x.rank(); ++i) y.push_back(x[i]);
  return y;
}
TW_OP(gather_nd) = whole({
    .name = "gather_nd",
    .doc = "The elements (or slices) of data at the positions that the columns of indices name.",
    .names = {"npx.gather_nd", "nd.gather_nd"},
    .in = {{{.name = "data"}, {.name = "indices", .doc = "(m, ...): row k holds indices along axis k."}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      out[0] = {gathered(in[0].shape, in[1]), in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) {
      NdPlan p(c.in[0], c.in[1]);
      kernels::gather(c.in[0].dtype, p.offsets.count(), p.offsets.data(), p.slice, c.in[0].data, p.xs(), c.out[0].data,
                      p.step, p.ys());
    }),
    .strided = true,
    .needs = X1,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {apply(op_gather_nd_grad, {g.dy(), g.x(0), g.x(1)}), Val()};
    }),
    .samples = {{{.in = {{{4, 4, 3}, {{2, 5}, Domain::index, 4}}}}}},
});
TW_OP(gather_nd_grad) = whole({
    .name = "gather_nd_grad",
    .doc = "The gradient of gather_nd, in the shape of `like`.",
    .in = {{{.name = "dy"}, {.name = "like", .shape_only = true}, {.name = "indices"}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      TW_CHECK(gathered(in[1].shape, in[2]) == in[0].shape, value, "gather_nd_grad: dy of shape ", in[0].shape,
               " does not fit");
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) {
      kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, Strides(c.out[0]), Scalar(0));
      NdPlan p(c.out[0], c.in[2]);
      kernels::scatter_add(c.out[0].dtype, p.offsets.count(), p.offsets.data(), p.slice, c.in[0].data, p.step, p.ys(),
                           c.out[0].data, p.xs());
    }),
    .needs = X2,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {apply(op_gather_nd, {g.dy(), g.x(2)}), Val(), Val()};
    }),
    .samples = {{{.in = {{{5, 3}, {4, 4, 3}, {{2, 5}, Domain::index, 4}}}}}},
});

inline constexpr Field kOneHotFields[] = {
    TW_ATTR(OneHotAttrs, depth, "Number of classes.", .required = true),
    TW_ATTR(OneHotAttrs, on_value, "Value at the index."), TW_ATTR(OneHotAttrs, off_value, "Value elsewhere."),
    TW_ATTR(OneHotAttrs, dtype, "dtype of the result; None: float32, or float64 after set_np(dtype=True).")};
TW_OP(one_hot) = whole({
    .name = "one_hot",
    .doc = "For each index a row with on_value at its place; an index outside gives a row of off_value.",
    .names = {"npx.one_hot", "nd.one_hot"},
    .graph = {.names = "one_hot", .attrs = "depth", .inputs = "indices"},
    .attrs = schema<OneHotAttrs>(kOneHotFields),
    .in = {{{.name = "data"}}},
    .infer = infer_rule<OneHotAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(a.depth >= 0, value, "one_hot: depth must not be negative; got ", a.depth);
      Shape y = in[0].shape;
      y.push_back(a.depth);
      out[0] = {y, a.dtype.value_or(default_float())};
    }),
    .types = kReals,
    .kernel = cpu_rule<OneHotAttrs>([](auto& a, Call& c) {
      kernels::one_hot(c.in[0].dtype, c.in[0].size, c.in[0].data, a.depth, c.out[0].dtype, Scalar(a.on_value),
                       Scalar(a.off_value), c.out[0].data);
    }),
    .no_grad = "indices have no gradient",
    .samples = {{{.in = {{SampleInput({5}, Domain::index, 4)}}, .attrs = "depth=4"}}},
});

TW_OP(nonzero) = whole({
    .name = "nonzero",
    .doc = "The positions of the elements that are not zero, one row of coordinates each, int64.",
    .names = {"npx.nonzero"},
    .in = {{{.name = "x"}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn, SigsOut out) {
      out[0] = {Shape{kUnknownDim}, DType::int64};
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) {
      const Buffer& x = c.in[0];
      Strides strides(x);
      int64_t n = kernels::count_nonzero(x.dtype, x.shape(), x.data, strides);
      std::byte* to = c.allocate(0, Shape{n, x.rank});
      kernels::nonzero(x.dtype, x.shape(), x.data, strides, reinterpret_cast<int64_t*>(to), x.rank, 1);
    }),
    .strided = true,
    .no_grad = "positions are whole numbers",
    .data_dependent = true,
    .samples = {{{.in = {{{{3, 4}, Domain::boolean}}}}}},
});

}  // namespace twibil::ops
