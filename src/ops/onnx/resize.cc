// SPDX-License-Identifier: Apache-2.0
// Resampling along axes, one after the other. Where each result comes from is computed in double, once.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(take)

namespace {

struct ResizeAttrs {
  Choice mode, coordinate_transformation_mode, nearest_mode, keep_aspect_ratio_policy;
  double cubic_coeff_a = -0.75, extrapolation_value = 0;
  bool exclude_outside = false, antialias = false;
  Maybe<IntList> axes;
};
enum Mode { kNearest, kLinear, kCubic };
enum Coordinates { kHalfPixel, kPytorch, kAlignCorners, kAsymmetric, kTfHalfPixel, kTfCrop, kHalfPixelSymmetric };
enum Nearest { kPreferFloor, kPreferCeil, kFloor, kCeil };
enum Policy { kStretch, kNotLarger, kNotSmaller };

/// What is done along one axis.
struct Along {
  int64_t in, out;
  double scale, roi_begin = 0, roi_end = 1;
};

double source_of(const ResizeAttrs& a, const Along& s, int64_t o) {
  auto x = static_cast<double>(o), in = static_cast<double>(s.in), out = static_cast<double>(s.out);
  switch (a.coordinate_transformation_mode) {
    case kPytorch: return s.out > 1 ? (x + 0.5) / s.scale - 0.5 : 0;
    case kAlignCorners: return s.scale * in > 1 && s.out > 1 ? x * (in - 1) / (s.scale * in - 1) : 0;
    case kAsymmetric: return x / s.scale;
    case kTfHalfPixel: return (x + 0.5) / s.scale;
    case kTfCrop:
      return s.out > 1 ? s.roi_begin * (in - 1) + x * (s.roi_end - s.roi_begin) * (in - 1) / (out - 1)
                       : 0.5 * (s.roi_begin + s.roi_end) * (in - 1);
    case kHalfPixelSymmetric: {  // the middle of the picture stays where the real size is a fraction
      double exact = s.scale * in, adjust = out / exact, centre = in / 2;
      return centre * (1 - adjust) + (x + 0.5) / s.scale - 0.5;
    }
    default: return (x + 0.5) / s.scale - 0.5;
  }
}

int64_t nearest_of(const ResizeAttrs& a, double x) {
  switch (a.nearest_mode) {
    case kPreferCeil: return static_cast<int64_t>(std::floor(x + 0.5));
    case kFloor: return static_cast<int64_t>(std::floor(x));
    case kCeil: return static_cast<int64_t>(std::ceil(x));
    default: return static_cast<int64_t>(std::ceil(x - 0.5));
  }
}

double weight_at(const ResizeAttrs& a, double distance) {
  double d = std::abs(distance), c = a.cubic_coeff_a;
  if (a.mode == kLinear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((c + 2) * d - (c + 3)) * d * d + 1;
  if (d < 2) return ((c * d - 5 * c) * d + 8 * c) * d - 4 * c;
  return 0;
}

/// Which elements a result is made of, and with which weights; `outside` marks results beyond the data.
struct Taps {
  std::vector<std::vector<int64_t>> index;  // by tap, then by result
  std::vector<std::vector<double>> weight;
  std::vector<bool> outside;
  bool any_outside = false;
};

Taps taps_of(const ResizeAttrs& a, const Along& s) {
  check_table(s.out, "Resize");
  Taps taps;
  double stretch = a.antialias && s.scale < 1 ? s.scale : 1;  // wider windows when the picture shrinks
  double reach = (a.mode == kLinear ? 1 : 2) / stretch;
  auto count = a.mode == kNearest ? size_t{1} : static_cast<size_t>(2 * std::ceil(reach));
  if (a.mode == kNearest || stretch == 1) count = a.mode == kNearest ? 1 : a.mode == kLinear ? 2 : 4;
  else count += 1;
  taps.index.resize(count);
  taps.weight.resize(count);
  for (int64_t o = 0; o < s.out; ++o) {
    double x = source_of(a, s, o);
    bool out = a.coordinate_transformation_mode == kTfCrop && (x < 0 || x > static_cast<double>(s.in - 1));
    taps.outside.push_back(out);
    taps.any_outside |= out;
    if (a.mode == kNearest) {
      taps.index[0].push_back(std::clamp<int64_t>(nearest_of(a, x), 0, s.in - 1));
      taps.weight[0].push_back(1);
      continue;
    }
    auto first = static_cast<int64_t>(std::floor(x)) - static_cast<int64_t>(count) / 2 + 1;
    if (stretch != 1) first = static_cast<int64_t>(std::floor(x - reach)) + 1;
    double total = 0;
    for (size_t k = 0; k < count; ++k) {
      int64_t i = first + static_cast<int64_t>(k);
      double w = weight_at(a, (x - static_cast<double>(i)) * stretch);
      if (a.exclude_outside && (i < 0 || i >= s.in)) w = 0;
      taps.index[k].push_back(std::clamp<int64_t>(i, 0, s.in - 1));
      taps.weight[k].push_back(w);
      total += w;
    }
    for (size_t k = 0; k < count && total != 0; ++k) taps.weight[k].back() /= total;
  }
  return taps;
}

Shape along_axis(int rank, int axis, int64_t n) {
  Shape s;
  for (int i = 0; i < rank; ++i) s.push_back(i == axis ? n : 1);
  return s;
}

Val resample(const ResizeAttrs& a, const Val& x, int axis, const Along& s) {
  Taps taps = taps_of(a, s);
  Val y;
  for (size_t k = 0; k < taps.index.size(); ++k) {
    if (std::ranges::all_of(taps.weight[k], [](double w) { return w == 0; })) continue;
    Val part = With(op_take).set("axis", axis)({x, int_array(taps.index[k])});
    if (a.mode != kNearest) part = part * real_array(taps.weight[k], along_axis(x->rank(), axis, s.out), x->dtype());
    y = y ? y + part : part;
  }
  if (!taps.any_outside) return y;
  std::vector<int64_t> out(taps.outside.begin(), taps.outside.end());
  Val where_outside = cast(int_array(out, along_axis(x->rank(), axis, s.out)), DType::bool_);
  return where(where_outside, number(a.extrapolation_value, x->dtype()), y);
}

Val resize(const ResizeAttrs& a, const Val& data, const Val& roi, const Val& scales, const Val& sizes,
           const char* who) {
  int rank = data->rank();
  std::vector<int64_t> axes;
  if (a.axes) axes.assign(a.axes.value.begin(), a.axes.value.end());
  else
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  axes_of(axes, rank, who);
  bool by_size = sizes && sizes->size() > 0;
  TW_CHECK(by_size || (scales && scales->size() > 0), value, who, ": scales or sizes are needed");
  std::vector<int64_t> wanted = by_size ? ints_of(sizes, who) : std::vector<int64_t>();
  std::vector<double> factors = by_size ? std::vector<double>() : reals_of(scales, who);
  std::vector<double> region;
  if (a.coordinate_transformation_mode == kTfCrop && roi) region = reals_of(roi, who);
  size_t n = axes.size();
  TW_CHECK((by_size ? wanted.size() : factors.size()) == n, value, who, ": ", n, " scales or sizes are needed; got ",
           by_size ? wanted.size() : factors.size());
  TW_CHECK(region.empty() || region.size() == 2 * n, value, who, ": roi must have ", 2 * n, " numbers; got ",
           region.size());
  if (by_size && a.keep_aspect_ratio_policy != kStretch) {
    double best = 0;
    for (size_t i = 0; i < n; ++i) {
      double f = static_cast<double>(wanted[i]) / static_cast<double>(data->dims[normalize_axis(axes[i], rank, who)]);
      best = i == 0 ? f : a.keep_aspect_ratio_policy == kNotLarger ? std::min(best, f) : std::max(best, f);
    }
    factors.assign(n, best);
    for (size_t i = 0; i < n; ++i)
      wanted[i] = std::llround(best * static_cast<double>(data->dims[normalize_axis(axes[i], rank, who)]));
  }
  bool integers = !is_floating(data->dtype());
  Val y = integers && a.mode != kNearest ? cast(data, DType::float32) : data;
  for (size_t i = 0; i < n; ++i) {
    int axis = normalize_axis(axes[i], rank, who);
    Along s{data->dims[axis], 0, 1};
    double exact = factors.empty() ? 0 : static_cast<double>(s.in) * factors[i];
    TW_CHECK(factors.empty() || (factors[i] > 0 && exact < 2147483648.0), value, who,
             ": scales must be positive and sizes below 2^31; got ", factors.empty() ? 0 : factors[i]);
    s.out = by_size ? wanted[i] : static_cast<int64_t>(std::floor(exact));
    TW_CHECK(s.out >= 0 && s.out < (int64_t{1} << 31) && (s.in > 0 || s.out == 0), value, who, ": axis ", axis, " of ",
             s.in, " elements cannot get ", s.out);
    s.scale =
        !factors.empty() ? factors[i] : static_cast<double>(s.out) / static_cast<double>(std::max<int64_t>(s.in, 1));
    bool whole = region.empty();
    if (!whole) s.roi_begin = region[i], s.roi_end = region[i + n], whole = s.roi_begin == 0 && s.roi_end == 1;
    if (s.out == s.in && whole && s.scale == 1) continue;
    y = resample(a, y, axis, s);
  }
  if (y->dtype() != data->dtype()) {
    y = cast(y, data->dtype());
  }
  return y;
}

}  // namespace

inline constexpr Field kOnnxResizeFields[] = {
    TW_ATTR(ResizeAttrs, mode, "How values between elements are found.", .choices = "nearest|linear|cubic"),
    TW_ATTR(ResizeAttrs, coordinate_transformation_mode, "Where results come from.",
            .choices = "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_nn|tf_crop_and_resize|"
                       "half_pixel_symmetric"),
    TW_ATTR(ResizeAttrs, nearest_mode, "How places are rounded.",
            .choices = "round_prefer_floor|round_prefer_ceil|floor|ceil"),
    TW_ATTR(ResizeAttrs, keep_aspect_ratio_policy, "How sizes are understood.",
            .choices = "stretch|not_larger|not_smaller"),
    TW_ATTR(ResizeAttrs, cubic_coeff_a, "The coefficient of the cubic kernel."),
    TW_ATTR(ResizeAttrs, extrapolation_value, "What stands beyond the data after a crop."),
    TW_ATTR(ResizeAttrs, exclude_outside, "Elements beyond the data weigh nothing."),
    TW_ATTR(ResizeAttrs, antialias, "Windows grow where the data shrink."),
    TW_ATTR(ResizeAttrs, axes, "Axes that scales and sizes speak of; None: all."),
};
inline constexpr Field kOnnxUpsampleFields[] = {kOnnxResizeFields[0]};

TW_OP(onnx_resize) = whole({
    .name = "onnx_resize",
    .doc = "Resamples data along axes to other sizes.",
    .onnx = {.names = "Resize:11"},
    .attrs = schema<ResizeAttrs>(kOnnxResizeFields),
    .in = {{{.name = "X"},
            {.name = "roi", .kind = SlotKind::optional, .value = true},
            {.name = "scales", .kind = SlotKind::optional, .value = true},
            {.name = "sizes", .kind = SlotKind::optional, .value = true}}},
    .types = kReals,
    .expand = expand_rule<ResizeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {resize(a, in[0], in[1], in[2], in[3], "Resize")};
    }),
    .unfolds = true,
});

TW_OP(onnx_upsample) = whole({
    .name = "onnx_upsample",
    .doc = "Resamples data along axes by factors, as older opsets say it.",
    .onnx = {.names = "Upsample:7-9 Resize:10-10"},
    .attrs = schema<ResizeAttrs>(kOnnxUpsampleFields),
    .in = {{{.name = "X"}, {.name = "scales", .value = true}}},
    .types = kReals,
    .expand = expand_rule<ResizeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      ResizeAttrs r = a;
      r.coordinate_transformation_mode = kAsymmetric;
      r.nearest_mode = kFloor;
      return {resize(r, in[0], Val(), in[1], Val(), "Upsample")};
    }),
    .unfolds = true,
});

}  // namespace twibil::ops
