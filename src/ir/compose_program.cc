// SPDX-License-Identifier: Apache-2.0
#include "ir/compose_program.h"

namespace twibil {

formula::Id Composer::argument(int index, bool is_mask) {
  for (auto [known, id] : arguments_)
    if (known == index) return id;
  formula::Id id = recorder_.argument(is_mask);
  arguments_.push_back({index, id});
  return id;
}

formula::Id Composer::emit(Prim prim, formula::Id a, formula::Id b, formula::Id c) {
  return rules_ == Rules::simplify ? recorder_.emit(prim, a, b, c) : recorder_.emit_as_is(prim, a, b, c);
}

formula::Id Composer::as_mask(formula::Id x) { return is_mask(x) ? x : emit(Prim::ne, x, number(Scalar(0))); }
formula::Id Composer::as_value(formula::Id x) { return is_mask(x) ? emit(Prim::from_mask, x) : x; }

formula::Id Composer::apply(const Program& p, std::span<const formula::Id> inputs, std::span<const Scalar> params) {
  formula::Id temps[kMaxTemps] = {}, result = formula::kNoId;
  auto read = [&](const Ref& r) {
    switch (r.kind) {
      case Ref::Kind::temp: return temps[r.index];
      case Ref::Kind::input: return inputs[r.index];
      case Ref::Kind::param: return number(params[r.index]);
      case Ref::Kind::constant: return recorder_.constant(p.constants[r.index]);
      case Ref::Kind::none: break;
    }
    return formula::kNoId;
  };
  for (int i = 0; i < p.instruction_count; ++i) {
    const Instruction& in = p.instructions[i];
    formula::Id operands[3] = {formula::kNoId, formula::kNoId, formula::kNoId};
    for (int k = 0; k < info_of(in.prim).arity; ++k) operands[k] = read(in.operands[k]);
    result = temps[in.dst] = emit(in.prim, operands[0], operands[1], operands[2]);
  }
  return result;
}

int Composer::is_argument(formula::Id x) const {
  for (auto [index, id] : arguments_)
    if (id == x) return index;
  return -1;
}

int formula_params(const OpDef& op, const void* attrs, Scalar* params) {
  int n = 0;
  for (const Field& f : op.attrs.span()) {
    if (n == op.program->param_count) break;
    if (f.kind == AttrKind::scalar) params[n++] = attr_at<Scalar>(attrs, f);
    else if (f.kind == AttrKind::real) params[n++] = Scalar(attr_at<double>(attrs, f));
    else if (f.kind == AttrKind::integer) params[n++] = Scalar(attr_at<int64_t>(attrs, f));
    else if (f.kind == AttrKind::maybe_scalar && attr_at<Maybe<Scalar>>(attrs, f))
      params[n++] = *attr_at<Maybe<Scalar>>(attrs, f);
  }
  return n;
}

std::vector<Scalar> params_of(const GraphNode& n) {
  Scalar params[kMaxParams];
  int count = formula_params(*n.op, n.attrs.data(), params);
  return std::vector<Scalar>(params, params + count);
}

bool is_number(const GraphNode& n) {
  return n.kind == GraphNode::Kind::constant && n.value->size() == 1 && n.value->has(kWeak);
}

}  // namespace twibil
