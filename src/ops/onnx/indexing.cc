// SPDX-License-Identifier: Apache-2.0
// Picking and placing elements by index arrays. They all come down to positions in the flattened array.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ops/onnx/onnx.h"
#include "ops/onnx/scatter.h"

namespace twibil::ops {

TW_DECLARE(take)
TW_DECLARE(take_along_axis)
TW_DECLARE(topk)
TW_DECLARE(argmax)
TW_DECLARE(argmin)
TW_DECLARE(nonzero)

namespace {

using Ints = std::vector<int64_t>;

struct GatherAttrs {
  int64_t axis = 0;
};
struct BatchAttrs {
  int64_t batch_dims = 0;
};
struct ScatterElementsAttrs {
  int64_t axis = 0;
  Choice reduction;
};
struct ReductionAttrs {
  Choice reduction;
};
struct ArgExtremeAttrs {
  int64_t axis = 0;
  bool keepdims = true, select_last_index = false;
};
struct TopAttrs {
  int64_t axis = -1;
  bool largest = true, sorted = true;
};
struct OptionalAxisAttrs {
  Maybe<int64_t> axis;
};
struct ReverseAttrs {
  int64_t batch_axis = 1, time_axis = 0;
};
struct OneHotAxisAttrs {
  int64_t axis = -1;
};

/// Indices that may count from the end, in [0, n).
Val counted_from_front(const Val& i, int64_t n) {
  Val wide = cast(i, DType::int64);
  return where(less(wide, Val(int64_t{0})), wide + Val(n), wide);
}

/// 0, 1, 2... times a step along one axis of a shape, to be broadcast.
Val steps_along(int rank, int axis, int64_t n, int64_t step) {
  check_table(n, "index");
  Ints v;
  for (int64_t i = 0; i < n; ++i) v.push_back(i * step);
  Shape s;
  for (int i = 0; i < rank; ++i) s.push_back(i == axis ? n : 1);
  return int_array(v, s);
}

/// Positions in data of the elements that an index array names along an axis.
Val element_positions(const Val& data, const Val& indices, int axis, const char* who) {
  TW_CHECK(indices->rank() == data->rank(), value, who, ": indices of shape ", indices->shape(),
           " must have as many axes as data of shape ", data->shape());
  int64_t strides[kMaxRank];
  contiguous_strides(data->shape(), strides);
  Val p = counted_from_front(indices, data->dims[axis]) * Val(strides[axis]);
  for (int i = 0; i < data->rank(); ++i) {
    if (i == axis) continue;
    TW_CHECK(indices->dims[i] <= data->dims[i], value, who, ": indices of shape ", indices->shape(),
             " go beyond data of shape ", data->shape());
    p = p + steps_along(data->rank(), i, indices->dims[i], strides[i]);
  }
  return p;
}

/// Positions of the first elements of the slices that tuples along the last axis of `indices` name; `inner` is the
/// size of a slice. Before them stand `batch` axes that data and indices share.
Val slice_positions(const Val& data, const Val& indices, int batch, int64_t& inner, const char* who) {
  int last = indices->rank() - 1;
  TW_CHECK(last >= batch && data->rank() >= 1, value, who, ": indices of shape ", indices->shape(),
           " do not fit data of shape ", data->shape());
  int64_t k = indices->dims[last];
  TW_CHECK(k >= 0 && k <= data->rank() - batch, value, who, ": indices of shape ", indices->shape(), " name ", k,
           " axes; data of shape ", data->shape(), " has ", data->rank() - batch);
  int64_t strides[kMaxRank];
  contiguous_strides(data->shape(), strides);
  inner = 1;
  for (int i = batch + static_cast<int>(k); i < data->rank(); ++i) inner *= data->dims[i];
  Val p;
  for (int64_t j = 0; j < k; ++j) {
    int axis = batch + static_cast<int>(j);
    Val part = counted_from_front(at_index(indices, last, j), data->dims[axis]) * Val(strides[axis]);
    p = p ? p + part : part;
  }
  if (!p) p = zeros_like(cast(apply(op_sum, SumAttrs{IntList{last}, {}, false}, {indices}), DType::int64));
  for (int i = 0; i < batch; ++i) p = p + steps_along(p->rank(), i, data->dims[i], strides[i]);
  return p;
}

Val flat(const Val& x) { return reshape(x, Shape{x->size()}); }
Val take_flat(const Val& x, const Val& positions) { return With(op_take).set("axis", 0)({flat(x), positions}); }

}  // namespace

inline constexpr const char* kOnnxReductions = "none|add|mul|max|min";
inline constexpr const char* kOnnxReductionDoc = "What happens to the element that is there.";
inline constexpr Field kOnnxGatherFields[] = {TW_ATTR(GatherAttrs, axis, "Axis that the indices walk.")};
inline constexpr Field kOnnxBatchFields[] = {TW_ATTR(BatchAttrs, batch_dims, "Axes that data and indices share.")};
inline constexpr Field kOnnxScatterElementsFields[] = {
    TW_ATTR(ScatterElementsAttrs, axis, "Axis that the indices walk."),
    TW_ATTR(ScatterElementsAttrs, reduction, kOnnxReductionDoc, .choices = kOnnxReductions)};
inline constexpr Field kOnnxReductionFields[] = {
    TW_ATTR(ReductionAttrs, reduction, kOnnxReductionDoc, .choices = kOnnxReductions)};
inline constexpr Field kOnnxArgExtremeFields[] = {
    TW_ATTR(ArgExtremeAttrs, axis, "Axis to look along."),
    TW_ATTR(ArgExtremeAttrs, keepdims, "Keeps the axis, with size one."),
    TW_ATTR(ArgExtremeAttrs, select_last_index, "Of equal elements the last one counts.")};
inline constexpr Field kOnnxTopFields[] = {TW_ATTR(TopAttrs, axis, "Axis to look along."),
                                           TW_ATTR(TopAttrs, largest, "The largest, else the smallest."),
                                           TW_ATTR(TopAttrs, sorted, "They always come in order.")};
inline constexpr Field kOnnxOptionalAxisFields[] = {TW_ATTR(OptionalAxisAttrs, axis, "None: of the flattened array.")};
inline constexpr Field kOnnxReverseFields[] = {TW_ATTR(ReverseAttrs, batch_axis, "Axis of the sequences."),
                                               TW_ATTR(ReverseAttrs, time_axis, "Axis of time.")};
inline constexpr Field kOnnxOneHotAxisFields[] = {TW_ATTR(OneHotAxisAttrs, axis, "Where the new axis stands.")};

TW_OP(onnx_gather) = whole({
    .name = "onnx_gather",
    .doc = "Parts of data along an axis, by index.",
    .onnx = {.names = "Gather"},
    .attrs = schema<GatherAttrs>(kOnnxGatherFields),
    .in = {{{.name = "data"}, {.name = "indices"}}},
    .types = kAll,
    .expand = expand_rule<GatherAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "Gather");
      if (is_known(in[1]) && in[1]->size() == 1) {  // a part: no elements are moved
        int64_t i = int_of(in[1], "Gather"), n = in[0]->dims[axis];
        TW_CHECK(i >= -n && i < n, index, "Gather: index ", i, " is out of range for axis ", axis, " of ", n,
                 " elements");
        Val y = part(in[0], axis, i < 0 ? i + n : i, in[1]->rank() ? 1 : -1);
        if (in[1]->rank() <= 1) return {y};
      }
      return {With(op_take).set("axis", axis)({in[0], in[1]})};
    }),
    .samples = {{{.in = {{{3, 4, 2}, SampleInput({2, 2}, Domain::index, 4)}}, .attrs = "axis=1"}}},
});

