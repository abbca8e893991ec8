// SPDX-License-Identifier: Apache-2.0
// Symbols for C++: a program is declared first, differentiated and compiled as a whole, then run on arrays.
//
//   Symbol A = Variable("A"), B = Variable("B");
//   Symbol D = B * A + Constant(1);
//   Function f = compile(D, {.donate = {"B"}});
//   Array d = f({{"A", Array::ones({10})}, {"B", Array::ones({10}) * 2}});
//
// Every function of twibil/ops.h takes symbols too: op::softmax(s, {.axis = 1}).
#pragma once
#include <map>
#include <memory>
#include <optional>

#include "ir/symbol.h"
#include "passes/plan_memory.h"
#include "twibil/array.h"

namespace twibil {

class Symbol;
class CompiledGraph;
struct NamedSymbol;

/// One or several outputs of a graph. Copies share the graph.
class Symbol {
 public:
  Symbol() = default;     // no symbol: an input that is not given. Parameters then become variables ("fc1_weight")
  Symbol(double number);  // a number of the dtype that it meets
  Symbol(int number);
  explicit Symbol(std::vector<SymbolRef> outputs) : outputs_(std::move(outputs)) {}

  explicit operator bool() const { return !outputs_.empty(); }
  size_t size() const { return outputs_.size(); }
  Symbol operator[](size_t output) const;
  Symbol operator[](const std::string& output_name) const;
  std::string name() const;  // of the node; a value error where the outputs belong to several
  /// Renames the node, and the parameters that were made for it: op::fully_connected(x, {}, {...}).named("fc1").
  Symbol named(const std::string& name) const;

  std::vector<std::string> list_arguments() const;         // variables given at each run
  std::vector<std::string> list_auxiliary_states() const;  // variables that operators update, as running statistics
  std::vector<std::string> list_inputs() const;            // both, in the order of positional calls
  std::vector<std::string> list_outputs() const;
  Symbol get_internals() const;  // the outputs of all nodes: net.get_internals()["fc1_output"]
  Symbol get_children() const;   // the inputs of this symbol's nodes; empty for variables

  /// Texts that users attach to a node ("lr_mult"); no operator reads them.
  std::string attr(const std::string& key) const;  // empty where there is none
  void set_attr(const std::string& key, const std::string& value) const;

  /// Signatures of arguments, outputs and auxiliary states, in the order of the lists above, as far as they follow from
  /// what is given; parameters' follow from the data. What stays unknown is a value error that names the variable, or,
  /// with `partial`, absent.
  struct Inferred {
    std::vector<Sig> arguments, outputs, auxiliary;
  };
  Inferred infer(const std::map<std::string, Sig>& known, bool partial = false) const;
  Inferred infer_shape(const std::map<std::string, Shape>& known, bool partial = false) const;  // in float32

  /// Gradients of the sum of all outputs as an ordinary graph, one output for each of `wrt`: it can be extended,
  /// differentiated again, compiled. head_grads: gradients of the outputs, instead of ones.
  Symbol grad(const std::vector<std::string>& wrt, const std::vector<Symbol>& head_grads = {}) const;
  Symbol grad(std::initializer_list<const char*> wrt, const std::vector<Symbol>& head_grads = {}) const {
    return grad(std::vector<std::string>(wrt.begin(), wrt.end()), head_grads);
  }
  Symbol grad(const std::vector<Symbol>& wrt, const std::vector<Symbol>& head_grads = {}) const;

  /// The graph with variables replaced: net({{"data", features}}).
  Symbol operator()(const std::vector<NamedSymbol>& variables) const;

  const std::vector<SymbolRef>& outputs() const { return outputs_; }

