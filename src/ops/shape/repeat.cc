// SPDX-License-Identifier: Apache-2.0
// Repeating, reversing and padding.
#include <vector>

#include "base/recycled.h"
#include "kernels/copy.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

struct TileAttrs {
  IntList reps;
};
struct RepeatAttrs {
  int64_t repeats = 1;
  Maybe<int64_t> axis;
};
struct FlipAttrs {
  Maybe<IntList> axis;
};

/// x with leading axes of size one up to `rank`.
Val lift(const Val& x, int rank) {
  Val y = x;
  while (y->rank() < rank) y = expand_dims(y, 0);
  return y;
}

/// A result that lies in the memory of x (nothing was repeated, or one element was) is copied: it may be written.
Val of_its_own(const Val& result, const Val& x) { return result->root == x->root ? copy(result) : result; }

Shape padded(const PadAttrs& a, const Shape& x) {
  TW_CHECK(a.before.size() == x.rank() && a.after.size() == x.rank(), value,
           "pad: pad_width needs a pair per axis of shape ", x, "; got ", a.before.size());
  Shape y;
  for (int i = 0; i < x.rank(); ++i) {
    TW_CHECK(a.before[i] >= 0 && a.after[i] >= 0, value, "pad: pad_width must not be negative; got ", a.before.span(),
             " before and ", a.after.span(), " after");
    TW_CHECK(a.mode == 0 || x[i] > 0 || (a.before[i] == 0 && a.after[i] == 0), value, "pad: axis ", i,
             " is empty and can only be padded with a constant");
    y.push_back(checked_add(x[i], checked_add(a.before[i], a.after[i])));
  }
  return y;
}

}  // namespace

extern const OpDef op_pad, op_pad_grad, op_repeat, op_flip;

inline constexpr Field kTileFields[] = {
    TW_ATTR(TileAttrs, reps, "Repetitions per axis, the last one last.", .required = true)};
TW_OP(tile) = whole({
    .name = "tile",
    .doc = "Repeats the whole of A along each axis.",
    .names = {"np.tile", "ndarray.tile", "nd.tile"},
    .graph = {.names = "tile _npi_tile", .attrs = "reps", .inputs = "data"},
    .attrs = schema<TileAttrs>(kTileFields),
    .in = {{{.name = "A"}}},
    .types = kAll,
    .expand = expand_rule<TileAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      // [r0, n0, r1, n1, ...]: broadcasting the r axes and merging pairs is a tile, and every step has a gradient.
      int rank = std::max(in[0]->rank(), a.reps.size());
      Val x = lift(in[0], rank);
      Shape result;
      for (int i = 0; i < rank; ++i) {
        int k = i - (rank - a.reps.size());
        int64_t times = k < 0 ? 1 : a.reps[k];
        TW_CHECK(times >= 0, value, "tile: reps must not be negative; got ", a.reps.span());
        result.push_back(checked_mul(times, x->dims[i]));
      }
      for (int i = 0; i < rank; ++i) {  // one axis at a time keeps the rank within bounds
        int64_t n = x->dims[i];
        if (result[i] == n) continue;
        int64_t outer = 1, inner = 1;
        for (int k = 0; k < i; ++k) outer *= result[k];
        for (int k = i + 1; k < rank; ++k) inner *= x->dims[k];
        int64_t times = n ? result[i] / n : 0;
        Shape split{outer, 1, n * inner}, wide{outer, times, n * inner};
        Shape next;
        for (int k = 0; k < rank; ++k) next.push_back(k <= i ? result[k] : x->dims[k]);
        IntList to(wide.span());
        x = reshape(apply(op_broadcast_to, ShapeAttrs{to}, {reshape(x, split)}), next);
      }
      return {of_its_own(x, in[0])};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{2, 3}}}, .attrs = "reps=(2, 2)"}, {.in = {{SampleInput({3})}}, .attrs = "reps=(2, 1)"}}},
});

inline constexpr Field kRepeatFields[] = {
    TW_ATTR(RepeatAttrs, repeats, "How often each element comes.", .required = true),
    TW_ATTR(RepeatAttrs, axis, "Axis along which elements repeat; None: of the flattened array.")};
