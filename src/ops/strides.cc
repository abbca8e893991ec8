// SPDX-License-Identifier: Apache-2.0
#include "ops/strides.h"

#include "kernels/reduce.h"

namespace twibil::ops {

void sum_to(const Buffer& x, const Buffer& y) {
  int shift = x.rank - y.rank;
  kernels::AxisSet axes = 0;
  for (int i = 0; i < x.rank; ++i)
    if (i < shift || (y.dims[i - shift] == 1 && x.dims[i] != 1)) axes |= 1u << i;
  if (!axes) return copy_buffer(x, y);
  kernels::reduce(kernels::Reduction::sum, x.dtype, y.dtype, x.shape(), x.data, Strides(x), axes, y.data);
}

}  // namespace twibil::ops
