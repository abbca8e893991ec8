// SPDX-License-Identifier: Apache-2.0
// Sampling pictures at places that are computed, and choosing boxes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/math/elementwise.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(take)
TW_DECLARE(rint)
TW_DECLARE(matmul)

namespace {

struct GridAttrs {
  Choice mode, padding_mode;
  bool align_corners = false;
};
enum GridMode { kBilinear, kNearestGrid, kBicubic, kLinearGrid, kCubicGrid };
enum Padding { kZeros, kBorder, kReflection };
struct CornersAttrs {
  bool align_corners = false;
};
struct NmsAttrs {
  bool center_point_box = false;
};

Val real(double v) { return Val(v); }

/// Places folded back into the data, as light at mirrors.
Val reflected(const Val& x, double low, double high) {
  double span = high - low;
  if (span <= 0) return zeros_like(x);
  Val d = absolute(x - real(low)), turns = floor(d / real(span)), rest = d - turns * real(span);
  Val odd = turns - floor(turns / real(2.0)) * real(2.0);
  return where(greater(odd, real(0.5)), real(high) - rest, rest + real(low));
}

/// The elements at whole places, one array for each spatial axis; (n, c, d...) and (n, 1, p) to (n, c, p).
Val picked(const GridAttrs& a, const Val& x, const std::vector<Val>& place) {
  Val position, inside;
  int axes = x->rank() - 2;
  int64_t step = 1;
  for (int i = axes - 1; i >= 0; --i) {
    int64_t n = x->dims[i + 2];
    auto last = static_cast<double>(n - 1);
    Val p = place[static_cast<size_t>(i)];
    if (a.padding_mode == kReflection) {
      double low = a.align_corners ? 0 : -0.5, high = a.align_corners ? last : last + 0.5;
      p = reflected(p, low, high);
    }
    if (a.padding_mode == kZeros) {
      Val in = logical_and(greater_equal(p, real(0.0)), less_equal(p, real(last)));
      inside = inside ? logical_and(inside, in) : in;
    }
    p = cast(minimum(maximum(p, real(0.0)), real(last)), DType::int64) * Val(step);
    position = position ? position + p : p;
    step *= n;
  }
  int64_t n = x->dims[0], c = x->dims[1];
  check_table(n * c, "GridSample");
  std::vector<int64_t> base;
  for (int64_t i = 0; i < n * c; ++i) base.push_back(i * step);
  Val flat = With(op_take).set("axis", 0)({reshape(x, Shape{x->size()}), position + int_array(base, Shape{n, c, 1})});
  return inside ? where(inside, flat, zeros_like(flat)) : flat;
}

Val cubic(const Val& d, bool near) {  // the kernel with -3/4 at distances up to 1, and from 1 to 2
  constexpr double kA = -0.75;
  if (near) return ((real(kA + 2) * d - real(kA + 3)) * d) * d + real(1.0);
  return ((real(kA) * d - real(5 * kA)) * d + real(8 * kA)) * d - real(4 * kA);
}

Val grid_sample(const GridAttrs& a, const Val& x, const Val& grid) {
  int axes = x->rank() - 2;
  TW_CHECK(
      axes >= 1 && grid->rank() == x->rank() && grid->dims[grid->rank() - 1] == axes && grid->dims[0] == x->dims[0],
      value, "GridSample: grid of shape ", grid->shape(), " does not fit data of shape ", x->shape());
  TW_CHECK(x->size() > 0, value, "GridSample: the data must not be empty");
  int64_t n = x->dims[0], points = grid->size() / std::max<int64_t>(1, n * axes);
  std::vector<Val> place;
  for (int i = 0; i < axes; ++i) {  // the last axis of the data stands first in the grid
    Val g = reshape(at_index(grid, grid->rank() - 1, axes - 1 - i), Shape{n, 1, points});
    auto size = static_cast<double>(x->dims[i + 2]);
    Val p = a.align_corners ? (g + real(1.0)) * real((size - 1) / 2)
                            : ((g + real(1.0)) * real(size) - real(1.0)) * real(0.5);
    if (a.padding_mode == kBorder) p = minimum(maximum(p, real(0.0)), real(size - 1));
    if (a.padding_mode == kReflection && a.mode != kBicubic && a.mode != kCubicGrid)
      p = reflected(p, a.align_corners ? 0 : -0.5, a.align_corners ? size - 1 : size - 0.5);
    place.push_back(p);
  }
  Val y;
  if (a.mode == kNearestGrid) {
    for (Val& p : place) p = apply(op_rint, {p});
    y = picked(a, x, place);
  } else {
    bool wide = a.mode == kBicubic || a.mode == kCubicGrid;
    int taps = wide ? 4 : 2, total = 1;
    std::vector<Val> first, part;
    for (const Val& p : place) {
      Val f = floor(p);
      first.push_back(wide ? f - real(1.0) : f);
      part.push_back(p - f);
      total *= taps;
    }
    for (int t = 0; t < total; ++t) {
      Val weight;
      std::vector<Val> at;
      for (int i = 0, rest = t; i < axes; ++i, rest /= taps) {
        int k = rest % taps;
        const Val& r = part[static_cast<size_t>(i)];
        Val w;
        if (!wide) w = k ? r : real(1.0) - r;
        else if (k == 0) w = cubic(r + real(1.0), false);
        else if (k == 1) w = cubic(r, true);
        else if (k == 2) w = cubic(real(1.0) - r, true);
        else w = cubic(real(2.0) - r, false);
        weight = weight ? weight * w : w;
        at.push_back(first[static_cast<size_t>(i)] + real(k));
      }
      Val v = picked(a, x, at) * weight;
      y = y ? y + v : v;
    }
  }
  Shape s{n, x->dims[1]};
  for (int i = 1; i + 1 < grid->rank(); ++i) s.push_back(grid->dims[i]);
  return reshape(y, s);
}

struct Box {
  float x1, y1, x2, y2;
  float area() const { return (x2 - x1) * (y2 - y1); }
};
Box box_at(const float* b, bool centre) {
  if (centre) return {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
  return {std::min(b[1], b[3]), std::min(b[0], b[2]), std::max(b[1], b[3]), std::max(b[0], b[2])};
}
float overlap(const Box& a, const Box& b) {
  float w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1), h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (w <= 0 || h <= 0) return 0;
  float both = a.area() + b.area() - w * h;
  return both > 0 ? w * h / both : 0;
}

void suppress(const NmsAttrs& a, Call& c) {
  const Buffer &boxes = c.in[0], &scores = c.in[1];
  int64_t batch = scores.dim(0), classes = scores.dim(1), n = scores.dim(2);
  auto number = [&]<class T>(size_t i, T otherwise) {
    const Buffer& b = c.in[i];
    return b.present() && b.size > 0 ? *b.as<T>() : otherwise;
  };
  int64_t most = number(2, int64_t{0});  // often the largest number that there is
  float limit = number(3, 0.0F), least = number(4, -INFINITY);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t k = 0; k < classes; ++k) {
      const float* s = scores.as<float>() + (i * classes + k) * n;
      std::vector<int64_t> order;
      for (int64_t j = 0; j < n; ++j)
        if (s[j] > least) order.push_back(j);
      std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return s[p] > s[q]; });
      std::vector<Box> kept;
      for (int64_t j : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        Box b = box_at(boxes.as<float>() + (i * n + j) * 4, a.center_point_box);
        if (std::ranges::any_of(kept, [&](const Box& o) { return overlap(b, o) > limit; })) continue;
        kept.push_back(b);
        chosen.insert(chosen.end(), {i, k, j});
      }
    }
  std::byte* to = c.allocate(0, Shape{static_cast<int64_t>(chosen.size()) / 3, 3});
  std::copy(chosen.begin(), chosen.end(), reinterpret_cast<int64_t*>(to));
}

}  // namespace

