// SPDX-License-Identifier: Apache-2.0
// Attention and rotary positions as ONNX has them since opset 23.
#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(repeat)
TW_DECLARE(take)

namespace {

struct RotaryAttrs {
  bool interleaved = false;
  int64_t num_heads = 0, rotary_embedding_dim = 0;
};
struct AttentionAttrs {
  bool is_causal = false;
  int64_t q_num_heads = 0, kv_num_heads = 0, qk_matmul_output_mode = 0, outputs = 1;
  double softcap = 0;
  Maybe<double> scale;
};

/// (batch, length, heads * size) to (batch, heads, length, size).
Val by_head(const Val& x, int64_t heads, const char* who) {
  TW_CHECK(x->rank() == 3 && heads > 0 && x->dims[2] % heads == 0, value, who, ": data of shape ", x->shape(),
           " cannot be cut into ", heads, " heads");
  return transpose(reshape(x, Shape{x->dims[0], x->dims[1], heads, x->dims[2] / heads}), {0, 2, 1, 3});
}
Val without_heads(const Val& x) {
  return reshape(transpose(x, {0, 2, 1, 3}), Shape{x->dims[0], x->dims[2], x->dims[1] * x->dims[3]});
}

Val rotate(const RotaryAttrs& a, const Val& input, Val cosine, Val sine, const Val& ids) {
  const char* who = "RotaryEmbedding";
  bool flat = input->rank() == 3;
  Val x = flat ? by_head(input, a.num_heads, who) : input;  // (batch, heads, length, size)
  TW_CHECK(x->rank() == 4, value, who, ": data must have three or four axes; got shape ", input->shape());
  int64_t size = x->dims[3], turned = a.rotary_embedding_dim ? a.rotary_embedding_dim : size, half = turned / 2;
  TW_CHECK(turned > 0 && turned <= size && turned % 2 == 0, value, who, ": ", turned, " elements of ", size,
           " cannot be turned");
  if (ids) {
    cosine = With(op_take).set("axis", 0)({cosine, ids});
    sine = With(op_take).set("axis", 0)({sine, ids});
  }
  TW_CHECK(cosine->rank() == 3 && cosine->dims[2] == half, value, who, ": cos_cache of shape ", cosine->shape(),
           " must have ", half, " columns");
  cosine = expand_dims(cosine, 1), sine = expand_dims(sine, 1);
  Val part1, part2, rest = turned < size ? part(x, 3, turned, size - turned) : Val();
  Val front = part(x, 3, 0, turned);
  Shape pairs{x->dims[0], x->dims[1], x->dims[2], half, 2};
  if (a.interleaved) {
    Val p = reshape(front, pairs);
    part1 = at_index(p, 4, 0), part2 = at_index(p, 4, 1);
  } else {
    part1 = part(front, 3, 0, half), part2 = part(front, 3, half, half);
  }
  Val re = part1 * cosine - part2 * sine, im = part1 * sine + part2 * cosine, y;
  if (a.interleaved) y = reshape(join({expand_dims(re, 4), expand_dims(im, 4)}, 4), shape_of(front));
  else y = join({re, im}, 3);
  if (rest) y = join({y, rest}, 3);
  return flat ? without_heads(y) : y;
}

Vals attend(const AttentionAttrs& a, std::span<const Val> in) {
  const char* who = "Attention";
  bool flat = in[0]->rank() == 3;
  Val q = flat ? by_head(in[0], a.q_num_heads, who) : in[0];
  Val k = flat ? by_head(in[1], a.kv_num_heads, who) : in[1], v = flat ? by_head(in[2], a.kv_num_heads, who) : in[2];
  TW_CHECK(q->rank() == 4 && k->rank() == 4 && v->rank() == 4, value, who, ": Q, K and V must have three or four axes");
  int64_t past = in[4] ? in[4]->dims[2] : 0;
  if (in[4]) k = join({in[4], k}, 2);
  if (in[5]) v = join({in[5], v}, 2);
  Val present_k = k, present_v = v;
  int64_t heads = q->dims[1], kv = k->dims[1], length = q->dims[2], total = k->dims[2];
  TW_CHECK(kv > 0 && heads % kv == 0, value, who, ": ", heads, " heads of Q must be a multiple of ", kv, " of K and V");
  if (heads != kv) {  // each head of K and V serves several of Q
    k = With(op_repeat).set("repeats", heads / kv).set("axis", 1)({k});
    v = With(op_repeat).set("repeats", heads / kv).set("axis", 1)({v});
  }
  double root = std::sqrt(a.scale ? *a.scale : 1 / std::sqrt(static_cast<double>(q->dims[3])));
  Val s = matmul(q * Val(root), transpose(k * Val(root), {0, 1, 3, 2})), stage[4];
  DType t = s->dtype();
  stage[0] = s;
  Val bias;
  auto add = [&](const Val& more) { bias = bias ? bias + more : more; };
  if (in[3]) {
    Val mask = in[3];
    if (mask->dtype() == DType::bool_) mask = where(mask, number(0, t), number(-HUGE_VAL, t));
    int64_t given = mask->dims[mask->rank() - 1];
    if (given < total) {  // keys that the mask does not speak of are not seen
      std::vector<int64_t> before(static_cast<size_t>(mask->rank())), after = before;
      after.back() = total - given;
      mask = pad_or_cut(mask, before, after, "constant", Scalar(-HUGE_VAL));
    }
    add(mask);
  }
  auto hidden_unless = [&](const Val& seen) { add(where(seen, number(0, t), number(-HUGE_VAL, t))); };
  check_table(length + total, who);
  std::vector<int64_t> rows, columns;
  for (int64_t i = 0; i < length; ++i) rows.push_back(i + past);
  for (int64_t i = 0; i < total; ++i) columns.push_back(i);
  Val row = int_array(rows, Shape{length, 1}), column = int_array(columns, Shape{1, total}), filled;
  if (in[6]) filled = reshape(cast(in[6], DType::int64), Shape{in[6]->size(), 1, 1, 1});
  // The queries stand at the end of what a cache is filled with.
  if (a.is_causal) hidden_unless(less_equal(column, in[6] ? row + (filled - Val(length)) : row));
  if (in[6]) hidden_unless(less(column, filled));
  if (a.softcap > 0) s = Val(a.softcap) * tanh(s / Val(a.softcap));
  stage[1] = s;
  if (bias) s = s + bias;
  stage[2] = s;
  Val p = softmax(s, -1);
  if (bias) p = where(isnan(p), zeros_like(p), p);  // a row that sees nothing
  stage[3] = p;
  Val y = matmul(p, v);
  Vals out{cast(flat ? without_heads(y) : y, in[0]->dtype())};
  if (a.outputs > 1) out.push_back(present_k);
  if (a.outputs > 2) out.push_back(present_v);
  if (a.outputs > 3) out.push_back(stage[a.qk_matmul_output_mode & 3]);
  return out;
}

}  // namespace

