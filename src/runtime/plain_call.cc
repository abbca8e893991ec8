// SPDX-License-Identifier: Apache-2.0
// One pass over the inputs that finds everything: signatures for the shape rule, buffers for the kernel, and whether
// the call is small and ready. The long way (eager.cc) goes over them once for each of these questions.
#include "runtime/eager.h"
#include "runtime/fast_path.h"

namespace twibil {

namespace {

constexpr size_t kFewInputs = 4;
// Of an operator with a cost of its own. It computes with each pair of elements once at most, so that the work is less
// than what the calling thread keeps for itself (launch.cc).
constexpr int64_t kLightElements = 2048;

Buffer buffer_of(const Value& v) {
  return {.data = v.data,
          .dims = v.dims,
          .strides = v.has(kStrided) ? v.strides : nullptr,
          .size = static_cast<int64_t>(v.word >> 32),
          .dtype = v.dtype(),
          .rank = static_cast<uint8_t>(v.rank())};
}

/// How many elements a shape has; -1 when they are too many for the short way.
int64_t few_elements(const Shape& shape) {
  int64_t size = 1;
  for (int64_t d : shape) {
    if (d < 0 || d > kInlineElements) return -1;
    size *= d;
    if (size > kInlineElements) return -1;
  }
  return size;
}

bool takes(const OpDef& op, size_t arrays) {
  size_t declared = static_cast<size_t>(op.inputs());
  return arrays == declared || (arrays > declared && op.variadic());
}

}  // namespace

Value* call_plain(const OpDef& op, const void* attrs, std::span<Value* const> in) {
  const size_t n = in.size();
  if (n > kFewInputs || !takes(op, n)) return nullptr;
  // Room that is not cleared, for most calls have one or two inputs.
  alignas(Sig) std::byte sig_room[kFewInputs * sizeof(Sig)];
  alignas(Buffer) std::byte buffer_room[kFewInputs * sizeof(Buffer)];
  Sig* sigs = reinterpret_cast<Sig*>(sig_room);
  Buffer* buffers = reinterpret_cast<Buffer*>(buffer_room);
  const uint64_t unwanted = op.strided ? kSlow & ~kStrided : kSlow;
  int64_t elements = 0;
  for (size_t i = 0; i < n; ++i) {
    const Value* v = in[i];
    if (!v || v->has(unwanted)) return nullptr;
    int64_t size = static_cast<int64_t>(v->word >> 32);
    if (size > kInlineElements || !engine::ready_to_read(v->root->variable.load(std::memory_order_acquire)))
      return nullptr;
    elements += size;
    new (sigs + i) Sig{Shape(v->dims, v->rank()), v->dtype()};
    new (buffers + i) Buffer(buffer_of(*v));
  }
  Sig sig;
  op.infer(attrs, {sigs, n}, {&sig, 1});
  if (!contains(op.types, op.creates || n == 0 ? sig.dtype : sigs[0].dtype)) return nullptr;
  for (size_t i = 0; op.same_dtype && i < n; ++i)
    if (sigs[i].dtype != sig.dtype) return nullptr;
  const int64_t size = few_elements(sig.shape);
  if (size < 0 || (op.cost && elements + size > kLightElements)) return nullptr;
  uint64_t word =
      static_cast<uint64_t>(sig.dtype) | static_cast<uint64_t>(sig.rank()) << 8 | static_cast<uint64_t>(size) << 32;
  Val y = Val::adopt(new_small(word, n ? in[0]->device : 0, sig.shape.data(), size * size_of(sig.dtype)));
  Buffer result = buffer_of(*y);
  Call call{.op = op, .in = {buffers, n}, .out = {&result, 1}, .training = modes.training};
  op.kernel(attrs, call);
  Value* out = y.get();
  if (modes.recording && must_record(op, in)) record_call(op, attrs, in, {&out, 1}, modes.training, {});
  return y.leak();
}

}  // namespace twibil
