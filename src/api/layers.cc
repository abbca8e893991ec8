// SPDX-License-Identifier: Apache-2.0
// Layers for C++: each is parameters around an operator.
// layers: operator names (which operator a layer stands for is what this file says)
#include <algorithm>
#include <cmath>

#include "ir/modes.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "twibil/nn.h"

namespace twibil::nn {

namespace {

using Sizes = std::vector<int64_t>;

Sizes sizes_of(Pair p) { return {p.height, p.width}; }

/// Uniform in +-sqrt(3 / average of fan in and fan out): Glorot and Bengio, 2010. A parameter outlives a trace in which
/// its layer meets its first input, so it is made outside of it.
Array xavier(const Shape& shape) {
  TraceScope outside(nullptr);
  ModeScope quiet(false, false);
  double window = 1;
  for (int i = 2; i < shape.rank(); ++i) window *= static_cast<double>(shape[i]);
  double bound = std::sqrt(3.0 / ((static_cast<double>(shape[0]) + static_cast<double>(shape[1])) * window / 2));
  Array w = call("random_uniform", {}, {{"low", -bound}, {"high", bound}, {"size", Sizes(shape.begin(), shape.end())}});
  w.attach_grad();
  return w;
}
Array constant(int64_t n, double value, bool trained = true) {
  TraceScope outside(nullptr);
  Array a = Array::full({n}, value);
  if (trained) a.attach_grad();
  return a;
}

class Dense final : public Layer {
 public:
  Dense(int64_t units, bool flatten) : units_(units), flatten_(flatten) {
    TW_CHECK(units > 0, value, "dense: units must be positive; got ", units);
  }
  Array operator()(const Array& x) override {
    if (!weight_) {
      int64_t inputs = flatten_ ? x.size() / std::max<int64_t>(1, x.dim(0)) : x.dim(-1);
      weight_ = xavier(Shape{units_, inputs});
      bias_ = constant(units_, 0);
    }
    return call("fully_connected", {x, weight_, bias_}, {{"flatten", flatten_}});
  }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    into.push_back({prefix + "weight", weight_, true, &weight_, {units_, -1}});
    into.push_back({prefix + "bias", bias_, true, &bias_, {units_}});
  }

 private:
  int64_t units_;
  bool flatten_;
  mutable Array weight_, bias_;  // a file may fill them: Parameter::home
};

class Conv2d final : public Layer {
 public:
  Conv2d(int64_t channels, Pair kernel, const Conv2dOptions& options)
      : channels_(channels), kernel_(kernel), options_(options) {
    TW_CHECK(channels > 0 && options.groups > 0 && channels % options.groups == 0, value,
             "conv2d: channels must be a positive multiple of groups = ", options.groups, "; got ", channels);
  }
  Array operator()(const Array& x) override {
    if (!weight_) {
      TW_CHECK(x.rank() == 4, value, "conv2d: x must have shape (batch, channels, height, width); got ", x.shape());
      TW_CHECK(x.dim(1) % options_.groups == 0, value, "conv2d: ", x.dim(1), " input channels do not divide into ",
               options_.groups, " groups");
      weight_ = xavier(Shape{channels_, x.dim(1) / options_.groups, kernel_.height, kernel_.width});
      if (options_.bias) bias_ = constant(channels_, 0);
    }
    return call("convolution", {x, weight_, bias_},
                {{"kernel", sizes_of(kernel_)},
                 {"stride", sizes_of(options_.stride)},
                 {"pad", sizes_of(options_.padding)},
                 {"num_filter", channels_},
                 {"num_group", options_.groups},
                 {"no_bias", !options_.bias}});
  }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    into.push_back({prefix + "weight", weight_, true, &weight_, {channels_, -1, kernel_.height, kernel_.width}});
    if (options_.bias) into.push_back({prefix + "bias", bias_, true, &bias_, {channels_}});
  }

 private:
  int64_t channels_;
  Pair kernel_;
  Conv2dOptions options_;
  mutable Array weight_, bias_;
};

class BatchNorm final : public Layer {
 public:
  BatchNorm(double momentum, double eps, bool scale, bool shift)
      : momentum_(momentum), eps_(eps), scale_(scale), shift_(shift) {}
  Array operator()(const Array& x) override {
    if (!gamma_) {
      int64_t n = x.dim(1);
      gamma_ = constant(n, 1, scale_);
      beta_ = constant(n, 0, shift_);
      mean_ = constant(n, 0, false);
      var_ = constant(n, 1, false);
    }
    return call("batch_norm", {x, gamma_, beta_, mean_, var_},
                {{"eps", eps_}, {"momentum", momentum_}, {"fix_gamma", !scale_}});
  }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    into.push_back({prefix + "gamma", gamma_, scale_, &gamma_, {-1}});
    into.push_back({prefix + "beta", beta_, shift_, &beta_, {-1}});
    into.push_back({prefix + "running_mean", mean_, false, &mean_, {-1}});
    into.push_back({prefix + "running_var", var_, false, &var_, {-1}});
  }

 private:
  double momentum_, eps_;
  bool scale_, shift_;
  mutable Array gamma_, beta_, mean_, var_;
};

