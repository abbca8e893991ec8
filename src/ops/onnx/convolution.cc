// SPDX-License-Identifier: Apache-2.0
// Convolutions with padding that may differ at both ends.
#include <algorithm>

#include "base/checked.h"
#include "ops/onnx/onnx.h"
#include "ops/onnx/quantize.h"

namespace twibil::ops {

TW_DECLARE(convolution)
TW_DECLARE(deconvolution)

namespace {

using ConvAttrs = WindowAttrs;

IntList picked(const std::vector<Window>& windows, int64_t Window::*field) {
  IntList list;
  for (const Window& w : windows) list.push_back(w.*field);
  return list;
}
std::vector<Window> windows_for(const ConvAttrs& a, const Val& x, const Val& w, const char* who) {
  TW_CHECK(x->rank() >= 3 && x->rank() <= 5 && w->rank() == x->rank(), value, who, ": data of shape ", x->shape(),
           " and weight of shape ", w->shape(), " must have 3 to 5 axes, equally many");
  for (int i = 0; i < a.kernel_shape.size(); ++i)
    TW_CHECK(i + 2 < w->rank() && a.kernel_shape[i] == w->dims[i + 2], value, who, ": kernel_shape ",
             a.kernel_shape.span(), " differs from weight of shape ", w->shape());
  return windows_of(a, w->shape().subspan(2), x, who);
}
With configured(const OpDef& op, const ConvAttrs& a, const std::vector<Window>& windows, const IntList& pad,
                bool no_bias) {
  With call(op);
  call.set("kernel", picked(windows, &Window::kernel)).set("stride", picked(windows, &Window::stride));
  call.set("dilate", picked(windows, &Window::dilation)).set("pad", pad).set("num_group", a.group);
  return call.set("no_bias", no_bias);
}

Val convolve(const ConvAttrs& a, const Val& data, const Val& weight, const Val& bias) {
  std::vector<Window> windows = windows_for(a, data, weight, "Conv");
  bool even = std::ranges::all_of(windows, [](const Window& w) { return w.before == w.after; });
  Val x = data;
  IntList pad = picked(windows, &Window::before);
  if (!even) {
    std::vector<int64_t> before{0, 0}, after{0, 0};
    for (const Window& w : windows) before.push_back(w.before), after.push_back(w.after);
    x = pad_or_cut(x, before, after, "constant", Scalar(0));
    pad = {};
  }
  return configured(op_convolution, a, windows, pad, !bias)({x, weight, bias});
}

/// A vector along one axis of what it is combined with.
Val by_channel(const Val& v, const Val& like, int axis) {
  Shape s;
  for (int i = 0; i < like->rank(); ++i) s.push_back(i == axis ? v->size() : 1);
  return reshape(v, s);
}

/// Padding of a transposed convolution cuts off the result; what output_padding adds at the end is zero.
Val transposed(const ConvAttrs& a, const Val& x, const Val& weight, const Val& bias) {
  ConvAttrs b = a;
  if (a.auto_pad != kNotSet) b.auto_pad = kNoPad;  // it means something else here
  std::vector<Window> windows = windows_for(b, x, weight, "ConvTranspose");
  int axes = x->rank() - 2;
  auto extra = [&](int i) -> int64_t { return a.output_padding.empty() ? 0 : a.output_padding[i]; };
  TW_CHECK(a.output_padding.empty() || a.output_padding.size() == axes, value, "ConvTranspose: output_padding needs ",
           axes, " numbers");
  TW_CHECK(a.output_shape.empty() || a.output_shape.size() == axes || a.output_shape.size() == axes + 2, value,
           "ConvTranspose: output_shape needs ", axes, " numbers");
  std::vector<int64_t> before{0, 0}, after{0, 0};
  bool plain = true;
  IntList adj;
  for (int i = 0; i < axes; ++i) {
    Window& w = windows[static_cast<size_t>(i)];
    int64_t full = checked_add(checked_mul(x->dims[i + 2] - 1, w.stride), w.covered()) + extra(i);
    bool same = a.auto_pad == kSameUpper || a.auto_pad == kSameLower;
    if (!a.output_shape.empty() || same) {
      int64_t size =
          a.output_shape.empty() ? x->dims[i + 2] * w.stride : a.output_shape[a.output_shape.size() - axes + i];
      int64_t total = full - size;  // a result that is larger still grows at its end
      w.before = total <= 0 ? 0 : a.auto_pad == kSameUpper ? total / 2 : total - total / 2;
      w.after = total - w.before;
    }
    before.push_back(-w.before);
    after.push_back(extra(i) - w.after);
    plain &= w.before == w.after && w.before >= 0 && extra(i) < w.stride && w.before < (int64_t{1} << 31);
    adj.push_back(extra(i));
  }
  if (plain)
    return configured(op_deconvolution, a, windows, picked(windows, &Window::before), !bias)
        .set("adj", adj)({x, weight, bias});
  Val y = configured(op_deconvolution, a, windows, {}, true)({x, weight, Val()});
  y = pad_or_cut(y, before, after, "constant", Scalar(0));
  return bias ? y + by_channel(bias, y, 1) : y;
}

}  // namespace

inline constexpr Field kOnnxConvFields[] = {
    TW_ATTR(ConvAttrs, kernel_shape, "Size of the window; empty: that of the weight."),
    TW_ATTR(ConvAttrs, strides, "Steps of the window; empty: 1."),
    TW_ATTR(ConvAttrs, dilations, "Distances of the window's elements; empty: 1."),
    TW_ATTR(ConvAttrs, pads, "Zeros before each axis, then those after; empty: 0."),
    TW_ATTR(ConvAttrs, auto_pad, "Padding by rule.", .choices = kAutoPads),
    TW_ATTR(ConvAttrs, group, "Number of groups of channels."),
};
inline constexpr Field kOnnxConvTransposeFields[] = {
    kOnnxConvFields[0],
    kOnnxConvFields[1],
    kOnnxConvFields[2],
    kOnnxConvFields[3],
    kOnnxConvFields[4],
    kOnnxConvFields[5],
    TW_ATTR(ConvAttrs, output_padding, "What is added to the result at its end."),
    TW_ATTR(ConvAttrs, output_shape, "Sizes of the result, from which the padding follows."),
};
inline constexpr std::array<Slot, 14> kOnnxConvInputs = {
    {{.name = "X"}, {.name = "W"}, {.name = "B", .kind = SlotKind::optional}}};

TW_OP(onnx_conv) = whole({
    .name = "onnx_conv",
    .doc = "A convolution in one to three dimensions.",
    .onnx = {.names = "Conv"},
    .attrs = schema<ConvAttrs>(kOnnxConvFields),
    .in = kOnnxConvInputs,
    .types = kFloats,
    .expand = expand_rule<ConvAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {convolve(a, in[0], in[1], in[2])};
    }),
    .samples = {{{.in = {{{2, 3, 5, 5}, {4, 3, 3, 3}, SampleInput({4})}}, .attrs = "pads=(1, 0, 2, 1)"},
                 {.in = {{{1, 2, 6, 5}, {2, 2, 3, 2}}}, .attrs = "auto_pad=SAME_UPPER, strides=(2, 2)"}}},
});

