// SPDX-License-Identifier: Apache-2.0
// Collects the primitives of a formula as numbered nodes and turns what the result needs into a Program. Everything is
// constexpr; ir/formula.h is the face that formulas are written against.
#pragma once
#include "base/program.h"

namespace twibil::formula {

inline constexpr int kMaxNodes = 224;

/// A node of the recording, by number.
using Id = uint8_t;
inline constexpr Id kNoId = 255;

struct Node {
  enum class Kind : uint8_t { argument, param, constant, operation } kind = Kind::operation;
  Prim prim = Prim::identity;
  uint8_t index = 0;     // argument, param or constant number
  bool is_mask = false;  // the class of its value
  Id operands[3] = {kNoId, kNoId, kNoId};
};

// Never defined, so that a formula that is too long does not compile (and says this name); at run time it throws.
[[noreturn]] void formula_is_too_long();

class Recorder {
 public:
  /// The arguments must be made before anything else, in order.
  constexpr Id argument(bool is_mask) {
    if (argument_count_ == 32) formula_is_too_long();
    return push({Node::Kind::argument, Prim::identity, argument_count_++, is_mask});
  }
  constexpr Id param() {
    if (param_count_ == kMaxParams) formula_is_too_long();
    return push({Node::Kind::param, Prim::identity, param_count_++});
  }
  constexpr Id constant(ProgramConstant value) {
    constexpr int64_t kExact = int64_t{1} << 53;
    Scalar& v = value.number;
    if (!v.is_real() && v.integer >= -kExact && v.integer <= kExact) v = Scalar(static_cast<double>(v.integer));
    for (int i = 0; i < node_count_; ++i)
      if (nodes_[i].kind == Node::Kind::constant && constants_[nodes_[i].index] == value) return static_cast<Id>(i);
    if (constant_count_ == kMaxConstants * 2) formula_is_too_long();
    constants_[constant_count_] = value;
    return push({Node::Kind::constant, Prim::identity, constant_count_++});
  }
  constexpr Id number(double v) { return constant({ProgramConstant::Kind::number, Scalar(v)}); }

  /// One primitive. Operands are brought to the class (value, mask) it wants; equal nodes are one; identities that hold
  /// for every value of every dtype are applied.
  constexpr Id emit(Prim prim, Id a, Id b = kNoId, Id c = kNoId) {
    Id operands[3] = {a, b, c};
    for (int i = 0; i < info_of(prim).arity; ++i) {
      bool wants_mask = (info_of(prim).mask_operands >> i & 1) != 0;
      operands[i] = wants_mask ? as_mask(operands[i]) : as_value(operands[i]);
    }
    if (info_of(prim).commutative && rank(operands[0]) > rank(operands[1])) {
      Id swap = operands[0];
      operands[0] = operands[1];
      operands[1] = swap;
    }
    Id simple = simplify(prim, operands[0], operands[1], operands[2]);
    return simple != kNoId ? simple : find_or_push(prim, operands);
  }
  /// One primitive whose operands have the class it wants, exactly as it is; equal ones are one.
  constexpr Id emit_as_is(Prim prim, Id a, Id b = kNoId, Id c = kNoId) { return find_or_push(prim, {a, b, c}); }
  constexpr Id as_mask(Id x) {
    if (nodes_[x].is_mask) return x;
    return emit(Prim::ne, x, number(0));
  }
  constexpr Id as_value(Id x) {
    if (!nodes_[x].is_mask) return x;
    return emit(Prim::from_mask, x);
  }
  constexpr bool is_mask(Id x) const { return nodes_[x].is_mask; }
  constexpr const Node& node(Id x) const { return nodes_[x]; }

  /// The program that computes `output`, with only what it needs.
  constexpr Program finish(Id output);

 private:
  constexpr Id push(const Node& n) {
    if (node_count_ == kMaxNodes) formula_is_too_long();
    nodes_[node_count_] = n;
    return node_count_++;
  }
  constexpr Id find_or_push(Prim prim, const Id (&o)[3]) {
    for (int i = 0; i < node_count_; ++i) {
      const Node& n = nodes_[i];
      if (n.kind == Node::Kind::operation && n.prim == prim && n.operands[0] == o[0] && n.operands[1] == o[1] &&
          n.operands[2] == o[2])
        return static_cast<Id>(i);
    }
    return push({Node::Kind::operation, prim, 0, info_of(prim).mask_result, {o[0], o[1], o[2]}});
  }
  // Scalars stand on the right of commutative primitives, else the older node on the left.
  constexpr int rank(Id x) const {
    return x + (nodes_[x].kind == Node::Kind::constant ? 2000 : nodes_[x].kind == Node::Kind::param ? 1000 : 0);
  }
  constexpr bool is_number(Id x) const {
    return nodes_[x].kind == Node::Kind::constant && constants_[nodes_[x].index].kind == ProgramConstant::Kind::number;
  }
  constexpr const Scalar& number_of(Id x) const { return constants_[nodes_[x].index].number; }
  constexpr bool is(Id x, double v) const { return is_number(x) && number_of(x).as_double() == v; }
  constexpr bool is_op(Id x, Prim prim) const {
    return nodes_[x].kind == Node::Kind::operation && nodes_[x].prim == prim;
  }
  constexpr Id simplify(Prim prim, Id a, Id b, Id c);
  constexpr Id fold(Prim prim, double a, double b);
  struct Temps;
  constexpr void append(Program& p, Temps& temps, int node) const;