TW_OP(onnx_gather_elements) = whole({
    .name = "onnx_gather_elements",
    .doc = "Elements of data: each index names one along an axis, its own place tells the others.",
    .onnx = {.names = "GatherElements:11"},
    .attrs = schema<GatherAttrs>(kOnnxGatherFields),
    .in = {{{.name = "data"}, {.name = "indices"}}},
    .types = kAll,
    .expand = expand_rule<GatherAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "GatherElements");
      return {take_flat(in[0], element_positions(in[0], in[1], axis, "GatherElements"))};
    }),
    .samples = {{{.in = {{{3, 4}, SampleInput({2, 4}, Domain::index, 3)}}, .attrs = "axis=0"}}},
});

TW_OP(onnx_gather_nd) = whole({
    .name = "onnx_gather_nd",
    .doc = "Slices of data that tuples of indices name.",
    .onnx = {.names = "GatherND:11"},
    .attrs = schema<BatchAttrs>(kOnnxBatchFields),
    .in = {{{.name = "data"}, {.name = "indices"}}},
    .types = kAll,
    .expand = expand_rule<BatchAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const Val &data = in[0], &indices = in[1];
      TW_CHECK(a.batch_dims >= 0 && a.batch_dims < std::min(data->rank(), indices->rank()), value,
               "GatherND: batch_dims ", a.batch_dims, " does not fit shapes ", data->shape(), " and ",
               indices->shape());
      auto batch = static_cast<int>(a.batch_dims);
      for (int i = 0; i < batch; ++i)
        TW_CHECK(data->dims[i] == indices->dims[i], value, "GatherND: shapes ", data->shape(), " and ",
                 indices->shape(), " must begin alike, for batch_dims is ", batch);
      int64_t inner = 1;
      Val p = slice_positions(data, indices, batch, inner, "GatherND");
      Shape shape(p->shape());
      auto k = static_cast<int>(indices->dims[indices->rank() - 1]);
      for (int i = batch + k; i < data->rank(); ++i) shape.push_back(data->dims[i]);
      if (inner == 1) return {reshape(take_flat(data, p), shape)};
      Val rows = reshape(data, Shape{inner ? data->size() / inner : 0, inner});
      return {reshape(With(op_take).set("axis", 0)({rows, floor_divide(p, Val(std::max<int64_t>(inner, 1)))}), shape)};
    }),
    .samples = {{{.in = {{{3, 4, 2}, SampleInput({5, 2}, Domain::index, 3)}}}}},
});

