// SPDX-License-Identifier: Apache-2.0
// Pooling with padding that may differ at both ends, dilated windows, and places of the largest elements.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/onnx/onnx.h"
#include "ops/onnx/scatter.h"

namespace twibil::ops {

TW_DECLARE(pooling)
TW_DECLARE(take)
TW_DECLARE(max)

namespace {

using PoolAttrs = WindowAttrs;
enum class Kind { max, average, lp };

int64_t output_size(const Window& w, int64_t in, bool ceil) {
  int64_t room = in + w.before + w.after - w.covered();
  TW_CHECK(room >= 0, value, "pooling: a window of ", w.covered(), " elements does not fit padded data of ",
           in + w.before + w.after);
  int64_t n = (ceil ? (room + w.stride - 1) / w.stride : room / w.stride) + 1;
  if (ceil && (n - 1) * w.stride >= in + w.before) --n;  // no window begins behind the data
  return n;
}

/// x cut and padded so that windows fit exactly.
Val framed(const Val& x, const std::vector<Window>& windows, const std::vector<int64_t>& sizes, const Scalar& fill) {
  std::vector<int64_t> before{0, 0}, after{0, 0};
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    before.push_back(w.before);
    after.push_back((sizes[i] - 1) * w.stride + w.covered() - w.before - x->dims[i + 2]);
  }
  return pad_or_cut(x, before, after, "constant", fill);
}

Scalar lowest(DType t) {
  if (is_floating(t)) return Scalar(-HUGE_VAL);
  return dispatch(t, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) return Scalar(static_cast<int64_t>(std::numeric_limits<T>::lowest()));
    else return Scalar(0);
  });
}

/// The elements at one place of all windows.
Val at_place(const Val& x, const std::vector<Window>& windows, const std::vector<int64_t>& sizes,
             const std::vector<int64_t>& place) {
  BasicIndexAttrs a = whole_of(x);
  for (size_t i = 0; i < windows.size(); ++i) {
    int axis = static_cast<int>(i) + 2;
    a.start[axis] = place[i] * windows[i].dilation;
    a.step[axis] = sizes[i] > 1 ? windows[i].stride : 1;
    a.size[axis] = sizes[i];
  }
  return apply(op_basic_index, a, {x});
}
/// Calls f with every place of a window.
template <class F> void each_place(const std::vector<Window>& windows, F f) {
  std::vector<int64_t> place(windows.size());
  for (;;) {
    f(place);
    size_t i = windows.size();
    while (i > 0 && ++place[i - 1] == windows[i - 1].kernel) place[--i] = 0;
    if (i == 0) return;
  }
}

/// What is done place by place makes a part of the graph for each, and tables of the results' size.
void check_places(const std::vector<Window>& windows, const std::vector<int64_t>& sizes, const char* who) {
  constexpr double kMostPlaces = 4096, kMostResults = 1 << 24;
  double places = 1, results = 1;
  for (size_t i = 0; i < windows.size(); ++i)
    places *= static_cast<double>(windows[i].kernel), results *= static_cast<double>(sizes[i]);
  TW_CHECK(places <= kMostPlaces && results <= kMostResults, value, who, ": windows of ", places, " elements and ",
           results, " results are too many for padding, dilation or places of this form");
}

/// Windows of all forms, place by place.
Val pool_by_places(Kind kind, const PoolAttrs& a, const Val& x, const std::vector<Window>& windows,
                   const std::vector<int64_t>& sizes) {
  DType t = x->dtype();
  Val framed_x = framed(x, windows, sizes, kind == Kind::max ? lowest(t) : Scalar(0)), total;
  each_place(windows, [&](const std::vector<int64_t>& place) {
    Val v = at_place(framed_x, windows, sizes, place);
    if (kind == Kind::lp) v = power(absolute(v), Val(static_cast<double>(a.p)));
    total = !total ? v : kind == Kind::max ? maximum(total, v) : total + v;
  });
  if (kind == Kind::max) return total;
  if (kind == Kind::lp) return power(total, Val(1 / static_cast<double>(a.p)));
  // Which places of a window count: those on the data, or also those on the padding that was asked for.
  std::vector<double> counts{1};
  Shape shape{1, 1};
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    std::vector<double> along, all;
    int64_t n = x->dims[i + 2], first = a.count_include_pad ? -w.before : 0,
            last = a.count_include_pad ? n + w.after : n;
    for (int64_t o = 0; o < sizes[i]; ++o) {
      double c = 0;
      for (int64_t k = 0; k < w.kernel; ++k) {
        int64_t at = o * w.stride - w.before + k * w.dilation;
        c += at >= first && at < last;
      }
      along.push_back(c);
    }
    for (double c : counts)
      for (double d : along) all.push_back(c * d);
    counts = all;
    shape.push_back(sizes[i]);
  }
  return total / real_array(counts, shape, t);
}

