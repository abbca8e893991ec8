// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/isa.cc"
#include "kernels/isa.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
int vector_bytes() { return static_cast<int>(hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<uint8_t>())); }
}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstdlib>

#include "base/error.h"

namespace twibil::kernels {

HWY_EXPORT(vector_bytes);
int vector_bytes() { return TW_DISPATCH(vector_bytes)(); }

namespace {

int64_t targets_of(Isa isa) {
  switch (isa) {
    case Isa::avx512: return HWY_AVX3;
    case Isa::avx2: return HWY_AVX2;
    case Isa::baseline: break;
  }
  return HWY_STATIC_TARGET;
}

int64_t targets_of_this_processor() {
  static const int64_t targets = [] {
    const int64_t found = hwy::SupportedTargets();
    TW_CHECK(found & HWY_STATIC_TARGET, runtime, "this processor must have ", hwy::TargetName(HWY_STATIC_TARGET),
             " instructions, the lowest level that the library is built for");
    return found;
  }();
  return targets;
}

Isa best_isa() {
  Isa best = Isa::baseline;
  for (Isa isa : kIsas) {
    if (isa_available(isa)) best = isa;
  }
  return best;
}

Isa isa_from_environment() {
  const char* wish = std::getenv("TWIBIL_ISA");
  if (!wish || !*wish) return best_isa();
  for (Isa isa : kIsas) {
    if (name_of(isa) != wish) continue;
    TW_CHECK(isa_available(isa), runtime, "TWIBIL_ISA: this processor must have what it names; got ", wish,
             ". the best here is ", name_of(best_isa()));
    return isa;
  }
  throw_error(ErrorKind::value, text("TWIBIL_ISA: must be baseline, avx2 or avx512; got ", wish));
}

void choose(Isa isa) {
  hwy::SetSupportedTargetsForTest(targets_of(isa));
  hwy::GetChosenTarget().Update(targets_of(isa));
}

Isa& current() {
  static Isa isa = [] {
    Isa wish = isa_from_environment();
    choose(wish);
    return wish;
  }();
  return isa;
}

}  // namespace

std::string_view name_of(Isa isa) {
  constexpr std::string_view kNames[] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

bool isa_available(Isa isa) { return (targets_of_this_processor() & targets_of(isa)) != 0; }

Isa isa() { return current(); }

void set_isa(Isa isa) {
  TW_CHECK(isa_available(isa), runtime, "set_isa: this processor must have it; got ", name_of(isa));
  current() = isa;
  choose(isa);
}

}  // namespace twibil::kernels
#endif
