// SPDX-License-Identifier: Apache-2.0
// Layers, losses and optimizers for C++: each is parameters around operators.
// layers: operator names (which operator a layer stands for is what this file says)
#include "twibil/nn.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "api/io/params_file.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "ir/trace.h"

namespace twibil::nn {

namespace {

/// Uniform in +-sqrt(3 / average of fan in and fan out): Glorot and Bengio, 2010. A parameter outlives a trace in which
/// its layer meets its first input, so it is made outside of it.
Array xavier(const Shape& shape) {
  TraceScope outside(nullptr);
  ModeScope quiet(false, false);
  double window = 1;
  for (int i = 2; i < shape.rank(); ++i) window *= static_cast<double>(shape[i]);
  double bound = std::sqrt(3.0 / ((static_cast<double>(shape[0]) + static_cast<double>(shape[1])) * window / 2));
  Array w = call("random_uniform", {},
                 {{"low", -bound}, {"high", bound}, {"size", std::vector<int64_t>(shape.begin(), shape.end())}});
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
  Dense(int64_t units, bool flatten) : units_(units), flatten_(flatten) {}
  Array operator()(const Array& x) override {
    if (!weight_) {
      int64_t inputs = flatten_ ? x.size() / std::max<int64_t>(1, x.dim(0)) : x.dim(-1);
      weight_ = xavier(Shape{units_, inputs});
      bias_ = constant(units_, 0);
    }
    return call("fully_connected", {x, weight_, bias_}, {{"flatten", flatten_}});
  }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    into.push_back({prefix + "weight", weight_});
    into.push_back({prefix + "bias", bias_});
  }

 private:
  int64_t units_;
  bool flatten_;
  Array weight_, bias_;
};

class Conv2d final : public Layer {
 public:
  Conv2d(int64_t channels, int64_t kernel, int64_t stride, int64_t padding)
      : channels_(channels), kernel_(kernel), stride_(stride), padding_(padding) {}
  Array operator()(const Array& x) override {
    if (!weight_) {
      TW_CHECK(x.rank() == 4, value, "conv2d: x must have shape (batch, channels, height, width); got ", x.shape());
      weight_ = xavier(Shape{channels_, x.dim(1), kernel_, kernel_});
      bias_ = constant(channels_, 0);
    }
    return call("convolution", {x, weight_, bias_},
                {{"kernel", std::vector<int64_t>{kernel_, kernel_}},
                 {"stride", std::vector<int64_t>{stride_, stride_}},
                 {"pad", std::vector<int64_t>{padding_, padding_}},
                 {"num_filter", channels_}});
  }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    into.push_back({prefix + "weight", weight_});
    into.push_back({prefix + "bias", bias_});
  }

 private:
  int64_t channels_, kernel_, stride_, padding_;
  Array weight_, bias_;
};

class BatchNorm final : public Layer {
 public:
  BatchNorm(double momentum, double eps) : momentum_(momentum), eps_(eps) {}
  Array operator()(const Array& x) override {
    if (!gamma_) {
      int64_t n = x.dim(1);
      gamma_ = constant(n, 1);
      beta_ = constant(n, 0);
      mean_ = constant(n, 0, false);
      var_ = constant(n, 1, false);
    }
    return call("batch_norm", {x, gamma_, beta_, mean_, var_},
                {{"eps", eps_}, {"momentum", momentum_}, {"fix_gamma", false}});
  }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    into.push_back({prefix + "gamma", gamma_});
    into.push_back({prefix + "beta", beta_});
    into.push_back({prefix + "running_mean", mean_, false});
    into.push_back({prefix + "running_var", var_, false});
  }

 private:
  double momentum_, eps_;
  Array gamma_, beta_, mean_, var_;
};

class Function final : public Layer {
 public:
  explicit Function(std::function<Array(const Array&)> f) : f_(std::move(f)) {}
  Array operator()(const Array& x) override { return f_(x); }

 private:
  std::function<Array(const Array&)> f_;
};

class Sequential final : public Layer {
 public:
  explicit Sequential(std::vector<LayerPointer> layers) : layers_(std::move(layers)) {}
  Array operator()(const Array& x) override {
    Array y = x;
    for (const LayerPointer& l : layers_) y = (*l)(y);
    return y;
  }
  void collect(const std::string& prefix, std::vector<Parameter>& into) const override {
    for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->collect(text(prefix, i, "."), into);
  }

 private:
  std::vector<LayerPointer> layers_;
};

/// All parameters, which must have their shapes.
std::vector<Parameter> ready_parameters(const Layer& net, const char* who) {
  std::vector<Parameter> all = net.parameters();
  for (const Parameter& p : all)
    TW_CHECK(p.data, value, who, ": parameter ", p.name, " waits for its first input. Call the network on one first");
  return all;
}

/// The mean over all axes but the first.
Array per_sample(const Array& x) {
  if (x.rank() == 1) return x;
  return call("mean", {x.reshape(Shape{x.dim(0), -1})}, {{"axis", std::vector<int64_t>{1}}});
}

class Sgd final : public Optimizer {
 public:
  Sgd(double rate, double momentum, double decay) : Optimizer(rate), momentum_(momentum), decay_(decay) {}

 private:
  void update(const std::string& name, Array& weight, const Array& grad, double rescale) override {
    if (momentum_ == 0) {
      call("sgd_update", {weight, grad}, {{"lr", learning_rate}, {"wd", decay_}, {"rescale_grad", rescale}});
      return;
    }
    Array& state = states_[name];
    if (!state) state = Array::zeros(weight.shape(), weight.dtype());
    call("sgd_mom_update", {weight, grad, state},
         {{"lr", learning_rate}, {"momentum", momentum_}, {"wd", decay_}, {"rescale_grad", rescale}});
  }
  double momentum_, decay_;
  std::map<std::string, Array> states_;
};