TW_OP(onnx_scatter_elements) = whole({
    .name = "onnx_scatter_elements",
    .doc = "Data with elements replaced: each index names one along an axis, its own place tells the others.",
    .onnx = {.names = "ScatterElements:11 Scatter:9-10"},
    .attrs = schema<ScatterElementsAttrs>(kOnnxScatterElementsFields),
    .in = {{{.name = "data"}, {.name = "indices"}, {.name = "updates"}}},
    .types = kAll,
    .expand = expand_rule<ScatterElementsAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "ScatterElements");
      TW_CHECK(shape_of(in[1]) == shape_of(in[2]), value,
               "ScatterElements: indices and updates must have one shape; got ", in[1]->shape(), " and ",
               in[2]->shape());
      Val p = element_positions(in[0], in[1], axis, "ScatterElements");
      return {reshape(apply(op_scatter_flat, ScatterAttrs{a.reduction}, {flat(in[0]), flat(p), flat(in[2])}),
                      shape_of(in[0]))};
    }),
});

TW_OP(onnx_scatter_nd) = whole({
    .name = "onnx_scatter_nd",
    .doc = "Data with the slices replaced that tuples of indices name.",
    .onnx = {.names = "ScatterND:11"},
    .attrs = schema<ReductionAttrs>(kOnnxReductionFields),
    .in = {{{.name = "data"}, {.name = "indices"}, {.name = "updates"}}},
    .types = kAll,
    .expand = expand_rule<ReductionAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int64_t inner = 1;
      Val p = slice_positions(in[0], in[1], 0, inner, "ScatterND");
      Shape rows{p->size(), 1};
      Val all = reshape(p, rows) + steps_along(2, 1, inner, 1);
      TW_CHECK(all->size() == in[2]->size(), value, "ScatterND: updates of shape ", in[2]->shape(),
               " do not fit indices of shape ", in[1]->shape(), " and data of shape ", in[0]->shape());
      return {reshape(apply(op_scatter_flat, ScatterAttrs{a.reduction}, {flat(in[0]), flat(all), flat(in[2])}),
                      shape_of(in[0]))};
    }),
});

