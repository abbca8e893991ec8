// SPDX-License-Identifier: Apache-2.0
// Per thread: whether operations are recorded for gradients, whether networks train or predict, and whether calls are
// traced instead of run.
#pragma once
#include "base/export.h"

namespace twibil {

struct Modes {
  bool recording = false;
  bool training = false;
  bool tracing = false;  // every call goes to ir/trace.h's tracer, whatever its inputs are
};
extern TW_API constinit thread_local Modes modes;

/// Sets recording and training for a scope.
class ModeScope {
 public:
  ModeScope(bool recording, bool training) : before_(modes) {
    modes.recording = recording;
    modes.training = training;
  }
  ~ModeScope() { modes = before_; }
  ModeScope(const ModeScope&) = delete;

 private:
  Modes before_;
};

}  // namespace twibil
