// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stream_copy.cc"
#include "kernels/isa.h"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/stream_copy.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void stream_copy(void* to, const void* from, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  auto* o = static_cast<uint8_t*>(to);
  const auto* x = static_cast<const uint8_t*>(from);
  size_t i = 0;
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes), c = hn::LoadU(d, x + i + 2 * lanes),
               e = hn::LoadU(d, x + i + 3 * lanes);
    hn::Stream(a, d, o + i);
    hn::Stream(b, d, o + i + lanes);
    hn::Stream(c, d, o + i + 2 * lanes);
    hn::Stream(e, d, o + i + 3 * lanes);
  }
  if (i < bytes) std::memcpy(o + i, x + i, bytes - i);
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
HWY_EXPORT(stream_copy);
void stream_copy(void* to, const void* from, size_t bytes) { TW_DISPATCH(stream_copy)(to, from, bytes); }
void stream_fence() { hwy::FlushStream(); }
}  // namespace twibil::kernels
#endif
