// SPDX-License-Identifier: Apache-2.0
#include "runtime/fast_path.h"

#include <limits>

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

FastPath::FastPath(const OpDef& definition) : op(&definition) {
  const Program* p = op->program;
  if (!p || !p->is_single() || p->mask_inputs) return;
  Prim prim = p->last().prim;
  bool mask = p->mask_output();
  for (int i = 0; i < kDTypeCount; ++i) {
    DType t = static_cast<DType>(i);
    if (!contains(op->types, t) || (op->rule == Rule::floating && !is_floating(t)) ||
        (op->rule == Rule::arithmetic && t == DType::bool_))
      continue;
    out[i] = mask || op->rule == Rule::compare ? DType::bool_ : t;
    const Ref* r = p->last().operands;
    if (op->inputs() == 2 && p->input_count == 2 && p->sources[0] == 0 && p->sources[1] == 1) {
      arrays[i] = kernels::direct(prim, t, kernels::Mode::vector_vector);
      scalar_right[i] = kernels::direct(prim, t, kernels::Mode::vector_scalar);
      scalar_left[i] = kernels::direct(prim, t, kernels::Mode::scalar_vector);
    } else if (op->inputs() == 1 && p->param_count == 0) {
      if (info_of(prim).arity == 1) {
        arrays[i] = kernels::direct(prim, t, kernels::Mode::unary);
        continue;
      }
      constant_left = r[0].kind == Ref::Kind::constant;
      const Ref& number = constant_left ? r[0] : r[1];
      if (number.kind != Ref::Kind::constant || !fits(p->constants[number.index], t)) continue;
      store_constant(p->constants[number.index], t, constant[i]);
      arrays[i] = kernels::direct(prim, t, constant_left ? kernels::Mode::scalar_vector : kernels::Mode::vector_scalar);
    }
  }
}

}  // namespace twibil