Val pool(Kind kind, const PoolAttrs& a, const Val& x, const char* who) {
  std::vector<Window> windows = windows_of(a, a.kernel_shape.span(), x, who);
  std::vector<int64_t> sizes;
  IntList kernel, stride, pad;
  bool exact = true, dilated = false, small_pad = true;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    int64_t n = x->dims[i + 2];
    sizes.push_back(output_size(w, n, a.ceil_mode && a.auto_pad == kNotSet));
    // The pooling operator pads both ends alike and rounds down; padding at the end that no window reaches is no
    // matter.
    int64_t reach = (sizes[i] - 1) * w.stride + w.covered();
    exact &= reach <= n + 2 * w.before && (n + 2 * w.before - w.covered()) / w.stride + 1 == sizes[i] &&
             (w.before == w.after || reach <= n + w.before || kind == Kind::max || !a.count_include_pad);
    dilated |= w.dilation > 1;
    small_pad &= w.before < w.kernel && w.after < w.kernel;
    kernel.push_back(w.kernel), stride.push_back(w.stride), pad.push_back(w.before);
  }
  bool usual = x->rank() >= 3 && x->rank() <= 5 && is_floating(x->dtype()) && !dilated;
  With call(op_pooling);
  call.set("kernel", kernel).set("stride", stride);
  call.set("pool_type", kind == Kind::max ? "max" : kind == Kind::average ? "avg" : "lp");
  call.set("count_include_pad", kind != Kind::average || a.count_include_pad);
  bool power_fits = kind != Kind::lp || (a.p >= 1 && a.p <= 3);
  if (kind == Kind::lp) call.set("p_value", a.p);
  Val v = kind == Kind::lp && a.p != 2 ? absolute(x) : x;
  if (usual && exact && small_pad && power_fits) return call.set("pad", pad)({v});
  if (usual && kind == Kind::max) return call({framed(v, windows, sizes, Scalar(-HUGE_VAL))});
  if (usual && power_fits && kind == Kind::lp) return call({framed(v, windows, sizes, Scalar(0))});
  check_places(windows, sizes, who);
  return pool_by_places(kind, a, x, windows, sizes);
}

/// Positions in the flattened data of the largest elements; the first of equal ones counts.
Val places_of_largest(const PoolAttrs& a, const Val& x, const Val& y) {
  std::vector<Window> windows = windows_of(a, a.kernel_shape.span(), x, "MaxPool");
  std::vector<int64_t> sizes(y->shape().begin() + 2, y->shape().end()), strides(windows.size());
  check_places(windows, sizes, "MaxPool");
  int64_t step = 1;
  for (size_t i = 0; i < windows.size(); ++i) {
    size_t k = a.storage_order ? i : windows.size() - 1 - i;
    strides[k] = step;
    step *= x->dims[k + 2];
  }
  Val frame = framed(x, windows, sizes, lowest(x->dtype())), best, at;
  auto position = [&](const std::vector<int64_t>& place) {
    Val p;
    for (size_t i = 0; i < windows.size(); ++i) {
      std::vector<int64_t> along;
      Shape s;
      for (int64_t o = 0; o < sizes[i]; ++o)
        along.push_back((o * windows[i].stride - windows[i].before + place[i] * windows[i].dilation) * strides[i]);
      for (size_t k = 0; k < windows.size() + 2; ++k) s.push_back(k == i + 2 ? sizes[i] : 1);
      Val v = int_array(along, s);
      p = p ? p + v : v;
    }
    return p;
  };
  each_place(windows, [&](const std::vector<int64_t>& place) {
    Val v = at_place(frame, windows, sizes, place), p = position(place);
    at = at ? where(greater(v, best), p, at) : p + cast(zeros_like(v), DType::int64);
    best = best ? maximum(best, v) : v;
  });
  check_table(x->dims[0] * x->dims[1], "MaxPool");
  std::vector<int64_t> base;
  for (int64_t i = 0; i < x->dims[0] * x->dims[1]; ++i) base.push_back(i * step);
  Shape s{x->dims[0], x->dims[1]};
  for (size_t i = 0; i < windows.size(); ++i) s.push_back(1);
  return at + int_array(base, s);
}

