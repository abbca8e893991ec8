// SPDX-License-Identifier: Apache-2.0
// The value behind every array handle: one 256-byte block that holds the front end's object head, counts, a packed
// word, shape, strides and links. A view is a value whose root owns the storage. docs/eager-path.md tells why.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/scalar.h"
#include "ir/shape.h"

namespace twibil {

struct Node;
namespace engine {
struct Variable;
}

/// Bits of Value::word above dtype and rank, fixed before anybody else sees the value: tasks on other threads read
/// them. The first five are off the fast path.
inline constexpr uint64_t   //
    kStrided = 1ull << 16,  // strides are not row-major: without it they are neither read nor written
    kTraced = 1ull << 17,   // stands for a graph output; there is no data
    kHuge = 1ull << 18,     // the element count does not fit the word
    kWeak = 1ull << 19,     // a Python scalar: yields to the dtype of arrays
    kGhost = 1ull << 20,    // only shape and dtype: what a gradient may ask of a value that it does not read
    kSlow = kStrided | kTraced | kHuge | kWeak | kGhost, kView = 1ull << 25,
    kReadOnly = 1ull << 26,  // borrowed memory that must not be written
    kFlags = 0xffffull << 16;

struct alignas(64) Value {
  int64_t front_end[2];                     // room for the head of a Python object, so that wrapping allocates nothing;
                                            // the first word is its reference count, 0 while there is no object
  Value* self;                              // what the front end's object points to: this block
  std::atomic<uint32_t> count;              // handles on this value
  uint32_t device;                          // packed Device; 0 is the CPU
  uint64_t word;                            // dtype | rank << 8 | flags | element count << 32
  std::byte* data;                          // first element (of a view: inside the root's block)
  Value* root;                              // the value that owns the storage; itself for an owner
  std::atomic<engine::Variable*> variable;  // the engine's state of a root; null while nothing was ever queued on it
  int64_t dims[kMaxRank];
  int64_t strides[kMaxRank];    // in elements; valid only with kStrided
  Node* node;                   // what computed it, or the leaf that collects its gradient
  uint32_t node_output;         // which output of the node
  uint32_t version;             // of a root: writes so far, so that backward notices an overwritten value
  int64_t bytes;                // size of the data block of a root
  void (*release_data)(void*);  // for borrowed memory: called with release_context instead of freeing
  void* release_context;
  Node* leaf;  // of a marked variable: the node that holds its gradient
  std::byte spare[16];

  DType dtype() const { return static_cast<DType>(word & 0xff); }
  int rank() const { return static_cast<int>(word >> 8 & 0xff); }
  bool has(uint64_t flags) const { return (word & flags) != 0; }
  int64_t size() const { return has(kHuge) ? huge_size() : static_cast<int64_t>(word >> 32); }
  std::span<const int64_t> shape() const { return {dims, static_cast<size_t>(rank())}; }
  Sig sig() const {
    Sig s{Shape(dims, rank()), dtype(), has(kWeak)};
    if (s.weak && s.dtype == DType::int64) s.number = *reinterpret_cast<const int64_t*>(data);
    return s;
  }
  TW_API int64_t huge_size() const;
  /// Copies the strides of any value to `out`.
  TW_API void copy_strides(int64_t* out) const;
  TW_API Layout layout() const;
};
static_assert(sizeof(Value) == 256);

/// With a front end that serialises all handles by a lock of its own (CPython's), counts need no locked instruction.
extern TW_API bool counts_are_plain;

TW_API void destroy(Value* v);                    // the last handle went away
extern void (*free_variable)(engine::Variable*);  // installed by the runtime, which knows the engine

inline void retain(Value* v) {
  if (counts_are_plain) v->count.store(v->count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  else v->count.fetch_add(1, std::memory_order_relaxed);
}
inline void release(Value* v) {
  uint32_t n = v->count.load(std::memory_order_acquire);
  if (n == 1) return destroy(v);  // nobody else has a handle from which a new one could be made
  if (counts_are_plain) v->count.store(n - 1, std::memory_order_relaxed);
  else if (v->count.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(v);
}

/// A counted handle on a Value; may be null (an absent optional input).
class Val {
 public:
  Val() = default;
  Val(std::nullptr_t) {}
  Val(const Val& o) : v_(o.v_) {
    if (v_) retain(v_);
  }
  Val(Val&& o) noexcept : v_(std::exchange(o.v_, nullptr)) {}
  Val& operator=(Val o) noexcept {
    std::swap(v_, o.v_);
    return *this;
  }
  ~Val() {
    if (v_) release(v_);
  }
  /// Numbers become weak scalars.
  TW_API Val(double scalar);
  TW_API Val(int scalar);
  TW_API Val(int64_t scalar);
  static Val adopt(Value* v) {  // takes over one count
    Val h;
    h.v_ = v;
    return h;
  }
  static Val share(Value* v) {
    if (v) retain(v);
    return adopt(v);
  }
  Value* get() const { return v_; }
  Value* operator->() const { return v_; }
  Value& operator*() const { return *v_; }
  explicit operator bool() const { return v_ != nullptr; }
  Value* leak() { return std::exchange(v_, nullptr); }
  Sig sig() const { return v_ ? v_->sig() : Sig{}; }

 private:
  Value* v_ = nullptr;
};

/// A fresh contiguous value with uninitialised data.
TW_API Value* new_value(DType dtype, std::span<const int64_t> dims);
/// Only shape and dtype, no data.
Value* new_ghost(const Value& like);
/// Gives back the elements of a value on which nobody else has a handle; its shape and dtype stay. Cannot fail.
void become_ghost(Value* v);
/// A view of `base` (of its root); counts the root.
TW_API Value* new_view(Value& base, const Layout& layout);
/// The elements of a row-major base in another shape, which has as many; there is at least one.
Value* new_reshaped(Value& base, const Shape& shape);
/// The view base[index]; the index is in range.
Value* new_item_view(Value& base, int64_t index);
/// The same elements as `base` without its gradient link.
TW_API Value* new_alias(Value& base);
/// A value on memory of somebody else, given back through `release`.
Value* new_borrowed(DType dtype, std::span<const int64_t> dims, const int64_t* strides, void* data, bool read_only,
                    void (*release_data)(void*), void* context);
TW_API Value* new_weak(double v);
TW_API Value* new_weak(int64_t v);
Value* new_weak_bool(bool v);
/// The number inside a weak or one-element value that is ready.
TW_API Scalar scalar_of(const Value& v);

void set_node(Value* v, Node* node, uint32_t output);  // takes over one count of node; null clears
inline void bump_version(Value* v) { ++v->root->version; }

}  // namespace twibil
