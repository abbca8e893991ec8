// SPDX-License-Identifier: Apache-2.0
// Puts a call on the autograd tape.
#pragma once
#include "ir/node.h"

namespace twibil {

/// Whether a call of `op` on these inputs has to be recorded.
bool must_record(const OpDef& op, std::span<Value* const> in);
/// Links fresh outputs to a new node. `out` are all outputs, hidden ones too.
void record_call(const OpDef& op, const void* attrs, std::span<Value* const> in, std::span<Value* const> out,
                 bool training, RandomKey key);

}  // namespace twibil
