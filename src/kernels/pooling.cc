// SPDX-License-Identifier: Apache-2.0
// A window is reduced in two steps: over its rows, for all columns at once, then along the one row that is left. Plain
// loops, compiled once per instruction set; the compiler makes vectors of them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pooling.cc"
#include "kernels/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/isa.h"
#include "kernels/scratch.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace twibil::kernels::HWY_NAMESPACE {

/// The elements [begin, end) of an axis that a window covers, and its length with padding.
struct Reach {
  int64_t begin, end, padded;
  Reach(const PoolShape& s, int axis, int64_t o) {
    begin = o * s.stride[axis] - s.pad[axis];
    padded = std::min(begin + s.kernel[axis], s.in[axis] + s.pad[axis]) - begin;
    end = std::min(begin + s.kernel[axis], s.in[axis]);
    begin = std::max<int64_t>(begin, 0);
  }
  int64_t size() const { return std::max<int64_t>(0, end - begin); }
};

template <class A> HWY_INLINE A larger(A most, A x) {
  return x > most || x != x ? x : most;  // NaN wins
}
template <class A> HWY_INLINE A power(A x, int64_t p) { return p == 1 ? x : p == 2 ? x * x : x * x * x; }
template <class A> HWY_INLINE A root(A x, int64_t p) { return p == 1 ? x : p == 2 ? std::sqrt(x) : std::cbrt(x); }

/// What a window's sum is divided by; 0 if it covers nothing.
HWY_INLINE int64_t divisor(PoolKind kind, const Reach& d, const Reach& h, const Reach& w) {
  if (kind == PoolKind::average)
    return std::max<int64_t>(0, d.padded) * std::max<int64_t>(0, h.padded) * std::max<int64_t>(0, w.padded);
  if (kind == PoolKind::average_of_elements) return d.size() * h.size() * w.size();
  return 1;
}

/// line[column] = the reduction of the window's rows at that column.
template <class T, class A>
HWY_INLINE void reduce_rows(PoolKind kind, const PoolShape& s, const T* x, const Reach& d, const Reach& h, A* line) {
  const int64_t width = s.in[2];
  bool first = true;
  for (int64_t z = d.begin; z < d.end; ++z) {
    for (int64_t y = h.begin; y < h.end; ++y, first = false) {
      const T* row = x + (z * s.in[1] + y) * width;
      if (kind == PoolKind::max) {
        if (first)
          for (int64_t i = 0; i < width; ++i) line[i] = static_cast<A>(row[i]);
        else
          for (int64_t i = 0; i < width; ++i) line[i] = larger(line[i], static_cast<A>(row[i]));
      } else if (kind == PoolKind::lp) {
        for (int64_t i = 0; i < width; ++i) line[i] = (first ? A{} : line[i]) + power(static_cast<A>(row[i]), s.p);
      } else if (first) {
        for (int64_t i = 0; i < width; ++i) line[i] = static_cast<A>(row[i]);
      } else {
        for (int64_t i = 0; i < width; ++i) line[i] += static_cast<A>(row[i]);
      }
    }
  }
}

template <class T, class A>
HWY_INLINE void reduce_line(PoolKind kind, const PoolShape& s, const A* line, const Reach& d, const Reach& h, T* y) {
  const bool covered = d.size() > 0 && h.size() > 0;
  int64_t o = 0;
  if (covered && kind == PoolKind::max && s.kernel[2] == 2 && s.stride[2] == 2 && s.pad[2] == 0) {
    const int64_t whole = std::min(s.out[2], s.in[2] / 2);
    for (; o < whole; ++o) y[o] = T(larger(line[2 * o], line[2 * o + 1]));
  }
  for (; o < s.out[2]; ++o) {
    const Reach w(s, 2, o);
    const bool any = covered && w.size() > 0;
    if (kind == PoolKind::max) {
      A most = any ? line[w.begin] : static_cast<A>(std::numeric_limits<A>::lowest());
      for (int64_t i = w.begin + 1; any && i < w.end; ++i) most = larger(most, line[i]);
      if constexpr (std::is_same_v<T, float16>) {
        if (!any) most = -65504;
      } else if constexpr (std::is_same_v<T, bfloat16>) {
        if (!any) most = -3.3895313892515355e38f;
      }
      y[o] = T(most);
    } else {
      A sum{};
      for (int64_t i = w.begin; any && i < w.end; ++i) sum += line[i];
      const int64_t n = divisor(kind, d, h, w);
      y[o] = T(!any ? A{} : kind == PoolKind::lp ? root(sum, s.p) : sum / static_cast<A>(n));
    }
  }
}

