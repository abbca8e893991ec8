// SPDX-License-Identifier: Apache-2.0
#include "kernels/pooling_pick.h"

#include <algorithm>

#include "base/parallel.h"

namespace twibil::kernels {

namespace {

struct Reach {
  int64_t begin, end;
  Reach(const PoolShape& s, int axis, int64_t o)
      : begin(std::max<int64_t>(0, o * s.stride[axis] - s.pad[axis])),
        end(std::min(o * s.stride[axis] - s.pad[axis] + s.kernel[axis], s.in[axis])) {}
};

template <class T> void pick_plane(const PoolShape& s, const T* x, const T* h, T* y) {
  auto number = [](T v) {
    return static_cast<double>(sizeof(T) < 4
                                   ? static_cast<double>(static_cast<float>(v))
                                   : static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, T, float>>(v)));
  };
  for (int64_t od = 0; od < s.out[0]; ++od)
    for (int64_t oh = 0; oh < s.out[1]; ++oh)
      for (int64_t ow = 0; ow < s.out[2]; ++ow) {
        Reach d(s, 0, od), r(s, 1, oh), w(s, 2, ow);
        int64_t best = -1;
        for (int64_t i = d.begin; i < d.end; ++i)
          for (int64_t j = r.begin; j < r.end; ++j)
            for (int64_t k = w.begin; k < w.end; ++k) {
              int64_t at = (i * s.in[1] + j) * s.in[2] + k;
              double v = number(x[at]);
              if (best < 0 || v > number(x[best]) || (v != v && number(x[best]) == number(x[best]))) best = at;
            }
        *y++ = best < 0 ? T{} : h[best];
      }
}

}  // namespace

void pool_pick(DType t, const PoolShape& s, const void* x, const void* h, void* y) {
  int64_t in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
  dispatch(t, [&]<class T>() {
    if constexpr (requires(T v) { static_cast<double>(static_cast<float>(v)); }) {
      parallel_for(s.planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, out)), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
          pick_plane(s, static_cast<const T*>(x) + p * in, static_cast<const T*>(h) + p * in,
                     static_cast<T*>(y) + p * out);
      });
    }
  });
}

}  // namespace twibil::kernels
