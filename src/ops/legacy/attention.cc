// SPDX-License-Identifier: Apache-2.0
// Products of attention over queries, keys and values that lie side by side: (length, batch, heads * parts * size).
#include <cmath>

#include "ops/legacy/slices.h"
#include "ops/math/elementwise.h"

namespace twibil::ops {

namespace {

struct HeadsAttrs {
  int64_t heads = 1;
};
constexpr Field kHeadsFields[] = {TW_ATTR(HeadsAttrs, heads, "Number of heads.", .required = true)};

/// Part number `which` of x as (batch * heads, length, size).
Val heads_of(const HeadsAttrs& a, const Val& x, int64_t parts, int64_t which, const char* who) {
  TW_CHECK(x->rank() == 3 && a.heads >= 1 && a.heads <= (1 << 20) && x->dims[2] % (a.heads * parts) == 0, value, who,
           ": an array must have shape (length, batch, heads * ", parts, " * size) for ", a.heads, " heads; got ",
           x->shape());
  int64_t length = x->dims[0], batch = x->dims[1], size = x->dims[2] / (a.heads * parts);
  Val one = at_index(reshape(x, Shape{length, batch, a.heads, parts, size}), 3, which);
  return reshape(transpose(one, {1, 2, 0, 3}), Shape{batch * a.heads, length, size});
}
Val scores(const Val& query, const Val& key) {
  double size = static_cast<double>(std::max<int64_t>(1, query->dims[2]));
  return matmul(query * std::pow(size, -0.5), transpose(key, {0, 2, 1}));
}
/// attention (batch * heads, length, other) applied to values, as (length, batch, heads * size).
Val mixed(const HeadsAttrs& a, const Val& attention, const Val& values, const char* who) {
  TW_CHECK(attention->rank() == 3 && attention->dims[0] == values->dims[0] && attention->dims[2] == values->dims[1],
           value, who, ": attention of shape ", attention->shape(), " does not fit values of shape ", values->shape());
  int64_t batch = values->dims[0] / a.heads, length = attention->dims[1], size = values->dims[2];
  Val y = transpose(reshape(matmul(attention, values), Shape{batch, a.heads, length, size}), {2, 0, 1, 3});
  return reshape(y, Shape{length, batch, a.heads * size});
}

}  // namespace

TW_OP(self_attention_scores) = whole({
    .name = "self_attention_scores",
    .doc = "Queries times keys over the root of their size, (batch * heads, length, length).",
    .graph = {.names = "_contrib_interleaved_matmul_selfatt_qk"},
    .attrs = schema<HeadsAttrs>(kHeadsFields),
    .in = {{{.name = "queries_keys_values"}}},
    .types = kFloats,
    .expand = expand_rule<HeadsAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "interleaved_matmul_selfatt_qk";
      return {scores(heads_of(a, in[0], 3, 0, who), heads_of(a, in[0], 3, 1, who))};
    }),
    .samples = {{{.in = {{{3, 2, 12}}}, .attrs = "heads=2"}}},
});

TW_OP(self_attention_values) = whole({
    .name = "self_attention_values",
    .doc = "Attention applied to the values, (length, batch, heads * size).",
    .graph = {.names = "_contrib_interleaved_matmul_selfatt_valatt"},
    .attrs = schema<HeadsAttrs>(kHeadsFields),
    .in = {{{.name = "queries_keys_values"}, {.name = "attention"}}},
    .types = kFloats,
    .expand = expand_rule<HeadsAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "interleaved_matmul_selfatt_valatt";
      return {mixed(a, in[1], heads_of(a, in[0], 3, 2, who), who)};
    }),
    .samples = {{{.in = {{{3, 2, 12}, {4, 3, 3}}}, .attrs = "heads=2"}}},
});

TW_OP(cross_attention_scores) = whole({
    .name = "cross_attention_scores",
    .doc = "Queries of one sequence times keys of another, (batch * heads, length, other length).",
    .graph = {.names = "_contrib_interleaved_matmul_encdec_qk"},
    .attrs = schema<HeadsAttrs>(kHeadsFields),
    .in = {{{.name = "queries"}, {.name = "keys_values"}}},
    .types = kFloats,
    .expand = expand_rule<HeadsAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "interleaved_matmul_encdec_qk";
      return {scores(heads_of(a, in[0], 1, 0, who), heads_of(a, in[1], 2, 0, who))};
    }),
    .samples = {{{.in = {{{3, 2, 4}, {5, 2, 8}}}, .attrs = "heads=2"}}},
});

TW_OP(cross_attention_values) = whole({
    .name = "cross_attention_values",
    .doc = "Attention applied to the values of another sequence, (length, batch, heads * size).",
    .graph = {.names = "_contrib_interleaved_matmul_encdec_valatt"},
    .attrs = schema<HeadsAttrs>(kHeadsFields),
    .in = {{{.name = "keys_values"}, {.name = "attention"}}},
    .types = kFloats,
    .expand = expand_rule<HeadsAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      const char* who = "interleaved_matmul_encdec_valatt";
      return {mixed(a, in[1], heads_of(a, in[0], 2, 1, who), who)};
    }),
    .samples = {{{.in = {{{5, 2, 8}, {4, 3, 5}}}, .attrs = "heads=2"}}},
});

}  // namespace twibil::ops
