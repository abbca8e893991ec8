// SPDX-License-Identifier: Apache-2.0
// Shapes and slices of MXNet 1: reshape with codes, slices along axes, splitting into several outputs.
#include "base/checked.h"
#include "ops/legacy/slices.h"
#include "ops/math/elementwise.h"

namespace twibil::ops {

namespace {

int64_t rest_size(const Val& x, int first) {
  int64_t n = 1;
  for (int i = first; i < x->rank(); ++i) n = checked_mul(n, x->dims[i]);
  return n;
}

/// Reads the codes of a reshape from the front, one size or several at a time.
class Sizes {
 public:
  Sizes(const char* who, std::span<const int64_t> old, std::span<const int64_t> codes)
      : who_(who), old_(old), codes_(codes) {}

  /// MXNet 1: 0 keeps a size, -1 is inferred, -2 keeps all that remain, -3 joins two, -4 splits one.
  std::vector<int64_t> legacy() {
    while (!codes_.empty()) {
      int64_t code = next_code();
      if (code == 0) sizes_.push_back(take());
      else if (code == -2) keep_rest();
      else if (code == -3) join();
      else if (code == -4) split(code);
      else plain(code);
    }
    return sizes_;
  }
  /// MXNet 2: -2 keeps a size, -3 drops one of size 1, -4 keeps all that remain, -5 joins two, -6 splits one.
  std::vector<int64_t> numpy() {
    while (!codes_.empty()) {
      int64_t code = next_code();
      if (code == -2) sizes_.push_back(take());
      else if (code == -3) drop();
      else if (code == -4) keep_rest();
      else if (code == -5) join();
      else if (code == -6) split(code);
      else plain(code);
    }
    return sizes_;
  }

 private:
  int64_t next_code() {
    int64_t code = codes_[0];
    codes_ = codes_.subspan(1);
    return code;
  }
  int64_t take() {
    TW_CHECK(place_ < old_.size(), value, who_, ": the codes need more axes than the shape ", old_, " has");
    return old_[place_++];
  }
  void plain(int64_t code) {
    TW_CHECK(code >= -1, value, who_, ": there is no code ", code);
    if (place_ < old_.size()) ++place_;
    sizes_.push_back(code);
  }
  void keep_rest() {
    while (place_ < old_.size()) sizes_.push_back(take());
  }
  void drop() {
    int64_t size = take();
    TW_CHECK(size == 1, value, who_, ": -3 drops an axis of size 1; got ", size);
  }
  void join() {
    int64_t first = take();
    sizes_.push_back(checked_mul(first, take()));
  }
  void split(int64_t code) {
    bool fits = codes_.size() >= 2 && codes_[0] != 0 && codes_[1] != 0 && !(codes_[0] == -1 && codes_[1] == -1) &&
                codes_[0] >= -1 && codes_[1] >= -1;
    TW_CHECK(fits, value, who_, ": two sizes, of which one may be -1, must follow ", code);
    int64_t whole = take(), first = next_code(), second = next_code();
    sizes_.push_back(first == -1 ? whole / second : first);
    sizes_.push_back(second == -1 ? whole / first : second);
  }

