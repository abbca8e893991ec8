// SPDX-License-Identifier: Apache-2.0
// Reshapes and reorderings of axes: views where the layout allows, copies where not.
#include "ops/axes.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

/// The shape that `wanted` asks for: -1 takes what is left over.
void resolve(const IntList& wanted, const Shape& x, Shape& shape) {
  TW_CHECK(wanted.size() <= kMaxRank, value, "reshape: at most ", kMaxRank, " dimensions; got ", wanted.size());
  shape.resize(wanted.size());
  int open = -1;
  int64_t known = 1;
  for (int i = 0; i < wanted.size(); ++i) {
    shape[i] = wanted[i];
    if (wanted[i] >= 0) {
      known = checked_mul(known, wanted[i]);
      continue;
    }
    TW_CHECK(wanted[i] == -1, value, "reshape: newshape must hold sizes or one -1; got ", wanted.span());
    TW_CHECK(open < 0, value, "reshape: newshape can hold only one -1; got ", wanted.span());
    open = i;
  }
  int64_t n = x.size();
  if (open >= 0) {
    TW_CHECK(known != 0 && n % known == 0, value, "reshape: array of shape ", x, " with ", n,
             " elements does not fit newshape ", wanted.span());
    shape[open] = n / known;
    return;
  }
  // Next to a zero, other sizes may be so large that they are no shape.
  TW_CHECK((n ? known : shape.size()) == n, value, "reshape: array of shape ", x, " with ", n,
           " elements does not fit newshape ", wanted.span());
}

bool is_row_major(const Layout& x) {
  int64_t step = 1;
  for (int i = x.shape.rank() - 1; i >= 0; step *= x.shape[i--])
    if (x.strides[i] != step && x.shape[i] != 1) return false;
  return true;
}

/// x seen in the shape that `wanted` asks for; impossible when elements would have to move.
Layout reshaped(const Layout& x, const IntList& wanted) {
  Layout y;
  Shape& shape = y.shape;
  resolve(wanted, x.shape, shape);
  y.offset = x.offset;
  contiguous_strides(shape, y.strides);
  if (is_row_major(x) || x.shape.size() == 0) return y;
  // Both shapes are split into the shortest groups of axes with equal products; each group of x must be one run.
  int i = 0, j = 0;
  while (y.possible && (i < x.shape.rank() || j < shape.rank())) {
    int first_i = i, first_j = j;
    int64_t a = i < x.shape.rank() ? x.shape[i++] : 1, b = j < shape.rank() ? shape[j++] : 1;
    while (a != b) {
      if (a < b) a *= x.shape[i++];
      else b *= shape[j++];
    }
    int64_t run = 1;  // stride of the innermost axis of the group that is longer than one
    bool found = false;
    int64_t expected = 0;
    for (int k = i - 1; k >= first_i; --k) {
      if (x.shape[k] == 1) continue;
      if (!found) run = x.strides[k], expected = run * x.shape[k], found = true;
      else if (x.strides[k] == expected) expected *= x.shape[k];
      else y.possible = false;
    }
    for (int k = j - 1; k >= first_j; --k) y.strides[k] = run, run *= shape[k];
  }
  return y;
}

IntList permutation(const Maybe<IntList>& axes, int rank) {
  IntList order;
  if (!axes || ((*axes).empty() && rank)) {
    for (int i = rank - 1; i >= 0; --i) order.push_back(i);
    return order;
  }
  TW_CHECK((*axes).size() == rank, value, "transpose: axes ", (*axes).span(), " must name each of the ", rank,
           " dimensions once");
  uint32_t seen = 0;
  for (int64_t a : *axes) {
    int axis = normalize_axis(a, rank, "transpose");
    TW_CHECK(!(seen >> axis & 1), value, "transpose: axes ", (*axes).span(), " name axis ", a, " twice");
    seen |= 1u << axis;
    order.push_back(axis);
  }
  return order;
}

Layout reversed(const Layout& x) {
  Layout y;
  y.offset = x.offset;
  int rank = x.shape.rank();
  y.shape.resize(rank);
  for (int i = 0; i < rank; ++i) y.strides[i] = x.strides[rank - 1 - i], y.shape[i] = x.shape[rank - 1 - i];
  return y;
}