TW_OP(repeat) = whole({
    .name = "repeat",
    .doc = "Repeats each element of a, one after the other.",
    .names = {"np.repeat", "ndarray.repeat", "nd.repeat"},
    .graph = {.names = "repeat _np_repeat", .attrs = "repeats", .inputs = "data"},
    .attrs = schema<RepeatAttrs>(kRepeatFields),
    .in = {{{.name = "a"}}},
    .types = kAll,
    .expand = expand_rule<RepeatAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(a.repeats >= 0, value, "repeat: repeats must not be negative; got ", a.repeats);
      Val x = a.axis ? in[0] : reshape(in[0], Shape{in[0]->size()});
      int axis = a.axis ? normalize_axis(*a.axis, x->rank(), "repeat") : 0;
      int64_t outer = 1, inner = 1;
      for (int k = 0; k < axis; ++k) outer *= x->dims[k];
      for (int k = axis + 1; k < x->rank(); ++k) inner *= x->dims[k];
      Shape result(x->shape());
      result[axis] = checked_mul(result[axis], a.repeats);
      Shape split{outer * x->dims[axis], 1, inner}, wide{outer * x->dims[axis], a.repeats, inner};
      Val y = reshape(apply(op_broadcast_to, ShapeAttrs{IntList(wide.span())}, {reshape(x, split)}), result);
      return {of_its_own(y, in[0])};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{2, 3}}}, .attrs = "repeats=2"}, {.in = {{{2, 3}}}, .attrs = "repeats=3, axis=1"}}},
});

