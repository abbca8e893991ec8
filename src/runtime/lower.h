// SPDX-License-Identifier: Apache-2.0
// From a symbol to a typed graph: the symbol is run on traced arguments, so composed operators become their parts,
// prediction forms replace training ones, and gradients are those of the eager tape.
#pragma once
#include <functional>
#include <unordered_map>

#include "ir/symbol.h"

namespace twibil {

/// What a variable (or captured array) of the symbol is in this compilation.
struct Argument {
  SymbolNode* node;
  Sig sig;
  bool wants_gradient = false;
  bool fixed = false;  // an array that seldom changes from run to run (a parameter)
};
struct LowerOptions {
  bool training = false;
  bool gradients = false;  // the backward part too: outputs and arguments of the graph grow by gradients, see lower()
};

/// The typed graph. Without gradients its outputs are the heads. With them each floating head that depends on an
/// argument that wants a gradient adds an argument (its gradient, Graph::head_grads), and each such argument adds an
/// output (its gradient; an absent edge if no head depends on it). `effects` are values that are computed for what they
/// update. Errors name the node's operator, and where it was called.
Graph lower(std::span<const SymbolRef> heads, std::span<const SymbolRef> effects, std::span<const Argument> arguments,
            const LowerOptions& options);

/// Values of symbols on given arrays, one call after the other: for graphs whose shapes depend on values, for
/// gradients of gradients, and as the reference of the compiled way.
class Interpreter {
 public:
  explicit Interpreter(std::unordered_map<const SymbolNode*, Val> given) : given_(std::move(given)) {}
  std::vector<Val> run(std::span<const SymbolRef> heads);
  /// All outputs of each node that ran, for monitors.
  const std::unordered_map<const SymbolNode*, std::vector<Val>>& values() const { return values_; }
  using Watch = std::function<void(const SymbolNode&, std::span<const Val> in, std::span<const Val> out)>;
  Watch watch;  // called after each node that is no input

 private:
  Val value_of(const SymbolRef& r);
  std::vector<Val> inputs_of(const SymbolNode& n);
  std::vector<Val> call(const SymbolNode& n);
  std::vector<Val> function(const SymbolNode& n);
  std::vector<Val> backward(const SymbolNode& n);
  std::unordered_map<const SymbolNode*, Val> given_;
  std::unordered_map<const SymbolNode*, std::vector<Val>> values_;
};

/// Shapes and dtypes of variables and outputs as far as they follow from what is known. Those of parameters follow from
/// the data by the operators' rules. Unknown ones stay absent; `partial` false makes that an error which names the
/// variable.
struct InferredSigs {
  std::unordered_map<const SymbolNode*, std::vector<Sig>> nodes;  // of variables one, of others all visible outputs
  Sig of(const SymbolRef& r) const;
};
InferredSigs infer_sigs(std::span<const SymbolRef> heads, const std::unordered_map<const SymbolNode*, Sig>& known,
                        bool training, bool partial);

}  // namespace twibil
