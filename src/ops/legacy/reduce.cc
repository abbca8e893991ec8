// SPDX-License-Identifier: Apache-2.0
// Reductions, clipping, products and padding with the arguments that MXNet 1 has.
#include "base/checked.h"
#include "ops/axes.h"
#include "ops/legacy/slices.h"
#include "ops/math/arg_attrs.h"
#include "ops/math/elementwise.h"
#include "ops/shape/join.h"

namespace twibil::ops {

TW_DECLARE(max)
TW_DECLARE(min)
TW_DECLARE(prod)
TW_DECLARE(argmax)
TW_DECLARE(argmin)
TW_DECLARE(clip)

namespace {

struct ExcludeAttrs {
  Maybe<IntList> axis;
  bool keepdims = false, exclude = false;
};
constexpr Field kExcludeFields[] = {
    TW_ATTR(ExcludeAttrs, axis, "Axis or axes to reduce; None: all."),
    TW_ATTR(ExcludeAttrs, keepdims, "Keeps the reduced axes with size one."),
    TW_ATTR(ExcludeAttrs, exclude, "Reduces all axes but these."),
};

Maybe<IntList> reduced_axes(const ExcludeAttrs& a, int rank) {
  if (!a.axis || (*a.axis).empty()) return a.exclude ? Maybe<IntList>(IntList()) : Maybe<IntList>();
  if (!a.exclude) return a.axis;
  IntList others;
  std::array<bool, kMaxRank> kept{};
  for (int64_t axis : *a.axis) kept[static_cast<size_t>(normalize_axis(axis, rank, "axis"))] = true;
  for (int i = 0; i < rank; ++i)
    if (!kept[static_cast<size_t>(i)]) others.push_back(i);
  return others;
}

template <Captureless F> constexpr ExpandFunction reduction(F) {
  return [](const void* a, std::span<const Val> in) -> Vals {
    const auto& e = *static_cast<const ExcludeAttrs*>(a);
    return {F{}(in[0], reduced_axes(e, in[0]->rank()), e.keepdims)};
  };
}
constexpr OpDef excluding(OpDef d) {
  d.attrs = schema<ExcludeAttrs>(kExcludeFields);
  d.in = kData;
  d.types = kReals;
  d.samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1, exclude=True, keepdims=True"}}};
  return whole(d);
}

constexpr Field kLegacyArgFields[] = {TW_ATTR(ArgAttrs, axis, "Axis to search; None: the flattened array."),
                                      TW_ATTR(ArgAttrs, keepdims, "Keeps the reduced axis with size one.")};
constexpr OpDef position(OpDef d) {
  d.attrs = schema<ArgAttrs>(kLegacyArgFields);
  d.in = kData;
  d.types = kReals;
  d.no_grad = kNoGradOfIntegers;
  d.samples = {{{.in = {{{3, 4}}}, .smooth = false}, {.in = {{{3, 4}}}, .attrs = "axis=1", .smooth = false}}};
  return whole(d);
}
/// Positions as floats: in MXNet 1 every result has the dtype of data.
Val as_floats(const Val& i, const Val& x) { return cast(i, is_floating(x->dtype()) ? x->dtype() : default_float()); }

}  // namespace

TW_OP(legacy_sum) = excluding({
    .name = "legacy_sum",
    .doc = "The sum over axes, or over all but these.",
    .graph = {.names = "sum sum_axis"},
    .expand = reduction([](const Val& x, Maybe<IntList> axis, bool keep) {
      return apply(op_sum, SumAttrs{axis, {}, keep}, {x});
    }),
});
TW_OP(legacy_mean) = excluding({
    .name = "legacy_mean",
    .doc = "The mean over axes, or over all but these.",
    .graph = {.names = "mean"},
    .expand = reduction([](const Val& x, Maybe<IntList> axis, bool keep) {
      return apply(op_mean, SumAttrs{axis, {}, keep}, {x});
    }),
});
TW_OP(legacy_prod) = excluding({
    .name = "legacy_prod",
    .doc = "The product over axes, or over all but these.",
    .graph = {.names = "prod"},
    .expand = reduction([](const Val& x, Maybe<IntList> axis, bool keep) {
      return apply(op_prod, SumAttrs{axis, {}, keep}, {x});
    }),
});
TW_OP(legacy_max) = excluding({
    .name = "legacy_max",
    .doc = "The largest element over axes, or over all but these.",
    .graph = {.names = "max max_axis"},
    .expand = reduction([](const Val& x, Maybe<IntList> axis, bool keep) {
      return apply(op_max, AxesAttrs{axis, keep}, {x});
    }),
});
TW_OP(legacy_min) = excluding({
    .name = "legacy_min",
    .doc = "The smallest element over axes, or over all but these.",
    .graph = {.names = "min min_axis"},
    .expand = reduction([](const Val& x, Maybe<IntList> axis, bool keep) {
      return apply(op_min, AxesAttrs{axis, keep}, {x});
    }),
});
TW_OP(nansum) = excluding({
    .name = "nansum",
    .doc = "The sum of what is not NaN, over axes or over all but these.",
    .graph = {.names = "nansum"},
    .expand = reduction([](const Val& x, Maybe<IntList> axis, bool keep) {
      return apply(op_sum, SumAttrs{axis, {}, keep}, {where(isnan(x), zeros_like(x), x)});
    }),
});

TW_OP(legacy_argmax) = position({
    .name = "legacy_argmax",
    .doc = "The position of the largest element, as a float.",
    .graph = {.names = "argmax"},
    .expand = expand_rule<ArgAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {as_floats(apply(op_argmax, a, {in[0]}), in[0])};
    }),
});
TW_OP(legacy_argmin) = position({
    .name = "legacy_argmin",
    .doc = "The position of the smallest element, as a float.",
    .graph = {.names = "argmin"},
    .expand = expand_rule<ArgAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {as_floats(apply(op_argmin, a, {in[0]}), in[0])};
    }),
});
TW_OP(argmax_channel) = whole({
    .name = "argmax_channel",
    .doc = "The position of the largest element along axis 1, as a float.",
    .graph = {.names = "argmax_channel"},
    .in = kData,
    .types = kReals,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      ArgAttrs a;
      a.axis = 1;
      return {as_floats(apply(op_argmax, a, {in[0]}), in[0])};
    },
    .no_grad = kNoGradOfIntegers,
    .samples = {{{.in = {{{3, 4}}}, .smooth = false}}},
});

