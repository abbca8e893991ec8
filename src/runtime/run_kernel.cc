// SPDX-License-Identifier: Apache-2.0
// Turns values into what kernels take: pointwise operators run their formula by tiles, others get buffers.
#include <memory>
#include <vector>

#include "ir/compose_program.h"
#include "kernels/copy.h"
#include "kernels/tile.h"
#include "memory/allocator.h"
#include "runtime/launch.h"
#include "runtime/profiler.h"

namespace twibil {

namespace {

struct Scratch {  // row-major copies of strided inputs, for kernels that want them so
  void* data;
  size_t bytes;
  Scratch(size_t n) : data(allocate_data(n)), bytes(n) {}
  Scratch(Scratch&& o) noexcept : data(std::exchange(o.data, nullptr)), bytes(o.bytes) {}
  ~Scratch() {
    if (data) free_data(data, bytes);
  }
};

/// Room for buffers that is not cleared: its user makes as many as it needs.
template <size_t N> struct Buffers {
  alignas(Buffer) std::byte few[N * sizeof(Buffer)];
  std::vector<Buffer> many;
  std::span<Buffer> span;
  explicit Buffers(size_t n) : span(reinterpret_cast<Buffer*>(few), n) {
    if (n <= N) return;
    many.resize(n);
    span = many;
  }
  Buffers(const Buffers&) = delete;
};

Buffer buffer_of(const Value& v) {
  return {.data = v.data,
          .dims = v.dims,
          .strides = v.has(kStrided) ? v.strides : nullptr,
          .size = v.size(),
          .dtype = v.dtype(),
          .rank = static_cast<uint8_t>(v.rank())};
}

/// A row-major copy of v in dtype `to`.
Buffer copied(const Value& v, DType to, std::vector<Scratch>& scratch) {
  Buffer b = buffer_of(v);
  scratch.emplace_back(static_cast<size_t>(b.size * size_of(to)));
  int64_t from_strides[kMaxRank], to_strides[kMaxRank];
  v.copy_strides(from_strides);
  contiguous_strides(v.shape(), to_strides);
  kernels::convert(b.dtype, to, v.shape(), v.data, {from_strides, b.rank}, scratch.back().data, {to_strides, b.rank});
  b.data = static_cast<std::byte*>(scratch.back().data);
  b.strides = nullptr;
  b.dtype = to;
  return b;
}

void run_pointwise(Launch& l) {
  const Program& p = *l.op.program;
  Value& out = *l.out[0];
  int rank = out.rank();
  kernels::Operand operands[kMaxInputs];
  int64_t strides[kMaxInputs][kMaxRank];
  for (int i = 0; i < p.input_count; ++i) {
    const Value& x = *l.in[p.sources[i]];
    int shift = rank - x.rank();
    int64_t own[kMaxRank];
    x.copy_strides(own);
    for (int d = 0; d < rank; ++d) strides[i][d] = d < shift || x.dims[d - shift] == 1 ? 0 : own[d - shift];
    operands[i] = {x.data, strides[i], x.dtype()};
  }
  Scalar params[kMaxParams];
  int n = formula_params(l.op, l.attrs, params);
  kernels::MutableOperand to{out.data, out.has(kStrided) ? out.strides : nullptr, out.dtype()};
  kernels::run_program(p, l.work, {operands, p.input_count}, {params, static_cast<size_t>(n)}, to, out.shape());
}

std::byte* allocate_output(Call& call, int k, const Shape& shape) {
  Launch& l = *static_cast<Launch*>(call.owner);
  DType dtype = call.out[k].dtype;
  Value* v = new_value(dtype, shape);
  l.out[k] = v;
  call.out[k] = buffer_of(*v);
  return v->data;
}

bool is_updated(const OpDef& op, size_t i) {
  if (!op.writes_inputs()) return false;
  for (Pair u : op.updates)
    if (u.output >= 0 && u.input == static_cast<int>(i)) return true;
  return false;
}

void copy_back(const Buffer& from, const Value& to) {
  int64_t from_strides[kMaxRank], to_strides[kMaxRank];
  contiguous_strides(to.shape(), from_strides);
  to.copy_strides(to_strides);
  size_t rank = from.rank;
  kernels::convert(from.dtype, to.dtype(), to.shape(), from.data, {from_strides, rank}, to.data, {to_strides, rank});
}

void run_buffers(Launch& l) {
  Buffers<8> inputs(l.in.size());
  Buffers<6> outputs(l.out.size());
  std::span<Buffer> in = inputs.span, out = outputs.span;
  std::vector<Scratch> scratch;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!l.in[i]) {
      new (&in[i]) Buffer;
      continue;
    }
    const Value& x = *l.in[i];
    DType to = l.op.same_dtype && l.out[0] && !is_updated(l.op, i) ? l.out[0]->dtype() : x.dtype();
    bool as_it_is = l.op.shape_only(static_cast<int>(i)) || (to == x.dtype() && (l.op.strided || !x.has(kStrided)));
    new (&in[i]) Buffer(as_it_is ? buffer_of(x) : copied(x, to, scratch));
  }
  for (size_t k = 0; k < out.size(); ++k) {
    new (&out[k]) Buffer(l.out[k] ? buffer_of(*l.out[k]) : Buffer{});
    if (!l.out[k] && l.op.data_dependent) out[k].dtype = l.out_sigs[k].dtype;
  }
  Call call{.op = l.op,
            .in = in,
            .out = out,
            .training = l.training,
            .key = l.key,
            .allocate_output = allocate_output,
            .owner = &l};
  if (!l.op.writes_inputs()) return l.op.kernel(l.attrs, call);
  // A kernel that knows no strides updates the copy.
  auto updates_copy = [&](Pair u) {
    return u.output >= 0 && l.in[static_cast<size_t>(u.input)] &&
           in[static_cast<size_t>(u.input)].data != l.in[static_cast<size_t>(u.input)]->data;
  };
  for (Pair u : l.op.updates)
    if (updates_copy(u)) out[static_cast<size_t>(u.output)] = in[static_cast<size_t>(u.input)];
  l.op.kernel(l.attrs, call);
  for (Pair u : l.op.updates)
    if (updates_copy(u)) copy_back(in[static_cast<size_t>(u.input)], *l.in[static_cast<size_t>(u.input)]);
}

}  // namespace

static void run(Launch& l) {
  if (l.op.pointwise()) run_pointwise(l);
  else run_buffers(l);
}

void run_kernel(Launch& l) {
  if (profile::on(profile::kImperative)) [[unlikely]] {
    profile::Event e{.kind = profile::Kind::kernel, .begin = profile::now(), .name = l.op.name};
    run(l);
    e.end = profile::now();
    profiler::record_kernel(e, l);
  } else {
    run(l);
  }
}

}  // namespace twibil
