// SPDX-License-Identifier: Apache-2.0
// Checks sizes, turns the forward pass and the gradient of the data into gather convolutions, and widens 16-bit floats.
#include "kernels/convolution.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "base/parallel.h"
#include "kernels/blocked_winograd.h"
#include "kernels/convolution_gather.h"
#include "kernels/convolution_weights.h"
#include "kernels/scratch.h"

namespace twibil::kernels {
namespace {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t volume(const int64_t (&size)[3]) { return checked_product(size); }

void check(DType t, const ConvolutionShape& s) {
  TW_CHECK(is_floating(t), type, "convolution: dtype must be a float; got ", t);
  TW_CHECK(s.groups > 0 && s.in_channels % s.groups == 0 && s.out_channels % s.groups == 0, value,
           "convolution: groups must divide the channels; got ", s.groups, " groups for ", s.in_channels, " -> ",
           s.out_channels, " channels");
  for (int axis = 0; axis < 3; ++axis) {
    TW_CHECK(s.kernel[axis] > 0 && s.stride[axis] > 0 && s.dilation[axis] > 0, value,
             "convolution: kernel, stride and dilation must be positive; got kernel ", std::span(s.kernel), ", stride ",
             std::span(s.stride), ", dilation ", std::span(s.dilation));
  }
}

/// A 1x1 kernel has no neighbours: all axes become one long row.
ConvolutionShape flattened(ConvolutionShape s) {
  for (int axis = 0; axis < 3; ++axis) {
    if (s.kernel[axis] != 1 || s.stride[axis] != 1 || s.pad[axis] != 0 || s.in[axis] != s.out[axis]) return s;
  }
  s.in[2] = s.out[2] = volume(s.in);
  s.in[0] = s.in[1] = s.out[0] = s.out[1] = 1;
  return s;
}

/// Calls visit(tap position in each axis, its weight's index) for every tap.
template <class Visit> void each_tap(const ConvolutionShape& s, const Visit& visit) {
  int64_t weight = 0;
  for (int64_t d = 0; d < s.kernel[0]; ++d) {
    for (int64_t h = 0; h < s.kernel[1]; ++h) {
      for (int64_t w = 0; w < s.kernel[2]; ++w) visit(std::array{d, h, w}, weight++);
    }
  }
}

constexpr int64_t kDepthwiseRows = 4;  // with more outputs per channel a matrix product is better

template <class T> bool is_depthwise(const GatherConvolution<T>& g) {
  return g.channels == 1 && g.rows <= kDepthwiseRows;
}

template <class T> void run_gather(const GatherConvolution<T>& g, ConvolutionAlgorithm algorithm) {
  if (is_depthwise(g)) return depthwise_convolution(g);
  if constexpr (std::is_same_v<T, float>) {
    if (algorithm == ConvolutionAlgorithm::automatic && winograd_convolution(g)) return;
  }
  gather_convolution(g);
}

template <class T>
GatherConvolution<T> forward_gather(const ConvolutionShape& s, const T* x, const T* w, const T* bias, T* y) {
  const int64_t taps = volume(s.kernel);
  GatherConvolution<T> g{.images = s.batch,
                         .groups = s.groups,
                         .rows = s.out_channels / s.groups,
                         .channels = s.in_channels / s.groups,
                         .src = x,
                         .weights = w,
                         .bias = bias,
                         .dst = y};
  g.row_step = g.channels * taps;
  g.channel_step = taps;
  g.group_step = g.rows * g.row_step;
  for (int axis = 0; axis < 3; ++axis) {
    g.src_size[axis] = s.in[axis];
    g.src_stride[axis] = s.stride[axis];
    g.dst_size[axis] = g.count[axis] = s.out[axis];
    g.dst_start[axis] = 0;
    g.dst_stride[axis] = 1;
  }
  each_tap(s, [&](const std::array<int64_t, 3>& at, int64_t weight) {
    GatherTap tap{.weight = weight};
    for (size_t axis = 0; axis < 3; ++axis) tap.shift[axis] = at[axis] * s.dilation[axis] - s.pad[axis];
    g.taps.push_back(tap);
  });
  return g;
}

/// Two of the three axes, if the other one has a single element.
std::optional<BlockedShape> in_two_dimensions(const ConvolutionShape& s) {
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1 || s.pad[0] != 0) return {};
  BlockedShape b{.batch = s.batch, .in_channels = s.in_channels, .out_channels = s.out_channels, .groups = s.groups};
  for (int axis = 0; axis < 2; ++axis) {
    b.in[axis] = s.in[axis + 1], b.out[axis] = s.out[axis + 1], b.kernel[axis] = s.kernel[axis + 1];
    b.stride[axis] = s.stride[axis + 1], b.dilation[axis] = s.dilation[axis + 1], b.pad[axis] = s.pad[axis + 1];
  }
  return b;
}

template <class T> void weight_gradient(const ConvolutionShape& s, const T* x, const T* dy, T* dw) {
  if constexpr (std::is_same_v<T, float>) {
    const auto b = s.algorithm == ConvolutionAlgorithm::automatic ? in_two_dimensions(s) : std::nullopt;
    if (b && winograd::weight_gradient_suits(*b)) return winograd::weight_gradient_of_plain(*b, x, dy, dw);
  }
  if (s.in_channels == s.groups && s.out_channels / s.groups <= kDepthwiseRows) {
    depthwise_weight_gradient<T>(forward_gather<T>(s, x, nullptr, nullptr, nullptr), dy, dw);
  } else {
    convolution_weight_gradient(s, x, dy, dw);
  }
}

/// Input position p receives from output o by tap t where o * stride + t * dilation - pad = p. With stride s, the s
/// positions p % s of each axis are reached by different taps: each is a gather convolution of its own.
/// run(gather) computes one of them.
template <class T, class Run>
void backward_data(const ConvolutionShape& shape, const T* dy, const T* w, const T* bias, T* dx, const Run& run) {
  const ConvolutionShape s = flattened(shape);
  const int64_t taps = volume(s.kernel);
  GatherConvolution<T> g{.images = s.batch,
                         .groups = s.groups,
                         .rows = s.in_channels / s.groups,
                         .channels = s.out_channels / s.groups,
                         .src = dy,
                         .weights = w,
                         .bias = bias,
                         .dst = dx};
  g.row_step = taps;
  g.channel_step = g.rows * taps;
  g.group_step = g.channels * g.channel_step;
  for (int axis = 0; axis < 3; ++axis) {
    g.src_size[axis] = s.out[axis];
    g.src_stride[axis] = 1;
    g.dst_size[axis] = s.in[axis];
    g.dst_stride[axis] = s.stride[axis];
  }
  int64_t starts[3];  // a stride may be far longer than the axis
  for (int axis = 0; axis < 3; ++axis) starts[axis] = std::min(s.stride[axis], s.in[axis]);
  const int64_t phases = volume(starts);
  for (int64_t phase = 0; phase < phases; ++phase) {
    const int64_t start[3] = {phase / (starts[1] * starts[2]), phase / starts[2] % starts[1], phase % starts[2]};
    for (int axis = 0; axis < 3; ++axis) {
      g.dst_start[axis] = start[axis];
      g.count[axis] = ceil_div(s.in[axis] - start[axis], s.stride[axis]);
    }
    g.taps.clear();
    each_tap(s, [&](const std::array<int64_t, 3>& at, int64_t weight) {
      GatherTap tap{.weight = weight};
      for (size_t axis = 0; axis < 3; ++axis) {
        const int64_t distance = start[axis] + s.pad[axis] - at[axis] * s.dilation[axis];
        if (distance % s.stride[axis] != 0) return;
        tap.shift[axis] = distance / s.stride[axis];
      }
      g.taps.push_back(tap);
    });
    run(g);
  }
}

// ---- 16-bit floats: widen, compute, narrow --------------------------------------------------------------------------

constexpr int64_t kConvertGrain = 1 << 16;

template <class T> const float* widened(ScratchFrame& frame, const void* from, int64_t n) {
  if (!from) return nullptr;
  float* to = frame.take<float>(n);
  parallel_for(n, kConvertGrain, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) to[i] = static_cast<float>(static_cast<const T*>(from)[i]);
  });
  return to;
}
template <class T> void narrow(const float* from, int64_t n, void* to) {
  parallel_for(n, kConvertGrain, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) static_cast<T*>(to)[i] = T(from[i]);
  });
}

