// SPDX-License-Identifier: Apache-2.0
// Programs by tiles. A plan says where each register lives and which function each instruction is; it is made per call,
// on the stack, or once and kept (PreparedProgram). Then every tile is: point at or collect the inputs, call the
// functions, spread the result.
#include "kernels/tile.h"

#include <cstring>
#include <limits>
#include <memory>

#include "base/parallel.h"
#include "kernels/cast.h"
#include "kernels/direct_table.h"
#include "kernels/stream_copy.h"
#include "kernels/tile_nest.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kTile = 512;           // elements: the buffers of a short program stay in L1
constexpr int64_t kShortRow = 64;        // shorter rows are collected, so that a tile spans several of them
constexpr int64_t kPiece = 128 * kTile;  // elements that make a piece of work worth a thread
constexpr int64_t kBuffer = kTile * 8;   // bytes
constexpr int64_t kStreamed = 1 << 24;   // bytes of a result that does not stay in the caches

// Registers of all kinds in one numbering.
constexpr int kFirstInput = kMaxTemps, kFirstParam = kFirstInput + kMaxInputs,
              kFirstConstant = kFirstParam + kMaxParams;
constexpr int kRegisters = kFirstConstant + kMaxConstants;

int number_of(const Ref& r) {
  constexpr uint8_t kFirst[] = {0, 0, kFirstInput, kFirstParam, kFirstConstant};  // in the order of Ref::Kind
  return kFirst[static_cast<int>(r.kind)] + r.index;
}

struct Step {
  DirectFunction function;
  TernaryFunction ternary;  // if set, instead
  uint8_t dst, operands[3];
};

// in_place: the operand's own memory is the register; one: a single element for the whole row (or all); collected: a
// buffer is filled.
enum class Feed : uint8_t { in_place, one, collected };

struct Input {
  DType dtype;
  Feed feed;
  CastFunction cast;  // to the register's dtype; null if it is the same
};

/// Where the operands of one run stand.
struct Data {
  const char* in[kMaxInputs];
  char* out;
  bool streamed;  // the result goes past the caches
};

struct Plan {
  const Program* program;
  DType work;
  int64_t work_size;
  bool by_rows;  // tiles end where innermost rows end
  TileNest nest;
  Input inputs[kMaxInputs];
  Feed feeds[kMaxTileOperands];  // of the inputs and the output
  Step steps[kMaxInstructions];
  uint64_t scalars[kRegisters - kFirstParam];
  bool is_one[kRegisters];      // a single element
  bool needs_tile[kRegisters];  // a single element that is wanted as a whole tile
  int scalar_tiles;             // how many of the scalars need one
  DType result, out_dtype;
  CastFunction out_cast;  // null: none
  bool out_in_place;
  bool single;  // one function over whole operands: no tiles are needed

  int out_operand() const { return program->input_count; }
};

void plan_operands(Plan& plan, std::span<const Operand> in, const MutableOperand& out, std::span<const int64_t> shape) {
  const Program& p = *plan.program;
  const int64_t* strides[kMaxTileOperands];
  for (int i = 0; i < p.input_count; ++i) strides[i] = in[static_cast<size_t>(i)].strides;
  strides[p.input_count] = out.strides;
  make_tile_nest(plan.nest, shape, std::span<const int64_t* const>(strides, static_cast<size_t>(p.input_count) + 1));
  if (plan.nest.count == 0) return;
  plan.by_rows = plan.nest.rank == 1 || plan.nest.inner() >= kShortRow;
  auto feed = [&](int operand) {
    const int64_t stride = plan.nest.inner_stride(operand);
    if (plan.by_rows) return stride == 1 ? Feed::in_place : stride == 0 ? Feed::one : Feed::collected;
    return plan.nest.is_flat(operand) ? Feed::in_place : plan.nest.is_constant(operand) ? Feed::one : Feed::collected;
  };
  for (int k = 0; k <= p.input_count; ++k) plan.feeds[k] = feed(k);
  for (int i = 0; i < p.input_count; ++i) {
    const Operand& from = in[static_cast<size_t>(i)];
    const DType as = p.reads_mask(i) ? DType::bool_ : plan.work;
    plan.inputs[i] = {from.dtype, plan.feeds[i], from.dtype == as ? nullptr : cast_function(from.dtype, as)};
    plan.is_one[kFirstInput + i] = plan.inputs[i].feed == Feed::one;
  }
  plan.out_dtype = out.dtype;
  plan.result = p.mask_output() ? DType::bool_ : plan.work;
  plan.out_cast = out.dtype == plan.result ? nullptr : cast_function(plan.result, out.dtype);
  plan.out_in_place = plan.feeds[p.input_count] == Feed::in_place;
}

