// SPDX-License-Identifier: Apache-2.0
// A symbol as a function on arrays: compiled once per signature (shapes, dtypes, mode, which arguments want gradients),
// and part of the tape like any operator.
#pragma once
#include <atomic>
#include <map>
#include <mutex>

#include "passes/pipeline.h"
#include "runtime/executable.h"
#include "runtime/lower.h"

namespace twibil {

struct CompileOptions {
  std::vector<std::string> without;  // passes that are left out
  std::vector<bool> donate;          // inputs whose memory the result may take
  std::vector<bool> fixed = {};      // inputs that seldom change from call to call (parameters); captured ones are such
  double keep =
      1;  // the share of values for gradients that may be kept; the rest is computed again (passes/recompute.h)
  bool exact = false;     // only algorithms that sum products as they stand
  bool autotune = false;  // measures algorithms while compiling, and remembers what was best on this machine
};

class CompiledGraph : public std::enable_shared_from_this<CompiledGraph> {
 public:
  /// `inputs`: variables and captured arrays in the order of the call's arguments; all that the heads reach.
  /// `effects`: nodes that run for what they write into the inputs.
  CompiledGraph(std::vector<SymbolRef> heads, std::vector<SymbolRef> effects, std::vector<SymbolNodePtr> inputs,
                CompileOptions options = {});

  /// Runs in the modes of the thread. With recording on, the outputs are on the tape; in a trace the parts are traced.
  /// The result of a donated input's memory is that input.
  std::vector<Val> call(std::span<const Val> arguments);
  /// One call after the other, without a plan.
  std::vector<Val> interpret(std::span<const Val> arguments, Interpreter::Watch watch = {}) const;

  /// What a compilation is for.
  struct Signature {
    std::vector<Sig> sigs;
    bool training = false;
    std::vector<bool> wants;  // which inputs want a gradient
  };
  struct Prologue;  // what depends on parameters alone, and its results
  struct Prepared;  // the results of all signatures' prologues, which share what is equal
  struct Compiled {
    Compiled();
    ~Compiled();
    Signature signature;
    std::unique_ptr<const Executable> executable;
    std::unique_ptr<Prologue> prologue;  // null: there is none
    passes::PipelineReport report;
    double lower_seconds = 0;
  };
  /// Compiles, or finds what was compiled.
  std::shared_ptr<const Compiled> compile(std::span<const Sig> sigs, bool training, const std::vector<bool>& wants,
                                          bool explain = false);

  /// The compilation that was used last, or null.
  std::shared_ptr<const Compiled> last() const;

  const std::vector<SymbolRef>& heads() const { return heads_; }
  const std::vector<SymbolNodePtr>& inputs() const { return inputs_; }
  const CompileOptions& options() const { return options_; }
  /// CompileOptions::keep for what is compiled from now on; what was compiled is compiled again when it is used.
  void set_keep(double share);
  /// CompileOptions::exact and autotune, and the names of inputs that are `fixed`, in the same way.
  void set_rules(bool exact, bool autotune);
  void set_fixed(const std::vector<std::string>& names);
  int compilations() const { return compilations_; }
  bool depends_on_data() const { return depends_on_data_; }

 private:
  std::shared_ptr<const Compiled> compiled_for(std::span<const Val> arguments);
  void forget();  // what was compiled, as the options changed; the lock is held
  std::vector<SymbolRef> heads_, effects_;
  std::vector<SymbolNodePtr> inputs_;
  CompileOptions options_;
  std::atomic<bool> depends_on_data_{false};  // shapes follow from values: there is no plan
  int compilations_ = 0, changes_ = 0;
  std::shared_ptr<Prepared> prepared_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Compiled> last_;
  std::map<std::string, std::shared_ptr<const Compiled>> cache_;
};

}  // namespace twibil