struct Sizes {
  int64_t x, w, y;
  explicit Sizes(const ConvolutionShape& s)
      : x(checked_mul(checked_mul(s.batch, s.in_channels), volume(s.in))),
        w(checked_mul(checked_mul(s.out_channels, s.in_channels / s.groups), volume(s.kernel))),
        y(checked_mul(checked_mul(s.batch, s.out_channels), volume(s.out))) {}
};

/// run(left, right, bias, to) in float32, whatever 16-bit float T is.
template <class T, class Run>
void in_float(const void* left, int64_t left_size, const void* right, int64_t right_size, const void* bias,
              int64_t bias_size, void* to, int64_t to_size, const Run& run) {
  ScratchFrame frame;
  const float* l = widened<T>(frame, left, left_size);
  const float* r = widened<T>(frame, right, right_size);
  const float* b = widened<T>(frame, bias, bias_size);
  float* result = frame.take<float>(to_size);
  run(l, r, b, result);
  narrow<T>(result, to_size, to);
}

/// run(left, right, bias, to) in T itself, or in float32 where T is a 16-bit float.
template <class Run>
void dispatch_float(DType t, const void* left, int64_t left_size, const void* right, int64_t right_size,
                    const void* bias, int64_t bias_size, void* to, int64_t to_size, const Run& run) {
  dispatch(t, [&]<class T>() {
    if constexpr (is_half(dtype_of<T>)) {
      in_float<T>(left, left_size, right, right_size, bias, bias_size, to, to_size, run);
    } else if constexpr (is_floating(dtype_of<T>)) {
      run(static_cast<const T*>(left), static_cast<const T*>(right), static_cast<const T*>(bias), static_cast<T*>(to));
    }
  });
}

}  // namespace

