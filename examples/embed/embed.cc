// SPDX-License-Identifier: Apache-2.0
// A server in small: loads a model once and answers from several threads. All of them share the weights and the
// compiled graph; each run has memory of its own.
//
//   embed                     makes a small model, MODEL-symbol.json and MODEL-0000.params, and uses it
//   embed MODEL [THREADS [REQUESTS [SIDE]]]
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "twibil/model.h"
#include "twibil/ops.h"

using namespace twibil;

/// A convolutional network with random weights, in files as MXNet and gluon's export() write them.
static std::string make_model() {
  Symbol x = Variable("data");
  Symbol h = op::convolution(x, {}, {}, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 8}).named("conv1");
  h = op::pooling(op::relu(h), {.global_pool = true});
  Symbol y = op::softmax(op::fully_connected(h, {}, {}, {.num_hidden = 10}).named("fc1"));
  std::vector<std::string> names = y.list_arguments();
  std::vector<Sig> sigs = y.infer_shape({{"data", {1, 3, 32, 32}}}).arguments;
  seed(1);
  std::vector<NamedArray> parameters;
  for (size_t i = 1; i < names.size(); ++i) {
    std::vector<int64_t> size(sigs[i].shape.begin(), sigs[i].shape.end());
    parameters.push_back({"arg:" + names[i], op::random_normal({.size = size})});
  }
  save_symbol("model-symbol.json", y);
  save_arrays("model-0000.params", parameters);
  return "model";
}

int main(int count, char** words) try {
  const std::string path = count > 1 ? words[1] : make_model();
  const int threads = count > 2 ? std::atoi(words[2]) : 4, requests = count > 3 ? std::atoi(words[3]) : 50;
  const int64_t side = count > 4 ? std::atoi(words[4]) : 32;
  const Model model(path);
  auto request = [&](int i) { return Array::full({1, 3, side, side}, 0.01 * (i % 17)); };

  std::vector<std::vector<float>> expected;  // one thread's answers
  for (int i = 0; i < 17; ++i) expected.push_back(model.all({request(i)})[0].to_vector<float>());

  std::atomic<int> wrong = 0;
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      for (int i = 0; i < requests; ++i)
        if (model.all({request(t + i)})[0].to_vector<float>() != expected[static_cast<size_t>((t + i) % 17)]) ++wrong;
    });
  for (std::thread& t : team) t.join();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%d answers in %.3f s, %d different from one thread's; %d kernels, %lld bytes planned\n",
              threads * requests, seconds, wrong.load(), model.function().num_kernels(),
              static_cast<long long>(model.function().planned_bytes()));

  try {
    model.all({Array::zeros({1, 1, 1})});
  } catch (const Error& e) {
    std::printf("a wrong request is an exception, and the model goes on: %s\n", e.what());
  }
  return wrong == 0 && model.all({request(0)})[0].to_vector<float>() == expected[0] ? 0 : 1;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