  const char* who_;
  std::span<const int64_t> old_, codes_;
  size_t place_ = 0;
  std::vector<int64_t> sizes_;
};

Val reshape_by_codes(const char* who, const Val& x, std::vector<int64_t> codes, bool reverse, bool numpy) {
  std::vector<int64_t> old(x->shape().begin(), x->shape().end());
  if (reverse) {
    std::ranges::reverse(old);
    std::ranges::reverse(codes);
    for (size_t i = 0; i + 2 < codes.size(); ++i) {  // the two sizes of a split follow its code again
      if (codes[i + 2] == (numpy ? -6 : -4)) std::swap(codes[i], codes[i + 2]), i += 2;
    }
  }
  Sizes reader(who, old, codes);
  std::vector<int64_t> sizes = numpy ? reader.numpy() : reader.legacy();
  if (reverse) std::ranges::reverse(sizes);
  TW_CHECK(sizes.size() <= static_cast<size_t>(IntList::capacity), value, who, ": the result has too many axes");
  ReshapeAttrs a;
  a.newshape = IntList(std::span<const int64_t>(sizes));
  return apply(op_reshape, a, {x});
}
std::vector<int64_t> vector_of(const IntList& l) { return {l.begin(), l.end()}; }

struct LegacyReshapeAttrs {
  IntList shape, target_shape;
  bool reverse = false, keep_highest = false;
};
constexpr Field kLegacyReshapeFields[] = {
    TW_ATTR(LegacyReshapeAttrs, shape,
            "Sizes, or codes: 0 keeps a size, -1 is inferred, -2 keeps all that remain, -3 joins two, -4 splits one."),
    TW_ATTR(LegacyReshapeAttrs, reverse, "Codes are read from the right."),
    TW_ATTR(LegacyReshapeAttrs, target_shape, "The form of MXNet 0.7: sizes, of which one may be 0 for the rest."),
    TW_ATTR(LegacyReshapeAttrs, keep_highest, "Whether the first size of target_shape is that of data."),
};
struct NumpyReshapeAttrs {
  IntList newshape;
  bool reverse = false;
};
constexpr Field kNumpyReshapeFields[] = {
    TW_ATTR(NumpyReshapeAttrs, newshape,
            "Sizes, or codes: -1 is inferred, -2 keeps a size, -3 drops one of size 1, -4 keeps all that remain, -5 "
            "joins two, -6 splits one.",
            .required = true),
    TW_ATTR(NumpyReshapeAttrs, reverse, "Codes are read from the right."),
};

Val reshape_to_target(const LegacyReshapeAttrs& a, const Val& x) {
  std::vector<int64_t> sizes = vector_of(a.target_shape);
  size_t first = a.keep_highest ? 1 : 0;
  if (first && !sizes.empty()) sizes[0] = x->rank() ? x->dims[0] : 1;
  for (size_t i = first; i < sizes.size(); ++i)
    if (sizes[i] == 0) sizes[i] = -1;
  TW_CHECK(sizes.size() <= static_cast<size_t>(IntList::capacity), value, "Reshape: too many sizes");
  ReshapeAttrs r;
  r.newshape = IntList(std::span<const int64_t>(sizes));
  return apply(op_reshape, r, {x});
}

}  // namespace

TW_OP(flatten) = whole({
    .name = "flatten",
    .doc = "(batch, ...) to (batch, rest).",
    .names = {"npx.batch_flatten", "nd.Flatten", "nd.flatten"},
    .graph = {.names = "Flatten flatten _npx_batch_flatten"},
    .in = kData,
    .types = kAll,
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      TW_CHECK(in[0]->rank() >= 1, value, "flatten: data must have at least one axis; it has none");
      return {reshape(in[0], Shape{in[0]->dims[0], rest_size(in[0], 1)})};
    },
    .samples = {{{.in = {{{2, 3, 4}}}}}},
});

TW_OP(legacy_reshape) = whole({
    .name = "legacy_reshape",
    .doc = "Another shape, with MXNet 1's codes.",
    .graph = {.names = "Reshape reshape"},
    .attrs = schema<LegacyReshapeAttrs>(kLegacyReshapeFields),
    .in = kData,
    .types = kAll,
    .expand = expand_rule<LegacyReshapeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      if (a.shape.empty() && !a.target_shape.empty()) return {reshape_to_target(a, in[0])};
      return {reshape_by_codes("Reshape", in[0], vector_of(a.shape), a.reverse, false)};
    }),
    .samples = {{{.in = {{{2, 3, 4}}}, .attrs = "shape=(0, -1)"},
                 {.in = {{{2, 3, 4}}}, .attrs = "shape=(-3, 0)"},
                 {.in = {{{2, 6, 4}}}, .attrs = "shape=(0, -4, 2, -1, -2)"},
                 {.in = {{{2, 6, 4}}}, .attrs = "shape=(-1, 0), reverse=True"}}},
});