/// Children with names around a function; sequential() and concatenate() count theirs.
class Block final : public Layer {
 public:
  using Children = std::vector<std::pair<std::string, LayerPointer>>;
  Block(Children children, std::function<Array(const Array&)> f) : children_(std::move(children)), f_(std::move(f)) {
    for (auto& [name, child] : children_) TW_CHECK(child, value, "block: the layer ", name, " is empty");
  }
  Array operator()(const Array& x) override { return f_(x); }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    for (auto& [name, child] : children_) child->collect(prefix + name + ".", into);
  }

 private:
  Children children_;
  std::function<Array(const Array&)> f_;
};

Block::Children numbered(const std::vector<LayerPointer>& layers) {
  Block::Children children;
  for (size_t i = 0; i < layers.size(); ++i) children.emplace_back(text(i), layers[i]);
  return children;
}

LayerPointer pool(const char* type, Pair size, const PoolOptions& o) {
  auto side = [](int64_t stride, int64_t window) { return stride ? stride : window; };
  Sizes strides{side(o.stride.height, size.height), side(o.stride.width, size.width)};
  return function([=](const Array& x) {
    return call("pooling", {x},
                {{"kernel", sizes_of(size)},
                 {"stride", strides},
                 {"pad", sizes_of(o.padding)},
                 {"pool_type", std::string(type)},
                 {"pooling_convention", std::string(o.ceil ? "full" : "valid")}});
  });
}
LayerPointer global_pool(const char* type) {
  return function([=](const Array& x) {
    return call("pooling", {x}, {{"global_pool", true}, {"pool_type", std::string(type)}});
  });
}

}  // namespace

LayerPointer dense(int64_t units, bool flatten) { return std::make_shared<Dense>(units, flatten); }
LayerPointer conv2d(int64_t channels, int64_t kernel, int64_t stride, int64_t padding) {
  return conv2d(channels, kernel, {.stride = stride, .padding = padding});
}
LayerPointer conv2d(int64_t channels, Pair kernel, const Conv2dOptions& options) {
  return std::make_shared<Conv2d>(channels, kernel, options);
}
LayerPointer batch_norm(double momentum, double eps, bool scale, bool shift) {
  return std::make_shared<BatchNorm>(momentum, eps, scale, shift);
}
LayerPointer relu() {
  return function([](const Array& x) { return call("relu", {x}); });
}
LayerPointer relu6() {
  return function([](const Array& x) { return call("clip", {x, 0, 6}); });
}
LayerPointer max_pool2d(int64_t size, int64_t stride) { return max_pool2d(size, {.stride = stride}); }
LayerPointer max_pool2d(Pair size, const PoolOptions& options) { return pool("max", size, options); }
LayerPointer avg_pool2d(Pair size, const PoolOptions& options) { return pool("avg", size, options); }
LayerPointer global_max_pool2d() { return global_pool("max"); }
LayerPointer global_avg_pool2d() { return global_pool("avg"); }
LayerPointer pad2d(int64_t before, int64_t after) {
  return function([=](const Array& x) {
    return call("pad", {x}, {{"before", Sizes{0, 0, before, before}}, {"after", Sizes{0, 0, after, after}}});
  });
}
LayerPointer flatten() {
  return function([](const Array& x) { return call("flatten", {x}); });
}
LayerPointer dropout(double p) {
  return function([p](const Array& x) { return call("dropout", {x}, {{"p", p}}); });
}
LayerPointer identity() {
  return function([](const Array& x) { return x; });
}
LayerPointer function(std::function<Array(const Array&)> f) { return block({}, std::move(f)); }
LayerPointer sequential(std::vector<LayerPointer> layers) {
  Block::Children children = numbered(layers);
  return block(std::move(children), [layers = std::move(layers)](const Array& x) {
    Array y = x;
    for (const LayerPointer& l : layers) y = (*l)(y);
    return y;
  });
}
LayerPointer concatenate(std::vector<LayerPointer> layers) {
  Block::Children children = numbered(layers);
  return block(std::move(children), [layers = std::move(layers)](const Array& x) {
    std::vector<Array> parts;
    for (const LayerPointer& l : layers) parts.push_back((*l)(x));
    return call_all(require_op("concatenate"), parts, {{"axis", int64_t{1}}})[0];
  });
}
LayerPointer block(std::vector<std::pair<std::string, LayerPointer>> children, std::function<Array(const Array&)> f) {
  return std::make_shared<Block>(std::move(children), std::move(f));
}

}  // namespace twibil::nn
