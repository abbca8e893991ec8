// SPDX-License-Identifier: Apache-2.0
// Other shapes and parts of arrays, with sizes that stand in arrays.
#include <algorithm>

#include "base/checked.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(tile)
TW_DECLARE(tril)
TW_DECLARE(triu)

namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMostSide = int64_t{1} << 20;  // of a block, so that its square fits

struct ReshapeAllowAttrs {
  bool allowzero = false;
};
struct FirstAxisAttrs {
  int64_t axis = 1;
};
struct SplitAttrs {
  int64_t axis = 0, outputs = 1, num_outputs = 0;
};
struct PadModeAttrs {
  Choice mode;
};
struct BlockAttrs {
  int64_t blocksize = 1;
  Choice mode;
};
struct TriluAttrs {
  bool upper = true;
};
struct CenterAttrs {
  Maybe<IntList> axes;
};

Val reshape_to(const Val& x, const Ints& sizes) {
  ReshapeAttrs a;
  a.newshape = list_of(sizes, "reshape");
  return apply(op_reshape, a, {x});
}

/// Start, step and size along an axis of n elements, as ONNX (and Python) understand begin, end and step.
void set_range(BasicIndexAttrs& a, int axis, int64_t n, int64_t begin, int64_t end, int64_t step) {
  TW_CHECK(step != 0, value, "Slice: a step must not be 0");
  auto resolve = [&](int64_t i, int64_t low, int64_t high) { return std::clamp(i < 0 ? i + n : i, low, high); };
  int64_t size;
  if (step > 0) {
    begin = resolve(begin, 0, n), end = resolve(end, 0, n);
    size = end > begin ? (end - begin - 1) / step + 1 : 0;
  } else {
    begin = resolve(begin, 0, n - 1), end = resolve(end, -1, n - 1);
    size = begin > end && n > 0
               ? static_cast<int64_t>((static_cast<uint64_t>(begin - end) - 1) / -static_cast<uint64_t>(step)) + 1
               : 0;
  }
  a.start[axis] = size ? begin : 0;
  a.step[axis] = size > 1 ? step : 1;
  a.size[axis] = size;
}

Ints all_axes(size_t n) {
  Ints axes;
  for (size_t i = 0; i < n; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

/// (n, c, a, b...) to (n, block, block, c', a, b...) and so on: moves blocks between channels and sizes.
Val depth_to_space(const Val& x, int64_t b, bool crd) {
  TW_CHECK(x->rank() == 4 && b > 0 && b < kMostSide && x->dims[1] % (b * b) == 0, value, "DepthToSpace: data of shape ",
           x->shape(), " must have four axes and channels that are a multiple of the square of blocksize ", b);
  int64_t n = x->dims[0], c = x->dims[1] / (b * b), h = x->dims[2], w = x->dims[3];
  Val y = crd ? transpose(reshape(x, Shape{n, c, b, b, h, w}), {0, 1, 4, 2, 5, 3})
              : transpose(reshape(x, Shape{n, b, b, c, h, w}), {0, 3, 4, 1, 5, 2});
  return reshape(y, Shape{n, c, h * b, w * b});
}
Val space_to_depth(const Val& x, int64_t b, bool crd) {
  TW_CHECK(x->rank() == 4 && b > 0 && b < kMostSide && x->dims[2] % b == 0 && x->dims[3] % b == 0, value,
           "SpaceToDepth: data of shape ", x->shape(), " must have four axes and sizes that are a multiple of ", b);
  int64_t n = x->dims[0], c = x->dims[1], h = x->dims[2] / b, w = x->dims[3] / b;
  Val y = reshape(x, Shape{n, c, h, b, w, b});
  y = crd ? transpose(y, {0, 1, 3, 5, 2, 4}) : transpose(y, {0, 3, 5, 1, 2, 4});
  return reshape(y, Shape{n, c * b * b, h, w});
}

}  // namespace

inline constexpr Field kOnnxReshapeAllowFields[] = {
    TW_ATTR(ReshapeAllowAttrs, allowzero, "Whether a 0 is a size; else it keeps the old one.")};
inline constexpr Field kOnnxFirstAxisFields[] = {TW_ATTR(FirstAxisAttrs, axis, "First axis of the second part.")};
inline constexpr Field kOnnxSplitFields[] = {TW_ATTR(SplitAttrs, axis, "Axis that is cut."),
                                             TW_ATTR(SplitAttrs, outputs, "How many parts there are."),
                                             TW_ATTR(SplitAttrs, num_outputs, "The same, where it is said; else 0.")};
inline constexpr Field kOnnxPadModeFields[] = {
    TW_ATTR(PadModeAttrs, mode, "Where new elements come from.", .choices = "constant|edge|reflect|symmetric|wrap")};
inline constexpr Field kOnnxBlockFields[] = {
    TW_ATTR(BlockAttrs, blocksize, "Length of a block's sides.", .required = true),
    TW_ATTR(BlockAttrs, mode, "Whether the depth of a block or the column comes first.", .choices = "DCR|CRD")};
inline constexpr Field kOnnxTriluFields[] = {
    TW_ATTR(TriluAttrs, upper, "Keeps the upper triangle, else the lower one.")};
inline constexpr Field kOnnxCenterFields[] = {TW_ATTR(CenterAttrs, axes, "Axes that get new sizes; None: all.")};

TW_OP(onnx_reshape) = whole({
    .name = "onnx_reshape",
    .doc = "The same elements in another shape; one size may be -1, and 0 keeps the old size.",
    .onnx = {.names = "Reshape"},
    .attrs = schema<ReshapeAllowAttrs>(kOnnxReshapeAllowFields),
    .in = {{{.name = "data"}, {.name = "shape", .value = true}}},
    .types = kAll,
    .expand = expand_rule<ReshapeAllowAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Ints sizes = ints_of(in[1], "Reshape");
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] != 0 || a.allowzero) continue;
        TW_CHECK(static_cast<int>(i) < in[0]->rank(), value, "Reshape: size ", i,
                 " is 0, which keeps the old one; shape ", in[0]->shape(), " has none there");
        sizes[i] = in[0]->dims[i];
      }
      // A -1 beside sizes of which one is 0 stands for nothing in particular; NumPy refuses it, ONNX takes 0.
      if (in[0]->size() == 0)
        for (int64_t& s : sizes)
          if (s == -1) s = 0;
      return {reshape_to(in[0], sizes)};
    }),
    .unfolds = true,
});

