// SPDX-License-Identifier: Apache-2.0
// Executes pointwise programs (base/program.h): tiles of 512 elements go through all instructions while they are in L1.
// Operands may be broadcast, strided and of any dtype; long runs are split over the threads.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "base/program.h"

namespace twibil::kernels {

struct Operand {
  const void* data;
  const int64_t* strides;  // in elements, one per dimension of the shape, 0 where broadcast; null: contiguous
  DType dtype;
};
struct MutableOperand {
  void* data;
  const int64_t* strides;
  DType dtype;
};

/// out[i...] = program(in[0][i...], in[1][i...], ...; params). `in` holds the inputs that the program reads, in the
/// order of Program::sources. Values are computed in dtype `work` (halves: float32): inputs are converted when loaded
/// (a mask input is not-zero in its own dtype), the result when stored, by the rules of copy_convert.h. At most 16
/// dimensions. `out` may be one of the inputs if its data, strides and dtype are the same; other overlaps are not
/// allowed. A primitive that has no meaning in `work` is the caller's bug: see Program::runs_in.
void run_program(const Program& program, DType work, std::span<const Operand> in, std::span<const Scalar> params,
                 const MutableOperand& out, std::span<const int64_t> shape);

/// The same, planned once for operands of these layouts (their data is not looked at) and run on any data of them. The
/// program must outlive it. May be run by many threads at once.
class PreparedProgram {
 public:
  PreparedProgram(const Program& program, DType work, std::span<const Operand> in, std::span<const Scalar> params,
                  const MutableOperand& out, std::span<const int64_t> shape);
  PreparedProgram(PreparedProgram&&) noexcept;
  ~PreparedProgram();
  void run(std::span<const void* const> in, void* out) const;

 private:
  struct Kept;
  std::unique_ptr<Kept> kept_;
};

}  // namespace twibil::kernels