  Node nodes_[kMaxNodes];
  ProgramConstant constants_[kMaxConstants * 2];
  uint8_t node_count_ = 0, argument_count_ = 0, param_count_ = 0, constant_count_ = 0;
};

// Only what is the same in every working dtype that has the primitive, but for the rounding of halves of integers.
constexpr Id Recorder::fold(Prim prim, double a, double b) {
  switch (prim) {
    case Prim::add: return number(a + b);
    case Prim::sub: return number(a - b);
    case Prim::mul: return number(a * b);
    case Prim::div: return b != 0 ? number(a / b) : kNoId;
    case Prim::neg: return number(-a);
    default: return kNoId;
  }
}

constexpr Id Recorder::simplify(Prim prim, Id a, Id b, Id c) {
  const bool unary = info_of(prim).arity == 1;
  if (is_number(a) && number_of(a).is_real() && (unary || (is_number(b) && number_of(b).is_real())) && c == kNoId) {
    Id folded = fold(prim, number_of(a).real, unary ? 0 : number_of(b).real);
    if (folded != kNoId) return folded;
  }
  switch (prim) {
    case Prim::identity: return a;
    case Prim::mul:
      if (is(b, 1)) return a;
      if (is(b, -1)) return emit(Prim::neg, a);
      break;
    case Prim::div:
      if (is(b, 1)) return a;
      break;
    case Prim::sub:
      if (is(b, 0)) return a;
      break;
    case Prim::power:
      if (is(b, 0)) return number(1);
      if (is(b, 1)) return a;
      if (is(b, 2)) return emit(Prim::mul, a, a);
      break;
    case Prim::neg:
      if (is_op(a, Prim::neg)) return nodes_[a].operands[0];
      break;
    case Prim::abs:
      if (is_op(a, Prim::abs)) return a;
      break;
    case Prim::ne:
      if (is_op(a, Prim::from_mask) && is(b, 0)) return nodes_[a].operands[0];
      break;
    case Prim::logical_not:
      if (is_op(a, Prim::logical_not)) return nodes_[a].operands[0];
      break;
    case Prim::max:
    case Prim::min:
    case Prim::logical_and:
    case Prim::logical_or:
      if (a == b) return a;
      break;
    case Prim::select:
      if (b == c) return b;
      break;
    default: break;
  }
  return kNoId;
}

// Gives temporaries to results and takes them back after their last reader.
struct Recorder::Temps {
  uint8_t last_use[kMaxNodes] = {};  // the last node that reads this one; 0: not needed
  Ref place[kMaxNodes];
  bool taken[kMaxTemps] = {};

  constexpr void release(const Recorder& r, int reader, bool same_class) {
    const Node& n = r.nodes_[reader];
    for (Id o : n.operands)
      if (o != kNoId && last_use[o] == reader && place[o].kind == Ref::Kind::temp &&
          (r.nodes_[o].is_mask == n.is_mask) == same_class)
        taken[place[o].index] = false;
  }
  // A result may take the place of an operand of its class that is read for the last time. Not of the other class: a
  // value is wider than a mask, so writing one over the other would overtake the reading.
  constexpr uint8_t take(const Recorder& r, int node) {
    release(r, node, true);
    int t = 0;
    while (t < kMaxTemps && taken[t]) ++t;
    if (t == kMaxTemps) formula_is_too_long();
    release(r, node, false);
    taken[t] = true;
    place[node] = {Ref::Kind::temp, static_cast<uint8_t>(t)};
    return static_cast<uint8_t>(t);
  }
};

constexpr Program Recorder::finish(Id output) {
  // An argument or a constant as it is: a program has at least one instruction.
  if (nodes_[output].kind != Node::Kind::operation) {
    bool mask = nodes_[output].is_mask;
    output = find_or_push(mask ? Prim::logical_or : Prim::identity, {output, mask ? output : kNoId, kNoId});
  }
  Temps temps;
  temps.last_use[output] = kNoId;
  for (int i = output; i >= 0; --i)
    for (Id o : nodes_[i].operands)
      if (temps.last_use[i] && o != kNoId && !temps.last_use[o]) temps.last_use[o] = static_cast<uint8_t>(i);

  Program p;
  p.argument_count = argument_count_;
  p.param_count = param_count_;
  for (int i = 0; i <= output; ++i)
    if (temps.last_use[i]) append(p, temps, i);
  return p;
}

constexpr void Recorder::append(Program& p, Temps& temps, int i) const {
  const Node& n = nodes_[i];
  switch (n.kind) {
    case Node::Kind::argument:
      if (p.input_count == kMaxInputs) formula_is_too_long();
      if (n.is_mask) p.mask_inputs = static_cast<uint16_t>(p.mask_inputs | 1u << p.input_count);
      p.sources[p.input_count] = n.index;
      temps.place[i] = {Ref::Kind::input, p.input_count++};
      break;
    case Node::Kind::param: temps.place[i] = {Ref::Kind::param, n.index}; break;
    case Node::Kind::constant:
      if (p.constant_count == kMaxConstants) formula_is_too_long();
      p.constants[p.constant_count] = constants_[n.index];
      temps.place[i] = {Ref::Kind::constant, p.constant_count++};
      break;
    case Node::Kind::operation: {
      if (p.instruction_count == kMaxInstructions) formula_is_too_long();
      Instruction& in = p.instructions[p.instruction_count++];
      in.prim = n.prim;
      for (int j = 0; j < info_of(n.prim).arity; ++j) in.operands[j] = temps.place[n.operands[j]];
      in.dst = temps.take(*this, i);
      if (in.dst >= p.temp_count) p.temp_count = static_cast<uint8_t>(in.dst + 1);
      break;
    }
  }
}

}  // namespace twibil::formula