struct ClipAttrs {
  double a_min = 0, a_max = 0;
};
inline constexpr Field kClipFields[] = {TW_ATTR(ClipAttrs, a_min, "Lower bound.", .required = true),
                                        TW_ATTR(ClipAttrs, a_max, "Upper bound.", .required = true)};
TW_OP(clip_between) = whole({
    .name = "clip_between",
    .doc = "The number between two given ones nearest to each element; in files it is MXNet's clip.",
    .names = {"npx.clip_between"},
    .graph = {.names = "clip _npi_clip"},
    .attrs = schema<ClipAttrs>(kClipFields),
    .in = kData,
    .types = kFloats,
    .expand = expand_rule<ClipAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {apply(op_clip, {in[0], Val(a.a_min), Val(a.a_max)})};
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "a_min=-0.55, a_max=0.65"}}},
});

// ---- products ----

struct TransposedAttrs {
  bool transpose_a = false, transpose_b = false;
};
inline constexpr Field kTransposedFields[] = {
    TW_ATTR(TransposedAttrs, transpose_a, "Turns the axes of lhs around first."),
    TW_ATTR(TransposedAttrs, transpose_b, "Turns the axes of rhs around first."),
};
static Val turned(const Val& x) { return apply(op_transpose, {x}); }
static int64_t product(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n = checked_mul(n, s);
  return n;
}

TW_OP(legacy_dot) = whole({
    .name = "legacy_dot",
    .doc = "The product over the last axis of lhs and the first of rhs.",
    .graph = {.names = "dot"},
    .attrs = schema<TransposedAttrs>(kTransposedFields),
    .in = {{{.name = "lhs"}, {.name = "rhs"}}},
    .types = kFloats,
    .expand = expand_rule<TransposedAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val x = a.transpose_a ? turned(in[0]) : in[0], y = a.transpose_b ? turned(in[1]) : in[1];
      TW_CHECK(x->rank() >= 1 && y->rank() >= 1 && x->dims[x->rank() - 1] == y->dims[0], value, "dot: shapes ",
               x->shape(), " and ", y->shape(),
               " do not fit: the last size of the first must be the first of the second");
      std::span<const int64_t> left = x->shape().first(static_cast<size_t>(x->rank() - 1)),
                               right = y->shape().subspan(1);
      int64_t k = y->dims[0];
      std::vector<int64_t> sizes(left.begin(), left.end());
      sizes.insert(sizes.end(), right.begin(), right.end());
      TW_CHECK(sizes.size() <= static_cast<size_t>(kMaxRank), value, "dot: the result has too many axes");
      int64_t rows = product(left), columns = product(right);
      Val z = matmul(reshape(x, Shape{rows, k}), reshape(y, Shape{k, columns}));
      return {reshape(z, Shape(std::span<const int64_t>(sizes)))};
    }),
    .samples = {{{.in = {{{3, 4}, {4, 5}}}},
                 {.in = {{{4, 3}, {5, 4}}}, .attrs = "transpose_a=True, transpose_b=True"},
                 {.in = {{{2, 3, 4}, {4, 2}}}}}},
});

