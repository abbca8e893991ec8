// SPDX-License-Identifier: Apache-2.0
// Changes the size of a picture, with OpenCV's (and so MXNet's imresize) meaning of each method.
#pragma once
#include "api/io/picture.h"

namespace twibil::io {

/// The numbers are MXNet's `interp`.
enum class Interpolation {
  nearest = 0,
  bilinear = 1,
  bicubic = 2,
  area = 3,  // the mean of what a new pixel covers: the choice for making pictures smaller
};

Picture resize(const Picture& picture, int64_t height, int64_t width, Interpolation method = Interpolation::bilinear);

/// The part of `picture` that begins at (top, left).
Picture crop(const Picture& picture, int64_t top, int64_t left, int64_t height, int64_t width);

}  // namespace twibil::io