inline constexpr Field kOnnxGridFields[] = {
    TW_ATTR(GridAttrs, mode, "How values between elements are found.",
            .choices = "bilinear|nearest|bicubic|linear|cubic"),
    TW_ATTR(GridAttrs, padding_mode, "What lies beyond the data.", .choices = "zeros|border|reflection"),
    TW_ATTR(GridAttrs, align_corners, "-1 and 1 are the centres of the outermost elements; else their outer edges."),
};
inline constexpr Field kOnnxCornersFields[] = {TW_ATTR(
    CornersAttrs, align_corners, "-1 and 1 are the centres of the outermost elements; else their outer edges.")};
inline constexpr Field kOnnxNmsFields[] = {
    TW_ATTR(NmsAttrs, center_point_box, "Boxes are centre and size; else two corners.")};

TW_OP(onnx_grid_sample) = whole({
    .name = "onnx_grid_sample",
    .doc = "Samples data at the places of a grid, which counts from -1 to 1.",
    .onnx = {.names = "GridSample:16"},
    .attrs = schema<GridAttrs>(kOnnxGridFields),
    .in = {{{.name = "X"}, {.name = "grid"}}},
    .types = kFloats,
    .expand = expand_rule<GridAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {grid_sample(a, in[0], in[1])};
    }),
});

