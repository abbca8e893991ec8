// SPDX-License-Identifier: Apache-2.0
// Sorting, the largest elements, and distinct elements.
#include "kernels/sort.h"

#include <vector>

#include "base/recycled.h"
#include "kernels/copy.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

struct SortAttrs {
  int64_t axis = -1;
  bool is_ascend = true;
  Maybe<DType> dtype;
};
struct TopkAttrs {
  Maybe<int64_t> axis = -1;
  int64_t k = 1;
  Choice ret_typ{1};
  bool is_ascend = false;
  DType dtype = DType::float32;
};
enum TopkResult { kValue, kIndices, kMask, kBoth };

struct Along {
  int axis;
  int64_t outer = 1, n, inner = 1;
  Along(const Buffer& x, int64_t a, const char* who) : axis(normalize_axis(a, x.rank, who)), n(x.dims[axis]) {
    for (int i = 0; i < axis; ++i) outer *= x.dims[i];
    for (int i = axis + 1; i < x.rank; ++i) inner *= x.dims[i];
  }
};

struct AlongAxisAttrs {  // of gather_along_axis
  int64_t axis = -1;
};

}  // namespace

extern const OpDef op_argsort, op_take_along_axis, op_take_along_axis_grad, op_topk_indices;

inline constexpr Field kSortFields[] = {TW_ATTR(SortAttrs, axis, "Axis to sort along."),
                                        TW_ATTR(SortAttrs, is_ascend, "From small to large.", .keyword_only = true),
                                        TW_ATTR(SortAttrs, dtype, "Accepted for compatibility.", .keyword_only = true)};