TW_OP(reshape_codes) = whole({
    .name = "reshape_codes",
    .doc = "Another shape, with MXNet 2's codes.",
    .graph = {.names = "_npx_reshape"},
    .attrs = schema<NumpyReshapeAttrs>(kNumpyReshapeFields),
    .in = kData,
    .types = kAll,
    .expand = expand_rule<NumpyReshapeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {reshape_by_codes("reshape", in[0], vector_of(a.newshape), a.reverse, true)};
    }),
    .samples = {{{.in = {{{2, 3, 4}}}, .attrs = "newshape=(-2, -5)"},
                 {.in = {{{2, 1, 6}}}, .attrs = "newshape=(-2, -3, -6, 2, -1)"}}},
});

struct SliceAxisAttrs {
  int64_t axis = 0, begin = 0;
  Maybe<int64_t> end;
};
inline constexpr Field kSliceAxisFields[] = {
    TW_ATTR(SliceAxisAttrs, axis, "Axis to cut along.", .required = true),
    TW_ATTR(SliceAxisAttrs, begin, "First index; a negative one counts from the end.", .required = true),
    TW_ATTR(SliceAxisAttrs, end, "Index after the last; None: to the end."),
};

/// The indices begin, begin + step, ... before end that lie in an axis, as Python's slices.
static void narrow(BasicIndexAttrs& to, int axis, int64_t n, Maybe<int64_t> begin, Maybe<int64_t> end, int64_t step) {
  TW_CHECK(step != 0, value, "slice: a step must not be 0");
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  auto inside = [&](Maybe<int64_t> i, int64_t open) {
    if (!i) return open;
    int64_t at = *i < 0 ? *i + n : *i;
    return std::clamp(at, low, high);
  };
  int64_t first = inside(begin, step > 0 ? low : high), last = inside(end, step > 0 ? high : low);
  int64_t distance = step > 0 ? last - first : first - last;  // that steps of any size may cross
  int64_t size = distance > 0 ? (distance - 1) / (step > 0 ? step : -step) + 1 : 0;
  to.start[axis] = size > 0 ? first : 0;
  to.step[axis] = step;
  to.size[axis] = size;
}

TW_OP(slice_axis) = whole({
    .name = "slice_axis",
    .doc = "data[..., begin:end, ...] along one axis.",
    .graph = {.names = "slice_axis", .attrs = "end"},
    .attrs = schema<SliceAxisAttrs>(kSliceAxisFields),
    .in = kData,
    .types = kAll,
    .expand = expand_rule<SliceAxisAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      BasicIndexAttrs index = whole_of(in[0]);
      int axis = normalize_axis(a.axis, in[0]->rank(), "slice_axis");
      narrow(index, axis, in[0]->dims[axis], a.begin, a.end, 1);
      return {apply(op_basic_index, index, {in[0]})};
    }),
    .samples = {{{.in = {{{3, 5}}}, .attrs = "axis=1, begin=1, end=4"},
                 {.in = {{{3, 5}}}, .attrs = "axis=-1, begin=-2, end=None"}}},
});

struct SliceAttrs {
  IntList begin, end, step;
};
inline constexpr Field kSliceFields[] = {
    TW_ATTR(SliceAttrs, begin, "First indices; None: from the start.", .required = true, .open_ends = true),
    TW_ATTR(SliceAttrs, end, "Indices after the last; None: to the end.", .required = true, .open_ends = true),
    TW_ATTR(SliceAttrs, step, "Steps; empty or None: 1.", .open_ends = true),
};
static Maybe<int64_t> entry(const IntList& list, int i) {
  return i < list.size() && list[i] != kNoInteger ? Maybe<int64_t>(list[i]) : Maybe<int64_t>();
}