TW_OP(onnx_affine_grid) = whole({
    .name = "onnx_affine_grid",
    .doc = "The places of a picture's elements under an affine map.",
    .onnx = {.names = "AffineGrid:20"},
    .attrs = schema<CornersAttrs>(kOnnxCornersFields),
    .in = {{{.name = "theta"}, {.name = "size", .value = true}}},
    .types = kFloats,
    .expand = expand_rule<CornersAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      std::vector<int64_t> size = ints_of(in[1], "AffineGrid");
      TW_CHECK((size.size() == 4 || size.size() == 5) && in[0]->rank() == 3, value,
               "AffineGrid: size must be (n, c, h, w) or (n, c, d, h, w); got ", std::span<const int64_t>(size));
      int axes = static_cast<int>(size.size()) - 2;
      int64_t points = 1;
      for (int i = 0; i < axes; ++i) {
        TW_CHECK(size[static_cast<size_t>(i) + 2] > 0 && size[static_cast<size_t>(i) + 2] < (1 << 20), value,
                 "AffineGrid: sizes must be positive; got ", std::span<const int64_t>(size));
        points *= size[static_cast<size_t>(i) + 2];
      }
      TW_CHECK(points < (int64_t{1} << 28), value, "AffineGrid: too many points");
      std::vector<double> base;
      for (int64_t p = 0; p < points; ++p) {
        std::vector<double> at(static_cast<size_t>(axes));
        int64_t rest = p;
        for (int i = axes - 1; i >= 0; --i) {
          auto n = size[static_cast<size_t>(i) + 2];
          auto k = static_cast<double>(rest % n), m = static_cast<double>(n);
          rest /= n;
          at[static_cast<size_t>(axes - 1 - i)] =
              a.align_corners ? (n > 1 ? 2 * k / (m - 1) - 1 : 0) : (2 * k + 1) / m - 1;
        }
        base.insert(base.end(), at.begin(), at.end());
        base.push_back(1);
      }
      Val points_of = real_array(base, Shape{points, axes + 1}, in[0]->dtype());
      Val y = matmul(points_of, transpose(in[0], {0, 2, 1}));
      Shape s{size[0]};
      for (int i = 0; i < axes; ++i) s.push_back(size[static_cast<size_t>(i) + 2]);
      s.push_back(axes);
      return {reshape(y, s)};
    }),
    .unfolds = true,
});

TW_OP(onnx_non_max_suppression) = whole({
    .name = "onnx_non_max_suppression",
    .doc = "Boxes of each class that overlap no better one too much, as rows (batch, class, box).",
    .onnx = {.names = "NonMaxSuppression:10"},
    .attrs = schema<NmsAttrs>(kOnnxNmsFields),
    .in = {{{.name = "boxes"},
            {.name = "scores"},
            {.name = "max_output_boxes_per_class", .kind = SlotKind::optional},
            {.name = "iou_threshold", .kind = SlotKind::optional},
            {.name = "score_threshold", .kind = SlotKind::optional}}},
    .infer = infer_rule<NmsAttrs>([](auto&, SigsIn in, SigsOut out) {
      const Shape &b = in[0].shape, &s = in[1].shape;
      TW_CHECK(b.rank() == 3 && s.rank() == 3 && b[0] == s[0] && b[1] == s[2] && b[2] == 4, value,
               "NonMaxSuppression: boxes (n, boxes, 4) and scores (n, classes, boxes) are needed; got ", b, " and ", s);
      TW_CHECK(in[0].dtype == DType::float32 && in[1].dtype == DType::float32, type,
               "NonMaxSuppression: boxes and scores must be float32; got ", in[0].dtype, " and ", in[1].dtype);
      for (size_t i = 2; i < 5; ++i)
        TW_CHECK(
            !in[i].present() || (in[i].shape.size() <= 1 && in[i].dtype == (i == 2 ? DType::int64 : DType::float32)),
            value, "NonMaxSuppression: limits must be single numbers, int64 and float32; got ", in[i]);
      out[0] = {Shape{kUnknownDim, 3}, DType::int64};
    }),
    .types = kAll,
    .kernel = cpu_rule<NmsAttrs>([](auto& a, Call& c) { suppress(a, c); }),
    .no_grad = "positions are whole numbers",
    .data_dependent = true,
});

}  // namespace twibil::ops
