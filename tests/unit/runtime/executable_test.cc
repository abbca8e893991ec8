// SPDX-License-Identifier: Apache-2.0
// Compiled graphs while they run: nothing is allocated, many threads share one, an error leaves it as it was.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "engine/fixture.h"
#include "memory/allocator.h"
#include "passes/graph_maker.h"
#include "runtime/compiled_graph.h"
#include "runtime/launch.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TWIBIL_COUNT_ALLOCATIONS 1
static std::atomic<int64_t> heap_allocations{0};
void* operator new(size_t n) {
  heap_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace twibil {
namespace {

Val array(const Shape& shape, DType dtype = DType::float32, double scale = 1) {
  Val v = Val::adopt(new_value(dtype, shape));
  std::memset(v->data, 0, static_cast<size_t>(v->bytes));
  if (dtype == DType::float32)
    for (int64_t i = 0; i < v->size(); ++i)
      reinterpret_cast<float*>(v->data)[i] = static_cast<float>(scale * std::sin(0.7 * static_cast<double>(i)));
  return v;
}
std::vector<std::byte> bytes_of(const Val& v) {
  wait_to_read(*v);
  return {v->data, v->data + v->size() * size_of(v->dtype())};
}

/// Convolutions, batch norm, a join, pooling and layers for pictures of 3 x size x size.
struct Network {
  GraphMaker maker;
  SymbolRef head;
  std::vector<Val> arguments;

  explicit Network(int64_t batch = 2, int64_t size = 12) {
    SymbolRef x = input({batch, 3, size, size});
    SymbolRef a = unit(x, 3, 8, 3), b = unit(a, 8, 8, 1), c = unit(a, 8, 8, 3);
    SymbolRef joined = call("concatenate", {b, call("add", {c, a})}, {{"axis", "1"}});
    SymbolRef pooled = call("pooling", {joined}, {{"global_pool", "True"}, {"pool_type", "avg"}});
    head = call("softmax", {call("fully_connected", {pooled, input({10, 16}), input({10})}, {{"num_hidden", "10"}})});
  }
  SymbolRef input(Shape shape) {
    arguments.push_back(array(shape));
    return maker.variable(shape);
  }
  SymbolRef unit(const SymbolRef& x, int64_t channels, int64_t width, int64_t kernel) {
    SymbolRef w = input({width, channels, kernel, kernel});
    const char* pad = kernel == 3 ? "(1, 1)" : "(0, 0)";
    SymbolRef y = call("convolution", {x, w}, {{"no_bias", "True"}, {"pad", pad}});
    std::vector<SymbolRef> in{y};
    for (int i = 0; i < 4; ++i) {
      in.push_back(input({width}));
      for (int64_t k = 0; i == 3 && k < width; ++k) reinterpret_cast<float*>(arguments.back()->data)[k] = 1;
    }
    return call("relu", {call("batch_norm", in, {{"fix_gamma", "False"}})});
  }
  std::shared_ptr<CompiledGraph> compiled() const {
    return std::make_shared<CompiledGraph>(std::vector{head}, std::vector<SymbolRef>{}, maker.inputs());
  }
};

class Compiled : public testing::Test {
 protected:
  void TearDown() override { engine::wait_all(); }
  engine::Team team_;
};

// ---- threads ----

void share_among_threads(const Network& net, int threads, int rounds) {
  auto graph = net.compiled();
  std::vector<std::vector<Val>> arguments;
  std::vector<std::vector<std::byte>> want;
  for (int t = 0; t < threads; ++t) {
    arguments.push_back(net.arguments);
    arguments.back()[0] = array(Shape(net.arguments[0]->shape()), DType::float32, 1 + t);
    want.push_back(bytes_of(graph->call(arguments.back())[0]));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      auto i = static_cast<size_t>(t);
      for (int r = 0; r < rounds; ++r) wrong += bytes_of(graph->call(arguments[i])[0]) != want[i];
    });
  for (std::thread& t : team) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(graph->compilations(), 1);
}
TEST_F(Compiled, SixteenThreadsShareASmallGraph) { share_among_threads(Network(), 16, 20); }
TEST_F(Compiled, SixteenThreadsShareAGraphThatIsQueued) { share_among_threads(Network(4, 40), 16, 3); }

TEST_F(Compiled, ThreadsCompileASignatureOnce) {
  Network net;
  auto graph = net.compiled();
  std::vector<std::thread> team;
  for (int t = 0; t < 8; ++t) team.emplace_back([&] { bytes_of(graph->call(net.arguments)[0]); });
  for (std::thread& t : team) t.join();
  EXPECT_EQ(graph->compilations(), 1);
}

// ---- errors ----

TEST_F(Compiled, AnErrorLeavesTheGraphUsable) {
  GraphMaker m;
  SymbolRef x = m.variable({3, 2}), at = m.variable({2}, false, DType::int64);
  SymbolRef head = call("exp", {call("take", {call("sin", {x}), at}, {{"mode", "raise"}, {"axis", "0"}})});
  auto graph = std::make_shared<CompiledGraph>(std::vector{head}, std::vector<SymbolRef>{}, m.inputs());
  Val good = array({2}, DType::int64), bad = array({2}, DType::int64), data = array({3, 2});
  reinterpret_cast<int64_t*>(good->data)[1] = 2;
  reinterpret_cast<int64_t*>(bad->data)[1] = 3;
  auto want = bytes_of(graph->call(std::vector{data, good})[0]);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(bytes_of(graph->call(std::vector{data, bad})[0]), Error);
    EXPECT_EQ(bytes_of(graph->call(std::vector{data, good})[0]), want);
  }
}

#ifdef TWIBIL_COUNT_ALLOCATIONS
// ---- allocations ----

struct Bound {  // an executable with memory for one run
  Graph graph;
  std::unique_ptr<Executable> executable;
  Executable::Frame frame;
  std::vector<Val> held;

  Bound(Graph g, std::vector<Val> arguments) : held(std::move(arguments)) {
    passes::MemoryPlan plan = passes::run_pipeline(g, {.without = {}, .memory = {}});
    executable = std::make_unique<Executable>(std::move(g), std::move(plan));
    const Graph& made = executable->graph();
    frame.bases.assign(executable->base_count(), nullptr);
    for (size_t i = 0; i < held.size(); ++i) frame.bases[1 + i] = held[i]->data;
    held.push_back(array({std::max<int64_t>(1, executable->plan().arena_bytes)}, DType::uint8));
    frame.bases[0] = held.back()->data;
    for (size_t k = 0; k < made.outputs.size(); ++k) {
      held.push_back(array(made.sig(made.outputs[k]).shape, made.sig(made.outputs[k]).dtype));
      frame.bases[executable->first_output() + k] = held.back()->data;
    }
  }
  int64_t allocations_of_a_run() {
    for (int i = 0; i < 2; ++i) executable->run(frame, Executable::Part::all);  // scratch memory grows once
    int64_t data = memory_stats().allocations, heap = heap_allocations;
    executable->run(frame, Executable::Part::all);
    return memory_stats().allocations - data + heap_allocations - heap;
  }
};

TEST_F(Compiled, ARunAllocatesNothing) {
  Network net;
  Bound b(net.maker.lowered({net.head}), net.arguments);
  EXPECT_GT(b.executable->steps(), 10);
  EXPECT_EQ(b.allocations_of_a_run(), 0);
}

/// "axis=(0, 2), keepdims=True"
void parse_sample(const OpDef& op, void* attrs, std::string_view all) {
  while (!all.empty()) {
    size_t end = 0;
    for (int depth = 0; end < all.size() && (all[end] != ',' || depth); ++end)
      depth += all[end] == '(' ? 1 : all[end] == ')' ? -1 : 0;
    std::string_view one = all.substr(0, end);
    size_t equal = one.find('=');
    const Field* field = find_field(op.attrs, one.substr(0, equal));
    TW_CHECK(field, value, op.name, ": ", one);
    parse_attr(*field, attrs, one.substr(equal + 1));
    all.remove_prefix(std::min(all.size(), end + 2));
  }
}

/// What is left of a detector's boxes is sorted by the standard library, which takes a buffer.
bool sorts_candidates(const OpDef& op) {
  std::string_view name = op.name;
  return name == "box_nms" || name == "multibox_detection" || name == "multibox_target";
}

TEST_F(Compiled, NoOperatorOfTheRegistryAllocatesWhileItRuns) {
  std::string offenders;
  int seen = 0;
  for (const OpDef* op : registry()) {
    if (op->data_dependent || op->samples[0].in[0].rank < 0) continue;
    std::vector<Val> arguments;
    std::vector<SymbolRef> in;
    GraphMaker m;
    AttrBytes attrs(op->attrs.size);
    if (op->attrs.size) std::memcpy(attrs.data(), op->attrs.defaults, op->attrs.size);
    for (const SampleInput& s : op->samples[0].in) {
      if (s.rank < 0) break;
      Shape shape;
      for (int d = 0; d < s.rank; ++d) shape.push_back(s.dims[d]);
      DType t = s.domain == Domain::index ? DType::int64 : s.domain == Domain::boolean ? DType::bool_ : DType::float32;
      arguments.push_back(array(shape, t));
      in.push_back(m.variable(shape, false, t));
    }
    try {
      parse_sample(*op, attrs.data(), op->samples[0].attrs);
      Bound b(m.lowered({{make_call(*op, attrs.data(), in), 0}}), arguments);
      ++seen;
      if (int64_t n = b.allocations_of_a_run(); n && !sorts_candidates(*op))
        offenders += text(" ", op->name, " (", n, ")");
    } catch (const Error&) {  // not for float32, or not for these values
    }
  }
  EXPECT_GT(seen, 150);
  EXPECT_EQ(offenders, "");
}
#endif

}  // namespace
}  // namespace twibil