ConvolutionShape convolution_shape(int64_t batch, int64_t in_channels, int64_t out_channels, int64_t groups,
                                   std::span<const int64_t> in, std::span<const int64_t> kernel,
                                   std::span<const int64_t> stride, std::span<const int64_t> dilation,
                                   std::span<const int64_t> pad) {
  const size_t axes = in.size();
  TW_CHECK(axes >= 1 && axes <= 3 && kernel.size() == axes && stride.size() == axes && dilation.size() == axes &&
               pad.size() == axes,
           value,
           "convolution: sizes, kernel, stride, dilation and pad must have the same one to three axes; got sizes ", in,
           ", kernel ", kernel, ", stride ", stride, ", dilation ", dilation, ", pad ", pad);
  ConvolutionShape s{.batch = batch, .in_channels = in_channels, .out_channels = out_channels, .groups = groups};
  for (size_t i = 0; i < 3; ++i) {
    const bool given = i + axes >= 3;
    const size_t j = given ? i + axes - 3 : 0;
    s.in[i] = given ? in[j] : 1;
    s.kernel[i] = given ? kernel[j] : 1;
    s.stride[i] = given ? stride[j] : 1;
    s.dilation[i] = given ? dilation[j] : 1;
    s.pad[i] = given ? pad[j] : 0;
    TW_CHECK(s.kernel[i] > 0 && s.stride[i] > 0 && s.dilation[i] > 0, value,
             "convolution: kernel, stride and dilation must be positive; got kernel ", kernel, ", stride ", stride,
             ", dilation ", dilation);
    const int64_t room = s.in[i] + 2 * s.pad[i] - checked_mul(s.kernel[i] - 1, s.dilation[i]) - 1;
    s.out[i] = room < 0 ? 0 : room / s.stride[i] + 1;
  }
  return s;
}