TW_OP(argsort) = whole({
    .name = "argsort",
    .doc = "The order that sorts x along an axis, int64; equal elements keep their order, NaN comes last.",
    .names = {"npx.argsort_axis"},
    .attrs = schema<SortAttrs>(kSortFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<SortAttrs>([](auto& a, SigsIn in, SigsOut out) {
      normalize_axis(a.axis, in[0].rank(), "argsort");
      out[0] = {in[0].shape, DType::int64};
    }),
    .types = kAll,
    .kernel = cpu_rule<SortAttrs>([](auto& a, Call& c) {
      Along x(c.in[0], a.axis, "argsort");
      kernels::sort(c.in[0].dtype, x.outer, x.n, x.inner, !a.is_ascend, c.in[0].data, nullptr,
                    c.out[0].template as<int64_t>());
    }),
    .no_grad = "positions are whole numbers",
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1"}}},
});
TW_OP(sort) = whole({
    .name = "sort",
    .doc = "The elements of x in order along an axis; NaN comes last.",
    .names = {"npx.sort_axis", "nd.sort"},
    .attrs = schema<SortAttrs>(kSortFields),
    .in = {{{.name = "a"}}},
    .infer = infer_rule<SortAttrs>([](auto& a, SigsIn in, SigsOut out) {
      normalize_axis(a.axis, in[0].rank(), "sort");
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<SortAttrs>([](auto& a, Call& c) {
      Along x(c.in[0], a.axis, "sort");
      kernels::sort(c.in[0].dtype, x.outer, x.n, x.inner, !a.is_ascend, c.in[0].data, c.out[0].data, nullptr);
    }),
    .needs = X0,
    .grad = grad_rule<SortAttrs>([](auto& a, const Grad& g) -> Vals {
      Val x = g.x(0);
      return {apply(op_take_along_axis_grad, AlongAxisAttrs{a.axis}, {g.dy(), x, apply(op_argsort, a, {x})})};
    }),
    .samples = {{{.in = {{{3, 4}}}, .smooth = false}, {.in = {{{2, 3, 4}}}, .attrs = "axis=1", .smooth = false}}},
});

inline constexpr Field kAlongFields[] = {TW_ATTR(AlongAxisAttrs, axis, "Axis that the indices walk.")};
static void move_along(const AlongAxisAttrs& a, const Buffer& x, const Buffer& index, const Buffer& y, bool back) {
  if (index.size == 0) return;
  Along from(x, a.axis, "take_along_axis"), to(index, a.axis, "take_along_axis");
  Recycled<int64_t> places(static_cast<size_t>(index.size));
  kernels::convert_row(index.dtype, DType::int64, index.data, places.data(), index.size);
  dispatch(x.dtype, [&]<class T>() {
    for (int64_t o = 0; o < to.outer; ++o)
      for (int64_t i = 0; i < to.n; ++i)
        for (int64_t k = 0; k < to.inner; ++k) {
          int64_t at = (o * to.n + i) * to.inner + k, which = places[static_cast<size_t>(at)];
          TW_CHECK(which >= -from.n && which < from.n, index, "take_along_axis: index ", which,
                   " is out of range for axis ", from.axis, " with size ", from.n);
          int64_t place = (o * from.n + (which < 0 ? which + from.n : which)) * from.inner + k;
          if (!back) y.as<T>()[at] = x.as<T>()[place];
          else if constexpr (std::is_arithmetic_v<T>)
            x.as<T>()[place] = static_cast<T>(x.as<T>()[place] + y.as<T>()[at]);
          else x.as<T>()[place] = T(static_cast<float>(x.as<T>()[place]) + static_cast<float>(y.as<T>()[at]));
        }
  });
}
static void check_along(const AlongAxisAttrs& a, const Sig& x, const Sig& index) {
  TW_CHECK(is_integer(index.dtype), type, "take_along_axis: indices must be integers; got ", index.dtype);
  int axis = normalize_axis(a.axis, x.rank(), "take_along_axis");
  bool fits = x.rank() == index.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || x.shape[i] == index.shape[i];
  TW_CHECK(fits, value, "take_along_axis: indices of shape ", index.shape, " must agree with x of shape ", x.shape,
           " on all axes but ", axis);
}
TW_OP(take_along_axis) = whole({
    .name = "take_along_axis",
    .doc = "x[..., indices, ...] along one axis, row by row.",
    .names = {"np.take_along_axis"},
    .attrs = schema<AlongAxisAttrs>(kAlongFields),
    .in = {{{.name = "arr"}, {.name = "indices"}}},
    .infer = infer_rule<AlongAxisAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_along(a, in[0], in[1]);
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<AlongAxisAttrs>([](auto& a, Call& c) { move_along(a, c.in[0], c.in[1], c.out[0], false); }),
    .needs = X1,
    .grad = grad_rule<AlongAxisAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_take_along_axis_grad, a, {g.dy(), g.x(0), g.x(1)}), Val()};
    }),
    .samples = {{{.in = {{{3, 4}, {{3, 2}, Domain::index, 4}}}}}},
});
TW_OP(take_along_axis_grad) = whole({
    .name = "take_along_axis_grad",
    .doc = "dy added where the indices point along one axis, in the shape of `like`.",
    .attrs = schema<AlongAxisAttrs>(kAlongFields),
    .in = {{{.name = "dy"}, {.name = "like", .shape_only = true}, {.name = "indices"}}},
    .infer = infer_rule<AlongAxisAttrs>([](auto& a, SigsIn in, SigsOut out) {
      check_along(a, in[1], in[2]);
      TW_CHECK(in[0].shape == in[2].shape, value, "take_along_axis_grad: dy and indices must have one shape; got ",
               in[0].shape, " and ", in[2].shape);
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<AlongAxisAttrs>([](auto& a, Call& c) {
      kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, Strides(c.out[0]), Scalar(0));
      move_along(a, c.out[0], c.in[2], c.in[0], true);
    }),
    .needs = X2,
    .grad = grad_rule<AlongAxisAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_take_along_axis, a, {g.dy(), g.x(2)}), Val(), Val()};
    }),
    .samples = {{{.in = {{{3, 2}, {3, 4}, {{3, 2}, Domain::index, 4}}}}}},
});