struct Gemm2Attrs {
  bool transpose_a = false, transpose_b = false;
  double alpha = 1;
  int64_t axis = -2;
};
inline constexpr Field kGemm2Fields[] = {
    TW_ATTR(Gemm2Attrs, transpose_a, "Turns the matrices of A around first."),
    TW_ATTR(Gemm2Attrs, transpose_b, "Turns the matrices of B around first."),
    TW_ATTR(Gemm2Attrs, alpha, "Multiplies the result."),
    TW_ATTR(Gemm2Attrs, axis, "The rows of the matrices; only -2, that is the last but one, is supported."),
};
TW_OP(gemm2) = whole({
    .name = "gemm2",
    .doc = "alpha * A B over the last two axes.",
    .graph = {.names = "_linalg_gemm2 linalg_gemm2"},
    .attrs = schema<Gemm2Attrs>(kGemm2Fields),
    .in = {{{.name = "A"}, {.name = "B"}}},
    .types = kFloats,
    .expand = expand_rule<Gemm2Attrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(in[0]->rank() >= 2 && in[1]->rank() >= 2, value, "linalg_gemm2: A and B must be matrices; got shapes ",
               in[0]->shape(), " and ", in[1]->shape());
      TW_CHECK(a.axis == -2 || a.axis == in[0]->rank() - 2, value, "linalg_gemm2: axis must be -2; got ", a.axis);
      auto flipped = [](const Val& x) {
        IntList order;
        for (int i = 0; i < x->rank() - 2; ++i) order.push_back(i);
        order.push_back(x->rank() - 1);
        order.push_back(x->rank() - 2);
        return transpose(x, order);
      };
      Val y = matmul(a.transpose_a ? flipped(in[0]) : in[0], a.transpose_b ? flipped(in[1]) : in[1]);
      return {a.alpha == 1 ? y : y * a.alpha};
    }),
    .samples = {{{.in = {{{2, 3, 4}, {2, 5, 4}}}, .attrs = "transpose_b=True, alpha=0.5"}}},
});

// ---- padding and resizing ----

struct PadWidthAttrs {
  Choice mode;
  IntList pad_width;
  double constant_value = 0;
};
inline constexpr Field kPadWidthFields[] = {
    TW_ATTR(PadWidthAttrs, mode, "What stands around data.", .choices = "constant|edge|reflect", .required = true),
    TW_ATTR(PadWidthAttrs, pad_width, "Before and after each axis in turn.", .required = true),
    TW_ATTR(PadWidthAttrs, constant_value, "Of the mode constant."),
};
TW_OP(legacy_pad) = whole({
    .name = "legacy_pad",
    .doc = "data with something around it.",
    .graph = {.names = "Pad pad"},
    .attrs = schema<PadWidthAttrs>(kPadWidthFields),
    .in = kData,
    .types = kFloats,
    .expand = expand_rule<PadWidthAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(a.pad_width.size() == 2 * in[0]->rank(), value, "Pad: pad_width must hold two numbers for each axis of ",
               in[0]->shape(), "; got ", a.pad_width.span());
      PadAttrs p;
      for (int i = 0; i < in[0]->rank(); ++i) {
        p.before.push_back(a.pad_width[2 * i]);
        p.after.push_back(a.pad_width[2 * i + 1]);
      }
      p.mode = a.mode;  // the words stand in the same order there
      p.constant_values = Scalar(a.constant_value);
      return {apply(op_pad, p, {in[0]})};
    }),
    .samples = {{{.in = {{{2, 3, 4}}}, .attrs = "mode=constant, pad_width=(0, 0, 0, 0, 1, 2), constant_value=0.5"},
                 {.in = {{{2, 3, 4}}}, .attrs = "mode=reflect, pad_width=(0, 0, 1, 0, 1, 2)"}}},
});

struct UpSamplingAttrs {
  int64_t scale = 2, num_filter = 0, workspace = 512;
  Choice sample_type, multi_input_mode;
};
inline constexpr Field kUpSamplingFields[] = {
    TW_ATTR(UpSamplingAttrs, scale, "How many times as large.", .required = true),
    TW_ATTR(UpSamplingAttrs, num_filter, "Accepted for compatibility."),
    TW_ATTR(UpSamplingAttrs, sample_type, "How pixels are made.", .choices = "nearest", .required = true),
    TW_ATTR(UpSamplingAttrs, multi_input_mode, "What becomes of several arrays.", .choices = "concat|sum"),
    TW_ATTR(UpSamplingAttrs, workspace, "Accepted for compatibility."),
};