class Adam final : public Optimizer {
 public:
  Adam(double rate, double beta1, double beta2, double epsilon)
      : Optimizer(rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}

 private:
  struct State {
    Array mean, var;
    int64_t steps = 0;
  };
  void update(const std::string& name, Array& weight, const Array& grad, double rescale) override {
    State& s = states_[name];
    if (!s.mean)
      s.mean = Array::zeros(weight.shape(), weight.dtype()), s.var = Array::zeros(weight.shape(), weight.dtype());
    ++s.steps;
    double t = static_cast<double>(s.steps),
           rate = learning_rate * std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t));
    call("adam_update", {weight, grad, s.mean, s.var},
         {{"lr", rate}, {"beta1", beta1_}, {"beta2", beta2_}, {"epsilon", epsilon_}, {"rescale_grad", rescale}});
  }
  double beta1_, beta2_, epsilon_;
  std::map<std::string, State> states_;
};

}  // namespace

LayerPointer dense(int64_t units, bool flatten) { return std::make_shared<Dense>(units, flatten); }
LayerPointer conv2d(int64_t channels, int64_t kernel, int64_t stride, int64_t padding) {
  return std::make_shared<Conv2d>(channels, kernel, stride, padding);
}
LayerPointer batch_norm(double momentum, double eps) { return std::make_shared<BatchNorm>(momentum, eps); }
LayerPointer function(std::function<Array(const Array&)> f) { return std::make_shared<Function>(std::move(f)); }
LayerPointer sequential(std::vector<LayerPointer> layers) { return std::make_shared<Sequential>(std::move(layers)); }
LayerPointer relu() {
  return function([](const Array& x) { return call("relu", {x}); });
}
LayerPointer dropout(double p) {
  return function([p](const Array& x) { return call("dropout", {x}, {{"p", p}}); });
}
LayerPointer max_pool2d(int64_t size, int64_t stride) {
  return function([=](const Array& x) {
    int64_t s = stride ? stride : size;
    return call("pooling", {x}, {{"kernel", std::vector<int64_t>{size, size}}, {"stride", std::vector<int64_t>{s, s}}});
  });
}
LayerPointer global_max_pool2d() {
  return function([](const Array& x) { return call("pooling", {x}, {{"global_pool", true}}); });
}

Array softmax_cross_entropy(const Array& x, const Array& label) {
  return per_sample(-call("pick", {call("log_softmax", {x}), label}));
}
Array l1_loss(const Array& x, const Array& y) { return per_sample(call("absolute", {x - y})); }
Array l2_loss(const Array& x, const Array& y) { return per_sample(call("square", {x - y}) * 0.5); }

void Optimizer::step(const Layer& net, int64_t batch_size) {
  TW_CHECK(batch_size > 0, value, "Optimizer::step: batch_size must be positive; got ", batch_size);
  NoGradient quiet;
  for (Parameter& p : ready_parameters(net, "Optimizer::step"))
    if (p.trained) update(p.name, p.data, p.data.grad(), 1.0 / static_cast<double>(batch_size));
}
std::unique_ptr<Optimizer> sgd(double rate, double momentum, double decay) {
  return std::make_unique<Sgd>(rate, momentum, decay);
}
std::unique_ptr<Optimizer> adam(double rate, double beta1, double beta2, double epsilon) {
  return std::make_unique<Adam>(rate, beta1, beta2, epsilon);
}

void save_parameters(const Layer& net, const std::string& path) {
  std::vector<io::ParamsEntry> entries;
  std::vector<Parameter> all = ready_parameters(net, "save_parameters");
  for (Parameter& p : all) {
    if (p.data.value()->has(kStrided)) p.data = p.data.copy();  // a file holds elements row by row
    p.data.wait_to_read();
    const Value& v = *p.data.value();
    entries.push_back({p.name,
                       v.dtype(),
                       {v.shape().begin(), v.shape().end()},
                       io::ByteView(v.data, static_cast<size_t>(v.size() * size_of(v.dtype())))});
  }
  io::write_params(path, entries);
}

void load_parameters(const Layer& net, const std::string& path) {
  io::ParamsFile file = io::read_params(path);
  std::vector<Parameter> all = ready_parameters(net, "load_parameters");
  std::vector<Array> fresh;
  for (const Parameter& p : all) {  // all or nothing: everything is read before anything is written
    const io::ParamsEntry* found = nullptr;
    for (const io::ParamsEntry& e : file.entries)
      if (e.name == p.name) found = &e;
    TW_CHECK(found && !found->none, key, "load_parameters: ", path, " has no parameter ", p.name);
    Shape shape{std::span<const int64_t>(found->shape)};
    TW_CHECK(shape == p.data.shape(), value, "load_parameters: ", p.name, " has shape ", shape, " in ", path, " but ",
             p.data.shape(), " in the network");
    fresh.push_back(Array::from(found->data.data(), shape, found->dtype));
  }
  for (const io::ParamsEntry& e : file.entries)
    TW_CHECK(std::ranges::any_of(all, [&](const Parameter& p) { return p.name == e.name; }), key,
             "load_parameters: the network has no parameter ", e.name, ", which ", path, " holds");
  for (size_t i = 0; i < all.size(); ++i) all[i].data.assign(fresh[i]);
}

}  // namespace twibil::nn
