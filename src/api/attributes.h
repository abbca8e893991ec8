// SPDX-License-Identifier: Apache-2.0
// Attributes by name, as C++ writes them, into an operator's own struct.
#pragma once
#include "ir/graph.h"
#include "twibil/array.h"

namespace twibil {

/// The defaults, changed by what is given. A type error for names that the operator does not have, and for required
/// attributes that are missing.
AttrBytes pack_attributes(const OpDef& op, std::initializer_list<NamedAttribute> attributes);

}  // namespace twibil
