// SPDX-License-Identifier: Apache-2.0
// The list of all operators. Definitions link themselves in when their library starts; names are resolved at first use.
// Operators may be added at any time, also from libraries that are loaded while the program runs.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace twibil {

/// Changes whenever a declaration compiled before would be misread.
inline constexpr uint64_t kOperatorAbi = uint64_t{1} << 48 | uint64_t{sizeof(Value)} << 32 | sizeof(OpDef);

struct Registration {
  TW_API explicit Registration(const OpDef& op, uint64_t abi = kOperatorAbi);
  const OpDef& op;
  uint64_t abi;
  const Registration* next = nullptr;
};

/// All operators, sorted by name, as they are now; the list itself never changes. Throws if two claim one name.
TW_API const std::vector<const OpDef*>& registry();
/// By name; null when there is none.
TW_API const OpDef* find_op(std::string_view name);
/// By name; a key error with the nearest names otherwise.
TW_API const OpDef& require_op(std::string_view name);
/// The operator that claims a role; there is exactly one per role.
TW_API const OpDef& op_with_role(Role role);
/// The operator whose formula is the derivative of `op` by input i, with inputs (x..., dy); made at first use.
const OpDef& derivative_of(const OpDef& op, int input);
/// Names near to `word`, for messages.
TW_API std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

/// Adds an operator that was made at run time and lives to the end of the program. A value error if a part is missing
/// or its name, or a public name, is taken; then nothing changes.
TW_API void register_operator(const OpDef& op);

/// While it lives, definitions that start on this thread are collected instead of linked in: a library that is loaded
/// is checked as a whole. commit() adds them, or throws as register_operator() does.
class RegistrationScope {
 public:
  RegistrationScope();
  ~RegistrationScope();
  RegistrationScope(const RegistrationScope&) = delete;
  std::vector<const OpDef*> commit(std::string_view source);

 private:
  std::vector<Registration*> found_;
};

}  // namespace twibil