void plan_scalars(Plan& plan, std::span<const Scalar> params) {
  const Program& p = *plan.program;
  for (int i = 0; i < p.param_count; ++i) {
    store_scalar(params[static_cast<size_t>(i)], plan.work, &plan.scalars[i]);
    plan.is_one[kFirstParam + i] = true;
  }
  for (int i = 0; i < p.constant_count; ++i) {
    const ProgramConstant& c = p.constants[i];
    uint64_t* to = &plan.scalars[kMaxParams + i];
    plan.is_one[kFirstConstant + i] = true;
    if (c.kind == ProgramConstant::Kind::number) {
      store_scalar(c.number, plan.work, to);
    } else {
      dispatch(plan.work, [&]<class T>() {
        if constexpr (std::is_arithmetic_v<T>) {
          const T limit = c.kind == ProgramConstant::Kind::lowest ? std::numeric_limits<T>::lowest()
                                                                  : std::numeric_limits<T>::max();
          std::memcpy(to, &limit, sizeof limit);
        }
      });
    }
  }
}

void want_tile(Plan& plan, int reg) {
  if (!plan.is_one[reg] || plan.needs_tile[reg]) return;
  plan.needs_tile[reg] = true;
  plan.scalar_tiles += reg >= kFirstParam;
}

void plan_steps(Plan& plan) {
  const Program& p = *plan.program;
  const DirectTable& table = direct_table();
  for (int i = 0; i < p.instruction_count; ++i) {
    const Instruction& in = p.instructions[i];
    const PrimInfo& info = info_of(in.prim);
    // Operators on masks alone do not depend on the working dtype.
    const DType dtype = info.mask_result && info.mask_operands != 0 ? DType::bool_ : plan.work;
    Step& step = plan.steps[i];
    step.dst = in.dst;
    step.ternary = nullptr;
    int ones = 0;
    for (int j = 0; j < info.arity; ++j) {
      step.operands[j] = static_cast<uint8_t>(number_of(in.operands[j]));
      ones += plan.is_one[step.operands[j]];
    }
    if (info.arity == 3) {
      step.ternary = table.ternary[static_cast<int>(in.prim)][static_cast<int>(dtype)];
      for (uint8_t r : step.operands) want_tile(plan, r);
      TW_ASSERT(step.ternary);
      continue;
    }
    Mode mode = Mode::unary;
    if (info.arity == 1) {
      step.operands[1] = step.operands[0];
      want_tile(plan, step.operands[0]);
    } else if (ones == 2) {
      want_tile(plan, step.operands[0]);
      mode = Mode::vector_scalar;
    } else {
      mode = ones == 0                       ? Mode::vector_vector
             : plan.is_one[step.operands[0]] ? Mode::scalar_vector
                                             : Mode::vector_scalar;
    }
    step.function = table.at(in.prim, dtype, mode);
    TW_ASSERT(step.function);
  }
}

template <class F> void by_width(int64_t size, F&& f) {
  switch (size) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    default: return f.template operator()<uint64_t>();
  }
}