static Val enlarged(const Val& x, int64_t by) {
  int64_t n = x->dims[0], c = x->dims[1], h = x->dims[2], w = x->dims[3];
  ShapeAttrs to{IntList{n, c, h, by, w, by}};
  return reshape(apply(op_broadcast_to, to, {reshape(x, Shape{n, c, h, 1, w, 1})}),
                 Shape{n, c, checked_mul(h, by), checked_mul(w, by)});
}

TW_OP(up_sampling) = whole({
    .name = "up_sampling",
    .doc = "Pictures with every pixel repeated; several ones are brought to one size and joined or added.",
    .graph = {.names = "UpSampling"},
    .attrs = schema<UpSamplingAttrs>(kUpSamplingFields),
    .in = {{{.name = "data", .kind = SlotKind::variadic}}},
    .types = kFloats,
    .expand = expand_rule<UpSamplingAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(!in.empty() && a.scale >= 1, value, "UpSampling: an array and a scale of at least 1 are needed");
      std::vector<Val> parts;
      for (const Val& x : in) {
        TW_CHECK(x->rank() == 4 && x->dims[2] > 0 && x->dims[3] > 0, value,
                 "UpSampling: data must have shape (batch, channels, height, width); got ", x->shape());
        int64_t height = checked_mul(in[0]->dims[2], a.scale), by = height / x->dims[2];
        TW_CHECK(
            by >= 1 && by * x->dims[2] == height && checked_mul(by, x->dims[3]) == checked_mul(in[0]->dims[3], a.scale),
            value, "UpSampling: an array of shape ", x->shape(), " does not fit into ", height, " rows");
        parts.push_back(enlarged(x, by));
      }
      if (parts.size() == 1) return {parts[0]};
      if (a.multi_input_mode == 0) return {join(parts, 1)};
      Val total = parts[0];
      for (size_t k = 1; k < parts.size(); ++k) total = total + parts[k];
      return {total};
    }),
    .samples = {{{.in = {{{1, 2, 3, 2}}}, .attrs = "scale=2, sample_type=nearest"},
                 {.in = {{{1, 2, 4, 2}, {1, 3, 2, 1}}}, .attrs = "scale=1, sample_type=nearest"}}},
});

struct CropAttrs {
  IntList offset{0, 0}, h_w{0, 0};
  bool center_crop = false;
};
inline constexpr Field kCropFields[] = {
    TW_ATTR(CropAttrs, offset, "First row and column."),
    TW_ATTR(CropAttrs, h_w, "Height and width; (0, 0): those of the second array."),
    TW_ATTR(CropAttrs, center_crop, "Takes the middle."),
};
TW_OP(crop_picture) = whole({
    .name = "crop_picture",
    .doc = "A part of pictures, of a given size or that of a second array.",
    .graph = {.names = "Crop"},
    .attrs = schema<CropAttrs>(kCropFields),
    .in = {{{.name = "data", .kind = SlotKind::variadic}}},
    .types = kFloats,
    .expand = expand_rule<CropAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK((in.size() == 1 || in.size() == 2) && in[0]->rank() == 4 && (in.size() == 1 || in[1]->rank() == 4),
               value, "Crop: one or two arrays (batch, channels, height, width) are needed");
      TW_CHECK(a.offset.size() == 2 && a.h_w.size() == 2, value, "Crop: offset and h_w must hold two numbers");
      Val y = in[0];
      for (int i = 0; i < 2; ++i) {
        int64_t n = in[0]->dims[2 + i], size = in.size() == 2 ? in[1]->dims[2 + i] : a.h_w[i];
        TW_CHECK(size >= 0 && size <= n, value, "Crop: a size of ", size, " does not lie within ", n);
        int64_t begin = a.center_crop ? (n - size) / 2 : a.offset[i];
        TW_CHECK(begin >= 0 && begin <= n - size, value, "Crop: ", size, " from ", begin, " on does not lie within ",
                 n);
        y = part(y, 2 + i, begin, size);
      }
      return {y};
    }),
    .samples = {{{.in = {{{1, 2, 4, 5}, {1, 1, 2, 3}}}, .attrs = "offset=(1, 2)"},
                 {.in = {{{1, 2, 4, 5}}}, .attrs = "h_w=(2, 3), center_crop=True"}}},
});

}  // namespace twibil::ops
