// SPDX-License-Identifier: Apache-2.0
// Allocators of our own tell AddressSanitizer which of their bytes are open; in other builds nothing is left of it.
// Headers that use it lay out memory differently under the sanitizer, so a program is built with it as a whole.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define TW_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TW_ASAN 1
#endif
#endif
#ifdef TW_ASAN
#include <sanitizer/asan_interface.h>
#define TW_POISON(p, n) __asan_poison_memory_region(p, n)
#define TW_UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define TW_POISON(p, n) ((void)0)
#define TW_UNPOISON(p, n) ((void)0)
#endif

namespace twibil {

/// Bytes that stay closed behind every block, so that a read past its end is seen and not taken from its neighbour.
#ifdef TW_ASAN
inline constexpr size_t kRedzone = 64;
#else
inline constexpr size_t kRedzone = 0;
#endif

}  // namespace twibil
