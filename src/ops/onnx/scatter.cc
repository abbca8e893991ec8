// SPDX-License-Identifier: Apache-2.0
#include "ops/onnx/scatter.h"

#include <algorithm>
#include <cstring>

#include "ops/strides.h"

namespace twibil::ops {

TW_DECLARE(take)

inline constexpr Field kOnnxScatterFields[] = {
    TW_ATTR(ScatterAttrs, reduction, "What happens to the element that is there.", .choices = "none|add|mul|max|min")};

namespace {

template <class T> T combined(int how, T old, T fresh) {
  using W = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
  auto a = static_cast<W>(old), b = static_cast<W>(fresh);
  if constexpr (std::is_same_v<T, bool>) {
    return how == kAdd || how == kMaximum ? a || b : a && b;
  } else {
    switch (how) {
      case kAdd: return static_cast<T>(static_cast<W>(a + b));
      case kMultiply: return static_cast<T>(static_cast<W>(a * b));
      case kMaximum: return static_cast<T>(std::max(a, b));
      default: return static_cast<T>(std::min(a, b));
    }
  }
}

/// One after the other: positions may repeat.
template <class T> void scatter(int how, const Buffer& positions, const T* fresh, T* y, int64_t n) {
  const auto* at = positions.as<int64_t>();
  for (int64_t i = 0; i < positions.size; ++i) {
    TW_CHECK(at[i] >= 0 && at[i] < n, index, "scatter: position ", at[i], " is out of range for ", n, " elements");
    y[at[i]] = how == kReplace ? fresh[i] : combined(how, y[at[i]], fresh[i]);
  }
}

}  // namespace

TW_OP(scatter_flat) = whole({
    .name = "scatter_flat",
    .doc = "data with `updates` at `positions`, all of one axis. Of equal positions the last one counts.",
    .attrs = schema<ScatterAttrs>(kOnnxScatterFields),
    .in = {{{.name = "data"}, {.name = "positions"}, {.name = "updates"}}},
    .infer = infer_rule<ScatterAttrs>([](auto&, SigsIn in, SigsOut out) {
      TW_CHECK(in[0].rank() == 1 && in[1].rank() == 1 && in[2].shape == in[1].shape, value,
               "scatter: data, positions and updates must have one axis, the last two one size; got ", in[0].shape,
               ", ", in[1].shape, " and ", in[2].shape);
      TW_CHECK(in[1].dtype == DType::int64, type, "scatter: positions must be int64; got ", in[1].dtype);
      TW_CHECK(in[2].dtype == in[0].dtype, type, "scatter: updates must have the dtype of data, ", in[0].dtype,
               "; got ", in[2].dtype);
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<ScatterAttrs>([](auto& a, Call& c) {
      const Buffer &x = c.in[0], &y = c.out[0];
      if (x.data != y.data && x.size) std::memcpy(y.data, x.data, static_cast<size_t>(x.size * size_of(x.dtype)));
      dispatch(y.dtype, [&]<class T>() { scatter<T>(a.reduction, c.in[1], c.in[2].as<T>(), y.as<T>(), y.size); });
    }),
    .needs = X1,
    .grad = grad_rule<ScatterAttrs>([](auto& a, const Grad& g) -> Vals {
      TW_CHECK(a.reduction == kReplace || a.reduction == kAdd, not_implemented,
               "scatter: there is a gradient for the reductions none and add only");
      Val dy = g.dy(), p = g.x(1), dx = dy;
      AxisAttrs axis{0};
      Val taken = [&] {
        const Field* f = find_field(op_take.attrs, "axis");
        std::vector<std::byte> attrs(op_take.attrs.size);
        std::memcpy(attrs.data(), op_take.attrs.defaults, attrs.size());
        attr_at<Maybe<int64_t>>(attrs.data(), *f) = axis.axis;
        return apply(op_take, static_cast<const void*>(attrs.data()), {dy, p});
      }();
      if (a.reduction == kReplace && g.wants(0)) dx = apply(op_scatter_flat, a, {dy, p, zeros_like(taken)});
      return {g.wants(0) ? dx : Val(), Val(), g.wants(2) ? taken : Val()};
    }),
    .samples = {{{.in = {{{5}, SampleInput({3}, Domain::index, 5), {3}}}, .attrs = "reduction=add"}}},
});

}  // namespace twibil::ops
