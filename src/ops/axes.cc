// SPDX-License-Identifier: Apache-2.0
#include "ops/axes.h"

#include "ops/forms.h"

namespace twibil::ops {

kernels::AxisSet axis_set(const Maybe<IntList>& axis, int rank, std::string_view who) {
  if (!axis) return (1u << rank) - 1;
  kernels::AxisSet set = 0;
  for (int64_t a : *axis) {
    uint32_t bit = 1u << normalize_axis(a, rank, who);
    TW_CHECK(!(set & bit), value, who, ": axis ", a, " is given twice in ", (*axis).span());
    set |= bit;
  }
  return set;
}

kernels::AxisSet axis_set(const Maybe<int64_t>& axis, int rank, std::string_view who) {
  return axis ? 1u << normalize_axis(*axis, rank, who) : (1u << rank) - 1;
}

Shape reduced_shape(const Shape& x, kernels::AxisSet set, bool keepdims) {
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (!(set >> i & 1)) out.push_back(x[i]);
    else if (keepdims) out.push_back(1);
  }
  return out;
}

Val put_back(const Val& reduced, const Maybe<IntList>& axis, const Val& x) {
  if (!axis) return reduced;  // a scalar broadcasts by itself
  kernels::AxisSet set = axis_set(axis, x->rank(), "gradient");
  Val y = reduced;
  for (int i = 0; i < x->rank(); ++i)
    if (set >> i & 1) y = expand_dims(y, i);
  return y;
}

}  // namespace twibil::ops