 private:
  std::vector<SymbolRef> outputs_;
};
struct NamedSymbol {
  std::string name;
  Symbol symbol;
};

/// An array that is given at each run.
struct Variable : Symbol {
  struct Options {
    std::optional<Shape> shape = {};  // sizes may be -1 where they are not known
    DType dtype = kUnknownDType;
  };
  explicit Variable(const std::string& name) : Variable(name, Options()) {}
  Variable(const std::string& name, const Options& options);
};
/// A number, or an array as it is now.
struct Constant : Symbol {
  explicit Constant(double number) : Symbol(number) {}
  explicit Constant(int number) : Symbol(number) {}
  explicit Constant(const Array& array);
};
/// The outputs of several symbols as one.
struct Group : Symbol {
  explicit Group(const std::vector<Symbol>& symbols);
};

Symbol operator+(const Symbol& a, const Symbol& b);
Symbol operator-(const Symbol& a, const Symbol& b);
Symbol operator*(const Symbol& a, const Symbol& b);
Symbol operator/(const Symbol& a, const Symbol& b);
Symbol operator-(const Symbol& a);
Symbol operator<(const Symbol& a, const Symbol& b);
Symbol operator>(const Symbol& a, const Symbol& b);
std::string to_string(const Symbol& s);  // one line a node

/// MXNet's graph files, "-symbol.json": those of every version are read, what is written MXNet 1.x reads.
void save_symbol(const std::string& path, const Symbol& s);
Symbol load_symbol(const std::string& path);

/// Any registered operator by its name, as call() in array.h: compose("softmax", {x}, {{"axis", 1}}, "probabilities").
Symbol compose(const OpDef& op, const std::vector<Symbol>& inputs,
               std::initializer_list<NamedAttribute> attributes = {}, const std::string& name = {});
Symbol compose(const char* op, const std::vector<Symbol>& inputs, std::initializer_list<NamedAttribute> attributes = {},
               const std::string& name = {});

struct NamedArray {
  std::string name;
  Array array;
};

/// A compiled symbol: any number of threads may call it. Inside Record its results are on the tape.
class Function {
 public:
  /// By name; by position, in the order of `arguments()`. With several outputs use all().
  Array operator()(const std::vector<NamedArray>& arrays) const;
  template <class... A>
  requires(std::is_convertible_v<A, Array>&&...) Array operator()(const A&... arrays) const {
    return single(all(std::vector<Array>{Array(arrays)...}));
  }
  std::vector<Array> all(const std::vector<NamedArray>& arrays) const;
  std::vector<Array> all(const std::vector<Array>& arrays) const;
  const std::vector<std::string>& arguments() const;

  /// Of the plan for the shapes of the last call; a runtime error before the first one.
  int64_t planned_bytes() const;      // inputs, outputs and what lies between
  int64_t lower_bound_bytes() const;  // the largest sum of values that live at once
  int num_kernels() const;
  passes::MemoryPlan plan() const;
  std::string explain() const;  // what each pass did, the kernels, the memory
  int num_compilations() const;

 private:
  friend class FunctionMaker;
  struct State;
  static Array single(std::vector<Array> results);
  std::shared_ptr<State> state_;
};
struct CompileSettings {
  std::vector<std::string> donate = {};   // variables whose arrays a result may overwrite
  std::vector<std::string> without = {};  // passes to leave out; "everything" for every one that may be
  std::vector<std::string> fixed = {};    // variables whose arrays seldom change, such as weights: work that depends on
                                          // them alone is done once, and again after a change
  bool exact = false;                     // only algorithms that sum products as they stand: no Winograd
  bool autotune = false;  // measures algorithms while compiling, and remembers what was best on this machine
};
Function compile(const Symbol& symbol, const CompileSettings& settings = {});
Function compile(const std::vector<Symbol>& symbols, const CompileSettings& settings = {});

/// A symbol bound to arrays, in MXNet's way: forward, backward, and one gradient array for each argument.
class Executor {
 public:
  /// `arrays`: of all arguments and auxiliary states. grad_req: "write", "add" or "null", for all floating arguments.
  Executor(const Symbol& symbol, const std::vector<NamedArray>& arrays, const std::string& grad_req = "write");
  const std::vector<Array>& forward(bool training = false);
  /// After forward(true). Without head gradients: ones.
  void backward(const std::vector<Array>& head_grads = {});
  const std::vector<Array>& outputs() const { return outputs_; }
  Array array(const std::string& name) const;  // shares its elements with what was bound
  Array grad(const std::string& name) const;   // empty where none is asked for

 private:
  size_t place(const std::string& name) const;
  Function function_;
  std::vector<Array> arrays_, outputs_;
  bool trained_ = false;
};

}  // namespace twibil
