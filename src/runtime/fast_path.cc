// SPDX-License-Identifier: Apache-2.0
#include "runtime/fast_path.h"

#include <limits>
#include <mutex>
#include <vector>

namespace twibil {

static void store_constant(const ProgramConstant& c, DType t, std::byte* to) {
  dispatch(t, [&]<class T>() {
    using C = std::conditional_t<(std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>), float, T>;
    C v;
    if (c.kind == ProgramConstant::Kind::lowest) v = std::numeric_limits<C>::lowest();
    else if (c.kind == ProgramConstant::Kind::highest) v = std::numeric_limits<C>::max();
    else if (std::is_integral_v<C>) v = static_cast<C>(c.number.as_int());
    else v = static_cast<C>(c.number.as_double());
    if constexpr (std::is_same_v<C, T>) *reinterpret_cast<T*>(to) = v;
    else *reinterpret_cast<T*>(to) = T(v);
  });
}

// A constant that the integers lack (0.5 in a formula) keeps them off the short way.
static bool fits(const ProgramConstant& c, DType t) {
  return is_floating(t) || c.kind != ProgramConstant::Kind::number || !c.number.is_real() ||
         c.number.real == static_cast<double>(c.number.as_int());
}

// Every FastPath of the process, and whether they are closed.
namespace {
struct AllPaths {
  std::mutex mutex;
  std::vector<FastPath*> paths;
  bool closed = false;
};
AllPaths& all_paths() {
  static auto* all = new AllPaths;
  return *all;
}
}  // namespace

FastPath::FastPath(const OpDef& definition) : op(&definition) {
  const Program* p = op->program;
  if (!p || !p->is_single() || p->mask_inputs) return;
  for (int i = 0; i < kDTypeCount; ++i) {
    DType t = static_cast<DType>(i);
    if (!contains(op->types, t)) continue;
    out[i] = p->mask_output() || op->rule == Rule::compare ? DType::bool_ : t;
    if (op->inputs() != 1 || p->param_count || info_of(p->last().prim).arity == 1) continue;
    const Ref* r = p->last().operands;
    constant_left = r[0].kind == Ref::Kind::constant;
    const Ref& number = constant_left ? r[0] : r[1];
    if (number.kind == Ref::Kind::constant && fits(p->constants[number.index], t))
      store_constant(p->constants[number.index], t, constant[i]);
  }
  AllPaths& all = all_paths();
  std::lock_guard lock(all.mutex);
  all.paths.push_back(this);
  if (!all.closed) fill();
}

FastPath::~FastPath() {
  AllPaths& all = all_paths();
  std::lock_guard lock(all.mutex);
  std::erase(all.paths, this);
}

void FastPath::fill() {
  const Program* p = op->program;
  Prim prim = p->last().prim;
  auto set = [](Table& table, int i, kernels::DirectFunction run) { table[i].store(run, std::memory_order_relaxed); };
  for (int i = 0; i < kDTypeCount; ++i) {
    DType t = static_cast<DType>(i);
    if (!contains(op->types, t) || (op->rule == Rule::floating && !is_floating(t)) ||
        (op->rule == Rule::arithmetic && t == DType::bool_))
      continue;
    if (op->inputs() == 2 && p->input_count == 2 && p->sources[0] == 0 && p->sources[1] == 1) {
      set(arrays, i, kernels::direct(prim, t, kernels::Mode::vector_vector));
      set(scalar_right, i, kernels::direct(prim, t, kernels::Mode::vector_scalar));
      set(scalar_left, i, kernels::direct(prim, t, kernels::Mode::scalar_vector));
    } else if (op->inputs() == 1 && p->param_count == 0) {
      if (info_of(prim).arity == 1) {
        set(arrays, i, kernels::direct(prim, t, kernels::Mode::unary));
        continue;
      }
      const Ref& number = p->last().operands[constant_left ? 0 : 1];
      if (number.kind != Ref::Kind::constant || !fits(p->constants[number.index], t)) continue;
      auto mode = constant_left ? kernels::Mode::scalar_vector : kernels::Mode::vector_scalar;
      set(arrays, i, kernels::direct(prim, t, mode));
    }
  }
}

void FastPath::clear() {
  for (Table* table : {&arrays, &scalar_right, &scalar_left})
    for (auto& run : *table) run.store(nullptr, std::memory_order_relaxed);
}

void close_fast_paths() {
  AllPaths& all = all_paths();
  std::lock_guard lock(all.mutex);
  all.closed = true;
  for (FastPath* path : all.paths) path->clear();
}

void open_fast_paths() {
  AllPaths& all = all_paths();
  std::lock_guard lock(all.mutex);
  all.closed = false;
  for (FastPath* path : all.paths) path->fill();
}

}  // namespace twibil