inline constexpr Field kFlipFields[] = {TW_ATTR(FlipAttrs, axis, "Axis or axes to reverse; None: all.")};
TW_OP(flip) = whole({
    .name = "flip",
    .doc = "Reverses the order of elements along axes, a view.",
    .names = {"np.flip", "ndarray.flip", "nd.flip", "nd.reverse"},
    .graph = {.names = "reverse flip _npi_flip", .attrs = "axis", .inputs = "data"},
    .attrs = schema<FlipAttrs>(kFlipFields),
    .in = {{{.name = "m"}}},
    .types = kAll,
    .view = view_rule<FlipAttrs>([](auto& a, const Layout& x) {
      Layout y = x;
      for (int i = 0; i < x.shape.rank(); ++i) {
        bool chosen = !a.axis;
        if (a.axis)
          for (int64_t axis : *a.axis) chosen |= normalize_axis(axis, x.shape.rank(), "flip") == i;
        if (!chosen || x.shape[i] == 0) continue;
        y.offset += (x.shape[i] - 1) * x.strides[i];
        y.strides[i] = -x.strides[i];
      }
      if (a.axis)
        for (int64_t axis : *a.axis) normalize_axis(axis, x.shape.rank(), "flip");
      return y;
    }),
    .grad = grad_rule<FlipAttrs>([](auto& a, const Grad& g) -> Vals { return {apply(op_flip, a, {g.dy()})}; }),
    .samples = {{{.in = {{{2, 3}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=(0, -1)"}}},
});

inline constexpr Field kPadFields[] = {
    TW_ATTR(PadAttrs, before, "Elements in front, per axis.", .required = true),
    TW_ATTR(PadAttrs, after, "Elements behind, per axis.", .required = true),
    TW_ATTR(PadAttrs, mode, "Where they come from, as in numpy.pad.",
            .choices = "constant|edge|reflect|symmetric|wrap"),
    TW_ATTR(PadAttrs, constant_values, "The constant."),
};
TW_OP(pad) = whole({
    .name = "pad",
    .doc = "Surrounds x with further elements.",
    .names = {"npx.pad_axes"},
    .attrs = schema<PadAttrs>(kPadFields),
    .in = {{{.name = "x"}}},
    .infer = infer_rule<PadAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {padded(a, in[0].shape), in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<PadAttrs>([](auto& a, Call& c) {
      kernels::pad(c.in[0].dtype, c.in[0].shape(), c.in[0].data, Strides(c.in[0]), a.before.span(), a.after.span(),
                   static_cast<kernels::PadMode>(static_cast<int>(a.mode)), a.constant_values, c.out[0].data,
                   Strides(c.out[0]));
    }),
    .strided = true,
    .grad = grad_rule<PadAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_pad_grad, a, {g.dy(), g.x(0)})};
    }),
    .samples = {{{.in = {{{2, 3}}}, .attrs = "before=(1, 0), after=(2, 1)"},
                 {.in = {{{3, 4}}}, .attrs = "before=(2, 1), after=(0, 3), mode=reflect"}}},
});

/// One axis: y[map[i]] += x[i], elements with map -1 fall away.
static void fold_axis(const Buffer& x, int axis, std::span<const int64_t> map, const Buffer& y) {
  Strides sx(x), sy(y);
  int64_t dims[kMaxRank];
  std::copy(x.dims, x.dims + x.rank, dims);
  dims[axis] = 1;
  size_t rank = x.rank;
  dispatch(x.dtype, [&]<class T>() {
    int64_t rest = 1;
    for (size_t i = 0; i < rank; ++i) rest *= dims[i];
    for (int64_t p = 0; p < rest; ++p) {
      int64_t ox = 0, oy = 0, left = p;
      for (int d = x.rank - 1; d >= 0; --d) {
        int64_t k = left % dims[d];
        left /= dims[d];
        ox += k * sx.items[d], oy += k * sy.items[d];
      }
      for (size_t i = 0; i < map.size(); ++i) {
        if (map[i] < 0) continue;
        const T& from = x.as<T>()[ox + static_cast<int64_t>(i) * sx.items[axis]];
        T& to = y.as<T>()[oy + map[i] * sy.items[axis]];
        if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, bool>) to = static_cast<T>(to + from);
        else if constexpr (std::is_integral_v<T>)
          to = static_cast<T>(static_cast<uint64_t>(to) + static_cast<uint64_t>(from));
        else to = T(static_cast<float>(to) + static_cast<float>(from));
      }
    }
  });
}

TW_OP(pad_grad) = whole({
    .name = "pad_grad",
    .doc = "The gradient of pad: adds every padded element back to where it came from.",
    .attrs = schema<PadAttrs>(kPadFields),
    .in = {{{.name = "dy"}, {.name = "like", .shape_only = true}}},
    .infer = infer_rule<PadAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(padded(a, in[1].shape) == in[0].shape, value, "pad_grad: dy of shape ", in[0].shape, " does not fit");
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<PadAttrs>([](auto& a, Call& c) {
      if (c.out[0].size == 0) return;  // of the other axes, some may be too long to be walked along
      Buffer x = c.in[0];
      Recycled<std::byte> held, next;
      Shape shape(x.shape());
      for (int axis = 0; axis < x.rank; ++axis) {
        Recycled<int64_t> map(static_cast<size_t>(shape[axis]));
        kernels::pad_map(static_cast<kernels::PadMode>(static_cast<int>(a.mode)), c.out[0].dim(axis), a.before[axis],
                         a.after[axis], map.data());
        Shape smaller = shape;
        smaller[axis] = c.out[0].dim(axis);
        next.assign(static_cast<size_t>(smaller.size() * size_of(x.dtype)), std::byte{0});
        Buffer y{.data = next.data(), .dims = smaller.data(), .size = smaller.size(), .dtype = x.dtype, .rank = x.rank};
        x.dims = shape.data();
        fold_axis(x, axis, map, y);
        held.swap(next);
        shape = smaller;
        x = {.data = held.data(), .dims = shape.data(), .size = shape.size(), .dtype = x.dtype, .rank = x.rank};
      }
      copy_buffer(x, c.out[0]);
    }),
    .grad = grad_rule<PadAttrs>([](auto& a, const Grad& g) -> Vals {
      PadAttrs zero = a;
      zero.constant_values = Scalar(0);
      return {apply(op_pad, zero, {g.dy()}), Val()};
    }),
    .samples = {{{.in = {{{5, 8}, {3, 4}}}, .attrs = "before=(2, 1), after=(0, 3), mode=reflect"}}},
});

}  // namespace twibil::ops
