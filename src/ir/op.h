// SPDX-License-Identifier: Apache-2.0
// OpDef: everything about one operator, as one constant. Front ends, runtime, passes and tests ask it for facts;
// nobody else knows an operator by name.
#pragma once
#include <array>
#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include "base/program.h"
#include "ir/attr.h"
#include "ir/value.h"

namespace twibil {

struct OpDef;

// ---- dtypes -------------------------------------------------------------------------------------------------------
using DTypeSet = uint16_t;
constexpr DTypeSet bit_of(DType t) { return static_cast<DTypeSet>(1u << static_cast<int>(t)); }
inline constexpr DTypeSet kBool = bit_of(DType::bool_);
inline constexpr DTypeSet kInts =
    bit_of(DType::int8) | bit_of(DType::uint8) | bit_of(DType::int32) | bit_of(DType::int64);
inline constexpr DTypeSet kHalves = bit_of(DType::float16) | bit_of(DType::bfloat16);
inline constexpr DTypeSet kFloats = kHalves | bit_of(DType::float32) | bit_of(DType::float64);
inline constexpr DTypeSet kReals = kInts | kFloats;
inline constexpr DTypeSet kAll = kBool | kReals;
constexpr bool contains(DTypeSet set, DType t) { return (set >> static_cast<int>(t)) & 1; }

// ---- inputs and outputs -------------------------------------------------------------------------------------------
enum class SlotKind : uint8_t { required, optional, variadic, aux };  // aux: state, which some forms update
struct Slot {
  const char* name = nullptr;
  SlotKind kind = SlotKind::required;
  const char* doc = nullptr;
  const char* renames = nullptr;  // other keywords, separated by blanks ("min amin")
  bool shape_only = false;        // shape and dtype are read, never the elements
  bool value = false;             // of composed operators: its elements decide the parts (the sizes of a reshape)
};

/// What a kernel sees of an array.
struct Buffer {
  std::byte* data = nullptr;
  const int64_t* dims = nullptr;
  const int64_t* strides = nullptr;  // in elements; null: row-major
  int64_t size = 0;
  DType dtype = kUnknownDType;
  uint8_t rank = 0;
  bool present() const { return dtype != kUnknownDType; }
  template <class T> T* as() const { return reinterpret_cast<T*>(data); }
  std::span<const int64_t> shape() const { return {dims, rank}; }
  int64_t dim(int i) const { return dims[i]; }
};
struct RandomKey {
  uint64_t seed = 0, counter = 0;
};
/// One run of a kernel.
struct Call {
  const OpDef& op;
  std::span<const Buffer> in;
  std::span<Buffer> out;
  bool training = false;  // for operators with .trains
  RandomKey key;          // for operators with .random
  /// Allocates output k once its shape is known; for operators with .data_dependent.
  std::byte* allocate(int k, const Shape& shape) { return allocate_output(*this, k, shape); }
  std::byte* (*allocate_output)(Call&, int, const Shape&) = nullptr;
  void* owner = nullptr;
};

using SigsIn = std::span<const Sig>;
using SigsOut = std::span<Sig>;
using InferFunction = void (*)(const void* attrs, SigsIn in, SigsOut out);
using CostFunction = double (*)(const void* attrs, SigsIn in, SigsIn out);
/// Looks at sizes and strides of the call's buffers; their data is null.
using AlgorithmFunction = const char* (*)(const void* attrs, const Call& call);
using KernelFunction = void (*)(const void* attrs, Call& call);
/// Fills the signatures of inputs that are not known yet (parameters) from those that are; an unknown one is absent.
using CompleteFunction = void (*)(const void* attrs, std::span<Sig> in);
using ViewFunction = Layout (*)(const void* attrs, const Layout& x);
/// Where the elements of input i lie one after the other in output 0 of an operator that joins arrays, as the index of
/// the first; -1 where they lie apart.
using JoinFunction = int64_t (*)(const void* attrs, SigsIn in, int i);

// ---- gradients ----------------------------------------------------------------------------------------------------
/// A short list of values; entries may be null.
class Vals {
 public:
  Vals() = default;
  Vals(std::initializer_list<Val> list) {
    for (const Val& v : list) push_back(v);
  }
  TW_API void push_back(Val v);
  int size() const { return size_; }
  Val& operator[](int i) { return i < kInPlace ? items_[i] : more_[i - kInPlace]; }
  const Val& operator[](int i) const { return i < kInPlace ? items_[i] : more_[i - kInPlace]; }