TW_OP(onnx_flatten) = whole({
    .name = "onnx_flatten",
    .doc = "A matrix: the axes before one make its rows, the others its columns.",
    .onnx = {.names = "Flatten"},
    .attrs = schema<FirstAxisAttrs>(kOnnxFirstAxisFields),
    .in = {{{.name = "input"}}},
    .types = kAll,
    .expand = expand_rule<FirstAxisAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int rank = in[0]->rank();
      TW_CHECK(a.axis >= -rank && a.axis <= rank, value, "Flatten: axis ", a.axis, " is out of range for shape ",
               in[0]->shape());
      int64_t axis = a.axis < 0 ? a.axis + rank : a.axis, rows = 1, columns = 1;
      for (int i = 0; i < rank; ++i) (i < axis ? rows : columns) *= in[0]->dims[i];
      return {reshape(in[0], Shape{rows, columns})};
    }),
    .samples = {{{.in = {{{2, 3, 4}}}, .attrs = "axis=2"}}},
});

TW_OP(onnx_squeeze) = whole({
    .name = "onnx_squeeze",
    .doc = "Without axes of size one: all of them, or those that are named.",
    .onnx = {.names = "Squeeze"},
    .in = {{{.name = "data"}, {.name = "axes", .kind = SlotKind::optional, .value = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      Shape s;
      std::vector<int> axes = in[1] ? axes_of(ints_of(in[1], "Squeeze"), in[0]->rank(), "Squeeze") : std::vector<int>();
      for (int i = 0; i < in[0]->rank(); ++i) {
        bool named = std::ranges::find(axes, i) != axes.end();
        TW_CHECK(!named || in[0]->dims[i] == 1, value, "Squeeze: axis ", i, " of shape ", in[0]->shape(),
                 " must have size 1");
        if (!(in[1] ? named : in[0]->dims[i] == 1)) s.push_back(in[0]->dims[i]);
      }
      return {reshape(in[0], s)};
    },
    .unfolds = true,
});

TW_OP(onnx_unsqueeze) = whole({
    .name = "onnx_unsqueeze",
    .doc = "With new axes of size one, at the places that they have in the result.",
    .onnx = {.names = "Unsqueeze"},
    .in = {{{.name = "data"}, {.name = "axes", .value = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      Ints given = ints_of(in[1], "Unsqueeze");
      int rank = in[0]->rank() + static_cast<int>(given.size());
      Shape s(in[0]->shape());
      for (int axis : axes_of(given, rank, "Unsqueeze")) s.insert(axis, 1);
      return {reshape(in[0], s)};
    },
    .unfolds = true,
});

TW_OP(onnx_expand) = whole({
    .name = "onnx_expand",
    .doc = "Broadcast together with a shape.",
    .onnx = {.names = "Expand:8"},
    .in = {{{.name = "input"}, {.name = "shape", .value = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      Shape s = broadcast(Shape(in[0]->shape()), Shape{std::span<const int64_t>(ints_of(in[1], "Expand"))}, "Expand");
      for (int64_t d : s) TW_CHECK(d >= 0, value, "Expand: sizes must not be negative; got ", s);
      if (s == shape_of(in[0])) return {in[0]};
      return {apply(op_broadcast_to, ShapeAttrs{IntList(s.span())}, {in[0]})};
    },
    .unfolds = true,
});

TW_OP(onnx_tile) = whole({
    .name = "onnx_tile",
    .doc = "Repeats an array along its axes.",
    .onnx = {.names = "Tile"},
    .in = {{{.name = "input"}, {.name = "repeats", .value = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      Ints reps = ints_of(in[1], "Tile");
      TW_CHECK(static_cast<int>(reps.size()) == in[0]->rank(), value, "Tile: ", in[0]->rank(),
               " repeats are needed; got ", reps.size());
      return {With(op_tile).set("reps", list_of(reps, "Tile"))({in[0]})};
    },
    .unfolds = true,
});

TW_OP(onnx_slice) = whole({
    .name = "onnx_slice",
    .doc = "From each axis the elements from a start to an end, in steps.",
    .onnx = {.names = "Slice"},
    .in = {{{.name = "data"},
            {.name = "starts", .value = true},
            {.name = "ends", .value = true},
            {.name = "axes", .kind = SlotKind::optional, .value = true},
            {.name = "steps", .kind = SlotKind::optional, .value = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      const char* who = "Slice";
      Ints starts = ints_of(in[1], who), ends = ints_of(in[2], who);
      Ints axes = in[3] ? ints_of(in[3], who) : all_axes(starts.size());
      Ints steps = in[4] ? ints_of(in[4], who) : Ints(starts.size(), 1);
      TW_CHECK(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(), value,
               "Slice: starts, ends, axes and steps must be equally many; got ", starts.size(), ", ", ends.size(), ", ",
               axes.size(), " and ", steps.size());
      axes_of(axes, in[0]->rank(), who);
      BasicIndexAttrs a = whole_of(in[0]);
      for (size_t i = 0; i < starts.size(); ++i) {
        int axis = normalize_axis(axes[i], in[0]->rank(), who);
        set_range(a, axis, in[0]->dims[axis], starts[i], ends[i], steps[i]);
      }
      return {apply(op_basic_index, a, {in[0]})};
    },
    .unfolds = true,
});

TW_OP(onnx_split) = whole({
    .name = "onnx_split",
    .doc = "Cuts an array into parts along an axis, equal ones or of given sizes.",
    .onnx = {.names = "Split", .attrs = "outputs:@outputs"},
    .attrs = schema<SplitAttrs>(kOnnxSplitFields),
    .in = {{{.name = "input"}, {.name = "split", .kind = SlotKind::optional, .value = true}}},
    .count = count_rule<SplitAttrs>([](auto& a) { return static_cast<int>(a.outputs); }),
    .types = kAll,
    .expand = expand_rule<SplitAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "Split");
      int64_t n = in[0]->dims[axis], begin = 0;
      Ints sizes;
      if (in[1]) {
        sizes = ints_of(in[1], "Split");
      } else {
        int64_t each = (n + a.outputs - 1) / a.outputs;  // the last one may be smaller
        for (int64_t i = 0; i < a.outputs; ++i) sizes.push_back(std::clamp<int64_t>(n - i * each, 0, each));
      }
      TW_CHECK(static_cast<int64_t>(sizes.size()) == a.outputs, value, "Split: ", sizes.size(), " sizes are given for ",
               a.outputs, " outputs");
      Vals parts;
      for (int64_t s : sizes) {
        TW_CHECK(s >= 0 && s <= n - begin, value, "Split: sizes ", std::span<const int64_t>(sizes), " do not fit axis ",
                 axis, " of ", n, " elements");
        parts.push_back(part(in[0], axis, s ? begin : 0, s));
        begin += s;
      }
      TW_CHECK(begin == n, value, "Split: sizes ", std::span<const int64_t>(sizes), " must add up to the ", n,
               " elements of axis ", axis);
      return parts;
    }),
    .unfolds = true,
});

TW_OP(onnx_pad) = whole({
    .name = "onnx_pad",
    .doc = "Surrounds an array with further elements; negative numbers cut off.",
    .onnx = {.names = "Pad"},
    .attrs = schema<PadModeAttrs>(kOnnxPadModeFields),
    .in = {{{.name = "data"},
            {.name = "pads", .value = true},
            {.name = "constant_value", .kind = SlotKind::optional, .renames = "value", .value = true},
            {.name = "axes", .kind = SlotKind::optional, .value = true}}},
    .types = kAll,
    .expand = expand_rule<PadModeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "Pad";
      static constexpr const char* kOnnxModes[] = {"constant", "edge", "reflect", "symmetric", "wrap"};
      auto rank = static_cast<size_t>(in[0]->rank());
      Ints pads = ints_of(in[1], who), before(rank), after(rank), axes = in[3] ? ints_of(in[3], who) : all_axes(rank);
      TW_CHECK(pads.size() == 2 * axes.size(), value, "Pad: two numbers for each of ", axes.size(),
               " axes are needed; got ", pads.size());
      axes_of(axes, in[0]->rank(), who);
      for (size_t i = 0; i < axes.size(); ++i) {
        auto axis = static_cast<size_t>(normalize_axis(axes[i], in[0]->rank(), who));
        before[axis] = pads[i];
        after[axis] = pads[i + axes.size()];
      }
      Scalar fill(0);
      if (in[2] && in[2]->size())
        fill = is_floating(in[2]->dtype()) ? Scalar(real_of(in[2], who)) : Scalar(int_of(in[2], who));
      return {pad_or_cut(in[0], before, after, kOnnxModes[a.mode], fill)};
    }),
    .unfolds = true,
});

TW_OP(onnx_depth_to_space) = whole({
    .name = "onnx_depth_to_space",
    .doc = "Channels become blocks of neighbouring elements.",
    .onnx = {.names = "DepthToSpace"},
    .attrs = schema<BlockAttrs>(kOnnxBlockFields),
    .in = {{{.name = "input"}}},
    .types = kAll,
    .expand = expand_rule<BlockAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {depth_to_space(in[0], a.blocksize, a.mode == 1)};
    }),
    .samples = {{{.in = {{{1, 8, 2, 3}}}, .attrs = "blocksize=2"},
                 {.in = {{{1, 8, 2, 3}}}, .attrs = "blocksize=2, mode=CRD"}}},
});

TW_OP(onnx_space_to_depth) = whole({
    .name = "onnx_space_to_depth",
    .doc = "Blocks of neighbouring elements become channels.",
    .onnx = {.names = "SpaceToDepth"},
    .attrs = schema<BlockAttrs>(kOnnxBlockFields),
    .in = {{{.name = "input"}}},
    .types = kAll,
    .expand = expand_rule<BlockAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {space_to_depth(in[0], a.blocksize, a.mode == 1)};
    }),
    .samples = {{{.in = {{{1, 2, 4, 6}}}, .attrs = "blocksize=2"}}},
});

TW_OP(onnx_trilu) = whole({
    .name = "onnx_trilu",
    .doc = "The upper or lower triangle of matrices, with zeros elsewhere.",
    .onnx = {.names = "Trilu:14"},
    .attrs = schema<TriluAttrs>(kOnnxTriluFields),
    .in = {{{.name = "input"}, {.name = "k", .kind = SlotKind::optional, .value = true}}},
    .types = kAll,
    .expand = expand_rule<TriluAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int64_t k = in[1] ? int_of(in[1], "Trilu") : 0;
      return {With(a.upper ? op_triu : op_tril).set("k", k)({in[0]})};
    }),
    .unfolds = true,
    .samples = {{{.in = {{{2, 3, 3}}}}}},
});