void fill_tile(void* tile, int64_t size, const void* element, int64_t n) {
  by_width(size, [&]<class U>() {
    U value;
    std::memcpy(&value, element, sizeof value);
    std::fill_n(static_cast<U*>(tile), n, value);
  });
}

// The registers of one thread: pointers into its buffers, or at operands and scalars.
class Worker {
 public:
  Worker(const Plan& plan, const Data& data) : plan_(plan), data_(data) {
    const Program& p = *plan.program;
    const int buffers = p.temp_count + 2 + p.input_count + plan.scalar_tiles;
    if (buffers * kBuffer > static_cast<int64_t>(sizeof local_)) {
      heap_ = std::make_unique<Buffer[]>(static_cast<size_t>(buffers));
      next_ = heap_[0].bytes;
    }
    for (int t = 0; t < p.temp_count; ++t) at_[t] = take();
    stage_ = take();
    result_ = take();
    for (int i = 0; i < p.input_count; ++i) input_buffers_[i] = take();
    for (int i = 0; i < p.param_count; ++i) place_scalar(kFirstParam + i);
    for (int i = 0; i < p.constant_count; ++i) place_scalar(kFirstConstant + i);
  }

  /// Elements [at, at + n) of the run; offsets[k] is where operand k stands at element `at`, unless it is collected.
  void run(int64_t at, int64_t n, const int64_t* offsets) {
    const Program& p = *plan_.program;
    for (int i = 0; i < p.input_count; ++i) feed(i, at, n, offsets[i]);
    char* target = data_.out;
    if (plan_.out_in_place) target += offsets[plan_.out_operand()] * size_of(plan_.out_dtype);
    void* result = plan_.out_in_place && !plan_.out_cast && !data_.streamed ? target : result_;
    const int last = p.instruction_count - 1;
    for (int i = 0; i <= last; ++i) {
      const Step& s = plan_.steps[i];
      void* dst = i == last ? result : at_[s.dst];
      if (s.ternary) s.ternary(dst, at_[s.operands[0]], at_[s.operands[1]], at_[s.operands[2]], n);
      else s.function(dst, at_[s.operands[0]], at_[s.operands[1]], n);
    }
    if (result != target) spread(target, at, n);
  }

 private:
  struct alignas(64) Buffer {
    char bytes[kBuffer];
  };

  char* take() {
    char* buffer = next_;
    next_ += kBuffer;
    return buffer;
  }
  void place_scalar(int r) {
    const uint64_t* scalar = &plan_.scalars[r - kFirstParam];
    if (!plan_.needs_tile[r]) {
      at_[r] = const_cast<uint64_t*>(scalar);
      return;
    }
    at_[r] = take();
    fill_tile(at_[r], plan_.work_size, scalar, std::min(kTile, plan_.nest.count));
  }
  void feed(int i, int64_t at, int64_t n, int64_t offset) {
    const Input& in = plan_.inputs[i];
    const int64_t size = size_of(in.dtype);
    void*& reg = at_[kFirstInput + i];
    if (in.feed == Feed::collected) {
      char* to = in.cast ? stage_ : input_buffers_[i];
      by_width(size, [&]<class U>() {
        collect(i, at, n, reinterpret_cast<U*>(const_cast<char*>(data_.in[i])), reinterpret_cast<U*>(to));
      });
      if (in.cast) in.cast(stage_, input_buffers_[i], n);
      reg = input_buffers_[i];
      return;
    }
    const char* from = data_.in[i] + offset * size;
    const bool one = in.feed == Feed::one;
    if (data_.streamed && !one) prefetch(from + n * size, n * size);
    reg = const_cast<char*>(from);
    if (in.cast) in.cast(from, reg = input_buffers_[i], one ? 1 : n);
    if (one && plan_.needs_tile[kFirstInput + i]) {
      uint64_t element = 0;
      const int64_t width = plan_.program->reads_mask(i) ? 1 : plan_.work_size;
      std::memcpy(&element, reg, static_cast<size_t>(width));
      fill_tile(reg = input_buffers_[i], width, &element, n);
    }
  }
  /// The next tile comes from memory while this one is computed. (Past the end it is no access.)
  static void prefetch(const char* from, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i);
  }
  template <class U> void collect(int i, int64_t at, int64_t n, U* data, U* to) {
    const TileNest& nest = plan_.nest;
    if (nest.is_constant_before(nest.rank - 1, i))
      repeat_row(data, nest.inner(), nest.inner_stride(i), at % nest.inner(), n, to);
    else move_stretch<false>(nest, i, at, n, data, to);
  }
  void spread(char* target, int64_t at, int64_t n) {
    if (plan_.out_in_place) {
      if (!data_.streamed) return plan_.out_cast(result_, target, n);
      const char* done = result_;
      if (plan_.out_cast) plan_.out_cast(result_, stage_, n), done = stage_;
      return stream_copy(target, done, static_cast<size_t>(n * size_of(plan_.out_dtype)));
    }
    const char* from = result_;
    if (plan_.out_cast) plan_.out_cast(result_, stage_, n), from = stage_;
    by_width(size_of(plan_.out_dtype), [&]<class U>() {
      move_stretch<true>(plan_.nest, plan_.out_operand(), at, n, reinterpret_cast<U*>(data_.out),
                         reinterpret_cast<U*>(const_cast<char*>(from)));
    });
  }

  const Plan& plan_;
  const Data& data_;
  void* at_[kRegisters];
  char *stage_, *result_, *input_buffers_[kMaxInputs];
  std::unique_ptr<Buffer[]> heap_;
  alignas(64) char local_[12 * kBuffer];
  char* next_ = local_;
};