TW_OP(onnx_conv_transpose) = whole({
    .name = "onnx_conv_transpose",
    .doc = "The transpose of a convolution.",
    .onnx = {.names = "ConvTranspose"},
    .attrs = schema<ConvAttrs>(kOnnxConvTransposeFields),
    .in = kOnnxConvInputs,
    .types = kFloats,
    .expand = expand_rule<ConvAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {transposed(a, in[0], in[1], in[2])};
    }),
    .samples = {{{.in = {{{1, 3, 4, 4}, {3, 2, 3, 3}, SampleInput({2})}},
                  .attrs = "strides=(2, 2), pads=(1, 0, 0, 1)"}}},
});

TW_OP(onnx_conv_integer) = whole({
    .name = "onnx_conv_integer",
    .doc = "A convolution of 8-bit numbers, as int32.",
    .onnx = {.names = "ConvInteger:10"},
    .attrs = schema<ConvAttrs>(kOnnxConvFields),
    .in = {{{.name = "x"},
            {.name = "w"},
            {.name = "x_zero_point", .kind = SlotKind::optional},
            {.name = "w_zero_point", .kind = SlotKind::optional}}},
    .types = kInts,
    .expand = expand_rule<ConvAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val w = centred(in[1], in[3] && in[3]->size() > 1 ? by_channel(in[3], in[1], 0) : in[3]);
      return {cast(convolve(a, centred(in[0], in[2]), w, Val()), DType::int32)};
    }),
});

TW_OP(onnx_qlinear_conv) = whole({
    .name = "onnx_qlinear_conv",
    .doc = "A convolution of quantized data, quantized.",
    .onnx = {.names = "QLinearConv:10"},
    .attrs = schema<ConvAttrs>(kOnnxConvFields),
    .in = {{{.name = "x"},
            {.name = "x_scale"},
            {.name = "x_zero_point"},
            {.name = "w"},
            {.name = "w_scale"},
            {.name = "w_zero_point"},
            {.name = "y_scale"},
            {.name = "y_zero_point"},
            {.name = "B", .kind = SlotKind::optional}}},
    .types = kInts,
    .expand = expand_rule<ConvAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val w = centred(in[3], in[5]->size() > 1 ? by_channel(in[5], in[3], 0) : in[5]);
      Val y = convolve(a, centred(in[0], in[2]), w, in[8] ? cast(in[8], DType::float64) : Val());
      auto wide = [](const Val& v) { return reshape(cast(v, DType::float64), Shape()); };
      Val scale = in[4]->size() > 1 ? cast(by_channel(in[4], y, 1), DType::float64) : wide(in[4]);
      return {quantize(y * (scale * wide(in[1])), wide(in[6]), reshape(in[7], Shape()), in[7]->dtype())};
    }),
});

}  // namespace twibil::ops