TW_OP(onnx_center_crop_pad) = whole({
    .name = "onnx_center_crop_pad",
    .doc = "Cuts off or surrounds with zeros so that the middle stays.",
    .onnx = {.names = "CenterCropPad:18"},
    .attrs = schema<CenterAttrs>(kOnnxCenterFields),
    .in = {{{.name = "input_data"}, {.name = "shape", .value = true}}},
    .types = kAll,
    .expand = expand_rule<CenterAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "CenterCropPad";
      auto rank = static_cast<size_t>(in[0]->rank());
      Ints sizes = ints_of(in[1], who), axes = a.axes ? Ints(a.axes.value.begin(), a.axes.value.end()) : all_axes(rank);
      Ints before(rank), after(rank);
      TW_CHECK(sizes.size() == axes.size(), value, who, ": ", axes.size(), " sizes are needed; got ", sizes.size());
      for (size_t i = 0; i < axes.size(); ++i) {
        auto axis = static_cast<size_t>(normalize_axis(axes[i], in[0]->rank(), who));
        int64_t more = sizes[i] - in[0]->dims[axis], less = -more;
        before[axis] = more >= 0 ? more / 2 : -(less / 2);
        after[axis] = more - before[axis];
      }
      return {pad_or_cut(in[0], before, after, "constant", Scalar(0))};
    }),
    .unfolds = true,
});

}  // namespace twibil::ops