void run_rows(const Plan& plan, const Data& data) {
  const TileNest& nest = plan.nest;
  const int operands = plan.out_operand() + 1;
  const int64_t row = nest.inner(), tiles = (row + kTile - 1) / kTile, rows = nest.count / row;
  parallel_for(rows * tiles, std::max<int64_t>(1, kPiece / std::min(row, kTile)), [&](int64_t begin, int64_t end) {
    Worker worker(plan, data);
    int64_t tile = begin % tiles, start = begin / tiles * row;
    RowCursor cursor(nest, operands, begin / tiles);
    for (int64_t i = begin; i < end; ++i) {
      int64_t offsets[kMaxTileOperands];
      const int64_t first = tile * kTile;
      for (int k = 0; k < operands; ++k) offsets[k] = cursor.offset[k] + first * nest.inner_stride(k);
      worker.run(start + first, std::min(kTile, row - first), offsets);
      if (++tile == tiles) tile = 0, start += row, cursor.next();
    }
    if (data.streamed) stream_fence();
  });
}

void run_flat(const Plan& plan, const Data& data) {
  const TileNest& nest = plan.nest;
  const int operands = plan.out_operand() + 1;
  parallel_for((nest.count + kTile - 1) / kTile, kPiece / kTile, [&](int64_t begin, int64_t end) {
    Worker worker(plan, data);
    for (int64_t i = begin; i < end; ++i) {
      int64_t offsets[kMaxTileOperands];
      const int64_t at = i * kTile;
      for (int k = 0; k < operands; ++k) offsets[k] = plan.feeds[k] == Feed::one ? 0 : at;
      worker.run(at, std::min(kTile, nest.count - at), offsets);
    }
    if (data.streamed) stream_fence();
  });
}

/// One primitive over whole operands.
void run_single(const Plan& plan, const Data& data) {
  const Step& s = plan.steps[0];
  const int64_t out_size = size_of(plan.out_dtype);
  auto at = [&](int operand, int64_t begin) -> const void* {
    int reg = s.operands[operand];
    if (reg >= kFirstParam) return &plan.scalars[reg - kFirstParam];
    int input = reg - kFirstInput;
    return data.in[input] + (plan.is_one[reg] ? 0 : begin * size_of(plan.inputs[input].dtype));
  };
  parallel_for(plan.nest.count, kPiece, [&](int64_t begin, int64_t end) {
    s.function(data.out + begin * out_size, at(0, begin), at(1, begin), end - begin);
  });
}