Layout permuted(const Layout& x, const IntList& order) {
  Layout y;
  y.offset = x.offset;
  for (int i = 0; i < order.size(); ++i)
    y.strides[i] = x.strides[order[i]], y.shape.push_back(x.shape[static_cast<int>(order[i])]);
  return y;
}

struct TwoAxesAttrs {
  int64_t axis1 = 0, axis2 = 1;
};
struct SqueezeAttrs {
  Maybe<IntList> axis;
};
struct BroadcastAttrs {
  IntList shape;
};

}  // namespace

inline constexpr Field kReshapeFields[] = {
    TW_ATTR(ReshapeAttrs, newshape, "Sizes of the result; one may be -1.", .required = true, .renames = "shape"),
    TW_ATTR(ReshapeAttrs, reverse, "Accepted for compatibility.", .keyword_only = true),
};
TW_OP(reshape) = whole({
    .name = "reshape",
    .doc = "The elements of x in row-major order, in another shape. A view when the layout allows.",
    .names = {"np.reshape", "ndarray.reshape", "nd.reshape"},
    .graph = {.names = "_np_reshape _npi_reshape"},
    .attrs = schema<ReshapeAttrs>(kReshapeFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<ReshapeAttrs>([](auto& a, SigsIn in, SigsOut out) {
      resolve(a.newshape, in[0].shape, out[0].shape);
      out[0].dtype = in[0].dtype;
    }),
    .types = kAll,
    .kernel = cpu_rule<ReshapeAttrs>([](auto&, Call& c) {
      Buffer y = c.out[0];  // the same elements in order: copy in x's shape
      y.dims = c.in[0].dims;
      y.rank = c.in[0].rank;
      copy_buffer(c.in[0], y);
    }),
    .strided = true,
    .view = view_rule<ReshapeAttrs>([](auto& a, const Layout& x) { return reshaped(x, a.newshape); }),
    .grad = grad_rule<ReshapeAttrs>([](auto&, const Grad& g) -> Vals { return {reshape_like(g.dy(), g.x(0))}; }),
    .in_order = true,
    .samples = {{{.in = {{{2, 6}}}, .attrs = "newshape=(3, -1)"}, {.in = {{{2, 3, 4}}}, .attrs = "newshape=(24,)"}}},
});

TW_OP(reshape_like) = whole({
    .name = "reshape_like",
    .doc = "The elements of x in the shape of `like`.",
    .names = {"npx.reshape_like", "nd.reshape_like"},
    .in = {{{.name = "x"}, {.name = "like", .shape_only = true}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      TW_CHECK(in[0].shape.size() == in[1].shape.size(), value, "reshape_like: shapes ", in[0].shape, " and ",
               in[1].shape, " differ in their number of elements");
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) {
      Buffer y = c.out[0];
      y.dims = c.in[0].dims;
      y.rank = c.in[0].rank;
      copy_buffer(c.in[0], y);
    }),
    .strided = true,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {reshape_like(g.dy(), g.x(0)), Val()};
    }),
    .keeps = true,
    .rows = rows_rule<NoAttrs>([](auto&, SigsIn in) -> Rows { return {common_axes(in[0].shape, in[1].shape)}; }),
    .samples = {{{.in = {{{2, 6}, {3, 4}}}}}},
});

TW_OP(stop_gradient) = whole({
    .name = "stop_gradient",
    .doc = "The elements of x, a view. No gradient flows back through it.",
    .names = {"npx.stop_gradient", "nd.BlockGrad", "nd.stop_gradient"},
    .graph = {.names = "BlockGrad stop_gradient"},
    .in = {{{.name = "data"}}},
    .types = kAll,
    .view = view_rule<NoAttrs>([](auto&, const Layout& x) { return x; }),
    .no_grad = "it stops gradients",
    .rows = rows_rule<NoAttrs>([](auto&, SigsIn in) -> Rows { return {in[0].rank()}; }),
    .samples = {{{.in = {{{3, 4}}}}}},
});

