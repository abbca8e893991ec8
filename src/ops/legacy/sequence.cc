// SPDX-License-Identifier: Apache-2.0
// Sequences of different lengths side by side: (time, batch, ...), or (batch, time, ...) where axis is 1.
#include "ops/create/arange.h"
#include "ops/legacy/slices.h"
#include "ops/math/elementwise.h"

namespace twibil::ops {

TW_DECLARE(arange)
TW_DECLARE(take_along_axis)

namespace {

struct SequenceAttrs {
  bool use_sequence_length = false;
  double value = 0;
  int64_t axis = 0;
};
constexpr Field kUse = TW_ATTR(SequenceAttrs, use_sequence_length, "Whether sequence_length is looked at.");
constexpr Field kTime = TW_ATTR(SequenceAttrs, axis, "The time axis, 0 or 1.");
constexpr Field kMaskFields[] = {kUse, TW_ATTR(SequenceAttrs, value, "What stands after the end."), kTime};
constexpr Field kSequenceFields[] = {kUse, kTime};
constexpr std::array<Slot, 14> kSequence = {
    {{.name = "data"}, {.name = "sequence_length", .kind = SlotKind::optional, .doc = "(batch,)."}}};

void lengths_like_batch(const void* attrs, std::span<Sig> in) {
  const auto& a = *static_cast<const SequenceAttrs*>(attrs);
  if (a.use_sequence_length && in.size() > 1 && in[0].present() && in[0].rank() >= 2 && !in[1].present())
    in[1] = {Shape{in[0].shape[a.axis == 1 ? 0 : 1]}, in[0].dtype};
}
void check(const SequenceAttrs& a, std::span<const Val> in, const char* who) {
  TW_CHECK(a.axis == 0 || a.axis == 1, value, who, ": the time axis must be 0 or 1; got ", a.axis);
  TW_CHECK(in[0]->rank() >= 2, value, who, ": data must have at least two axes; got shape ", in[0]->shape());
  if (!a.use_sequence_length) return;
  int64_t batch = in[0]->dims[1 - a.axis];
  TW_CHECK(in.size() > 1 && in[1], type, who, ": use_sequence_length needs the argument sequence_length");
  TW_CHECK(in[1]->rank() == 1 && in[1]->dims[0] == batch, value, who, ": sequence_length must have shape [", batch,
           "]; got ", in[1]->shape());
}
/// 0, 1, ... along the time axis of data, the batch of size 1, and sizes of one behind.
Val steps(const SequenceAttrs& a, const Val& data) {
  ArangeAttrs range;
  range.start = Scalar(0);
  range.stop = Scalar(data->dims[a.axis]);
  range.dtype = DType::int64;
  Shape shape;
  for (int i = 0; i < data->rank(); ++i) shape.push_back(i == a.axis ? data->dims[i] : 1);
  return reshape(apply(op_arange, range, {}), shape);
}
Val lengths(const SequenceAttrs& a, const Val& data, const Val& given) {
  Shape shape;
  for (int i = 0; i < data->rank(); ++i) shape.push_back(i == 1 - a.axis ? data->dims[i] : 1);
  return reshape(cast(given, DType::int64), shape);
}
/// data at other steps, which broadcast over what stands behind.
Val at_steps(const SequenceAttrs& a, const Val& data, const Val& index) {
  Shape full(data->shape());
  full[static_cast<int>(a.axis)] = index->dims[a.axis];
  ShapeAttrs to{IntList(full.span())};
  return apply(op_take_along_axis, AxisAttrs{a.axis}, {data, apply(op_broadcast_to, to, {index})});
}

}  // namespace

TW_OP(sequence_mask) = whole({
    .name = "sequence_mask",
    .doc = "data with `value` at and after the length of each sequence.",
    .graph = {.names = "SequenceMask _npx_sequence_mask", .wanted = "sequence_length:use_sequence_length=True"},
    .attrs = schema<SequenceAttrs>(kMaskFields),
    .in = kSequence,
    .types = kFloats,
    .complete = lengths_like_batch,
    .expand = expand_rule<SequenceAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      check(a, in, "SequenceMask");
      if (!a.use_sequence_length) return {copy(in[0])};
      return {where(less(steps(a, in[0]), lengths(a, in[0], in[1])), in[0], Val(a.value))};
    }),
    .samples = {{{.in = {{{4, 2, 3}, {{2}, Domain::index, 5}}}, .attrs = "use_sequence_length=True, value=-1.0"},
                 {.in = {{{2, 4}, {{2}, Domain::index, 5}}}, .attrs = "use_sequence_length=True, axis=1"},
                 {.in = {{{4, 2, 3}}}}}},
});

TW_OP(sequence_last) = whole({
    .name = "sequence_last",
    .doc = "The last step of each sequence.",
    .graph = {.names = "SequenceLast", .wanted = "sequence_length:use_sequence_length=True"},
    .attrs = schema<SequenceAttrs>(kSequenceFields),
    .in = kSequence,
    .types = kFloats,
    .complete = lengths_like_batch,
    .expand = expand_rule<SequenceAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      check(a, in, "SequenceLast");
      int axis = static_cast<int>(a.axis);
      TW_CHECK(in[0]->dims[axis] >= 1, value, "SequenceLast: sequences must have at least one step");
      if (!a.use_sequence_length) return {at_index(in[0], axis, in[0]->dims[axis] - 1)};
      Val last = maximum(lengths(a, in[0], in[1]) - Val(int64_t{1}), Val(int64_t{0}));
      return {at_index(at_steps(a, in[0], last), axis, 0)};
    }),
    .samples = {{{.in = {{{4, 2, 3}, {{2}, Domain::index, 4}}}, .attrs = "use_sequence_length=True"},
                 {.in = {{{4, 2, 3}}}, .attrs = "axis=1"}}},
});

TW_OP(sequence_reverse) = whole({
    .name = "sequence_reverse",
    .doc = "Each sequence backwards; steps at and after its length stay.",
    .graph = {.names = "SequenceReverse", .wanted = "sequence_length:use_sequence_length=True"},
    .attrs = schema<SequenceAttrs>(kSequenceFields),
    .in = kSequence,
    .types = kFloats,
    .complete = lengths_like_batch,
    .expand = expand_rule<SequenceAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      check(a, in, "SequenceReverse");
      if (!a.use_sequence_length) return {backwards(in[0], static_cast<int>(a.axis))};
      Val time = steps(a, in[0]), length = lengths(a, in[0], in[1]);
      return {at_steps(a, in[0], where(less(time, length), length - Val(int64_t{1}) - time, time))};
    }),
    .samples = {{{.in = {{{4, 2, 3}, {{2}, Domain::index, 5}}}, .attrs = "use_sequence_length=True"},
                 {.in = {{{4, 2, 3}}}}}},
});

}  // namespace twibil::ops
