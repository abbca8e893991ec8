// SPDX-License-Identifier: Apache-2.0
// Whole numbers with a scale in place of floats, and products of such.
#include "ops/onnx/quantize.h"

#include <algorithm>

#include "ops/math/elementwise.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(rint)
TW_DECLARE(convolution)
TW_DECLARE(max)
TW_DECLARE(min)

namespace {

struct QuantizeAttrs {
  int64_t axis = 1, block_size = 0;
  Maybe<DType> output_dtype;
};

std::pair<double, double> limits_of(DType t) {
  return t == DType::int8 ? std::pair(-128.0, 127.0) : std::pair(0.0, 255.0);
}

/// Scale or zero point of one number, of one for each element of an axis, or of one for each block along it.
Val fitted(const Val& v, const Val& x, const QuantizeAttrs& a, const char* who) {
  if (v->size() == 1 && v->rank() <= 1) return reshape(v, Shape());
  int axis = normalize_axis(a.axis, x->rank(), who);
  if (v->rank() == 1) {
    Shape s;
    for (int i = 0; i < x->rank(); ++i) s.push_back(i == axis ? v->dims[0] : 1);
    return reshape(v, s);
  }
  TW_CHECK(a.block_size > 0 && v->rank() == x->rank(), value, who, ": scale of shape ", v->shape(),
           " does not fit data of shape ", x->shape());
  Val wide = expand_dims(v, axis + 1);  // each number once for every element of its block
  Shape s(wide->shape());
  s[axis + 1] = a.block_size;
  wide = apply(op_broadcast_to, ShapeAttrs{IntList(s.span())}, {wide});
  Shape flat(v->shape());
  flat[axis] = v->dims[axis] * a.block_size;
  wide = reshape(wide, flat);
  return flat[axis] == x->dims[axis] ? wide : part(wide, axis, 0, x->dims[axis]);
}

Val saturated(const Val& x, DType t) {
  auto [low, high] = limits_of(t);
  return cast(minimum(maximum(x, Val(low)), Val(high)), t);
}
/// The zero points of rows stand in a vector.
Val by_row(const Val& zero) { return zero && zero->rank() == 1 && zero->size() > 1 ? expand_dims(zero, 1) : zero; }

}  // namespace

Val quantize(const Val& x, const Val& scale, const Val& zero, DType t) {
  Val y = apply(op_rint, {x / scale});
  return saturated(zero ? y + cast(zero, y->dtype()) : y, t);
}

Val centred(const Val& x, const Val& zero) {
  Val wide = cast(x, DType::float64);
  if (!zero) return wide;
  Val z = cast(zero, DType::float64);
  return wide - (z->size() == 1 ? reshape(z, Shape()) : z);
}

inline constexpr Field kOnnxQuantizeFields[] = {
    TW_ATTR(QuantizeAttrs, axis, "Axis of the scales, where there are several."),
    TW_ATTR(QuantizeAttrs, block_size, "How many neighbours along the axis share a scale; 0: none."),
    TW_ATTR(QuantizeAttrs, output_dtype, "dtype of the result; None: that of the zero point, or of the scale."),
};

TW_OP(onnx_quantize_linear) = whole({
    .name = "onnx_quantize_linear",
    .doc = "Whole numbers of 8 bits: x / scale, rounded, plus the zero point.",
    .onnx = {.names = "QuantizeLinear:10", .unused = "saturate precision=0"},
    .attrs = schema<QuantizeAttrs>(kOnnxQuantizeFields),
    .in = {{{.name = "x"}, {.name = "y_scale"}, {.name = "y_zero_point", .kind = SlotKind::optional}}},
    .types = kFloats,
    .expand = expand_rule<QuantizeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "QuantizeLinear";
      DType t = in[2] ? in[2]->dtype() : a.output_dtype.value_or(DType::uint8);
      TW_CHECK(t == DType::int8 || t == DType::uint8, not_implemented, who, ": dtype ", t, " is not supported");
      Val x = is_floating(in[0]->dtype()) ? in[0] : cast(in[0], in[1]->dtype());
      return {quantize(x, fitted(in[1], x, a, who), in[2] ? fitted(in[2], x, a, who) : Val(), t)};
    }),
});

TW_OP(onnx_dequantize_linear) = whole({
    .name = "onnx_dequantize_linear",
    .doc = "(x - zero point) * scale.",
    .onnx = {.names = "DequantizeLinear:10"},
    .attrs = schema<QuantizeAttrs>(kOnnxQuantizeFields),
    .in = {{{.name = "x"}, {.name = "x_scale"}, {.name = "x_zero_point", .kind = SlotKind::optional}}},
    .types = kReals,
    .expand = expand_rule<QuantizeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "DequantizeLinear";
      Val scale = fitted(in[1], in[0], a, who), x = cast(in[0], DType::float32);
      if (in[2]) x = x - cast(fitted(in[2], in[0], a, who), DType::float32);
      return {cast(x * cast(scale, DType::float32), a.output_dtype.value_or(in[1]->dtype()))};
    }),
});

TW_OP(onnx_dynamic_quantize_linear) = whole({
    .name = "onnx_dynamic_quantize_linear",
    .doc = "Whole numbers of 8 bits, with a scale and zero point that fit the data.",
    .onnx = {.names = "DynamicQuantizeLinear:11"},
    .in = {{{.name = "x"}}},
    .out = {"y", "y_scale", "y_zero_point"},
    .types = kFloats,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      Val zero(0.0), high = maximum(apply(op_max, {in[0]}), zero), low = minimum(apply(op_min, {in[0]}), zero);
      Val scale = (high - low) / Val(255.0);
      scale = where(equal(scale, zero), ones_like(scale), scale);
      Val point = saturated(apply(op_rint, {-low / scale}), DType::uint8);
      return {quantize(in[0], scale, point, DType::uint8), scale, point};
    },
});

TW_OP(onnx_matmul_integer) = whole({
    .name = "onnx_matmul_integer",
    .doc = "The product of matrices of 8-bit numbers, as int32.",
    .onnx = {.names = "MatMulInteger:10"},
    .in = {{{.name = "A"},
            {.name = "B"},
            {.name = "a_zero_point", .kind = SlotKind::optional},
            {.name = "b_zero_point", .kind = SlotKind::optional}}},
    .types = kInts,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      return {cast(matmul(centred(in[0], by_row(in[2])), centred(in[1], in[3])), DType::int32)};
    },
});

TW_OP(onnx_qlinear_matmul) = whole({
    .name = "onnx_qlinear_matmul",
    .doc = "The product of quantized matrices, quantized.",
    .onnx = {.names = "QLinearMatMul:10"},
    .in = {{{.name = "a"},
            {.name = "a_scale"},
            {.name = "a_zero_point"},
            {.name = "b"},
            {.name = "b_scale"},
            {.name = "b_zero_point"},
            {.name = "y_scale"},
            {.name = "y_zero_point"}}},
    .types = kInts,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      auto wide = [](const Val& v) {
        return v->size() == 1 ? reshape(cast(v, DType::float64), Shape()) : cast(v, DType::float64);
      };
      Val y = matmul(centred(in[0], by_row(in[2])), centred(in[3], in[5]));
      Val rows = in[1]->rank() == 1 && in[1]->size() > 1 ? expand_dims(wide(in[1]), 1) : wide(in[1]);
      return {quantize(y * (rows * wide(in[4])), wide(in[6]), in[7]->size() == 1 ? reshape(in[7], Shape()) : in[7],
                       in[7]->dtype())};
    },
});

}  // namespace twibil::ops