TW_OP(slice) = whole({
    .name = "slice",
    .doc = "data[begin[0]:end[0]:step[0], ...].",
    .graph = {.names = "slice crop _npx_slice"},
    .attrs = schema<SliceAttrs>(kSliceFields),
    .in = kData,
    .types = kAll,
    .expand = expand_rule<SliceAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(a.begin.size() == a.end.size() && a.begin.size() <= in[0]->rank() && a.step.size() <= a.begin.size(),
               value, "slice: begin, end and step must be equally long, and not longer than the shape ",
               in[0]->shape());
      BasicIndexAttrs index = whole_of(in[0]);
      for (int i = 0; i < a.begin.size(); ++i)
        narrow(index, i, in[0]->dims[i], entry(a.begin, i), entry(a.end, i), entry(a.step, i).value_or(1));
      return {apply(op_basic_index, index, {in[0]})};
    }),
    .samples = {{{.in = {{{3, 5}}}, .attrs = "begin=(1, 0), end=(3, 4)"},
                 {.in = {{{3, 5}}}, .attrs = "begin=(None, 4), end=(None, None), step=(1, -2)"}}},
});

struct AxesListAttrs {
  IntList axes;
};
inline constexpr Field kSliceLikeFields[] = {TW_ATTR(AxesListAttrs, axes, "Axes that are cut; empty: all.")};

TW_OP(slice_like) = whole({
    .name = "slice_like",
    .doc = "data cut to the sizes of shape_like along some axes.",
    .graph = {.names = "slice_like"},
    .attrs = schema<AxesListAttrs>(kSliceLikeFields),
    .in = {{{.name = "data"}, {.name = "shape_like"}}},
    .types = kAll,
    .expand = expand_rule<AxesListAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      BasicIndexAttrs index = whole_of(in[0]);
      auto cut = [&](int axis) {
        TW_CHECK(axis < in[1]->rank() && in[1]->dims[axis] <= in[0]->dims[axis], value, "slice_like: the shape ",
                 in[1]->shape(), " does not fit into ", in[0]->shape(), " along axis ", axis);
        index.size[axis] = in[1]->dims[axis];
      };
      for (int64_t axis : a.axes) cut(normalize_axis(axis, in[0]->rank(), "slice_like"));
      for (int i = 0; a.axes.empty() && i < in[0]->rank(); ++i) cut(i);
      return {apply(op_basic_index, index, {in[0]})};
    }),
    .samples = {{{.in = {{{3, 5}, {2, 4}}}}, {.in = {{{3, 5}, {2, 4}}}, .attrs = "axes=(1,)"}}},
});

// ---- several outputs ----

struct SplitAttrs {
  int64_t num_outputs = 1, axis = 1;
  bool squeeze_axis = false;
};
inline constexpr Field kSplitFields[] = {
    TW_ATTR(SplitAttrs, num_outputs, "How many equal parts.", .required = true),
    TW_ATTR(SplitAttrs, axis, "Axis to cut along."),
    TW_ATTR(SplitAttrs, squeeze_axis, "Whether an axis of size 1 goes away."),
};
static constexpr int64_t kMostParts = 65536;

TW_OP(split) = whole({
    .name = "split",
    .doc = "Equal parts of data along an axis.",
    .graph = {.names = "SliceChannel split"},
    .attrs = schema<SplitAttrs>(kSplitFields),
    .in = kData,
    .count = count_rule<SplitAttrs>([](auto& a) {
      TW_CHECK(a.num_outputs >= 1 && a.num_outputs <= kMostParts, value, "split: num_outputs must be 1 to ", kMostParts,
               "; got ", a.num_outputs);
      return static_cast<int>(a.num_outputs);
    }),
    .types = kAll,
    .expand = expand_rule<SplitAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "split");
      int64_t n = in[0]->dims[axis];
      TW_CHECK(a.num_outputs >= 1 && n % a.num_outputs == 0, value, "split: axis ", axis, " of shape ", in[0]->shape(),
               " cannot be cut into ", a.num_outputs, " equal parts");
      int64_t size = n / a.num_outputs;
      TW_CHECK(!a.squeeze_axis || size == 1, value, "split: squeeze_axis needs parts of size 1; they have ", size);
      Vals parts;
      for (int64_t k = 0; k < a.num_outputs; ++k)
        parts.push_back(part(in[0], axis, k * size, a.squeeze_axis ? -1 : size));
      return parts;
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "num_outputs=2"},
                 {.in = {{{3, 4}}}, .attrs = "num_outputs=3, axis=0, squeeze_axis=True"}}},
});

