// SPDX-License-Identifier: Apache-2.0
// Joining arrays, and cutting them apart again for the gradient.
#include "ops/shape/join.h"

#include <cstring>
#include <vector>

#include "ops/forms.h"
#include "ops/nn/blocked.h"
#include "ops/strides.h"

namespace twibil::ops {

struct StackAttrs {
  int64_t axis = 0;
};
struct PartAttrs {
  int64_t axis = 0;
  int64_t index = 0;
};
extern const OpDef op_concatenate, op_concatenate_part, op_stack;

inline constexpr Field kConcatenateFields[] = {
    TW_ATTR(ConcatenateAttrs, axis, "Axis along which the arrays are joined; None: they are flattened first.",
            .renames = "dim")};
inline constexpr Field kStackFields[] = {TW_ATTR(StackAttrs, axis, "Where the new axis stands in the result.")};
inline constexpr Field kPartFields[] = {TW_ATTR(PartAttrs, axis, "Axis of the join."),
                                        TW_ATTR(PartAttrs, index, "Which of the joined arrays.")};

/// The part of y that array number k of the join takes up, along `axis`, from `begin` on.
static Buffer part_of(const Buffer& y, int axis, int64_t begin, const Buffer& like, int64_t* dims, int64_t* strides) {
  Strides own(y);
  std::copy(y.dims, y.dims + y.rank, dims);
  std::copy(own.items, own.items + y.rank, strides);
  dims[axis] = like.dims[axis];
  Buffer part = y;
  part.data += begin * strides[axis] * size_of(y.dtype);
  part.dims = dims;
  part.strides = strides;
  return part;
}

/// Small row-major arrays of one dtype: runs of bytes, without a loop nest for each. False: not such ones.
static bool join_runs(const Call& c, int axis) {
  constexpr int64_t kSmall = 4096;
  const Buffer& y = c.out[0];
  bool plain = y.size <= kSmall && !y.strides;
  for (const Buffer& x : c.in) plain &= !x.strides && x.dtype == y.dtype;
  if (!plain) return false;
  int64_t outer = 1, width = size_of(y.dtype), begin = 0;
  for (int i = 0; i < axis; ++i) outer *= y.dims[i];
  if (outer == 0 || y.size == 0) return true;
  int64_t step = y.size / outer * width;
  for (const Buffer& x : c.in) {
    int64_t run = x.size / outer * width;
    bool there = x.data == y.data + begin;  // a plan had it computed in its place; then outer is 1
    for (int64_t i = 0; !there && i < outer; ++i)
      std::memcpy(y.data + i * step + begin, x.data + i * run, static_cast<size_t>(run));
    begin += run;
  }
  return true;
}

TW_OP(concatenate) = whole({
    .name = "concatenate",
    .doc = "Joins arrays along an axis that exists; all other sizes must agree.",
    .names = {"np.concatenate", "np.concat", "nd.concat", "nd.Concat"},
    .graph = {.names = "Concat concat _rnn_param_concat", .attrs = "axis:dim=1"},
    .onnx = {.names = "Concat"},
    .attrs = schema<ConcatenateAttrs>(kConcatenateFields),
    .in = {{{.name = "seq", .kind = SlotKind::variadic}}},
    .infer = infer_rule<ConcatenateAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(!in.empty(), value, "concatenate: at least one array is needed; got none");
      Shape& y = out[0].shape;  // in place: a shape that was just written to is slow to copy
      DType& t = out[0].dtype;
      y = in[0].shape;
      t = in[0].dtype;
      if (!a.axis) {
        int64_t n = 0;
        for (const Sig& s : in) n = checked_add(n, s.shape.size()), t = promote(t, s.dtype);
        y = Shape{n};
        return;
      }
      TW_CHECK(y.rank() > 0, value, "concatenate: arrays without dimensions cannot be joined; use stack");
      int axis = normalize_axis(*a.axis, y.rank(), "concatenate");
      for (size_t k = 1; k < in.size(); ++k) {
        const Shape& x = in[k].shape;
        bool fits = x.rank() == y.rank();
        for (int i = 0; fits && i < y.rank(); ++i) fits = i == axis || x[i] == y[i];
        TW_CHECK(fits, value, "concatenate: array ", k, " of shape ", x, " does not fit array 0 of shape ", in[0].shape,
                 " along axis ", axis);
        y[axis] = checked_add(y[axis], x[axis]);
        t = promote(t, in[k].dtype);
      }
    }),
    .types = kAll,
    .kernel = cpu_rule<ConcatenateAttrs>([](auto& a, Call& c) {
      Buffer y = c.out[0];
      int axis = a.axis ? normalize_axis(*a.axis, y.rank, "concatenate") : 0;
      if (join_runs(c, axis)) return;
      int64_t begin = 0, dims[kMaxRank], strides[kMaxRank];
      for (const Buffer& x : c.in) {
        if (!a.axis) {  // every array flattened
          Buffer part = y;
          part.data += begin * size_of(y.dtype);
          part.dims = x.dims;
          part.rank = x.rank;
          copy_buffer(x, part);
          begin += x.size;
          continue;
        }
        Buffer part = part_of(y, axis, begin, x, dims, strides);
        if (x.data != part.data || x.strides) copy_buffer(x, part);  // else it was computed in its place
        begin += x.dims[axis];
      }
    }),
    .strided = true,
    .grad = grad_rule<ConcatenateAttrs>([](auto& a, const Grad& g) -> Vals {
      Vals dx;
      Val dy = g.dy();
      int64_t axis = a.axis ? normalize_axis(*a.axis, dy->rank(), "concatenate") : -1;
      std::vector<Val> in{dy};
      for (int i = 0; i < g.inputs(); ++i) in.push_back(g.x(i));
      for (int i = 0; i < g.inputs(); ++i) {
        PartAttrs part{axis, i};
        dx.push_back(g.wants(i) ? apply_all(op_concatenate_part, &part, in)[0] : Val());
      }
      return dx;
    }),
    .joins = join_rule<ConcatenateAttrs>([](auto& a, SigsIn in, int i) -> int64_t {
      int axis = a.axis ? normalize_axis(*a.axis, in[0].rank(), "concatenate") : 0;
      for (int d = 0; a.axis && d < axis; ++d)
        if (in[0].shape[d] != 1) return -1;
      int64_t begin = 0;
      for (int k = 0; k < i; ++k) begin += in[static_cast<size_t>(k)].shape.size();
      return begin;
    }),
    .blocked = {blocked_plan_rule<ConcatenateAttrs>([](auto& a, const BlockedQuery& q) {
                  BlockedPlan plan{.possible = a.axis && (*a.axis == 1 || *a.axis == -3), .inputs = kAllInputs};
                  plan.possible &= q.in.size() <= static_cast<size_t>(IntList::capacity);
                  for (const Sig& s : q.in) plan.possible &= can_block(s);
                  return plan;
                }),
                blocked_rule<ConcatenateAttrs>([](auto&, const BlockedQuery& q, std::span<const Val> in) {
                  IntList channels;
                  for (const Sig& s : q.in) channels.push_back(s.shape[1]);
                  return join_blocks(in, channels);
                })},
    .samples = {{{.in = {{{2, 3}, {4, 3}}}},
                 {.in = {{{2, 3}, {2, 1}, {2, 2}}}, .attrs = "axis=1"},
                 {.in = {{{2, 3}, {4}}}, .attrs = "axis=None"}}},
});