inline constexpr Field kOnnxRotaryFields[] = {
    TW_ATTR(RotaryAttrs, interleaved, "Pairs stand side by side; else halves."),
    TW_ATTR(RotaryAttrs, num_heads, "Number of heads, of data with three axes."),
    TW_ATTR(RotaryAttrs, rotary_embedding_dim, "How many elements are turned; 0: all.")};
inline constexpr Field kOnnxAttentionFields[] = {
    TW_ATTR(AttentionAttrs, is_causal, "A place sees those up to itself."),
    TW_ATTR(AttentionAttrs, q_num_heads, "Heads of Q, of data with three axes."),
    TW_ATTR(AttentionAttrs, kv_num_heads, "Heads of K and V, of data with three axes."),
    TW_ATTR(AttentionAttrs, qk_matmul_output_mode, "Which scores the fourth output has."),
    TW_ATTR(AttentionAttrs, outputs, "How many of the outputs are wanted."),
    TW_ATTR(AttentionAttrs, softcap, "Bound of the scores; 0: none."),
    TW_ATTR(AttentionAttrs, scale, "Factor of the scores; None: one over the root of the size.")};

TW_OP(onnx_rotary_embedding) = whole({
    .name = "onnx_rotary_embedding",
    .doc = "Turns pairs of elements by angles that grow with the place.",
    .onnx = {.names = "RotaryEmbedding:23"},
    .attrs = schema<RotaryAttrs>(kOnnxRotaryFields),
    .in = {{{.name = "X"},
            {.name = "cos_cache"},
            {.name = "sin_cache"},
            {.name = "position_ids", .kind = SlotKind::optional}}},
    .types = kFloats,
    .expand = expand_rule<RotaryAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {rotate(a, in[0], in[1], in[2], in[3])};
    }),
    .samples = {{{.in = {{{1, 2, 3, 4}, {1, 3, 2}, {1, 3, 2}}}}}},
});

TW_OP(onnx_attention) = whole({
    .name = "onnx_attention",
    .doc = "Means of values, weighted by how well keys fit queries.",
    .onnx = {.names = "Attention:23", .attrs = "outputs:@outputs", .unused = "softmax_precision"},
    .attrs = schema<AttentionAttrs>(kOnnxAttentionFields),
    .in = {{{.name = "Q"},
            {.name = "K"},
            {.name = "V"},
            {.name = "attn_mask", .kind = SlotKind::optional},
            {.name = "past_key", .kind = SlotKind::optional},
            {.name = "past_value", .kind = SlotKind::optional},
            {.name = "nonpad_kv_seqlen", .kind = SlotKind::optional}}},
    .count = count_rule<AttentionAttrs>([](auto& a) {
      return static_cast<int>(a.outputs < 1 ? 1 : a.outputs > 4 ? 4 : a.outputs);
    }),
    .types = kFloats,
    .expand = expand_rule<AttentionAttrs>([](auto& a, std::span<const Val> in) { return attend(a, in); }),
    .samples = {{{.in = {{{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}}}}}},
});

}  // namespace twibil::ops
