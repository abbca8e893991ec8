// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's weights: a matrix product that sums over pictures and pixels.
#pragma once
#include "kernels/convolution.h"

namespace twibil::kernels {

/// dw from x and dy; T is float or double. Sums in an order that only the shape decides.
template <class T> void convolution_weight_gradient(const ConvolutionShape& shape, const T* x, const T* dy, T* dw);

}  // namespace twibil::kernels
