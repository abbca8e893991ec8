// SPDX-License-Identifier: Apache-2.0
#include "ir/value.h"

#include <cstring>
#include <new>

#include "ir/node.h"
#include "ir/trace.h"
#include "memory/allocator.h"

namespace twibil {

bool counts_are_plain = false;

int64_t Value::huge_size() const { return Shape(shape()).size(); }

void Value::copy_strides(int64_t* out) const {
  if (!has(kStrided)) return contiguous_strides(shape(), out);
  for (int i = 0; i < rank(); ++i) out[i] = strides[i];
}

Layout Value::layout() const {
  Layout l;
  l.shape = Shape(dims, rank());
  copy_strides(l.strides);
  return l;
}

// As in NumPy, a zero does not make the other sizes of an array fit: in bytes their product is at most 2^62, so that
// whoever walks an empty array may multiply its sizes, and add a few.
static inline void check_sizes(DType dtype, std::span<const int64_t> dims, int64_t product) {
  TW_CHECK(checked_mul(product, size_of(dtype)) <= int64_t{1} << 62, value, "an array of shape ", dims, " and dtype ",
           dtype, " has sizes beyond 2^62 bytes");
}

// The number of elements of an array.
static inline int64_t element_count(DType dtype, std::span<const int64_t> dims) {
  int64_t others = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d == 0) empty = true;
    else others = checked_mul(others, d);
  }
  check_sizes(dtype, dims, others);
  return empty ? 0 : others;
}

// The head of a block whose data and sizes are not written yet; all kMaxRank of them must be, for others copy them all.
static inline Value* new_head(uint64_t dtype, size_t rank, int64_t size, uint64_t flags) {
  Value* v = static_cast<Value*>(allocate_block(sizeof(Value)));
  v->front_end[0] = 0;
  v->self = v;
  new (&v->count) std::atomic<uint32_t>(1);
  v->device = 0;
  bool huge = size > 0xffffffff;
  v->word = dtype | rank << 8 | flags | (huge ? kHuge : static_cast<uint64_t>(size) << 32);
  v->data = nullptr;
  v->root = v;
  new (&v->variable) std::atomic<engine::Variable*>(nullptr);
  v->node = nullptr;
  v->node_output = 0;
  v->version = 0;
  v->bytes = 0;
  v->release_data = nullptr;
  v->release_context = nullptr;
  v->leaf = nullptr;
  return v;
}

static Value* new_block(DType dtype, std::span<const int64_t> dims, uint64_t flags) {
  TW_CHECK(dims.size() <= kMaxRank, value, "arrays have at most ", kMaxRank, " dimensions; got ", dims.size());
  for (int64_t d : dims) TW_CHECK(d >= 0, value, "shape ", dims, ": sizes must not be negative");
  int64_t size = element_count(dtype, dims);
  Value* v = new_head(static_cast<uint64_t>(dtype), dims.size(), size, flags);
  std::memset(v->dims, 0, sizeof v->dims);
  std::copy(dims.begin(), dims.end(), v->dims);
  return v;
}

Value* new_value(DType dtype, std::span<const int64_t> dims) {
  Value* v = new_block(dtype, dims, 0);
  int64_t bytes = v->size() * size_of(dtype);
  try {
    v->data = static_cast<std::byte*>(allocate_data(static_cast<size_t>(bytes)));
  } catch (...) {
    free_block(v, sizeof(Value));
    throw;
  }
  v->bytes = bytes;
  return v;
}

Value* new_ghost(const Value& like) {
  if (modes.tracing) return new_traced_ghost(like);
  return new_block(like.dtype(), like.shape(), kGhost | (like.word & kTraced));  // calls on it belong to the trace
}

// A view's head: what it shares with its base, and where its first element lies.
static Value* new_part(Value& base, int rank, int64_t size, int64_t offset, bool strided, bool repeated) {
  Value* v = new_head(base.word & 0xff, static_cast<size_t>(rank), size,
                      kView | (strided ? kStrided : 0) | (repeated ? kReadOnly : 0) | (base.word & kReadOnly));
  v->data = base.data + offset * size_of(base.dtype());
  v->root = base.root;
  v->device = base.device;
  retain(v->root);
  return v;
}

Value* new_view(Value& base, const Layout& layout) {
  int rank = layout.shape.rank();
  int64_t row_major = 1;
  bool strided = false, repeated = false, empty = false;  // a write to a repeated element would change many
  for (int i = rank - 1; i >= 0; --i) {
    int64_t n = layout.shape[i];
    empty |= n == 0;
    if (n <= 1) continue;
    strided |= layout.strides[i] != row_major;
    repeated |= layout.strides[i] == 0;
    row_major = checked_mul(row_major, n);
  }
  int64_t size = empty ? 0 : row_major;
  check_sizes(base.dtype(), layout.shape, row_major);
  strided &= !empty;
  Value* v = new_part(base, rank, size, layout.offset, strided, repeated);
  std::memcpy(v->dims, layout.shape.data(), sizeof v->dims);
  for (int i = 0; strided && i < rank; ++i) v->strides[i] = layout.strides[i];
  return v;
}

Value* new_reshaped(Value& base, const Shape& shape) {
  Value* v = new_part(base, shape.rank(), static_cast<int64_t>(base.word >> 32), 0, false, false);
  std::memcpy(v->dims, shape.data(), sizeof v->dims);
  return v;
}

