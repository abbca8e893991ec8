// SPDX-License-Identifier: Apache-2.0
// Losses, optimizers and files of parameters for C++; layers.cc has the layers.
// layers: operator names (which operators a loss or an optimizer stands for is what this file says)
#include "twibil/nn.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "api/io/params_file.h"
#include "api/io/torch_file.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "ir/trace.h"

namespace twibil::nn {

namespace {

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

namespace {
bool fits(const Shape& shape, const std::vector<int64_t>& sizes) {
  bool good = shape.rank() == static_cast<int>(sizes.size());
  for (int i = 0; good && i < shape.rank(); ++i)
    good = sizes[static_cast<size_t>(i)] < 0 || sizes[static_cast<size_t>(i)] == shape[i];
  return good;
}

/// Gives each parameter the entry of the same place: all or nothing, everything is read before anything is written.
void give(const std::vector<Parameter>& all, const std::vector<const io::ParamsEntry*>& entries, const char* who,
          const std::string& path) {
  std::vector<Array> fresh;
  for (size_t i = 0; i < all.size(); ++i) {
    const Parameter& p = all[i];
    TW_CHECK(p.data || p.home, value, who, ": parameter ", p.name,
             " waits for its first input. Call the network on one first");
    Shape shape{std::span<const int64_t>(entries[i]->shape)};
    TW_CHECK(p.data ? shape == p.data.shape() : fits(shape, p.sizes), value, who, ": ", p.name, " has shape ", shape,
             " in ", path, " but ", p.data ? p.data.shape() : Shape(std::span(p.sizes)),
             p.data ? " in the network" : " in the network, where -1 is any size");
    fresh.push_back(Array::from(entries[i]->data.data(), shape, entries[i]->dtype));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].data) {
      Array(all[i].data).assign(fresh[i]);
    } else {
      *all[i].home = fresh[i].dtype() == DType::float32 ? fresh[i] : fresh[i].astype(DType::float32);
      if (all[i].trained) all[i].home->attach_grad();
    }
  }
}

/// Whether PyTorch's name of a tensor can stand for a parameter here: "0.weight" for "gamma", ...
bool same_kind(const std::string& theirs, const std::string& ours) {
  auto last = [](const std::string& s) { return s.substr(s.rfind('.') + 1); };
  std::string a = last(theirs), b = last(ours);
  return a == b || (a == "weight" && b == "gamma") || (a == "bias" && b == "beta");
}

}  // namespace

void load_parameters(const Layer& net, const std::string& path) {
  io::ParamsFile file = io::read_params(path);
  std::map<std::string, const io::ParamsEntry*> by_name;
  for (const io::ParamsEntry& e : file.entries) by_name[e.name] = &e;
  std::vector<Parameter> all = net.parameters();
  std::vector<const io::ParamsEntry*> entries;
  for (const Parameter& p : all) {
    auto found = by_name.find(p.name);
    TW_CHECK(found != by_name.end() && !found->second->none, key, "load_parameters: ", path, " has no parameter ",
             p.name);
    entries.push_back(found->second);
    by_name.erase(found);
  }
  TW_CHECK(by_name.empty(), key, "load_parameters: the network has no parameter ", by_name.begin()->first, ", which ",
           path, " holds");
  give(all, entries, "load_parameters", path);
}

void load_torch_parameters(const Layer& net, const std::string& path) {
  io::TorchFile file(path);
  std::deque<io::Bytes> kept;
  std::vector<io::ParamsEntry> tensors = io::named_tensors(file, kept);
  std::erase_if(tensors, [](const io::ParamsEntry& e) { return e.name.ends_with("num_batches_tracked"); });
  std::vector<Parameter> all = net.parameters();
  TW_CHECK(tensors.size() == all.size(), value, "load_torch_parameters: ", path, " has ", tensors.size(),
           " weights, the network ", all.size());
  std::vector<const io::ParamsEntry*> entries;
  for (size_t i = 0; i < all.size(); ++i) {
    TW_CHECK(same_kind(tensors[i].name, all[i].name), value, "load_torch_parameters: ", tensors[i].name, " of ", path,
             " meets ", all[i].name, " of the network; the layers differ");
    entries.push_back(&tensors[i]);
  }
  give(all, entries, "load_torch_parameters", path);
}

}  // namespace twibil::nn
