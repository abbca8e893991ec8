// SPDX-License-Identifier: Apache-2.0
// The list of all operators. Definitions link themselves in at start; names are resolved at first use.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace twibil {

struct Registration {
  explicit Registration(const OpDef& op);
  const OpDef& op;
  const Registration* next;
};

/// All operators, sorted by name. Throws if two claim one name.
const std::vector<const OpDef*>& registry();
/// By name; null when there is none.
const OpDef* find_op(std::string_view name);
/// By name; a key error with the nearest names otherwise.
const OpDef& require_op(std::string_view name);
/// The operator that claims a role; there is exactly one per role.
const OpDef& op_with_role(Role role);
/// The operator whose formula is the derivative of `op` by input i, with inputs (x..., dy); made at first use.
const OpDef& derivative_of(const OpDef& op, int input);
/// Names near to `word`, for messages.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace twibil