Vals global_pool(const Val& x, const char* type, int64_t p) {
  TW_CHECK(x->rank() >= 2, value, "global pooling: data must have shape (batch, channels, size...); got ", x->shape());
  if (x->rank() >= 3 && x->rank() <= 5 && p <= 3) {
    With call(op_pooling);
    call.set("global_pool", true).set("pool_type", type);
    if (p) call.set("p_value", p);
    return {call({p && p != 2 ? absolute(x) : x})};
  }
  IntList axes;
  for (int i = 2; i < x->rank(); ++i) axes.push_back(i);
  if (axes.empty()) return {x};
  if (p) {
    Val s = sum(power(absolute(x), Val(static_cast<double>(p))), Maybe<IntList>(axes), true);
    return {power(s, Val(1 / static_cast<double>(p)))};
  }
  if (type[0] == 'a') return {mean(x, Maybe<IntList>(axes), true)};
  return {apply(op_max, AxesAttrs{axes, true}, {x})};
}

}  // namespace

inline constexpr Field kOnnxMaxPoolFields[] = {
    TW_ATTR(PoolAttrs, kernel_shape, "Size of the window.", .required = true),
    TW_ATTR(PoolAttrs, strides, "Steps of the window; empty: 1."),
    TW_ATTR(PoolAttrs, dilations, "Distances of the window's elements; empty: 1."),
    TW_ATTR(PoolAttrs, pads, "Padding before each axis, then that after; empty: 0."),
    TW_ATTR(PoolAttrs, auto_pad, "Padding by rule.", .choices = kAutoPads),
    TW_ATTR(PoolAttrs, ceil_mode, "Sizes are rounded up."),
    TW_ATTR(PoolAttrs, storage_order, "Places count columns first."),
    TW_ATTR(PoolAttrs, outputs, "2: also the places of the largest elements."),
};
inline constexpr Field kOnnxAveragePoolFields[] = {
    kOnnxMaxPoolFields[0],
    kOnnxMaxPoolFields[1],
    kOnnxMaxPoolFields[2],
    kOnnxMaxPoolFields[3],
    kOnnxMaxPoolFields[4],
    kOnnxMaxPoolFields[5],
    TW_ATTR(PoolAttrs, count_include_pad, "Whether averages count the padding."),
};
inline constexpr Field kOnnxLpPoolFields[] = {
    kOnnxMaxPoolFields[0],
    kOnnxMaxPoolFields[1],
    kOnnxMaxPoolFields[2],
    kOnnxMaxPoolFields[3],
    kOnnxMaxPoolFields[4],
    kOnnxMaxPoolFields[5],
    TW_ATTR(PoolAttrs, p, "The power."),
};
inline constexpr Field kOnnxMaxUnpoolFields[] = {kOnnxMaxPoolFields[0], kOnnxMaxPoolFields[1], kOnnxMaxPoolFields[3]};
inline constexpr Field kOnnxPowerFields[] = {TW_ATTR(PoolAttrs, p, "The power.")};
inline constexpr std::array<Slot, 14> kOnnxPooled = {{{.name = "X"}}};

TW_OP(onnx_max_pool) = whole({
    .name = "onnx_max_pool",
    .doc = "The largest elements of windows.",
    .onnx = {.names = "MaxPool", .attrs = "outputs:@outputs"},
    .attrs = schema<PoolAttrs>(kOnnxMaxPoolFields),
    .in = kOnnxPooled,
    .count = count_rule<PoolAttrs>([](auto& a) { return a.outputs == 2 ? 2 : 1; }),
    .types = kReals,
    .expand = expand_rule<PoolAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val y = pool(Kind::max, a, in[0], "MaxPool");
      if (a.outputs != 2) return {y};
      return {y, places_of_largest(a, in[0], y)};
    }),
    .samples = {{{.in = {{{2, 3, 5, 5}}}, .attrs = "kernel_shape=(3, 3), strides=(2, 2), pads=(0, 1, 1, 1)"}}},
});

