// SPDX-License-Identifier: Apache-2.0
// Arrays that are known as soon as shapes are: what models compute sizes from.
#include <cmath>

#include "base/checked.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;  // of an array that a few bytes of a model ask for

Shape checked_shape(const std::vector<int64_t>& sizes, const char* who) {
  for (int64_t d : sizes)
    TW_CHECK(d >= 0, value, who, ": sizes must not be negative; got ", std::span<const int64_t>(sizes));
  Shape s{std::span<const int64_t>(sizes)};
  TW_CHECK(s.size() <= kMostElements, value, who, ": shape ", s, " has more than ", kMostElements, " elements");
  return s;
}

Scalar scalar_in(const Val& v, const char* who) {
  if (is_floating(v->dtype())) return Scalar(real_of(v, who));
  int64_t n = int_of(v, who);
  return v->dtype() == DType::bool_ ? Scalar(n != 0) : Scalar(n);
}

struct ShapePartAttrs {
  int64_t start = 0;
  Maybe<int64_t> end;
};
struct EyeLikeAttrs {
  Maybe<DType> dtype;
  int64_t k = 0;
};
struct CastAttrs {
  DType to = DType::float32;
};
struct WindowFunctionAttrs {
  DType output_datatype = DType::float32;
  bool periodic = true;
};

/// Windows of signal processing: cosine sums.
Vals cosine_window(const WindowFunctionAttrs& a, const Val& size, std::initializer_list<double> terms,
                   const char* who) {
  int64_t n = int_of(size, who);
  TW_CHECK(n >= 0 && n <= kMostElements, value, who, ": the size must be between 0 and ", kMostElements, "; got ", n);
  std::vector<double> w;
  double period = static_cast<double>(a.periodic ? n : n - 1);
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0, k = 0;
    for (double t : terms) sum += t * std::cos(2 * M_PI * k++ * static_cast<double>(i) / (period > 0 ? period : 1));
    w.push_back(sum);
  }
  return {real_array(w, Shape{n}, a.output_datatype)};
}

}  // namespace

inline constexpr Field kOnnxShapePartFields[] = {TW_ATTR(ShapePartAttrs, start, "First axis."),
                                                 TW_ATTR(ShapePartAttrs, end, "Axis after the last; None: all.")};
inline constexpr Field kOnnxEyeLikeFields[] = {
    TW_ATTR(EyeLikeAttrs, dtype, "dtype of the result; None: that of the input."),
    TW_ATTR(EyeLikeAttrs, k, "Which diagonal.")};
inline constexpr Field kOnnxCastFields[] = {TW_ATTR(CastAttrs, to, "dtype of the result.", .required = true)};
inline constexpr Field kOnnxWindowFunctionFields[] = {
    TW_ATTR(WindowFunctionAttrs, output_datatype, "dtype of the result."),
    TW_ATTR(WindowFunctionAttrs, periodic, "For spectra: the window is one period; else it is symmetric.")};