template <class T> void forward_plane(PoolKind kind, const PoolShape& s, const T* x, T* y, accumulator_t<T>* line) {
  for (int64_t od = 0; od < s.out[0]; ++od) {
    const Reach d(s, 0, od);
    for (int64_t oh = 0; oh < s.out[1]; ++oh) {
      const Reach h(s, 1, oh);
      reduce_rows(kind, s, x, d, h, line);
      reduce_line(kind, s, line, d, h, y + (od * s.out[1] + oh) * s.out[2]);
    }
  }
}

/// The first maximum (or NaN) of a window, as an index of the plane; -1 if it covers nothing.
template <class T, class A>
HWY_INLINE int64_t first_maximum(const PoolShape& s, const T* x, const Reach& d, const Reach& h, const Reach& w) {
  int64_t at = -1;
  A most{};
  for (int64_t z = d.begin; z < d.end; ++z) {
    for (int64_t y = h.begin; y < h.end; ++y) {
      const int64_t row = (z * s.in[1] + y) * s.in[2];
      for (int64_t i = w.begin; i < w.end; ++i) {
        const A value = static_cast<A>(x[row + i]);
        if (at < 0 || value > most || (value != value && most == most)) at = row + i, most = value;
      }
    }
  }
  return at;
}

/// 2 x 2 windows that do not overlap, one row of them: no branches.
template <class T>
HWY_INLINE void backward_max_2x2(const T* above, const T* below, const T* dy, int64_t n, T* dx_above, T* dx_below) {
  for (int64_t o = 0; o < n; ++o) {
    const T a = above[2 * o], b = above[2 * o + 1], c = below[2 * o], e = below[2 * o + 1], g = dy[o];
    const bool first_a = a != a || (b == b && c == c && e == e && a >= b && a >= c && a >= e);
    const bool first_b = !first_a && (b != b || (c == c && e == e && b >= c && b >= e));
    const bool first_c = !first_a && !first_b && (c != c || (e == e && c >= e));
    dx_above[2 * o] = first_a ? g : T{};
    dx_above[2 * o + 1] = first_b ? g : T{};
    dx_below[2 * o] = first_c ? g : T{};
    dx_below[2 * o + 1] = first_a || first_b || first_c ? T{} : g;
  }
}

template <class T, class A>
void backward_window(PoolKind kind, const PoolShape& s, const T* x, A y, A dy, const Reach& d, const Reach& h,
                     const Reach& w, A* dx) {
  const int64_t n = divisor(kind, d, h, w);
  const A share = n > 0 ? dy / static_cast<A>(n) : A{};
  for (int64_t z = d.begin; z < d.end; ++z) {
    for (int64_t r = h.begin; r < h.end; ++r) {
      const int64_t row = (z * s.in[1] + r) * s.in[2];
      for (int64_t i = w.begin; i < w.end; ++i) {
        // d (sum x^p)^(1/p) = (x / y)^(p - 1); 0 where y is 0, as the limit along each axis.
        if (kind != PoolKind::lp) dx[row + i] += share;
        else if (s.p == 1) dx[row + i] += dy;
        else if (y != A{}) dx[row + i] += dy * power(static_cast<A>(x[row + i]) / y, s.p - 1);
      }
    }
  }
}

template <class T>
void backward_plane(PoolKind kind, const PoolShape& s, const T* x, const T* y, const T* dy, T* dx,
                    accumulator_t<T>* sums) {
  using A = accumulator_t<T>;
  const int64_t size = s.in[0] * s.in[1] * s.in[2];
  bool simple = kind == PoolKind::max && s.kernel[0] == 1 && s.stride[0] == 1 && s.pad[0] == 0 && s.out[0] == s.in[0];
  for (int axis = 1; axis < 3; ++axis) {
    simple = simple && s.kernel[axis] == 2 && s.stride[axis] == 2 && s.pad[axis] == 0 && s.in[axis] == 2 * s.out[axis];
  }
  if constexpr (std::is_same_v<T, A>) {
    if (simple) {
      for (int64_t r = 0; r < s.out[0] * s.out[1]; ++r, x += 2 * s.in[2], dx += 2 * s.in[2], dy += s.out[2]) {
        backward_max_2x2(x, x + s.in[2], dy, s.out[2], dx, dx + s.in[2]);
      }
      return;
    }
    sums = dx;
  }
  std::fill_n(sums, size, A{});
  for (int64_t od = 0; od < s.out[0]; ++od) {
    const Reach d(s, 0, od);
    for (int64_t oh = 0; oh < s.out[1]; ++oh) {
      const Reach h(s, 1, oh);
      for (int64_t ow = 0; ow < s.out[2]; ++ow) {
        const Reach w(s, 2, ow);
        const int64_t at = (od * s.out[1] + oh) * s.out[2] + ow;
        const A g = static_cast<A>(dy[at]);
        if (kind == PoolKind::max) {
          const int64_t to = first_maximum<T, A>(s, x, d, h, w);
          if (to >= 0) sums[to] += g;
        } else {
          backward_window(kind, s, x, kind == PoolKind::lp ? static_cast<A>(y[at]) : A{}, g, d, h, w, sums);
        }
      }
    }
  }
  if constexpr (!std::is_same_v<T, A>) {
    for (int64_t i = 0; i < size; ++i) dx[i] = T(sums[i]);
  }
}