Value* new_item_view(Value& base, int64_t index) {
  int rank = base.rank() - 1;
  int64_t size = 1, step = 1;  // of one item; the distance to the next one
  for (int i = 1; i <= rank; ++i) size *= base.dims[i];
  bool strided = false, repeated = false;
  if (base.has(kStrided)) {
    step = base.strides[0];
    int64_t row_major = 1;
    for (int i = rank; i > 0; --i) {
      strided |= base.dims[i] > 1 && base.strides[i] != row_major;
      repeated |= base.dims[i] > 1 && base.strides[i] == 0;
      row_major *= base.dims[i];
    }
  } else {
    step = size;
  }
  strided &= size != 0;
  Value* v = new_part(base, rank, size, index * step, strided, repeated);
  std::memcpy(v->dims, base.dims + 1, sizeof v->dims - sizeof *v->dims);
  v->dims[kMaxRank - 1] = 0;
  for (int i = 0; strided && i < rank; ++i) v->strides[i] = base.strides[i + 1];
  return v;
}

Value* new_alias(Value& base) {
  if (base.has(kGhost)) return new_ghost(base);
  if (base.has(kTraced)) return new_traced_alias(base);
  Value* v = new_view(base, base.layout());
  v->word |= base.word & kWeak;
  return v;
}

Value* new_borrowed(DType dtype, std::span<const int64_t> dims, const int64_t* strides, void* data, bool read_only,
                    void (*release_data)(void*), void* context) {
  Value* v = new_block(dtype, dims, read_only ? kReadOnly : 0);
  if (strides) {
    int64_t row_major[kMaxRank];
    contiguous_strides(dims, row_major);
    bool strided = false;
    for (size_t i = 0; i < dims.size(); ++i) strided |= dims[i] > 1 && strides[i] != row_major[i];
    if (strided && v->size()) {
      v->word |= kStrided;
      std::copy(strides, strides + dims.size(), v->strides);
    }
  }
  v->data = static_cast<std::byte*>(data);
  v->release_data = release_data;
  v->release_context = context;
  return v;
}

template <class T> static Value* weak(T number, DType dtype) {
  Value* v = new_value(dtype, {});
  v->word |= kWeak;
  std::memcpy(v->data, &number, sizeof number);
  return v;
}
Value* new_weak(double x) { return weak(x, DType::float64); }
Value* new_weak(int64_t x) { return weak(x, DType::int64); }
Value* new_weak_bool(bool x) { return weak(x, DType::bool_); }

Val::Val(double scalar) : v_(new_weak(scalar)) {}
Val::Val(int scalar) : v_(new_weak(static_cast<int64_t>(scalar))) {}
Val::Val(int64_t scalar) : v_(new_weak(scalar)) {}

Scalar scalar_of(const Value& v) {
  return dispatch(v.dtype(), [&]<class T>() -> Scalar {
    T x;
    std::memcpy(&x, v.data, sizeof x);
    if constexpr (std::is_same_v<T, bool>) return Scalar(reinterpret_cast<const uint8_t&>(x) != 0);
    else if constexpr (std::is_integral_v<T>) return Scalar(static_cast<int64_t>(x));
    else if constexpr (std::is_same_v<T, double>) return Scalar(x);
    else return Scalar(static_cast<double>(static_cast<float>(x)));
  });
}

void (*free_variable)(engine::Variable*) = nullptr;

static void release_storage(Value* v) {
  if (v->root != v) return release(v->root);
  if (engine::Variable* state = v->variable.load(std::memory_order_acquire)) free_variable(state);
  if (v->release_data) v->release_data(v->release_context);
  else if (v->data) free_data(v->data, static_cast<size_t>(v->bytes));
}

void become_ghost(Value* v) {
  if (v->leaf) release(std::exchange(v->leaf, nullptr));
  if (modes.tracing && v->has(kTraced)) {
    v->word |= kGhost;
    return;
  }
  release_storage(v);
  v->root = v;
  v->data = nullptr;
  v->bytes = 0;
  v->release_data = nullptr;
  v->variable.store(nullptr, std::memory_order_relaxed);
  v->word = (v->word & ~(kStrided | kView | kReadOnly | kWeak)) | kGhost;
}

void destroy(Value* v) {
  if (v->node) {
    if (keep_output(v)) return;
    Node* n = v->node;
    v->node = nullptr;
    release(n);
  }
  if (v->leaf) release(v->leaf);
  release_storage(v);
  free_block(v, sizeof(Value));
}

void set_node(Value* v, Node* node, uint32_t output) {
  abandon_output(v);
  Node* old = v->node;
  v->node = node;
  v->node_output = output;
  if (node && output < node->outputs && !node->out()[output].value)
    node->out()[output] = {.value = v, .version = v->root->version};
  if (old) release(old);
}

void Vals::push_back(Val v) {
  if (size_ >= kInPlace && size_ - kInPlace >= room_) {
    int room = room_ ? room_ * 2 : 8;
    auto bigger = std::make_unique<Val[]>(room);
    for (int i = 0; i < room_; ++i) bigger[i] = std::move(more_[i]);
    more_ = std::move(bigger);
    room_ = room;
  }
  (*this)[size_++] = std::move(v);
}

}  // namespace twibil