TW_OP(onnx_identity) = whole({
    .name = "onnx_identity",
    .doc = "The input itself.",
    .onnx = {.names = "Identity"},
    .in = {{{.name = "input"}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals { return {in[0]}; },
    .unfolds = true,
});

TW_OP(onnx_constant) = whole({
    .name = "onnx_constant",
    .doc = "An array that stands in the model.",
    .onnx = {.names = "Constant"},
    .in = {{{.name = "value", .renames = "value_float value_floats value_int value_ints"}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals { return {in[0]}; },
    .unfolds = true,
});

TW_OP(onnx_constant_of_shape) = whole({
    .name = "onnx_constant_of_shape",
    .doc = "An array of a shape that is full of one number, float32 0 if none is given.",
    .onnx = {.names = "ConstantOfShape:9"},
    .in = {{{.name = "input", .value = true}, {.name = "value", .kind = SlotKind::optional, .value = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      const char* who = "ConstantOfShape";
      Shape s = checked_shape(ints_of(in[0], who), who);
      return {in[1] ? full(s, scalar_in(in[1], who), in[1]->dtype()) : full(s, Scalar(0.0), DType::float32)};
    },
    .unfolds = true,
});

TW_OP(onnx_shape) = whole({
    .name = "onnx_shape",
    .doc = "The sizes of an array, as int64.",
    .onnx = {.names = "Shape"},
    .attrs = schema<ShapePartAttrs>(kOnnxShapePartFields),
    .in = {{{.name = "data", .shape_only = true}}},
    .types = kAll,
    .expand = expand_rule<ShapePartAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int64_t rank = in[0]->rank();
      auto clamp = [&](int64_t i) { return std::min(std::max<int64_t>(i < 0 ? i + rank : i, 0), rank); };
      int64_t begin = clamp(a.start), end = clamp(a.end.value_or(rank));
      std::vector<int64_t> sizes;
      for (int64_t i = begin; i < end; ++i) sizes.push_back(in[0]->dims[i]);
      return {int_array(sizes)};
    }),
    .unfolds = true,
});

TW_OP(onnx_size) = whole({
    .name = "onnx_size",
    .doc = "The number of elements of an array, as int64.",
    .onnx = {.names = "Size"},
    .in = {{{.name = "data", .shape_only = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals { return {int_array({in[0]->size()}, Shape())}; },
    .unfolds = true,
});

TW_OP(onnx_range) = whole({
    .name = "onnx_range",
    .doc = "Numbers from start on, delta apart, up to limit without it.",
    .onnx = {.names = "Range:11", .unused = "stash_type"},
    .in = {{{.name = "start", .value = true}, {.name = "limit", .value = true}, {.name = "delta", .value = true}}},
    .types = kReals,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      const char* who = "Range";
      auto check = [&](bool few) { TW_CHECK(few, value, "Range: more than ", kMostElements, " numbers"); };
      if (!is_floating(in[0]->dtype())) {
        int64_t first = int_of(in[0], who), step = int_of(in[2], who);
        __int128 way = static_cast<__int128>(int_of(in[1], who)) - first;
        TW_CHECK(step != 0, value, "Range: delta must not be 0");
        __int128 n = (way > 0) == (step > 0) && way != 0 ? (way + (step > 0 ? step - 1 : step + 1)) / step : 0;
        check(n <= kMostElements);
        std::vector<int64_t> v;
        for (int64_t i = 0; i < n; ++i) v.push_back(first + i * step);
        return {cast(int_array(v), in[0]->dtype())};
      }
      double start = real_of(in[0], who), limit = real_of(in[1], who), delta = real_of(in[2], who);
      TW_CHECK(delta != 0, value, "Range: delta must not be 0");
      double count = std::max(0.0, std::ceil((limit - start) / delta));
      check(count <= static_cast<double>(kMostElements));
      auto n = static_cast<int64_t>(count);
      std::vector<double> v;
      for (int64_t i = 0; i < n; ++i) v.push_back(start + static_cast<double>(i) * delta);
      return {real_array(v, Shape{n}, in[0]->dtype())};
    },
    .unfolds = true,
});

TW_OP(onnx_eye_like) = whole({
    .name = "onnx_eye_like",
    .doc = "Ones on a diagonal and zeros elsewhere, in the shape of a matrix.",
    .onnx = {.names = "EyeLike:9"},
    .attrs = schema<EyeLikeAttrs>(kOnnxEyeLikeFields),
    .in = {{{.name = "input", .shape_only = true}}},
    .types = kAll,
    .expand = expand_rule<EyeLikeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(in[0]->rank() == 2, value, "EyeLike: the input must be a matrix; got shape ", in[0]->shape());
      return {With(op_eye)
                  .set("N", in[0]->dims[0])
                  .set("M", in[0]->dims[1])
                  .set("k", a.k)
                  .set("dtype", a.dtype.value_or(in[0]->dtype()))({})};
    }),
    .unfolds = true,
});

TW_OP(onnx_cast) = whole({
    .name = "onnx_cast",
    .doc = "The elements in another dtype.",
    .onnx = {.names = "Cast", .unused = "saturate round_mode"},
    .attrs = schema<CastAttrs>(kOnnxCastFields),
    .in = {{{.name = "input"}}},
    .types = kAll,
    .expand = expand_rule<CastAttrs>([](auto& a, std::span<const Val> in) -> Vals { return {cast(in[0], a.to)}; }),
});

TW_OP(onnx_cast_like) = whole({
    .name = "onnx_cast_like",
    .doc = "The elements in the dtype of another array.",
    .onnx = {.names = "CastLike:15", .unused = "saturate round_mode"},
    .in = {{{.name = "input"}, {.name = "target_type", .shape_only = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals { return {cast(in[0], in[1]->dtype())}; },
});

TW_OP(onnx_hann_window) = whole({
    .name = "onnx_hann_window",
    .doc = "A raised cosine.",
    .onnx = {.names = "HannWindow:17"},
    .attrs = schema<WindowFunctionAttrs>(kOnnxWindowFunctionFields),
    .in = {{{.name = "size", .value = true}}},
    .types = kFloats,
    .expand = expand_rule<WindowFunctionAttrs>([](auto& a, std::span<const Val> in) {
      return cosine_window(a, in[0], {0.5, -0.5}, "HannWindow");
    }),
    .unfolds = true,
});

TW_OP(onnx_hamming_window) = whole({
    .name = "onnx_hamming_window",
    .doc = "A raised cosine that does not reach 0.",
    .onnx = {.names = "HammingWindow:17"},
    .attrs = schema<WindowFunctionAttrs>(kOnnxWindowFunctionFields),
    .in = {{{.name = "size", .value = true}}},
    .types = kFloats,
    .expand = expand_rule<WindowFunctionAttrs>([](auto& a, std::span<const Val> in) {
      return cosine_window(a, in[0], {25.0 / 46, -21.0 / 46}, "HammingWindow");
    }),
    .unfolds = true,
});

TW_OP(onnx_blackman_window) = whole({
    .name = "onnx_blackman_window",
    .doc = "A sum of two cosines.",
    .onnx = {.names = "BlackmanWindow:17"},
    .attrs = schema<WindowFunctionAttrs>(kOnnxWindowFunctionFields),
    .in = {{{.name = "size", .value = true}}},
    .types = kFloats,
    .expand = expand_rule<WindowFunctionAttrs>([](auto& a, std::span<const Val> in) {
      return cosine_window(a, in[0], {0.42, -0.5, 0.08}, "BlackmanWindow");
    }),
    .unfolds = true,
});

struct ItemAttrs {
  int64_t axis = 0, index = 0;
};
inline constexpr Field kOnnxItemFields[] = {TW_ATTR(ItemAttrs, axis, "Axis that goes away."),
                                            TW_ATTR(ItemAttrs, index, "Which of its elements.")};

TW_OP(item_along) = whole({
    .name = "item_along",
    .doc = "One element of an axis, without the axis.",
    .attrs = schema<ItemAttrs>(kOnnxItemFields),
    .in = {{{.name = "x"}}},
    .types = kAll,
    .expand = expand_rule<ItemAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {at_index(in[0], normalize_axis(a.axis, in[0]->rank(), "item_along"), a.index)};
    }),
    .role = Role::item,
    .samples = {{{.in = {{{2, 3, 4}}}, .attrs = "axis=1, index=2"}}},
});

}  // namespace twibil::ops