void pool_forward_planes(DType t, PoolKind kind, const PoolShape& s, int64_t begin, int64_t end, const void* x,
                         void* y) {
  dispatch(t, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>)) {
      const int64_t in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
      ScratchFrame frame;
      accumulator_t<T>* line = frame.take<accumulator_t<T>>(s.in[2]);
      for (int64_t i = begin; i < end; ++i) {
        forward_plane(kind, s, static_cast<const T*>(x) + i * in, static_cast<T*>(y) + i * out, line);
      }
    }
  });
}

void pool_backward_planes(DType t, PoolKind kind, const PoolShape& s, int64_t begin, int64_t end, const void* x,
                          const void* y, const void* dy, void* dx) {
  dispatch(t, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>)) {
      const int64_t in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
      const T* ys = kind == PoolKind::lp ? static_cast<const T*>(y) : nullptr;
      const T* xs = kind == PoolKind::lp || kind == PoolKind::max ? static_cast<const T*>(x) : nullptr;
      ScratchFrame frame;
      accumulator_t<T>* sums = is_half(dtype_of<T>) ? frame.take<accumulator_t<T>>(in) : nullptr;
      for (int64_t i = begin; i < end; ++i) {
        backward_plane(kind, s, xs ? xs + i * in : nullptr, ys ? ys + i * out : nullptr,
                       static_cast<const T*>(dy) + i * out, static_cast<T*>(dx) + i * in, sums);
      }
    }
  });
}

}  // namespace twibil::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace twibil::kernels {
namespace {

constexpr int64_t kPoolGrain = 1 << 16;  // elements of input that are worth a thread

void check_pool(DType t, PoolKind kind, const PoolShape& s) {
  TW_CHECK(is_floating(t), type, "pooling: dtype must be a float; got ", t);
  TW_CHECK(kind != PoolKind::lp || (s.p >= 1 && s.p <= 3), value, "pooling: p must be 1, 2 or 3; got ", s.p);
  for (int axis = 0; axis < 3; ++axis) {
    TW_CHECK(s.kernel[axis] > 0 && s.stride[axis] > 0 && s.pad[axis] >= 0, value,
             "pooling: kernel and stride must be positive and pad at least 0; got kernel ", std::span(s.kernel),
             ", stride ", std::span(s.stride), ", pad ", std::span(s.pad));
  }
}
int64_t plane_grain(const PoolShape& s) {
  return std::max<int64_t>(1, kPoolGrain / std::max<int64_t>(1, checked_product(s.in)));
}

}  // namespace

PoolShape pool_shape(int64_t planes, std::span<const int64_t> in, std::span<const int64_t> out,
                     std::span<const int64_t> kernel, std::span<const int64_t> stride, std::span<const int64_t> pad) {
  const size_t axes = in.size();
  TW_CHECK(axes >= 1 && axes <= 3 && out.size() == axes && kernel.size() == axes && stride.size() == axes &&
               pad.size() == axes,
           value, "pooling: sizes, kernel, stride and pad must have the same one to three axes; got in ", in, ", out ",
           out, ", kernel ", kernel, ", stride ", stride, ", pad ", pad);
  PoolShape s{.planes = planes, .in = {1, 1, 1}, .out = {1, 1, 1}, .kernel = {1, 1, 1}};
  for (size_t i = 0, to = 3 - axes; i < axes; ++i, ++to) {
    s.in[to] = in[i];
    s.out[to] = out[i];
    s.kernel[to] = kernel[i];
    s.stride[to] = stride[i];
    s.pad[to] = pad[i];
  }
  return s;
}

HWY_EXPORT(pool_forward_planes);
HWY_EXPORT(pool_backward_planes);

void pool_forward(DType t, PoolKind kind, const PoolShape& s, const void* x, void* y) {
  check_pool(t, kind, s);
  const auto run = TW_DISPATCH(pool_forward_planes);
  parallel_for(s.planes, plane_grain(s), [&](int64_t begin, int64_t end) { run(t, kind, s, begin, end, x, y); });
}

void pool_backward(DType t, PoolKind kind, const PoolShape& s, const void* x, const void* y, const void* dy, void* dx) {
  check_pool(t, kind, s);
  const auto run = TW_DISPATCH(pool_backward_planes);
  parallel_for(s.planes, plane_grain(s),
               [&](int64_t begin, int64_t end) { run(t, kind, s, begin, end, x, y, dy, dx); });
}

}  // namespace twibil::kernels
#endif