inline constexpr Field kTopkFields[] = {
    TW_ATTR(TopkAttrs, axis, "Axis to search; None: the flattened array."),
    TW_ATTR(TopkAttrs, k, "How many; less than 1: all."),
    TW_ATTR(TopkAttrs, ret_typ, "What comes back.", .choices = "value|indices|mask|both"),
    TW_ATTR(TopkAttrs, is_ascend, "The smallest instead of the largest."),
    TW_ATTR(TopkAttrs, dtype, "dtype of indices."),
};
TW_OP(topk_indices) = whole({
    .name = "topk_indices",
    .doc = "Values, positions (int64) and mask of the k largest or smallest elements along an axis.",
    .attrs = schema<TopkAttrs>(kTopkFields),
    .in = {{{.name = "data"}}},
    .out = {{"values", "indices", "mask"}},
    .infer = infer_rule<TopkAttrs>([](auto& a, SigsIn in, SigsOut out) {
      int axis = normalize_axis(*a.axis, in[0].rank(), "topk");
      int64_t n = in[0].shape[axis], k = a.k < 1 ? n : a.k;
      TW_CHECK(k <= n, value, "topk: k is ", k, " but axis ", axis, " has only ", n, " elements");
      Shape y = in[0].shape;
      y[axis] = k;
      out[0] = {y, in[0].dtype};
      out[1] = {y, DType::int64};
      out[2] = {in[0].shape, DType::bool_};
    }),
    .types = kAll,
    .kernel = cpu_rule<TopkAttrs>([](auto& a, Call& c) {
      Along x(c.in[0], *a.axis, "topk");
      kernels::topk(c.in[0].dtype, x.outer, x.n, x.inner, c.out[0].dims[x.axis], !a.is_ascend, c.in[0].data,
                    c.out[0].data, c.out[1].template as<int64_t>(), c.out[2].template as<uint8_t>());
    }),
    .needs = Y1,
    .grad = grad_rule<TopkAttrs>([](auto& a, const Grad& g) -> Vals {
      return {apply(op_take_along_axis_grad, AlongAxisAttrs{*a.axis}, {g.dy(0), g.x(0), g.y(1)})};
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "k=2", .smooth = false}}},
});
TW_OP(topk) = whole({
    .name = "topk",
    .doc = "The k largest (or smallest) elements along an axis, in order: their values, positions or a mask of them.",
    .names = {"npx.topk_one", "nd.topk"},
    .attrs = schema<TopkAttrs>(kTopkFields),
    .in = {{{.name = "data"}}},
    .count = count_rule<TopkAttrs>([](auto& a) { return a.ret_typ == kBoth ? 2 : 1; }),
    .types = kAll,
    .expand = expand_rule<TopkAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TopkAttrs whole = a;
      if (!a.axis) whole.axis = 0;
      Val x = a.axis ? in[0] : reshape(in[0], Shape{in[0]->size()});
      Vals all = apply_all(op_topk_indices, &whole, {&x, 1});
      if (a.ret_typ == kBoth) return {all[0], cast(all[1], a.dtype)};
      return {a.ret_typ == kValue     ? all[0]
              : a.ret_typ == kIndices ? cast(all[1], a.dtype)
                                      : cast(all[2], in[0]->dtype())};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{3, 4}}}, .attrs = "k=2"},
                 {.in = {{{3, 4}}}, .attrs = "k=2, ret_typ=value, axis=0", .smooth = false},
                 {.in = {{{3, 4}}}, .attrs = "k=2, ret_typ=both", .smooth = false}}},
});

TW_OP(unique) = whole({
    .name = "unique",
    .doc = "The distinct elements of x in order, where each comes first, which of them each element of x is, and how "
           "often each occurs.",
    .names = {"npx.unique_all"},
    .in = {{{.name = "ar"}}},
    .out = {{"values", "index", "inverse", "counts"}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      out[0] = {Shape{kUnknownDim}, in[0].dtype};
      out[1] = out[3] = {Shape{kUnknownDim}, DType::int64};
      out[2] = {in[0].shape, DType::int64};
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) {
      const Buffer& x = c.in[0];
      size_t n = static_cast<size_t>(x.size);
      Recycled<std::byte> values(n * static_cast<size_t>(size_of(x.dtype)));
      Recycled<int64_t> first(n), counts(n);
      std::byte* inverse = c.allocate(2, Shape(x.shape()));
      int64_t distinct = kernels::unique(x.dtype, x.size, x.data, values.data(), first.data(),
                                         reinterpret_cast<int64_t*>(inverse), counts.data());
      std::copy_n(values.data(), distinct * size_of(x.dtype), c.allocate(0, Shape{distinct}));
      std::copy_n(first.data(), distinct, reinterpret_cast<int64_t*>(c.allocate(1, Shape{distinct})));
      std::copy_n(counts.data(), distinct, reinterpret_cast<int64_t*>(c.allocate(3, Shape{distinct})));
    }),
    .no_grad = "which elements are distinct changes in jumps",
    .data_dependent = true,
    .samples = {{{.in = {{{{3, 4}, Domain::integer}}}}}},
});

}  // namespace twibil::ops