bool is_single(const Plan& plan) {
  const Program& p = *plan.program;
  if (p.instruction_count != 1 || plan.steps[0].ternary || plan.nest.rank != 1 || plan.out_cast || !plan.out_in_place)
    return false;
  for (int i = 0; i < p.input_count; ++i)
    if (plan.inputs[i].cast || plan.inputs[i].feed == Feed::collected) return false;
  for (bool tile : plan.needs_tile)
    if (tile) return false;
  return true;
}

void make_plan(Plan& plan, const Program& program, DType work, std::span<const Operand> in,
               std::span<const Scalar> params, const MutableOperand& out, std::span<const int64_t> shape) {
  TW_ASSERT(!program.empty() && in.size() == program.input_count && params.size() == program.param_count);
  plan.program = &program;
  plan.work = work_dtype(work);
  plan.work_size = size_of(plan.work);
  plan.scalar_tiles = 0;
  std::memset(plan.is_one, 0, sizeof plan.is_one);
  std::memset(plan.needs_tile, 0, sizeof plan.needs_tile);
  plan_operands(plan, in, out, shape);
  if (plan.nest.count == 0) return;
  plan_scalars(plan, params);
  plan_steps(plan);
  plan.single = is_single(plan);
}

/// Whether the result of this run is better written past the caches: it is large, and not one of the inputs.
bool is_streamed(const Plan& plan, const Data& data) {
  const int64_t size = size_of(plan.out_dtype);
  if (!plan.out_in_place || plan.nest.count * size < kStreamed) return false;
  if (plan.nest.rank > 1 && plan.nest.inner() * size % static_cast<int64_t>(kStreamAlign) != 0) return false;
  if (reinterpret_cast<uintptr_t>(data.out) % kStreamAlign != 0) return false;
  for (int i = 0; i < plan.program->input_count; ++i)
    if (data.in[i] == data.out) return false;
  return true;
}

void run_plan(const Plan& plan, Data& data) {
  if (plan.nest.count == 0) return;
  data.streamed = is_streamed(plan, data);
  if (plan.single && !data.streamed) return run_single(plan, data);
  if (plan.nest.rank == 1 && plan.nest.count <= kTile) {
    const int64_t offsets[kMaxTileOperands] = {};
    Worker(plan, data).run(0, plan.nest.count, offsets);
  } else if (plan.by_rows) {
    run_rows(plan, data);
  } else {
    run_flat(plan, data);
  }
}

}  // namespace

void run_program(const Program& program, DType work, std::span<const Operand> in, std::span<const Scalar> params,
                 const MutableOperand& out, std::span<const int64_t> shape) {
  Plan plan;
  make_plan(plan, program, work, in, params, out, shape);
  Data data;
  for (size_t i = 0; i < in.size(); ++i) data.in[i] = static_cast<const char*>(in[i].data);
  data.out = static_cast<char*>(out.data);
  run_plan(plan, data);
}

struct PreparedProgram::Kept {
  Plan plan;
};
PreparedProgram::PreparedProgram(const Program& program, DType work, std::span<const Operand> in,
                                 std::span<const Scalar> params, const MutableOperand& out,
                                 std::span<const int64_t> shape)
    : kept_(std::make_unique<Kept>()) {
  make_plan(kept_->plan, program, work, in, params, out, shape);
}
PreparedProgram::PreparedProgram(PreparedProgram&&) noexcept = default;
PreparedProgram::~PreparedProgram() = default;

void PreparedProgram::run(std::span<const void* const> in, void* out) const {
  Data data;
  for (size_t i = 0; i < in.size(); ++i) data.in[i] = static_cast<const char*>(in[i]);
  data.out = static_cast<char*>(out);
  run_plan(kept_->plan, data);
}

}  // namespace twibil::kernels
