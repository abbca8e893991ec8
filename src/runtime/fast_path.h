// SPDX-License-Identifier: Apache-2.0
// The short way of a pointwise operation on small, ready, row-major arrays of one dtype: compare two words, take a
// header and a data block from free lists, call the kernel. Anything else gives null, and the caller says invoke().
#pragma once
#include <atomic>

#include "engine/variable.h"
#include "ir/modes.h"
#include "ir/op.h"
#include "kernels/direct.h"
#include "memory/allocator.h"
#include "runtime/record.h"

namespace twibil {

/// What the short way of one operator needs, resolved once: kernels by dtype. Where a table is empty calls go the long
/// way; close_fast_paths() empties them all. An atomic pointer is read like a plain one.
struct FastPath {
  using Table = std::atomic<kernels::DirectFunction>[kDTypeCount];
  const OpDef* op = nullptr;
  Table arrays = {};  // of two arrays, or of one
  Table scalar_right = {};
  Table scalar_left = {};
  DType out[kDTypeCount] = {};
  bool constant_left = false;                          // unary formulas such as 1 / x
  alignas(8) std::byte constant[kDTypeCount][8] = {};  // the number inside a unary formula such as max(x, 0)

  explicit FastPath(const OpDef& op);
  ~FastPath();
  FastPath(const FastPath&) = delete;

  /// Fills the tables, or empties them.
  void fill();
  void clear();
};
/// From now on every call goes the long way, on which the profiler sees it; so the short way needs no test of its own.
void close_fast_paths();
void open_fast_paths();

inline kernels::DirectFunction kernel_in(const FastPath::Table& table, int dtype) {
  return table[dtype].load(std::memory_order_relaxed);
}
/// Below this many elements an operation is done before a queue would have been told of it.
inline constexpr int64_t kInlineElements = 16384;

/// A row-major value of a few elements: word and dims (all kMaxRank of them) are known to be right.
inline Value* new_small(uint64_t word, uint32_t device, const int64_t* dims, int64_t bytes) {
  Value* v = static_cast<Value*>(allocate_block(sizeof(Value)));
  v->front_end[0] = 0;
  v->self = v;
  v->count.store(1, std::memory_order_relaxed);
  v->device = device;
  v->word = word;
  v->root = v;
  v->variable.store(nullptr, std::memory_order_relaxed);
  for (int i = 0; i < kMaxRank; ++i) v->dims[i] = dims[i];
  v->node = nullptr;
  v->node_output = 0;
  v->version = 0;
  v->bytes = bytes;
  v->release_data = nullptr;
  v->leaf = nullptr;
  try {
    v->data = static_cast<std::byte*>(allocate_data(static_cast<size_t>(bytes)));
  } catch (...) {
    free_block(v, sizeof(Value));
    throw;
  }
  return v;
}

/// A row-major value with the shape of `like`, which is row-major and small.
inline Value* new_like(const Value& like, DType dtype) {
  return new_small((like.word & ~(kFlags | 0xff)) | static_cast<uint64_t>(dtype), like.device, like.dims,
                   static_cast<int64_t>(like.word >> 32) * size_of(dtype));
}

inline bool simple(const Value& v) {
  return !(v.word & kSlow) && static_cast<int64_t>(v.word >> 32) <= kInlineElements &&
         engine::idle(v.root->variable.load(std::memory_order_acquire));
}

inline bool recorded(const FastPath& f, const Value& a, const Value& b) {
  return modes.recording && (a.node || b.node) && !f.op->no_grad;
}

/// The result y, with its place on the tape; released if that throws.
inline Value* record_fast(const FastPath& f, std::span<Value* const> in, Value* y) {
  Val result = Val::adopt(y);
  record_call(*f.op, f.op->attrs.defaults, in, {&y, 1}, modes.training, {});
  return result.leak();
}

inline Value* fast_binary(const FastPath& f, Value* a, Value* b) {
  if (modes.tracing) return nullptr;
  if (((a->word ^ b->word) & ~kFlags) | ((a->word | b->word) & kSlow)) return nullptr;
  for (int i = 0; i < a->rank(); ++i)
    if (a->dims[i] != b->dims[i]) return nullptr;
  kernels::DirectFunction run = kernel_in(f.arrays, static_cast<int>(a->dtype()));
  if (!run || !simple(*a) || !simple(*b)) return nullptr;
  Value* y = new_like(*a, f.out[static_cast<int>(a->dtype())]);
  run(y->data, a->data, b->data, static_cast<int64_t>(a->word >> 32));
  if (!recorded(f, *a, *b)) return y;
  Value* in[2] = {a, b};
  return record_fast(f, in, y);
}

inline Value* fast_unary(const FastPath& f, Value* x) {
  if (modes.tracing) return nullptr;
  kernels::DirectFunction run = kernel_in(f.arrays, static_cast<int>(x->dtype()));
  if (!run || !simple(*x)) return nullptr;
  int t = static_cast<int>(x->dtype());
  Value* y = new_like(*x, f.out[t]);
  if (f.constant_left) run(y->data, f.constant[t], x->data, static_cast<int64_t>(x->word >> 32));
  else run(y->data, x->data, f.constant[t], static_cast<int64_t>(x->word >> 32));
  return recorded(f, *x, *x) ? record_fast(f, {&x, 1}, y) : y;
}

/// One operand is a number that stays inside the array's dtype (floats next to floats, integers next to numbers).
inline Value* fast_scalar(const FastPath& f, Value* x, const Scalar& s, bool scalar_left) {
  if (modes.tracing) return nullptr;
  int t = static_cast<int>(x->dtype());
  kernels::DirectFunction run = kernel_in(scalar_left ? f.scalar_left : f.scalar_right, t);
  if (!run || !simple(*x)) return nullptr;
  alignas(8) std::byte number[8];
  switch (x->dtype()) {
    case DType::float32: *reinterpret_cast<float*>(number) = static_cast<float>(s.as_double()); break;
    case DType::float64: *reinterpret_cast<double*>(number) = s.as_double(); break;
    case DType::int64:
      if (s.is_real()) return nullptr;
      *reinterpret_cast<int64_t*>(number) = s.integer;
      break;
    case DType::int32:
      if (s.is_real() || s.integer != static_cast<int32_t>(s.integer)) return nullptr;
      *reinterpret_cast<int32_t*>(number) = static_cast<int32_t>(s.integer);
      break;
    default: return nullptr;
  }
  Value* y = new_like(*x, f.out[t]);
  const std::byte* a = scalar_left ? number : x->data;
  const std::byte* b = scalar_left ? x->data : number;
  run(y->data, a, b, static_cast<int64_t>(x->word >> 32));
  if (!recorded(f, *x, *x)) return y;
  Val result = Val::adopt(y), weak = s.is_real() ? Val(s.real) : Val(s.integer);
  Value* in[2] = {scalar_left ? weak.get() : x, scalar_left ? x : weak.get()};
  return record_fast(f, in, result.leak());
}

}  // namespace twibil
