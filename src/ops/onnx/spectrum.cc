// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms as products with matrices of sines: right for the short frames of speech and sound.
#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(take)

namespace {

struct DftAttrs {
  int64_t axis = 1, opset = 20;
  bool inverse = false, onesided = false;
};
struct StftAttrs {
  bool onesided = true;
};
constexpr int64_t kLongest = 1 << 14;  // of a transform: the matrix has the square of it

Val waves(int64_t length, int64_t rows, bool sine, double sign, DType t) {
  std::vector<double> w;
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t n = 0; n < length; ++n) {
      double angle = 2 * M_PI * static_cast<double>(k * n % length) / static_cast<double>(length);
      w.push_back(sine ? sign * std::sin(angle) : std::cos(angle));
    }
  return real_array(w, Shape{rows, length}, t);
}

/// (..., n) real and imaginary parts to (..., bins, 2).
Val transform(const Val& re, const Val& im, bool inverse, bool onesided, const char* who) {
  int64_t n = re->dims[re->rank() - 1], bins = onesided ? n / 2 + 1 : n;
  TW_CHECK(n > 0 && n <= kLongest, not_implemented, who, ": transforms of 1 to ", kLongest,
           " elements are supported; got ", n);
  DType t = re->dtype();
  Val c = transpose(waves(n, bins, false, 1, t), {1, 0}),
      s = transpose(waves(n, bins, true, inverse ? 1 : -1, t), {1, 0});
  Val a = matmul(re, c), b = matmul(re, s);
  if (im) a = a - matmul(im, s), b = b + matmul(im, c);
  if (inverse) a = a / Val(static_cast<double>(n)), b = b / Val(static_cast<double>(n));
  int last = a->rank();
  return join({expand_dims(a, last), expand_dims(b, last)}, last);
}

Val fitted_length(const Val& x, int axis, int64_t length) {
  std::vector<int64_t> before(static_cast<size_t>(x->rank())), after = before;
  after[static_cast<size_t>(axis)] = length - x->dims[axis];
  return pad_or_cut(x, before, after, "constant", Scalar(0));
}
IntList moved(int rank, int from, int to) {
  IntList order;
  std::vector<int> list;
  for (int i = 0; i < rank; ++i)
    if (i != from) list.push_back(i);
  list.insert(list.begin() + to, from);
  for (int i : list) order.push_back(i);
  return order;
}

}  // namespace

inline constexpr Field kOnnxDftFields[] = {
    TW_ATTR(DftAttrs, axis, "Axis of the signal, where it is not an input."),
    TW_ATTR(DftAttrs, inverse, "The inverse transform."),
    TW_ATTR(DftAttrs, onesided, "Only the frequencies that a real signal needs."),
    TW_ATTR(DftAttrs, opset, "Since 20 the axis is an input, by default the last of the signal.")};
inline constexpr Field kOnnxStftFields[] = {
    TW_ATTR(StftAttrs, onesided, "Only the frequencies that a real signal needs.")};

TW_OP(onnx_dft) = whole({
    .name = "onnx_dft",
    .doc = "The discrete Fourier transform along an axis; the last axis holds real and imaginary parts.",
    .onnx = {.names = "DFT:17", .attrs = "opset:@opset"},
    .attrs = schema<DftAttrs>(kOnnxDftFields),
    .in = {{{.name = "input"},
            {.name = "dft_length", .kind = SlotKind::optional, .value = true},
            {.name = "axis_of", .kind = SlotKind::optional, .value = true}}},
    .types = kFloats,
    .expand = expand_rule<DftAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "DFT";
      int rank = in[0]->rank();
      int64_t given = in[2] ? int_of(in[2], who) : a.opset >= 20 ? -2 : a.axis;
      int axis = normalize_axis(given, rank, who);
      TW_CHECK(rank >= 2 && axis < rank - 1 && in[0]->dims[rank - 1] >= 1 && in[0]->dims[rank - 1] <= 2, value, who,
               ": data of shape ", in[0]->shape(), " must have parts in the last axis, and axis ", given, " before it");
      Val x = in[1] ? fitted_length(in[0], axis, int_of(in[1], who)) : in[0];
      Val re = at_index(x, rank - 1, 0), im = x->dims[rank - 1] == 2 ? at_index(x, rank - 1, 1) : Val();
      IntList there = moved(rank - 1, axis, rank - 2);
      re = transpose(re, there);
      if (im) im = transpose(im, there);
      if (a.inverse && a.onesided) {
        // The other half of the spectrum mirrors this one.
        int64_t bins = re->dims[rank - 2], n = in[1] ? int_of(in[1], who) : 2 * (bins - 1);
        TW_CHECK(n / 2 + 1 == bins, value, who, ": ", bins, " frequencies do not make ", n, " elements");
        if (n - bins > 0) {
          re = join({re, backwards(part(re, rank - 2, 1, n - bins), rank - 2)}, rank - 2);
          if (im) im = join({im, -backwards(part(im, rank - 2, 1, n - bins), rank - 2)}, rank - 2);
        }
        Val y = part(transform(re, im, true, false, who), rank - 1, 0, 1);
        return {transpose(y, moved(rank, rank - 2, axis))};
      }
      return {transpose(transform(re, im, a.inverse, a.onesided, who), moved(rank, rank - 2, axis))};
    }),
    .unfolds = true,
});

TW_OP(onnx_stft) = whole({
    .name = "onnx_stft",
    .doc = "Fourier transforms of overlapping frames of a signal.",
    .onnx = {.names = "STFT:17"},
    .attrs = schema<StftAttrs>(kOnnxStftFields),
    .in = {{{.name = "signal"},
            {.name = "frame_step", .value = true},
            {.name = "window", .kind = SlotKind::optional},
            {.name = "frame_length", .kind = SlotKind::optional, .value = true}}},
    .types = kFloats,
    .expand = expand_rule<StftAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "STFT";
      Val x = in[0]->rank() == 2 ? expand_dims(in[0], 2) : in[0];
      TW_CHECK(x->rank() == 3 && x->dims[2] >= 1 && x->dims[2] <= 2, value, who,
               ": signal must have shape (batch, length, parts); got ", in[0]->shape());
      int64_t step = int_of(in[1], who), length = in[3] ? int_of(in[3], who) : in[2] ? in[2]->size() : 0;
      TW_CHECK(step > 0 && length > 0 && length <= x->dims[1], value, who, ": frames of ", length, " elements every ",
               step, " do not fit a signal of ", x->dims[1]);
      int64_t frames = (x->dims[1] - length) / step + 1;
      TW_CHECK(frames * length < (int64_t{1} << 31), value, who, ": too many frames");
      std::vector<int64_t> at;
      for (int64_t f = 0; f < frames; ++f)
        for (int64_t i = 0; i < length; ++i) at.push_back(f * step + i);
      Val y =
          With(op_take).set("axis", 1)({x, int_array(at, Shape{frames, length})});  // (batch, frames, length, parts)
      if (in[2]) y = y * reshape(in[2], Shape{length, 1});
      Val im = x->dims[2] == 2 ? at_index(y, 3, 1) : Val();
      return {transform(at_index(y, 3, 0), im, false, a.onesided, who)};
    }),
    .unfolds = true,
});

}  // namespace twibil::ops