struct SplitV2Attrs {
  IntList indices;
  int64_t axis = 1, sections = 0;
  bool squeeze_axis = false;
};
inline constexpr Field kSplitV2Fields[] = {
    TW_ATTR(SplitV2Attrs, indices, "Where each part begins.", .required = true),
    TW_ATTR(SplitV2Attrs, axis, "Axis to cut along."),
    TW_ATTR(SplitV2Attrs, squeeze_axis, "Whether an axis of size 1 goes away."),
    TW_ATTR(SplitV2Attrs, sections, "How many equal parts; 0: at the indices."),
};

TW_OP(split_v2) = whole({
    .name = "split_v2",
    .doc = "Parts of data along an axis: equal ones, or cut at indices.",
    .graph = {.names = "_split_v2 split_v2"},
    .attrs = schema<SplitV2Attrs>(kSplitV2Fields),
    .in = kData,
    .count = count_rule<SplitV2Attrs>([](auto& a) {
      TW_CHECK(a.sections >= 0 && a.sections <= kMostParts, value, "split_v2: sections must be 0 to ", kMostParts,
               "; got ", a.sections);
      return a.sections ? static_cast<int>(a.sections) : std::max(1, a.indices.size());
    }),
    .types = kAll,
    .expand = expand_rule<SplitV2Attrs>([](auto& a, std::span<const Val> in) -> Vals {
      int axis = normalize_axis(a.axis, in[0]->rank(), "split_v2");
      int64_t n = in[0]->dims[axis];
      TW_CHECK(!a.sections || n % a.sections == 0, value, "split_v2: axis ", axis, " of shape ", in[0]->shape(),
               " cannot be cut into ", a.sections, " equal parts");
      int64_t count = a.sections ? a.sections : std::max(1, a.indices.size());
      auto begin = [&](int64_t k) -> int64_t {
        if (k >= count) return n;
        if (a.sections) return k * (n / a.sections);
        return a.indices.empty() ? 0 : a.indices[static_cast<int>(k)];
      };
      Vals parts;
      for (int64_t k = 0; k < count; ++k) {
        TW_CHECK(begin(k) >= 0 && begin(k) <= begin(k + 1) && begin(k + 1) <= n, value, "split_v2: the indices ",
                 a.indices.span(), " must rise, and lie within ", n);
        int64_t size = begin(k + 1) - begin(k);
        TW_CHECK(!a.squeeze_axis || size == 1, value, "split_v2: squeeze_axis needs parts of size 1; one has ", size);
        parts.push_back(part(in[0], axis, begin(k), a.squeeze_axis ? -1 : size));
      }
      return parts;
    }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "indices=(0, 1, 3)"},
                 {.in = {{{3, 4}}}, .attrs = "indices=(), sections=2"}}},
});

// ---- others ----

struct BroadcastAxisAttrs {
  IntList axis, size;
};
inline constexpr Field kBroadcastAxisFields[] = {TW_ATTR(BroadcastAxisAttrs, axis, "Axes of size 1."),
                                                 TW_ATTR(BroadcastAxisAttrs, size, "The sizes they get.")};

TW_OP(broadcast_axis) = whole({
    .name = "broadcast_axis",
    .doc = "Axes of size 1 repeated to the given sizes.",
    .graph = {.names = "broadcast_axis broadcast_axes"},
    .attrs = schema<BroadcastAxisAttrs>(kBroadcastAxisFields),
    .in = kData,
    .types = kAll,
    .expand = expand_rule<BroadcastAxisAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(a.axis.size() == a.size.size(), value, "broadcast_axis: there must be a size for each axis; got ",
               a.axis.size(), " axes and ", a.size.size(), " sizes");
      ShapeAttrs to{IntList(in[0]->shape())};
      for (int i = 0; i < a.axis.size(); ++i) {
        int axis = normalize_axis(a.axis[i], in[0]->rank(), "broadcast_axis");
        TW_CHECK(in[0]->dims[axis] == 1, value, "broadcast_axis: axis ", axis, " of shape ", in[0]->shape(),
                 " must have size 1");
        to.shape[axis] = a.size[i];
      }
      return {apply(op_broadcast_to, to, {in[0]})};
    }),
    .samples = {{{.in = {{{3, 1, 4}}}, .attrs = "axis=(1,), size=(5,)"}}},
});

