// SPDX-License-Identifier: Apache-2.0
// Per thread: whether operations are recorded for gradients, and whether networks train or predict.
#pragma once

namespace twibil {

struct Modes {
  bool recording = false;
  bool training = false;
};
extern constinit thread_local Modes modes;

/// Sets both for a scope.
class ModeScope {
 public:
  ModeScope(bool recording, bool training) : before_(modes) { modes = {recording, training}; }
  ~ModeScope() { modes = before_; }
  ModeScope(const ModeScope&) = delete;

 private:
  Modes before_;
};

}  // namespace twibil
