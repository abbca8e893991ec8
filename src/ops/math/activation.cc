// SPDX-License-Identifier: Apache-2.0
// MXNet's Activation: one of several functions, chosen by name.
#include "ops/math/elementwise.h"

namespace twibil::ops {

struct ActivationAttrs {
  Choice act_type;
};
inline constexpr Field kActivationFields[] = {
    TW_ATTR(ActivationAttrs, act_type, "Which function.",
            .choices = "relu|sigmoid|tanh|softrelu|softsign|log_sigmoid|mish", .required = true),
};

TW_DECLARE(relu)
TW_DECLARE(softplus)
TW_DECLARE(softsign)
TW_DECLARE(log_sigmoid)
TW_DECLARE(mish)

TW_OP(activation) = whole({
    .name = "activation",
    .doc = "Applies the activation function called act_type to each element.",
    .names = {"npx.activation", "nd.Activation"},
    .attrs = schema<ActivationAttrs>(kActivationFields),
    .in = kData,
    .types = kFloats,
    .expand = expand_rule<ActivationAttrs>([](auto& a, auto in) -> Vals {
      static constexpr const OpDef* kByName[] = {&op_relu,     &op_sigmoid,     &op_tanh, &op_softplus,
                                                 &op_softsign, &op_log_sigmoid, &op_mish};
      return {apply(*kByName[a.act_type], {in[0]})};
    }),
    .samples = {{
        {.in = {{{3, 4}}}, .attrs = "act_type=relu"},
        {.in = {{{3, 4}}}, .attrs = "act_type=softrelu"},
        {.in = {{{3, 4}}}, .attrs = "act_type=softsign"},
        {.in = {{{3, 4}}}, .attrs = "act_type=log_sigmoid"},
        {.in = {{{3, 4}}}, .attrs = "act_type=mish"},
        {.in = {{{3, 4}}}, .attrs = "act_type=tanh"},
    }},
});

}  // namespace twibil::ops
