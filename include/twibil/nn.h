// SPDX-License-Identifier: Apache-2.0
// Networks for C++: layers that know their parameters, losses, optimizers, and files that Python's gluon reads too.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "twibil/array.h"

namespace twibil::nn {

/// An array of a layer with its name; until the first call, or a file, has told its shape, the array is empty.
struct Parameter {
  std::string name;
  Array data;
  bool trained = true;    // false: running statistics
  Array* home = nullptr;  // where the layer keeps it, for layers that can be given weights before their first call
  std::vector<int64_t> sizes = {};  // of its shape; -1 where the input will say
};

/// Something that maps an array to an array. Copies share their parameters.
class Layer {
 public:
  virtual ~Layer() = default;
  virtual Array operator()(const Array& x) = 0;
  /// Appends "<prefix>weight" and so on, those that wait for their first input too.
  virtual void collect(const std::string& prefix, std::vector<Parameter>& into) const { (void)prefix, (void)into; }
  std::vector<Parameter> parameters() const {
    std::vector<Parameter> all;
    collect("", all);
    return all;
  }
};
using LayerPointer = std::shared_ptr<Layer>;

/// Sizes for height and width; one number stands for both.
struct Pair {
  int64_t height, width;
  constexpr Pair(int64_t both) : height(both), width(both) {}
  constexpr Pair(int64_t h, int64_t w) : height(h), width(w) {}
};

/// y = x W^T + b; the input size is known at the first call. Weights start uniform in +-sqrt(3 / ((in + out) / 2))
/// (Xavier).
LayerPointer dense(int64_t units, bool flatten = true);
/// 2-D convolution on (batch, channels, height, width).
LayerPointer conv2d(int64_t channels, int64_t kernel, int64_t stride = 1, int64_t padding = 0);
struct Conv2dOptions {
  Pair stride = 1, padding = 0;
  int64_t groups = 1;
  bool bias = true;
};
LayerPointer conv2d(int64_t channels, Pair kernel, const Conv2dOptions& options);
/// scale, shift: whether gamma and beta are trained; gamma is 1 without scale.
LayerPointer batch_norm(double momentum = 0.9, double eps = 1e-5, bool scale = true, bool shift = true);
LayerPointer relu();
LayerPointer relu6();                                       // values in [0, 6]
LayerPointer max_pool2d(int64_t size, int64_t stride = 0);  // stride 0: size
struct PoolOptions {
  Pair stride = 0, padding = 0;  // stride 0: the window's size
  bool ceil = false;             // a last, incomplete window counts
};
LayerPointer max_pool2d(Pair size, const PoolOptions& options);
LayerPointer avg_pool2d(Pair size, const PoolOptions& options = {});  // padding counts as zeros
LayerPointer global_max_pool2d();
LayerPointer global_avg_pool2d();
/// Zeros in front of and behind each row and column.
LayerPointer pad2d(int64_t before, int64_t after);
LayerPointer flatten();  // (batch, ...) to (batch, rest)
LayerPointer dropout(double p);
LayerPointer identity();
LayerPointer function(std::function<Array(const Array&)> f);
/// Layers one after the other; their parameters are named "0.weight", "1.bias" ... as gluon's Sequential does.
LayerPointer sequential(std::vector<LayerPointer> layers);
/// Layers on the same input; their outputs are joined along the channels.
LayerPointer concatenate(std::vector<LayerPointer> layers);
/// Layers with names, and what is to be done with them: block({{"body", body}}, [=](const Array& x) { return (*body)(x)
/// + x; }) has the parameters "body.0.weight" and so on.
LayerPointer block(std::vector<std::pair<std::string, LayerPointer>> children, std::function<Array(const Array&)> f);

/// -log softmax(x)[label] for (batch, ..., classes) and labels without the last axis; one number per sample, the mean
/// of its rest.
Array softmax_cross_entropy(const Array& x, const Array& label);
/// |x - y|, averaged per sample.
Array l1_loss(const Array& x, const Array& y);
/// (x - y)^2 / 2, averaged per sample.
Array l2_loss(const Array& x, const Array& y);

/// Steps of all trained parameters of one network, whose names say which state is whose. The gradient is divided by the
/// batch size. A parameter that still waits for its first input is a value error, and nothing is changed.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  void step(const Layer& net, int64_t batch_size);
  double learning_rate;

 protected:
  explicit Optimizer(double rate) : learning_rate(rate) {}
  virtual void update(const std::string& name, Array& weight, const Array& grad, double rescale) = 0;
};
std::unique_ptr<Optimizer> sgd(double learning_rate, double momentum = 0, double weight_decay = 0);
std::unique_ptr<Optimizer> adam(double learning_rate, double beta1 = 0.9, double beta2 = 0.999, double epsilon = 1e-8);

/// MXNet's .params format with the dtypes as they are, written whole or not at all; every parameter must have its
/// shape.
void save_parameters(const Layer& net, const std::string& path);
/// Names and shapes must agree, else nothing changes. Layers of this header need no input before.
void load_parameters(const Layer& net, const std::string& path);
/// What PyTorch's torch.save(model.state_dict(), path) wrote, for a network with the same layers in the same order
/// (names differ, so tensors are taken in theirs); kinds and shapes must agree, else nothing changes.
void load_torch_parameters(const Layer& net, const std::string& path);

}  // namespace twibil::nn