TW_OP(onnx_arg_max) = whole({
    .name = "onnx_arg_max",
    .doc = "Where along an axis the largest element stands.",
    .onnx = {.names = "ArgMax"},
    .attrs = schema<ArgExtremeAttrs>(kOnnxArgExtremeFields),
    .in = {{{.name = "data"}}},
    .types = kAll,
    .expand = expand_rule<ArgExtremeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "ArgMax");
      Val x = a.select_last_index ? backwards(in[0], axis) : in[0];
      Val y = cast(With(op_argmax).set("axis", axis).set("keepdims", a.keepdims)({x}), DType::int64);
      return {a.select_last_index ? Val(in[0]->dims[axis] - 1) - y : y};
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "axis=1", .smooth = false}}},
});

TW_OP(onnx_arg_min) = whole({
    .name = "onnx_arg_min",
    .doc = "Where along an axis the smallest element stands.",
    .onnx = {.names = "ArgMin"},
    .attrs = schema<ArgExtremeAttrs>(kOnnxArgExtremeFields),
    .in = {{{.name = "data"}}},
    .types = kAll,
    .expand = expand_rule<ArgExtremeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "ArgMin");
      Val x = a.select_last_index ? backwards(in[0], axis) : in[0];
      Val y = cast(With(op_argmin).set("axis", axis).set("keepdims", a.keepdims)({x}), DType::int64);
      return {a.select_last_index ? Val(in[0]->dims[axis] - 1) - y : y};
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "axis=1", .smooth = false}}},
});

TW_OP(onnx_top_k) = whole({
    .name = "onnx_top_k",
    .doc = "The largest or smallest elements along an axis, in order, and where they stand.",
    .onnx = {.names = "TopK"},
    .attrs = schema<TopAttrs>(kOnnxTopFields),
    .in = {{{.name = "X"}, {.name = "K", .renames = "k", .value = true}}},
    .out = {"values", "indices"},
    .types = kReals,
    .expand = expand_rule<TopAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "TopK");
      int64_t k = int_of(in[1], "TopK");
      TW_CHECK(k >= 0 && k <= in[0]->dims[axis], value, "TopK: k must be between 0 and ", in[0]->dims[axis], "; got ",
               k);
      if (k == 0) {
        Val none = part(in[0], axis, 0, 0);
        return {none, cast(none, DType::int64)};
      }
      Val i = With(op_topk)
                  .set("axis", axis)
                  .set("k", k)
                  .set("ret_typ", "indices")
                  .set("is_ascend", !a.largest)
                  .set("dtype", DType::int64)({in[0]});
      return {With(op_take_along_axis).set("axis", axis)({in[0], i}), i};
    }),
    .unfolds = true,
});

TW_OP(onnx_non_zero) = whole({
    .name = "onnx_non_zero",
    .doc = "The positions of the elements that are not zero, one column of coordinates each.",
    .onnx = {.names = "NonZero:9"},
    .in = {{{.name = "X", .value = true}}},
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      Val x = in[0]->rank() ? in[0] : reshape(in[0], Shape{1});
      Val p = transpose(apply(op_nonzero, {x}), {1, 0});
      return {in[0]->rank() ? p : part(p, 0, 0, 0)};
    },
    .unfolds = true,
});

