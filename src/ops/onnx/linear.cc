// SPDX-License-Identifier: Apache-2.0
// Matrix products with factors and sums around them.
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(fully_connected)

namespace {

struct GemmAttrs {
  double alpha = 1, beta = 1;
  bool trans_a = false, trans_b = false;
};

Val scaled(const Val& x, double by) { return by == 1 ? x : cast(x * Val(by), x->dtype()); }

Val gemm(const GemmAttrs& g, const Val& a, const Val& b, const Val& c) {
  TW_CHECK(a->rank() == 2 && b->rank() == 2, value, "Gemm: A and B must be matrices; got shapes ", a->shape(), " and ",
           b->shape());
  Val left = g.trans_a ? transpose(a, {1, 0}) : a;
  int64_t columns = b->dims[g.trans_b ? 0 : 1];
  bool row = c && c->size() == columns && c->rank() >= 1 && c->dims[c->rank() - 1] == columns;
  if (is_floating(a->dtype()) && (!c || row)) {  // a dense layer
    Val weight = scaled(g.trans_b ? b : transpose(b, {1, 0}), g.alpha);
    With call(op_fully_connected);
    call.set("num_hidden", columns).set("no_bias", !c).set("flatten", false);
    return call({left, weight, c ? scaled(reshape(c, Shape{columns}), g.beta) : Val()});
  }
  Val y = scaled(matmul(left, g.trans_b ? transpose(b, {1, 0}) : b), g.alpha);
  return c ? y + scaled(c, g.beta) : y;
}

}  // namespace

inline constexpr Field kOnnxGemmFields[] = {
    TW_ATTR(GemmAttrs, alpha, "Factor of the product."), TW_ATTR(GemmAttrs, beta, "Factor of C."),
    TW_ATTR(GemmAttrs, trans_a, "A is transposed."), TW_ATTR(GemmAttrs, trans_b, "B is transposed.")};

TW_OP(onnx_gemm) = whole({
    .name = "onnx_gemm",
    .doc = "alpha * A B + beta * C.",
    .onnx = {.names = "Gemm:7", .attrs = "alpha=1 beta=1 trans_a:transA trans_b:transB"},
    .attrs = schema<GemmAttrs>(kOnnxGemmFields),
    .in = {{{.name = "A"}, {.name = "B"}, {.name = "C", .kind = SlotKind::optional}}},
    .types = kReals,
    .expand = expand_rule<GemmAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {gemm(a, in[0], in[1], in[2])};
    }),
    .samples = {{{.in = {{{3, 4}, {4, 5}, SampleInput({5})}}, .attrs = "alpha=0.5"},
                 {.in = {{{4, 3}, {5, 4}, {3, 5}}}, .attrs = "trans_a=True, trans_b=True, beta=2"}}},
});

}  // namespace twibil::ops