inline constexpr Field kTransposeFields[] = {
    TW_ATTR(TransposeAttrs, axes, "The order of the axes; None reverses them.")};
TW_OP(transpose) = whole({
    .name = "transpose",
    .doc = "x with its axes in another order, a view.",
    .names = {"np.transpose", "np.permute_dims", "ndarray.transpose", "nd.transpose"},
    .graph = {.names = "transpose _np_transpose", .inputs = "data"},
    .onnx = {.names = "Transpose", .attrs = "axes:perm"},
    .attrs = schema<TransposeAttrs>(kTransposeFields),
    .in = {{{.name = "a"}}},
    .types = kAll,
    .view = view_rule<TransposeAttrs>([](auto& a, const Layout& x) {
      if (!a.axes || (*a.axes).empty()) return reversed(x);
      return permuted(x, permutation(a.axes, x.shape.rank()));
    }),
    .grad = grad_rule<TransposeAttrs>([](auto& a, const Grad& g) -> Vals {
      Val dy = g.dy();
      IntList order = permutation(a.axes, dy->rank()), back;
      for (int i = 0; i < order.size(); ++i) back.push_back(0);
      for (int i = 0; i < order.size(); ++i) back[static_cast<int>(order[i])] = i;
      return {transpose(dy, back)};
    }),
    .samples = {{{.in = {{{2, 3, 4}}}, .attrs = "axes=(1, 2, 0)"}, {.in = {{{3, 4}}}}}},
});

inline constexpr Field kSwapFields[] = {TW_ATTR(TwoAxesAttrs, axis1, "One axis.", .required = true),
                                        TW_ATTR(TwoAxesAttrs, axis2, "The other axis.", .required = true)};
TW_OP(swapaxes) = whole({
    .name = "swapaxes",
    .doc = "x with two axes exchanged, a view.",
    .names = {"np.swapaxes", "ndarray.swapaxes", "nd.swapaxes", "nd.SwapAxis"},
    .graph = {.names = "SwapAxis swapaxes _npi_swapaxes", .attrs = "axis1:dim1=0 axis2:dim2=0", .inputs = "data"},
    .attrs = schema<TwoAxesAttrs>(kSwapFields),
    .in = {{{.name = "a"}}},
    .types = kAll,
    .view = view_rule<TwoAxesAttrs>([](auto& a, const Layout& x) {
      IntList order;
      for (int i = 0; i < x.shape.rank(); ++i) order.push_back(i);
      std::swap(order[normalize_axis(a.axis1, x.shape.rank(), "swapaxes")],
                order[normalize_axis(a.axis2, x.shape.rank(), "swapaxes")]);
      return permuted(x, order);
    }),
    .grad = grad_rule<TwoAxesAttrs>([](auto& a, const Grad& g) -> Vals { return {apply(op_swapaxes, a, {g.dy()})}; }),
    .samples = {{{.in = {{{2, 3, 4}}}, .attrs = "axis1=0, axis2=2"}}},
});

inline constexpr Field kExpandFields[] = {
    TW_ATTR(AxisAttrs, axis, "Where the new axis stands in the result.", .required = true)};
TW_OP(expand_dims) = whole({
    .name = "expand_dims",
    .doc = "x with a new axis of size one, a view.",
    .names = {"np.expand_dims", "ndarray.expand_dims", "nd.expand_dims"},
    .graph = {.names = "expand_dims _npi_expand_dims", .attrs = "axis", .inputs = "data"},
    .attrs = schema<AxisAttrs>(kExpandFields),
    .in = {{{.name = "a"}}},
    .types = kAll,
    .view = view_rule<AxisAttrs>([](auto& a, const Layout& x) {
      int axis = normalize_axis(a.axis, x.shape.rank() + 1, "expand_dims");
      Layout y = x;
      y.shape.insert(axis, 1);
      std::copy_backward(x.strides + axis, x.strides + x.shape.rank(), y.strides + y.shape.rank());
      y.strides[axis] = 0;
      return y;
    }),
    .grad = grad_rule<AxisAttrs>([](auto&, const Grad& g) -> Vals { return {reshape_like(g.dy(), g.x(0))}; }),
    .rows = rows_rule<AxisAttrs>([](auto& a, SigsIn in) -> Rows {
      return {normalize_axis(a.axis, in[0].rank() + 1, "expand_dims")};
    }),
    .samples = {{{.in = {{{2, 3}}}, .attrs = "axis=1"}, {.in = {{{2, 3}}}, .attrs = "axis=-1"}}},
});

