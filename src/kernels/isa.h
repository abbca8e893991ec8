// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels run on. Every kernel file is compiled once per entry of Isa (Highway's
// foreach_target) and calls the best that this processor has, or the one that TWIBIL_ISA names.
//
// A kernel file includes this header before "hwy/foreach_target.h", and calls through TW_DISPATCH:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/scale.cc"
//   #include "kernels/isa.h"
//   #include "hwy/foreach_target.h"
//   #include "hwy/highway.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace twibil::kernels::HWY_NAMESPACE {
//   void scale(...) {...}
//   }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace twibil::kernels {
//   HWY_EXPORT(scale);
//   void scale(...) { TW_DISPATCH(scale)(...); }
//   }
//   #endif
#pragma once
#include <string_view>

#ifdef HWY_HIGHWAY_INCLUDED
#error "kernels/isa.h must be included before Highway: it chooses the targets"
#endif
// x86: SSE4.2 (every processor since 2010) as the lowest, AVX2 with FMA, and AVX-512 as Skylake has it. The steps
// between gain too little for another compilation of every kernel; below, g++ would get one-lane code.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_EMU128 | HWY_SCALAR)
#elif defined(__aarch64__)
// 64-bit ARM: NEON. Kernels keep vectors in arrays, which those of SVE cannot be.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

namespace twibil::kernels {

enum class Isa { baseline, avx2, avx512 };
inline constexpr Isa kIsas[] = {Isa::baseline, Isa::avx2, Isa::avx512};
std::string_view name_of(Isa isa);

/// The instruction set in use. The first call reads TWIBIL_ISA=baseline|avx2|avx512 (error if unknown or not present).
Isa isa();
bool isa_available(Isa isa);
int vector_bytes();  // of the code in use: 16, 32, 64
/// Switches every kernel over; for tests and benchmarks, while no kernel runs.
void set_isa(Isa isa);

/// True once the choice is made; costs one test of a guard.
inline bool isa_ready() {
  static const bool ready = (isa(), true);
  return ready;
}

}  // namespace twibil::kernels

/// The best version of an exported function, after TWIBIL_ISA had its say.
#define TW_DISPATCH(function) (static_cast<void>(::twibil::kernels::isa_ready()), HWY_DYNAMIC_DISPATCH(function))