 private:
  static constexpr int kInPlace = 4;
  Val items_[kInPlace];
  std::unique_ptr<Val[]> more_;
  int size_ = 0, room_ = 0;
};

/// What a gradient rule may ask. Values outside the operator's `needs` come as shape only.
class Grad {
 public:
  virtual Val x(int i) const = 0;        // input; null when absent
  virtual Val y(int i = 0) const = 0;    // output
  virtual Val dy(int i = 0) const = 0;   // gradient of output i; zeros when nothing arrived there
  virtual bool has_dy(int i) const = 0;  // whether something arrived (to skip work)
  virtual bool wants(int i) const = 0;   // whether anybody asks for the gradient of input i
  virtual int inputs() const = 0;
  virtual bool training() const = 0;
  virtual RandomKey key() const = 0;

 protected:
  ~Grad() = default;
};
using GradFunction = Vals (*)(const void* attrs, const Grad& g);
using PredictFunction = Vals (*)(const void* attrs, std::span<const Val> in);
using ExpandFunction = PredictFunction;

/// x * scale + shift along one axis of x; both have that axis' size.
struct Affine {
  Val scale, shift;
  int axis = 0;
};
/// What an operator that maps each channel of its first input by fixed numbers computes, from its other inputs (input 0
/// comes as shape only).
using AffineFunction = Affine (*)(const void* attrs, std::span<const Val> in);
/// Changes the inputs after the first, and attributes, so that the result is a * scale + shift of what it was. False,
/// with nothing changed, where it cannot.
using AbsorbFunction = bool (*)(void* attrs, std::span<Val> in, const Affine& a);

/// Along how many leading axes an operator treats each position apart from all others: there a block of its inputs
/// gives the same block of its outputs. Inputs whose bit is set in `whole` have no such axes (weights).
struct Rows {
  int axes = 0;
  uint32_t whole = 0;
};
using RowsFunction = Rows (*)(const void* attrs, SigsIn in);
/// What a reduction of its first input folds.
struct Folds {
  uint32_t (*axes)(const void* attrs, int rank) = nullptr;  // bit i: axis i
  void (*over_first)(void* attrs) = nullptr;  // attributes that fold results of parts, stacked, into that of the whole
  bool equal_parts = false;                   // which is right for parts of one size only (means)
};

/// Bits of `needs`: which inputs and outputs a gradient reads as data.
using NeedsMask = uint32_t;
constexpr NeedsMask X(int i) { return 1u << i; }
constexpr NeedsMask Y(int i) { return 1u << (16 + i); }
inline constexpr NeedsMask kNeedsNothing = 0, X0 = X(0), X1 = X(1), X2 = X(2), Y0 = Y(0), Y1 = Y(1), Y2 = Y(2);
inline constexpr NeedsMask kAllInputs = 0xffff;  // variadic operators

// ---- channels in blocks: see passes/choose_layouts.h --------------------------------------------------------------
/// A call of a graph for prediction, as it stands before layouts are chosen, and what the user wants of the kernels.
struct BlockedQuery {
  SigsIn in, out;
  bool exact = false, autotune = false;
};
/// How an operator would compute its output 0 in blocks of channels.
struct BlockedPlan {
  bool possible = false;
  NeedsMask inputs = 0;  // those that it reads in blocks
  NeedsMask fixed = 0;   // those that must follow from parameters alone
  double gain = 0;       // how much better it is, in bytes that could be moved meanwhile
  bool reads(int i) const { return inputs == kAllInputs || (i < 16 && (inputs >> i & 1)); }
};
using BlockedPlanFunction = BlockedPlan (*)(const void* attrs, const BlockedQuery& q);
using BlockedFunction = Val (*)(const void* attrs, const BlockedQuery& q, std::span<const Val> in);
struct BlockedForm {
  BlockedPlanFunction plan = nullptr;
  BlockedFunction compute = nullptr;  // of a possible plan; the inputs come as it says, the result is in blocks
};
/// What an operator can do to its result before it writes it: add an array, then keep it between two numbers.
struct Epilogue {
  // Where another operator has it: which, its attributes from those of this one, and the inputs that it does not read.
  const OpDef* as = nullptr;
  NeedsMask (*convert)(const void* attrs, void* converted) = nullptr;
  int8_t addend = -1;                         // the optional input that is added, in the result's shape
  bool (*adds)(const void* attrs) = nullptr;  // whether it still can: nothing was clamped yet
  void (*clamp)(void* attrs, double low, double high) = nullptr;
};

/// What is said of one of a kernel's algorithms for a call: why it does not take it, as a sentence, or what it costs.
struct AlgorithmVerdict {
  std::string name, refusal;
  double seconds = 0;  // predicted or measured
  bool measured = false;
};
using VerdictsFunction = std::vector<AlgorithmVerdict> (*)(const void* attrs, const Call& call);

/// Of an operator that computes each pixel from the same pixel of input 0, by weights, and adds a bias: takes the bias
/// out. It comes back in a shape that broadcasts over the result, or stays null. False: it is no such call.
using SplitBiasFunction = bool (*)(void* attrs, std::span<Val> in, Val& bias);

/// Of an operator each channel (axis 1) of whose result follows from input 0 and from its own part of the other inputs:
/// how several calls on one input become one.
struct Merge {
  /// Adds the channels of another call behind those of this one. False, with nothing changed, where it cannot.
  bool (*add)(void* attrs, std::span<Val> in, const void* other_attrs, std::span<const Val> other) = nullptr;
  Val (*part)(const Val& y, int64_t begin, int64_t size) = nullptr;  // some channels of the result
};

/// How a pointwise operator's result type follows from its inputs.
enum class Rule : uint8_t {
  same,       // the promoted type
  floating,   // the promoted type, integers and bool become the default float
  compare,    // bool
  arithmetic  // as same, but bool becomes int64 (sums of bools are counts)
};
/// What passes may do with an operator without knowing its name.
enum class Role : uint8_t {
  none,
  accumulate,
  identity,
  sum_to_like,
  zeros_like,
  ones_like,
  cast,
  copy,
  assign,
  broadcast_like,
  to_blocks,
  from_blocks,
  stack,  // several arrays along a new axis
  item    // one element of an axis; the index is an attribute
};
/// How MXNet's graph files spell calls of an operator, where its public names do not say it; ir/graph_form.h reads it.
struct GraphForm {
  const char* names = nullptr;   // separated by blanks; files get the first
  const char* attrs = nullptr;   // "axis:dim=1 mode=clip": own attribute, the files' word for it, and their default
  const char* inputs = nullptr;  // what files call the inputs, of which variables get their names ("bn0_moving_mean")
  const char* wanted = nullptr;  // "gamma:act_type=prelu": optional inputs that a call needs where an attribute says so
};
/// How ONNX models spell calls of an operator; ir/onnx_form.h reads it.
struct OnnxForm {
  const char* names = nullptr;   // "Relu Softmax:13 Upsample:7-9 com.microsoft.Gelu": with opsets, where not all fit
  const char* attrs = nullptr;   // "axis=1 newshape:shape": own attribute, ONNX's word for it, ONNX's default. The word
                                 // @outputs stands for the number of the node's outputs, @opset for the model's opset
  const char* unused = nullptr;  // "storage_order saturate=1": attributes that change nothing here (with that value)
};
using CountFunction = int (*)(const void* attrs);
struct Pair {  // output shares or updates input
  int8_t output = -1, input = -1;
};
/// An operator without effects that gives output 0 again. It has the same attributes and inputs, only that some outputs
/// of the first run stand in place of inputs.
struct Again {
  const OpDef* op = nullptr;
  std::array<Pair, 2> from = {};
};

// ---- samples ------------------------------------------------------------------------------------------------------
enum class Domain : uint8_t {
  real,       // about -2 to 2, with zeros and ties among them
  positive,   // 0.1 to 3
  unit,       // -0.9 to 0.9
  above_one,  // 1.1 to 4
  index,      // integers 0 to bound - 1
  boolean,
  boxes,   // last axis: x1 < x2, y1 < y2 in [0, 1]
  integer  // small whole numbers, -4 to 4
};
struct SampleInput {
  int16_t dims[6] = {};
  int8_t rank = -1;  // absent
  Domain domain = Domain::real;
  int16_t bound = 0;
  constexpr SampleInput() = default;
  constexpr SampleInput(std::initializer_list<int> shape, Domain d = Domain::real, int limit = 0)
      : rank(static_cast<int8_t>(shape.size())), domain(d), bound(static_cast<int16_t>(limit)) {
    int i = 0;
    for (int s : shape) dims[i++] = static_cast<int16_t>(s);
  }
};
inline constexpr SampleInput kAbsent{};
struct Sample {
  std::array<SampleInput, 6> in = {};
  const char* attrs = "";  // "axis=1, keepdims=True"
  bool smooth = true;      // finite differences apply (no kink or tie is met)
};

// ---- the definition -----------------------------------------------------------------------------------------------
struct OpDef {
  const char* name = nullptr;              // C++ and graph name
  const char* doc = nullptr;               // one sentence, present tense; more lines may follow
  std::array<const char*, 10> names = {};  // public names: "np.sum", "npx.relu", "ndarray.sum" (a method), "nd.sum"
  GraphForm graph = {};
  OnnxForm onnx = {};
  const OpDef* scalar_form = nullptr;           // the operator for (x, number), with the attribute `scalar`
  const OpDef* reversed_scalar_form = nullptr;  // for (number, x)
  AttrSchema attrs = {};
  std::array<Slot, 14> in = {};
  std::array<const char*, 6> out = {};
  int8_t visible = 0;             // outputs that users see; 0: all
  CountFunction count = nullptr;  // of composed operators: how many outputs, where attributes decide it
  // pointwise operators: the formula gives shape, kernel, and with auto_grad the gradient
  const Program* program = nullptr;
  Rule rule = Rule::same;
  // all others
  InferFunction infer = nullptr;
  DTypeSet types = 0;  // accepted by the kernel (of the promoted type, for pointwise)
  KernelFunction kernel = nullptr;
  CompleteFunction complete = nullptr;  // graphs whose parameters have no shape yet
  bool strided = false;                 // the kernel honours strides; otherwise inputs arrive row-major
  bool same_dtype = false;              // inputs arrive in the dtype of output 0 (converted where they differ)
  ViewFunction view = nullptr;          // replaces infer and kernel where the result can be a view
  ExpandFunction expand = nullptr;      // replaces all of these: the call is rewritten as calls of other operators
  // gradient
  NeedsMask needs = 0;
  GradFunction grad = nullptr;
  bool auto_grad = false;                // derive the formula, or use `derivatives`
  const Program* derivatives = nullptr;  // by each input: formulas of (inputs..., dy) that somebody wrote
  const char* no_grad = nullptr;         // why there is none
  // facts
  std::array<Pair, 3> inplace = {};  // output k may use the memory of input i
  std::array<Pair, 6> updates = {};  // output k *is* input i, written in place
  Again again = {};                  // of an operator with updates: how its result is had a second time
  JoinFunction joins = nullptr;      // inputs that are computed where this says need no copying
  Role role = Role::none;
  bool random = false, trains = false, data_dependent = false;
  bool overwrites = false;  // writes all elements of what it updates and reads none of them
  bool in_order = false;    // a view of a row-major array is its elements in the shape that infer gives
  bool keeps = false;       // gives its first input where that has the result's shape and dtype already
  bool unfolds = false;  // composed: replaced by its parts wherever it is called, also where a trace keeps calls as the
                         // user wrote them, for its parts depend on elements (Slot::value), or are known at once
  bool creates = false;  // has no array input: shape and dtype come from attributes
  bool heavy = false;    // cost grows faster than its bytes (matrix products, convolutions)
  double (*cost)(const void* attrs, SigsIn in, SigsIn out) = nullptr;  // arithmetic operations, for heavy ones
  AlgorithmFunction algorithm = nullptr;  // where the kernel has several: which one a call takes, for people
  PredictFunction predict = nullptr;      // what a .trains operator is outside training
  RowsFunction rows = nullptr;            // of operators that can run on a few rows at a time; pointwise ones need none
  Folds folds = {};                       // of reductions
  AffineFunction affine = nullptr;        // of operators that scale and shift channels
  AbsorbFunction absorb = nullptr;        // of operators that a scale and shift of their channels can be folded into
  BlockedForm blocked = {};               // how it is computed in blocks of channels
  Epilogue epilogue = {};
  SplitBiasFunction split_bias = nullptr;
  bool (*averages)(const void* attrs) = nullptr;  // linear in input 0, and the same for each channel by itself
  Merge merge = {};
  VerdictsFunction verdicts = nullptr;  // of the algorithms that a call could take, for people
  bool prepares = false;                // lays out parameters for a kernel, once, however large the result is
  std::array<Sample, 6> samples = {};