void convolution_forward(DType t, const ConvolutionShape& s, const void* x, const void* w, const void* bias, void* y) {
  check(t, s);
  const Sizes n(s);
  dispatch_float(t, x, n.x, w, n.w, bias, s.out_channels, y, n.y,
                 [&]<class T>(const T* xs, const T* ws, const T* bs, T* ys) {
                   run_gather(forward_gather(flattened(s), xs, ws, bs, ys), s.algorithm);
                 });
}

void convolution_backward_data(DType t, const ConvolutionShape& s, const void* dy, const void* w, const void* bias,
                               void* dx) {
  check(t, s);
  const Sizes n(s);
  dispatch_float(t, dy, n.y, w, n.w, bias, s.in_channels, dx, n.x,
                 [&]<class T>(const T* ys, const T* ws, const T* bs, T* xs) {
                   backward_data(s, ys, ws, bs, xs, [&](auto& g) { run_gather(g, s.algorithm); });
                 });
}

const char* convolution_algorithm(DType t, const ConvolutionShape& s, bool backward) {
  const bool winograd = t != DType::float64 && s.algorithm == ConvolutionAlgorithm::automatic;  // halves: in float32
  const char* found = "";
  auto look = [&](const GatherConvolution<float>& g) {
    const bool pixels = g.taps.size() == 1;
    found = is_depthwise(g)                 ? "depthwise"
            : winograd && winograd_suits(g) ? "Winograd F(4x4, 3x3)"
            : pixels                        ? "direct, 1x1"
                                            : "direct";
  };
  const float* none = nullptr;
  if (backward) backward_data<float>(s, none, none, none, nullptr, look);
  else look(forward_gather<float>(flattened(s), none, none, none, nullptr));
  return found;
}

void convolution_backward_weights(DType t, const ConvolutionShape& s, const void* x, const void* dy, void* dw) {
  check(t, s);
  const Sizes n(s);
  dispatch_float(t, x, n.x, dy, n.y, nullptr, 0, dw, n.w, [&]<class T>(const T* xs, const T* ys, const T*, T* ws) {
    weight_gradient(flattened(s), xs, ys, ws);
  });
}

void convolution_backward_bias(DType t, int64_t batch, int64_t channels, int64_t size, const void* dy, void* dbias) {
  TW_CHECK(is_floating(t), type, "convolution: dtype must be a float; got ", t);
  dispatch(t, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>)) {
      using Sum = accumulator_t<T>;
      constexpr int kLanes = 32;  // independent sums, which the compiler keeps in vectors
      const T* from = static_cast<const T*>(dy);
      const int64_t grain = std::max<int64_t>(1, kConvertGrain / std::max<int64_t>(1, batch * size));
      parallel_for(channels, grain, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          double total = 0;
          for (int64_t n = 0; n < batch; ++n) {
            const T* row = from + (n * channels + c) * size;
            Sum sum[kLanes] = {};
            int64_t i = 0;
            for (; i + kLanes <= size; i += kLanes) {
              for (int j = 0; j < kLanes; ++j) sum[j] += static_cast<Sum>(row[i + j]);
            }
            for (int j = 0; i < size; ++i, ++j) sum[j] += static_cast<Sum>(row[i]);
            double image = 0;
            for (Sum part : sum) image += static_cast<double>(part);
            total += image;
          }
          static_cast<T*>(dbias)[c] = T(static_cast<Sum>(total));
        }
      });
    }
  });
}

}  // namespace twibil::kernels