TW_OP(add_n) = whole({
    .name = "add_n",
    .doc = "The sum of arrays of one shape.",
    .graph = {.names = "add_n ElementWiseSum _sum"},
    .in = {{{.name = "args", .kind = SlotKind::variadic}}},
    .types = kReals,
    .complete =
        [](const void*, std::span<Sig> in) {
          for (const Sig& s : in)
            if (s.present())
              for (Sig& other : in)
                if (!other.present()) other = s;
        },
    .expand = [](const void*, std::span<const Val> in) -> Vals {
      TW_CHECK(!in.empty(), value, "add_n: at least one array is needed; got none");
      Val total = in[0];
      for (size_t k = 1; k < in.size(); ++k) total = total + in[k];
      return {in.size() == 1 ? copy(total) : total};
    },
    .samples = {{{.in = {{{3, 4}, {3, 4}, {3, 4}}}}, {.in = {{{3, 4}}}}}},
});

struct BlockSizeAttrs {
  int64_t block_size = 2;
};
inline constexpr Field kBlockSizeFields[] = {
    TW_ATTR(BlockSizeAttrs, block_size, "Side of a block of pixels.", .required = true)};

TW_OP(depth_to_space) = whole({
    .name = "depth_to_space",
    .doc = "Channels become blocks of pixels: (n, c, h, w) to (n, c / b^2, h * b, w * b).",
    .graph = {.names = "depth_to_space"},
    .attrs = schema<BlockSizeAttrs>(kBlockSizeFields),
    .in = kData,
    .types = kAll,
    .expand = expand_rule<BlockSizeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const Val& x = in[0];
      int64_t b = a.block_size;
      TW_CHECK(x->rank() == 4 && b >= 1 && b < 32768 && x->dims[1] % (b * b) == 0, value, "depth_to_space: blocks of ",
               b, " need data (n, c, h, w) with a multiple of ", b, " squared channels; got shape ", x->shape());
      int64_t n = x->dims[0], c = x->dims[1] / (b * b), h = x->dims[2], w = x->dims[3];
      Val y = transpose(reshape(x, Shape{n, b, b, c, h, w}), {0, 3, 4, 1, 5, 2});
      return {reshape(y, Shape{n, c, h * b, w * b})};
    }),
    .samples = {{{.in = {{{2, 8, 2, 3}}}, .attrs = "block_size=2"}}},
});

TW_OP(space_to_depth) = whole({
    .name = "space_to_depth",
    .doc = "Blocks of pixels become channels: (n, c, h, w) to (n, c * b^2, h / b, w / b).",
    .graph = {.names = "space_to_depth"},
    .attrs = schema<BlockSizeAttrs>(kBlockSizeFields),
    .in = kData,
    .types = kAll,
    .expand = expand_rule<BlockSizeAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const Val& x = in[0];
      int64_t b = a.block_size;
      TW_CHECK(x->rank() == 4 && b >= 1 && x->dims[2] % b == 0 && x->dims[3] % b == 0, value,
               "space_to_depth: blocks of ", b, " must divide the sides of data (n, c, h, w); got shape ", x->shape());
      int64_t n = x->dims[0], c = x->dims[1], h = x->dims[2] / b, w = x->dims[3] / b;
      Val y = transpose(reshape(x, Shape{n, c, h, b, w, b}), {0, 3, 5, 1, 2, 4});
      return {reshape(y, Shape{n, b * b * c, h, w})};
    }),
    .samples = {{{.in = {{{2, 3, 4, 6}}}, .attrs = "block_size=2"}}},
});

}  // namespace twibil::ops
