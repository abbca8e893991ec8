// SPDX-License-Identifier: Apache-2.0
// `twibil bench`: images per second of well-known networks on this machine, and what transformed convolutions
// (Winograd) gain over direct ones. Both versions of a network run in turns, so that whatever else the machine does
// hits both alike; their results must agree, since a speed without a correct result is none.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "arguments.h"
#include "base/parallel.h"
#include "bench_chart.h"
#include "bench_networks.h"
#include "commands.h"
#include "kernels/isa.h"
#include "memory/allocator.h"
#include "twibil/jit.h"
#include "twibil/ops.h"

namespace twibil::cli {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words(1);
  for (char c : list)
    if (c == ',') words.emplace_back();
    else words.back() += c;
  return words;
}
std::vector<int64_t> read_batches(const std::string& list) {
  std::vector<int64_t> batches;
  for (const std::string& w : split(list)) {
    Arguments one({"--batches", w}, {"batches"});
    double n = one.number("batches", 1, 1, 4096);
    if (n != std::floor(n)) throw UsageError("option --batches must be whole numbers such as 1,8,32; got " + list);
    batches.push_back(static_cast<int64_t>(n));
  }
  return batches;
}

/// A line that says how far the work is, where somebody looks.
class Progress {
 public:
  explicit Progress(size_t total) : total_(total), shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
  void step(const std::string& what) {
    if (!shown_) return;
    std::string bar(24, '.');
    std::fill_n(bar.begin(), 24 * done_ / std::max<size_t>(total_, 1), '#');
    double left = done_ ? seconds_since(begin_) / static_cast<double>(done_) * static_cast<double>(total_ - done_) : 0;
    std::fprintf(stderr, "\r\033[K[%s] %zu of %zu: %s", bar.c_str(), done_, total_, what.c_str());
    if (done_) std::fprintf(stderr, ", about %.0f s left", left);
    std::fflush(stderr);
  }
  void done() { ++done_; }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr), std::fflush(stderr);
  }

 private:
  size_t total_, done_ = 0;
  bool shown_;
  Clock::time_point begin_ = Clock::now();
};

/// Weights that no gradient is kept for: half the memory. The network has seen an input.
void forget_gradients(const nn::Layer& net) {
  for (const nn::Parameter& p : net.parameters())
    if (p.home && p.trained) *p.home = p.data.detach();
}

template <class S> void set_exact(S& settings, bool exact) {
  if constexpr (requires { settings.exact; }) settings.exact = exact;
}
auto compiled(const nn::LayerPointer& net, bool exact) {
  CompileSettings settings;
  set_exact(settings, exact);
  return jit([=](const Array& x) { return (*net)(x); }, settings);
}

double largest(const std::vector<float>& v) {
  double most = 0;
  for (float x : v) most = std::max(most, std::isfinite(x) ? std::abs(static_cast<double>(x)) : INFINITY);
  return most;
}
/// The largest difference as a share of the largest value.
double difference(const Array& a, const Array& b) {
  std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  double size = largest(x);
  for (size_t i = 0; i < x.size(); ++i) x[i] -= y[i];
  return largest(x) / size;
}

struct Plan {
  int rounds;
  double seconds;  // about how long all rounds of one version take
};

/// Images per second from the median round of each.
template <class F> BenchRow measure(const BenchNetwork& n, const F& fast, const F& direct, int64_t batch, Plan plan) {
  Array x = op::random_uniform({.low = -1.0, .high = 1.0, .size = std::vector<int64_t>{batch, 3, n.side, n.side}});
  auto time = [&](const F& f, int passes) {
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < passes; ++i) f(x).wait_to_read();
    return seconds_since(begin) / passes;
  };
  double error = difference(direct(x), fast(x));
  TW_CHECK(error < 1e-3, value, n.name, ", batch ", batch, ": the two versions differ by ", error,
           " of the largest result; please report this");
  const F* versions[] = {&fast, &direct};
  std::vector<double> times[2];
  int passes[2];
  for (int v = 0; v < 2; ++v)
    passes[v] = std::max(1, static_cast<int>(plan.seconds / plan.rounds / time(*versions[v], 1)));
  for (int round = 0; round < plan.rounds; ++round)
    for (int v = 0; v < 2; ++v) times[v].push_back(time(*versions[v], passes[v]));
  double rates[2];
  for (int v = 0; v < 2; ++v) {
    auto middle = times[v].begin() + plan.rounds / 2;
    std::nth_element(times[v].begin(), middle, times[v].end());
    rates[v] = static_cast<double>(batch) / *middle;
  }
  return {n.name, batch, rates[0], rates[1]};
}

std::string machine() {
  return text(processor_name(), ", ", std::string(kernels::name_of(kernels::isa())), ", ", num_threads(),
              num_threads() == 1 ? " thread" : " threads", ", float32");
}

}  // namespace

int bench(const Words& words) {
  Arguments a(words, {"networks", "batches", "threads", "rounds", "seconds", "chart"});
  if (!a.positions.empty()) throw UsageError("bench takes options only; --networks names networks");
  std::vector<std::string> names = a.options.contains("networks") ? split(a.option("networks")) : bench_names();
  std::vector<int64_t> batches = read_batches(a.option("batches", "1,2,4,8,16,32"));
  Plan plan{static_cast<int>(a.number("rounds", 7, 1, 1000)), a.number("seconds", 1.5, 0.001, 3600)};
  if (a.options.contains("threads")) set_num_threads(static_cast<int>(a.number("threads", 1, 1, 1024)));
  for (const std::string& name : names) make_bench_network(name);  // a wrong name is told before an hour has passed
  std::printf("%s\n\n%-16s %5s %12s %12s %8s\n", machine().c_str(), "network", "batch", "images/s", "direct only",
              "gain");
  std::vector<BenchRow> rows;
  Progress progress(names.size() * batches.size());
  seed(1);
  for (const std::string& name : names) {
    progress.step(name + ", making it");
    BenchNetwork n = make_bench_network(name);
    (*n.net)(Array::zeros({1, 3, n.side, n.side})).wait_to_read();
    forget_gradients(*n.net);
    auto fast = compiled(n.net, false), direct = compiled(n.net, true);
    for (int64_t batch : batches) {
      progress.step(name + ", batch " + std::to_string(batch));
      rows.push_back(measure(n, fast, direct, batch, plan));
      progress.done();
      progress.clear();
      const BenchRow& r = rows.back();
      std::printf("%-16s %5lld %12.2f %12.2f %8.2f\n", r.network.c_str(), static_cast<long long>(batch), r.fast,
                  r.direct, r.fast / r.direct);
      std::fflush(stdout);
    }
  }
  if (std::string chart = a.option("chart"); !chart.empty()) {
    write_chart(chart, rows, machine());
    std::printf("\nchart: %s\n", chart.c_str());
  }
  return 0;
}

}  // namespace twibil::cli