TW_OP(onnx_average_pool) = whole({
    .name = "onnx_average_pool",
    .doc = "The means of windows.",
    .onnx = {.names = "AveragePool"},
    .attrs = schema<PoolAttrs>(kOnnxAveragePoolFields),
    .in = kOnnxPooled,
    .types = kFloats,
    .expand = expand_rule<PoolAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {pool(Kind::average, a, in[0], "AveragePool")};
    }),
    .samples = {{{.in = {{{2, 3, 5, 5}}}, .attrs = "kernel_shape=(3, 3), strides=(2, 2), pads=(0, 1, 1, 1)"}}},
});

TW_OP(onnx_lp_pool) = whole({
    .name = "onnx_lp_pool",
    .doc = "The p-norms of windows.",
    .onnx = {.names = "LpPool"},
    .attrs = schema<PoolAttrs>(kOnnxLpPoolFields),
    .in = kOnnxPooled,
    .types = kFloats,
    .expand = expand_rule<PoolAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {pool(Kind::lp, a, in[0], "LpPool")};
    }),
    .samples = {{{.in = {{{{1, 2, 5, 5}, Domain::positive}}}, .attrs = "kernel_shape=(2, 2)"}}},
});

TW_OP(onnx_global_average_pool) = whole({
    .name = "onnx_global_average_pool",
    .doc = "The mean of each channel.",
    .onnx = {.names = "GlobalAveragePool"},
    .in = kOnnxPooled,
    .types = kFloats,
    .expand = [](const void*, std::span<const Val> in) { return global_pool(in[0], "avg", 0); },
    .samples = {{{.in = {{{2, 3, 4, 5}}}}}},
});

TW_OP(onnx_global_max_pool) = whole({
    .name = "onnx_global_max_pool",
    .doc = "The largest element of each channel.",
    .onnx = {.names = "GlobalMaxPool"},
    .in = kOnnxPooled,
    .types = kFloats,
    .expand = [](const void*, std::span<const Val> in) { return global_pool(in[0], "max", 0); },
    .samples = {{{.in = {{{2, 3, 4, 5}}}}}},
});

TW_OP(onnx_global_lp_pool) = whole({
    .name = "onnx_global_lp_pool",
    .doc = "The p-norm of each channel.",
    .onnx = {.names = "GlobalLpPool"},
    .attrs = schema<PoolAttrs>(kOnnxPowerFields),
    .in = kOnnxPooled,
    .types = kFloats,
    .expand = expand_rule<PoolAttrs>([](auto& a, std::span<const Val> in) { return global_pool(in[0], "lp", a.p); }),
    .samples = {{{.in = {{{{2, 3, 4}, Domain::positive}}}}}},
});

TW_OP(onnx_max_unpool) = whole({
    .name = "onnx_max_unpool",
    .doc = "Puts elements back where a pooling took them from, with zeros elsewhere.",
    .onnx = {.names = "MaxUnpool:9"},
    .attrs = schema<PoolAttrs>(kOnnxMaxUnpoolFields),
    .in = {{{.name = "X"}, {.name = "I"}, {.name = "output_shape", .kind = SlotKind::optional, .value = true}}},
    .types = kReals,
    .expand = expand_rule<PoolAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const Val& x = in[0];
      std::vector<Window> windows = windows_of(a, a.kernel_shape.span(), x, "MaxUnpool");
      Shape pooled{x->dims[0], x->dims[1]}, wanted = pooled;
      for (size_t i = 0; i < windows.size(); ++i) {
        const Window& w = windows[i];
        pooled.push_back((x->dims[i + 2] - 1) * w.stride + w.kernel - w.before - w.after);
      }
      if (in[2]) wanted = Shape{std::span<const int64_t>(ints_of(in[2], "MaxUnpool"))};
      else wanted = pooled;
      TW_CHECK(wanted.rank() == x->rank() && wanted.size() >= 0 && wanted.size() < (int64_t{1} << 31), value,
               "MaxUnpool: output_shape ", wanted, " does not fit data of shape ", x->shape());
      // Positions count in the shape that the pooling had; a larger result only has more room around.
      Val y = full(Shape{pooled.size()}, Scalar(0), x->dtype());
      Val at = reshape(cast(in[1], DType::int64), Shape{x->size()});
      y = reshape(apply(op_scatter_flat, ScatterAttrs{}, {y, at, reshape(x, Shape{x->size()})}), pooled);
      std::vector<int64_t> before(static_cast<size_t>(x->rank())), after;
      for (int i = 0; i < x->rank(); ++i) after.push_back(wanted[i] - pooled[i]);
      return {pad_or_cut(y, before, after, "constant", Scalar(0))};
    }),
    .unfolds = true,
});

}  // namespace twibil::ops
