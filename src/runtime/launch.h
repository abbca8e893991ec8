// SPDX-License-Identifier: Apache-2.0
// One run of one operator on values whose shapes are decided: on the calling thread, or queued on the engine.
#pragma once
#include <string>

#include "ir/op.h"

namespace twibil::engine {
struct Variable;
}

namespace twibil {

/// What a run needs. Attributes and values must outlive it; the engine's queue copies and counts them.
struct Launch {
  const OpDef& op;
  const void* attrs;
  std::span<Value* const> in;  // null: absent
  std::span<Value*> out;       // allocated, except for data-dependent operators
  SigsIn in_sigs, out_sigs;
  DType work = kUnknownDType;  // of pointwise operators: the type to compute in
  bool training = false;
  RandomKey key;
};

/// Runs the kernel now. Inputs must be ready.
void run_kernel(Launch& launch);
/// Puts the operator's name before a message of a part, or of a helper that does not know for whom it works.
void name_error(const OpDef& op, Error& error);
/// Runs it now when it is small and its inputs are ready, else queues it.
void launch(Launch& launch);

/// The engine's state of a value's storage: null while nothing was queued on it; made when it has none.
engine::Variable* state_of(const Value& v);
engine::Variable* make_state(const Value& v);
TW_API void wait_to_read(const Value& v);   // until pending writes are done; throws what went wrong in them
TW_API void wait_to_write(const Value& v);  // until pending reads and writes are done
bool is_ready(const Value& v);
void wait_all();

/// Where the user's program stands now ("train.py:12"), for messages about queued work; installed by a front end.
extern std::string (*call_site_hook)();

}  // namespace twibil
