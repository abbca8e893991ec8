// SPDX-License-Identifier: Apache-2.0
// The table of all direct functions, and the halves in it: pieces converted to float32, computed, converted back.
#include "kernels/direct.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cast.h"
#include "kernels/direct_table.h"
#include "kernels/isa.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kPiece = 256;  // elements: three float buffers stay in L1

void run_half(Prim prim, DType half, Mode mode, void* out, const void* a, const void* b, int64_t n) {
  const DirectFunction run = direct_table().at(prim, DType::float32, mode);
  const CastFunction widen = cast_function(half, DType::float32), narrow = cast_function(DType::float32, half);
  const bool mask = info_of(prim).mask_result;
  alignas(64) float x[kPiece], y[kPiece], z[kPiece];
  const bool a_moves = mode != Mode::scalar_vector,
             b_moves = mode == Mode::vector_vector || mode == Mode::scalar_vector;
  if (!a_moves) widen(a, x, 1);
  if (mode == Mode::vector_scalar) widen(b, y, 1);
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = std::min(kPiece, n - i);
    if (a_moves) widen(static_cast<const uint16_t*>(a) + i, x, count);
    if (b_moves) widen(static_cast<const uint16_t*>(b) + i, y, count);
    if (mask) {
      run(static_cast<uint8_t*>(out) + i, x, y, count);
    } else {
      run(z, x, y, count);
      narrow(z, static_cast<uint16_t*>(out) + i, count);
    }
  }
}

void run_half_ternary(Prim prim, DType half, void* out, const void* a, const void* b, const void* c, int64_t n) {
  const TernaryFunction run = direct_table().ternary[static_cast<int>(prim)][static_cast<int>(DType::float32)];
  const CastFunction widen = cast_function(half, DType::float32), narrow = cast_function(DType::float32, half);
  alignas(64) float x[kPiece], y[kPiece], z[kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = std::min(kPiece, n - i);
    const void* first = static_cast<const uint8_t*>(a) + i;
    if (prim != Prim::select) first = x, widen(static_cast<const uint16_t*>(a) + i, x, count);
    widen(static_cast<const uint16_t*>(b) + i, y, count);
    widen(static_cast<const uint16_t*>(c) + i, z, count);
    run(z, first, y, z, count);
    narrow(z, static_cast<uint16_t*>(out) + i, count);
  }
}

// A function pointer has no room for what it shall do, so each primitive, dtype and mode has its own small function.
template <Prim prim, DType half, Mode mode> void half_function(void* out, const void* a, const void* b, int64_t n) {
  run_half(prim, half, mode, out, a, b, n);
}
template <Prim prim, DType half> void half_ternary(void* out, const void* a, const void* b, const void* c, int64_t n) {
  run_half_ternary(prim, half, out, a, b, c, n);
}

void from_mask_half(DType half, void* out, const void* a, int64_t n) { cast_function(DType::bool_, half)(a, out, n); }

template <Prim prim, DType half> void enter_half(DirectTable& t) {
  constexpr int arity = info_of(prim).arity;
  if constexpr (!prim_has(prim, half)) {
    return;
  } else if constexpr (prim == Prim::from_mask) {
    t.at(prim, half, Mode::unary) = [](void* out, const void* a, const void*, int64_t n) {
      from_mask_half(half, out, a, n);
    };
  } else if constexpr (arity == 1) {
    t.at(prim, half, Mode::unary) = half_function<prim, half, Mode::unary>;
  } else if constexpr (arity == 2) {
    t.at(prim, half, Mode::vector_vector) = half_function<prim, half, Mode::vector_vector>;
    t.at(prim, half, Mode::vector_scalar) = half_function<prim, half, Mode::vector_scalar>;
    t.at(prim, half, Mode::scalar_vector) = half_function<prim, half, Mode::scalar_vector>;
  } else {
    t.ternary[static_cast<int>(prim)][static_cast<int>(half)] = half_ternary<prim, half>;
  }
}

template <int... prims> void enter_halves(DirectTable& table, std::integer_sequence<int, prims...>) {
  (enter_half<static_cast<Prim>(prims), DType::float16>(table), ...);
  (enter_half<static_cast<Prim>(prims), DType::bfloat16>(table), ...);
}

DirectTable make_table() {
  DirectTable table;
  fill_arithmetic(table);
  fill_rounding(table);
  fill_integer(table);
  fill_compare(table);
  fill_exponential(table);
  fill_trigonometric(table);
  fill_special(table);
  enter_halves(table, std::make_integer_sequence<int, kPrimCount>());
  return table;
}

// One table per instruction set, made when it is first in use; only tests use more than one.
template <Isa> const DirectTable& table_of() {
  static const DirectTable table = make_table();
  return table;
}

}  // namespace

const DirectTable& direct_table() {
  switch (isa()) {
    case Isa::avx512: return table_of<Isa::avx512>();
    case Isa::avx2: return table_of<Isa::avx2>();
    case Isa::baseline: break;
  }
  return table_of<Isa::baseline>();
}

DirectFunction direct(Prim prim, DType dtype, Mode mode) { return direct_table().at(prim, dtype, mode); }

TernaryFunction direct_ternary(Prim prim, DType dtype) {
  return direct_table().ternary[static_cast<int>(prim)][static_cast<int>(dtype)];
}

}  // namespace twibil::kernels
