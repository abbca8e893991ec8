// SPDX-License-Identifier: Apache-2.0
// A pointwise formula as plain data: a short list of primitives over registers, made by ir/formula.h (at compile time
// or at run time), executed by kernels/tile.h. It has no dtypes of its own: values have the working dtype the caller
// names, masks are true or false.
#pragma once
#include <cstdint>

#include "base/prim.h"
#include "base/scalar.h"

namespace twibil {

inline constexpr int kMaxInstructions = 96;
inline constexpr int kMaxTemps = 24;
inline constexpr int kMaxInputs = 16;
inline constexpr int kMaxParams = 4;
inline constexpr int kMaxConstants = 24;

/// A number that takes the working dtype late. `lowest` and `highest` are the finite limits of that dtype.
struct ProgramConstant {
  enum class Kind : uint8_t { number, lowest, highest } kind = Kind::number;
  Scalar number;
  constexpr bool operator==(const ProgramConstant& o) const {
    if (kind != o.kind) return false;
    if (kind != Kind::number) return true;
    // By bits, so that NaN equals itself and 0.0 differs from -0.0.
    return number.kind == o.number.kind &&
           (number.is_real() ? std::bit_cast<uint64_t>(number.real) == std::bit_cast<uint64_t>(o.number.real)
                             : number.integer == o.number.integer);
  }
};

/// Where an operand comes from: a temporary, an input, a run-time parameter or a constant.
struct Ref {
  enum class Kind : uint8_t { none, temp, input, param, constant } kind = Kind::none;
  uint8_t index = 0;
  constexpr bool operator==(const Ref&) const = default;
  constexpr bool is_scalar() const { return kind == Kind::param || kind == Kind::constant; }
};

struct Instruction {
  Prim prim = Prim::identity;
  uint8_t dst = 0;  // a temporary; it may be an operand's, if both are values or both are masks
  Ref operands[3];
  constexpr bool operator==(const Instruction&) const = default;
};

struct Program {
  Instruction instructions[kMaxInstructions];
  ProgramConstant constants[kMaxConstants];
  // The arguments of the formula that it really reads: input i is argument sources[i]. Others are pruned.
  uint8_t sources[kMaxInputs] = {};
  uint16_t mask_inputs = 0;  // bit i: input i is read as true or false, from data of any dtype
  uint8_t argument_count = 0;
  uint8_t input_count = 0;
  uint8_t param_count = 0;
  uint8_t constant_count = 0;
  uint8_t temp_count = 0;
  uint8_t instruction_count = 0;  // the last instruction's result is the output; 0 means: no program

  constexpr bool empty() const { return instruction_count == 0; }
  constexpr const Instruction& last() const { return instructions[instruction_count - 1]; }
  constexpr bool mask_output() const { return info_of(last().prim).mask_result; }
  constexpr bool reads_mask(int input) const { return (mask_inputs >> input & 1) != 0; }

  /// True if every primitive has a meaning in working dtype `work` (halves: float32).
  constexpr bool runs_in(DType work) const {
    for (int i = 0; i < instruction_count; ++i) {
      const PrimInfo& info = info_of(instructions[i].prim);
      bool masks_only = info.mask_result && info.mask_operands != 0;  // whatever the working dtype
      if (!masks_only && !prim_has(instructions[i].prim, work)) return false;
    }
    return true;
  }

  /// True if the whole program is one primitive of its inputs in order, with at most one scalar operand: then
  /// kernels/direct.h runs it without tiles. Its operands are last().operands.
  constexpr bool is_single() const {
    if (instruction_count != 1 || info_of(last().prim).arity > 2) return false;
    int next = 0;
    for (int i = 0; i < info_of(last().prim).arity; ++i) {
      const Ref& r = last().operands[i];
      if (r.kind == Ref::Kind::input && r.index != next++) return false;
    }
    return next == input_count && next > 0;
  }
  constexpr bool operator==(const Program& o) const {
    bool same = argument_count == o.argument_count && input_count == o.input_count && param_count == o.param_count &&
                constant_count == o.constant_count && temp_count == o.temp_count && mask_inputs == o.mask_inputs &&
                instruction_count == o.instruction_count;
    for (int i = 0; same && i < instruction_count; ++i) same = instructions[i] == o.instructions[i];
    for (int i = 0; same && i < constant_count; ++i) same = constants[i] == o.constants[i];
    for (int i = 0; same && i < input_count; ++i) same = sources[i] == o.sources[i];
    return same;
  }
};

}  // namespace twibil