  // filled in by whole()
  int8_t input_count = 0, output_count = 1;  // of `in` and `out`
  bool plain = false;                        // a kernel makes one fresh output from arrays and attributes alone

  constexpr int inputs() const { return input_count; }
  constexpr int outputs() const { return output_count; }
  constexpr int visible_outputs() const { return visible ? visible : outputs(); }
  /// Of a call with these attributes (null: the defaults).
  int visible_outputs(const void* given) const {
    return count ? count(given ? given : attrs.defaults) : visible_outputs();
  }
  constexpr bool variadic() const { return inputs() && in[inputs() - 1].kind == SlotKind::variadic; }
  constexpr bool pointwise() const { return program != nullptr; }
  constexpr const Slot& slot(int i) const { return in[i < inputs() ? i : inputs() - 1]; }
  constexpr bool shape_only(int i) const { return inputs() > 0 && slot(i).shape_only; }
  constexpr bool writes_inputs() const { return updates[0].output >= 0; }
};

/// The same definition with its inputs and outputs counted.
constexpr OpDef counted(OpDef d) {
  int n = 0;
  while (n < static_cast<int>(d.in.size()) && d.in[n].name) ++n;
  d.input_count = static_cast<int8_t>(n);
  for (n = 0; n < static_cast<int>(d.out.size()) && d.out[n];) ++n;
  d.output_count = static_cast<int8_t>(n ? n : 1);
  d.plain = d.kernel && d.infer && !d.program && !d.view && !d.expand && !d.predict && d.output_count == 1 &&
            !d.writes_inputs() && !d.random && !d.data_dependent;
  return d;
}

/// Refuses, while compiling, a definition that lacks a part. Write TW_OP(name) = whole({ ... });
constexpr OpDef whole(OpDef d) {
  auto need = [](bool held, const char* what) {
    if (!held) throw what;
  };
  need(d.name && d.doc, "an operator needs a name and a doc");
  d = counted(d);
  need(!d.count || d.expand, "only composed operators may have a number of outputs that varies");
  if (d.expand) return d;
  need(d.program || d.view || (d.infer && d.kernel),
       "an operator needs a formula, a view, infer and kernel, or an expansion");
  need(!d.in_order || (d.view && d.infer), "only views with a shape rule are in order");
  need(d.view || d.types != 0, "an operator needs the set of dtypes that its kernel has");
  need(d.grad || d.auto_grad || d.no_grad, "an operator needs a gradient or a reason to have none");
  need(!d.auto_grad || d.program, "only a formula can be derived");
  return d;
}

// ---- rules from lambdas -------------------------------------------------------------------------------------------
template <class F>
concept Captureless = std::is_empty_v<F> && std::is_default_constructible_v<F>;

template <class A, Captureless F> constexpr InferFunction infer_rule(F) {
  return [](const void* a, SigsIn in, SigsOut out) { F{}(*static_cast<const A*>(a), in, out); };
}
template <class A, Captureless F> constexpr CompleteFunction complete_rule(F) {
  return [](const void* a, std::span<Sig> in) { F{}(*static_cast<const A*>(a), in); };
}
template <class A, Captureless F> constexpr KernelFunction cpu_rule(F) {
  return [](const void* a, Call& c) { F{}(*static_cast<const A*>(a), c); };
}
template <class A, Captureless F> constexpr AlgorithmFunction algorithm_rule(F) {
  return [](const void* a, const Call& c) -> const char* { return F{}(*static_cast<const A*>(a), c); };
}
template <class A, Captureless F> constexpr ViewFunction view_rule(F) {
  return [](const void* a, const Layout& x) -> Layout { return F{}(*static_cast<const A*>(a), x); };
}
template <class A, Captureless F> constexpr JoinFunction join_rule(F) {
  return [](const void* a, SigsIn in, int i) -> int64_t { return F{}(*static_cast<const A*>(a), in, i); };
}
template <class A, Captureless F> constexpr GradFunction grad_rule(F) {
  return [](const void* a, const Grad& g) -> Vals { return F{}(*static_cast<const A*>(a), g); };
}
template <class A, Captureless F> constexpr CostFunction cost_rule(F) {
  return [](const void* a, SigsIn in, SigsIn out) -> double { return F{}(*static_cast<const A*>(a), in, out); };
}
template <class A, Captureless F> constexpr ExpandFunction expand_rule(F) {
  return [](const void* a, std::span<const Val> in) -> Vals { return F{}(*static_cast<const A*>(a), in); };
}
template <class A, Captureless F> constexpr AffineFunction affine_rule(F) {
  return [](const void* a, std::span<const Val> in) -> Affine { return F{}(*static_cast<const A*>(a), in); };
}
template <class A, Captureless F> constexpr AbsorbFunction absorb_rule(F) {
  return [](void* a, std::span<Val> in, const Affine& f) -> bool { return F{}(*static_cast<A*>(a), in, f); };
}
template <class A, Captureless F> constexpr RowsFunction rows_rule(F) {
  return [](const void* a, SigsIn in) -> Rows { return F{}(*static_cast<const A*>(a), in); };
}
template <class A, Captureless F> constexpr BlockedPlanFunction blocked_plan_rule(F) {
  return [](const void* a, const BlockedQuery& q) -> BlockedPlan { return F{}(*static_cast<const A*>(a), q); };
}
template <class A, Captureless F> constexpr BlockedFunction blocked_rule(F) {
  return [](const void* a, const BlockedQuery& q, std::span<const Val> in) -> Val {
    return F{}(*static_cast<const A*>(a), q, in);
  };
}
template <class A, Captureless F> constexpr CountFunction count_rule(F) {
  return [](const void* a) -> int { return F{}(*static_cast<const A*>(a)); };
}
struct NoAttrs {};

}  // namespace twibil

/// TW_OP(softmax) = whole({.name = "softmax", ...}); defines op_softmax and links it into the registry.
#define TW_OP(id)                                           \
  extern const ::twibil::OpDef op_##id;                     \
  static ::twibil::Registration registration_##id(op_##id); \
  constexpr ::twibil::OpDef op_##id