TW_OP(join_along) = whole({
    .name = "join_along",
    .doc = "concatenate, as graphs of NumPy's front end spell it.",
    .graph = {.names = "_npi_concatenate"},
    .attrs = schema<ConcatenateAttrs>(kConcatenateFields),
    .in = {{{.name = "seq", .kind = SlotKind::variadic}}},
    .types = kAll,
    .expand = expand_rule<ConcatenateAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {apply_all(op_concatenate, &a, in)[0]};
    }),
    .samples = {{{.in = {{{2, 3}, {4, 3}}}}}},
});

TW_OP(concatenate_part) = whole({
    .name = "concatenate_part",
    .doc = "The part of dy that array number `index` of a join had, in its shape.",
    .attrs = schema<PartAttrs>(kPartFields),
    .in = {{{.name = "dy"}, {.name = "like", .kind = SlotKind::variadic, .shape_only = true}}},
    .infer = infer_rule<PartAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(a.index >= 0 && a.index < static_cast<int64_t>(in.size()) - 1, value, "concatenate_part: index ",
               a.index, " is out of range");
      const Shape& dy = in[0].shape;
      TW_CHECK(a.axis >= -1 && a.axis < dy.rank(), value, "concatenate_part: axis ", a.axis,
               " is out of range for dy of shape ", dy);
      int64_t total = 0;
      for (const Sig& like : in.subspan(1)) {
        bool fits = a.axis < 0 || like.rank() == dy.rank();
        for (int i = 0; fits && a.axis >= 0 && i < dy.rank(); ++i) fits = i == a.axis || like.shape[i] == dy[i];
        TW_CHECK(fits, value, "concatenate_part: an array of shape ", like.shape, " was not joined into dy of shape ",
                 dy);
        total = checked_add(total, a.axis < 0 ? like.shape.size() : like.shape[static_cast<int>(a.axis)]);
      }
      TW_CHECK(a.axis >= 0 ? total == dy[static_cast<int>(a.axis)] : dy == Shape{total}, value,
               "concatenate_part: the joined arrays do not make up dy of shape ", dy);
      out[0] = {in[static_cast<size_t>(a.index + 1)].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<PartAttrs>([](auto& a, Call& c) {
      int64_t begin = 0, dims[kMaxRank], strides[kMaxRank];
      for (int64_t k = 0; k < a.index; ++k)
        begin += a.axis < 0 ? c.in[static_cast<size_t>(k + 1)].size : c.in[static_cast<size_t>(k + 1)].dims[a.axis];
      if (a.axis < 0) {
        Buffer x = c.in[0], y = c.out[0];
        x.data += begin * (x.strides ? x.strides[0] : 1) * size_of(x.dtype);
        x.dims = y.dims = &c.out[0].size;
        x.rank = y.rank = 1;
        return copy_buffer(x, y);
      }
      copy_buffer(part_of(c.in[0], static_cast<int>(a.axis), begin, c.out[0], dims, strides), c.out[0]);
    }),
    .strided = true,
    .grad = grad_rule<PartAttrs>([](auto& a, const Grad& g) -> Vals {
      std::vector<Val> parts;
      for (int i = 1; i < g.inputs(); ++i) parts.push_back(i == a.index + 1 ? g.dy() : zeros_like(g.x(i)));
      for (Val& p : parts) p = cast(p, g.dy()->dtype());
      ConcatenateAttrs join;
      join.axis = a.axis < 0 ? Maybe<int64_t>() : Maybe<int64_t>(a.axis);
      return {apply_all(op_concatenate, &join, parts)[0]};
    }),
    .samples = {{{.in = {{{6, 3}, {2, 3}, {4, 3}}}, .attrs = "axis=0, index=1"}}},
});

TW_OP(stack) = whole({
    .name = "stack",
    .doc = "Joins arrays of one shape along a new axis.",
    .names = {"np.stack", "nd.stack"},
    .graph = {.names = "stack _npi_stack"},
    .attrs = schema<StackAttrs>(kStackFields),
    .in = {{{.name = "arrays", .kind = SlotKind::variadic}}},
    .types = kAll,
    .expand = expand_rule<StackAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(!in.empty(), value, "stack: at least one array is needed; got none");
      std::vector<Val> parts;
      int axis = normalize_axis(a.axis, in[0]->rank() + 1, "stack");
      for (size_t k = 0; k < in.size(); ++k) {
        TW_CHECK(std::ranges::equal(in[k]->shape(), in[0]->shape()), value, "stack: array ", k, " of shape ",
                 in[k]->shape(), " must have the shape ", in[0]->shape(), " of array 0");
        parts.push_back(expand_dims(in[k], axis));
      }
      ConcatenateAttrs join;
      join.axis = axis;
      return {apply_all(op_concatenate, &join, parts)[0]};
    }),
    .no_grad = "its parts have",
    .role = Role::stack,
    .samples = {{{.in = {{{2, 3}, {2, 3}}}, .attrs = "axis=0"}, {.in = {{{2, 3}, {2, 3}}}, .attrs = "axis=-1"}}},
});

}  // namespace twibil::ops