inline constexpr Field kSqueezeFields[] = {
    TW_ATTR(SqueezeAttrs, axis, "Axes of size one to remove; None: all of them.")};
TW_OP(squeeze) = whole({
    .name = "squeeze",
    .doc = "x without axes of size one, a view.",
    .names = {"np.squeeze", "ndarray.squeeze", "nd.squeeze"},
    .graph = {.names = "squeeze _np_squeeze", .inputs = "data"},
    .attrs = schema<SqueezeAttrs>(kSqueezeFields),
    .in = {{{.name = "a"}}},
    .types = kAll,
    .view = view_rule<SqueezeAttrs>([](auto& a, const Layout& x) {
      uint32_t drop = a.axis ? axis_set(a.axis, x.shape.rank(), "squeeze") : 0;
      Layout y;
      y.offset = x.offset;
      for (int i = 0; i < x.shape.rank(); ++i) {
        bool dropped = a.axis ? drop >> i & 1 : x.shape[i] == 1;
        TW_CHECK(!dropped || x.shape[i] == 1, value, "squeeze: axis ", i, " has size ", x.shape[i],
                 "; only axes of size 1 can be removed");
        if (dropped) continue;
        y.strides[y.shape.rank()] = x.strides[i];
        y.shape.push_back(x.shape[i]);
      }
      return y;
    }),
    .grad = grad_rule<SqueezeAttrs>([](auto&, const Grad& g) -> Vals { return {reshape_like(g.dy(), g.x(0))}; }),
    .rows = rows_rule<SqueezeAttrs>([](auto& a, SigsIn in) -> Rows {
      const Shape& x = in[0].shape;
      uint32_t drop = a.axis ? axis_set(a.axis, x.rank(), "squeeze") : 0;
      int first = 0;
      while (first < x.rank() && !(a.axis ? drop >> first & 1 : x[first] == 1)) ++first;
      return {first};
    }),
    .samples = {{{.in = {{{2, 1, 3}}}}, {.in = {{{2, 1, 1}}}, .attrs = "axis=1"}}},
});

inline constexpr Field kBroadcastFields[] = {TW_ATTR(BroadcastAttrs, shape, "Shape of the result.", .required = true)};
TW_OP(broadcast_to) = whole({
    .name = "broadcast_to",
    .doc = "x repeated along axes of size one until it has a shape, without copying: a read-only view.",
    .names = {"np.broadcast_to", "ndarray.broadcast_to", "nd.broadcast_to"},
    .graph = {.names = "broadcast_to _npi_broadcast_to _np_broadcast_to", .inputs = "data"},
    .attrs = schema<BroadcastAttrs>(kBroadcastFields),
    .in = {{{.name = "array"}}},
    .types = kAll,
    .view = view_rule<BroadcastAttrs>([](auto& a, const Layout& x) {
      Layout y;
      y.shape = Shape(a.shape.span());
      TW_CHECK(broadcasts_to(x.shape, y.shape), value, "broadcast_to: shape ", x.shape, " does not broadcast to ",
               y.shape);
      y.offset = x.offset;
      int shift = y.shape.rank() - x.shape.rank();
      for (int i = shift; i < y.shape.rank(); ++i) y.strides[i] = x.shape[i - shift] == 1 ? 0 : x.strides[i - shift];
      return y;
    }),
    .grad = grad_rule<BroadcastAttrs>([](auto&, const Grad& g) -> Vals { return {sum_to_like(g.dy(), g.x(0))}; }),
    .samples = {{{.in = {{{3, 1}}}, .attrs = "shape=(2, 3, 4)"}}},
});

}  // namespace twibil::ops