TW_OP(onnx_compress) = whole({
    .name = "onnx_compress",
    .doc = "The parts of an axis for which a condition holds.",
    .onnx = {.names = "Compress:9"},
    .attrs = schema<OptionalAxisAttrs>(kOnnxOptionalAxisFields),
    .in = {{{.name = "input"}, {.name = "condition", .value = true}}},
    .types = kAll,
    .expand = expand_rule<OptionalAxisAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      Val x = a.axis ? in[0] : flat(in[0]);
      int axis = a.axis ? normalize_axis(*a.axis, x->rank(), "Compress") : 0;
      Ints condition = ints_of(in[1], "Compress"), kept;
      for (size_t i = 0; i < condition.size(); ++i)
        if (condition[i]) kept.push_back(static_cast<int64_t>(i));
      TW_CHECK(kept.empty() || kept.back() < x->dims[axis], value, "Compress: the condition is longer than axis ",
               axis);
      return {With(op_take).set("axis", axis)({x, int_array(kept)})};
    }),
    .unfolds = true,
});

TW_OP(onnx_one_hot) = whole({
    .name = "onnx_one_hot",
    .doc = "A new axis that has one value at the place that an index names, and another elsewhere.",
    .onnx = {.names = "OneHot:9"},
    .attrs = schema<OneHotAxisAttrs>(kOnnxOneHotAxisFields),
    .in = {{{.name = "indices"}, {.name = "depth", .value = true}, {.name = "values"}}},
    .types = kAll,
    .expand = expand_rule<OneHotAxisAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int64_t depth = static_cast<int64_t>(real_of(in[1], "OneHot"));
      TW_CHECK(depth >= 0 && depth < (int64_t{1} << 31), value, "OneHot: depth must not be negative; got ", depth);
      TW_CHECK(in[2]->rank() == 1 && in[2]->dims[0] == 2, value, "OneHot: values must be two numbers, off and on");
      int rank = in[0]->rank() + 1, axis = normalize_axis(a.axis, rank, "OneHot");
      Val i = expand_dims(counted_from_front(in[0], depth), axis);
      return {where(equal(i, steps_along(rank, axis, depth, 1)), at_index(in[2], 0, 1), at_index(in[2], 0, 0))};
    }),
    .unfolds = true,
});

TW_OP(onnx_reverse_sequence) = whole({
    .name = "onnx_reverse_sequence",
    .doc = "Each sequence backwards, up to its length.",
    .onnx = {.names = "ReverseSequence:10"},
    .attrs = schema<ReverseAttrs>(kOnnxReverseFields),
    .in = {{{.name = "input"}, {.name = "sequence_lens"}}},
    .types = kAll,
    .expand = expand_rule<ReverseAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int rank = in[0]->rank(), time = normalize_axis(a.time_axis, rank, "ReverseSequence"),
          batch = normalize_axis(a.batch_axis, rank, "ReverseSequence");
      TW_CHECK(time != batch && in[1]->rank() == 1 && in[1]->dims[0] == in[0]->dims[batch], value,
               "ReverseSequence: one length for each of the ", in[0]->dims[batch], " sequences is needed; got shape ",
               in[1]->shape());
      Shape s;
      for (int i = 0; i < rank; ++i) s.push_back(i == batch ? in[0]->dims[i] : 1);
      Val length = reshape(cast(in[1], DType::int64), s), t = steps_along(rank, time, in[0]->dims[time], 1);
      Val from = where(less(t, length), length - Val(int64_t{1}) - t, t + zeros_like(length));
      from = apply(op_broadcast_to, ShapeAttrs{IntList(in[0]->shape())}, {from});
      return {take_flat(in[0], element_positions(in[0], from, time, "ReverseSequence"))};
    }),
});

}  // namespace twibil::ops
