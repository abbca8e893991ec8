// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <chrono>

#include "base/parallel.h"
#include "base/profile.h"
#include "ir/compose_program.h"
#include "kernels/copy.h"
#include "kernels/scratch.h"
#include "passes/views.h"
#include "runtime/launch.h"
#include "runtime/profiler.h"

namespace twibil {

using passes::Place;

namespace {

int64_t bytes_of(const Sig& s) { return s.shape.size() * size_of(s.dtype); }

constexpr size_t kMostOperands = 64;  // of one step on the stack; joins of more arrays take a vector

double work_of(const Graph& g, const GraphNode& n) {
  if (n.kind == GraphNode::Kind::function) return 1e6;
  std::vector<Sig> in;
  double elements = 0;
  for (Edge e : n.in) {
    in.push_back(e.present() ? g.sig(e) : Sig());
    if (e.present() && g.at(e.node).kind != GraphNode::Kind::shape)
      elements += static_cast<double>(in.back().shape.size());
  }
  for (const Sig& s : n.out) elements += static_cast<double>(s.shape.size());
  return n.op->cost ? n.op->cost(n.attrs.data(), in, n.out) / 16 : elements;
}

}  // namespace

Executable::Executable(Graph g, passes::MemoryPlan plan) : graph_(std::move(g)), plan_(std::move(plan)) {
  updated_.assign(graph_.arguments.size(), false);
  for (const GraphNode& n : graph_.nodes)
    if (n.kind == GraphNode::Kind::constant) wait_to_read(*n.value);
  std::vector<passes::View> views = passes::find_views(graph_);
  int forward = graph_.forward_nodes < 0 ? static_cast<int>(graph_.nodes.size()) : graph_.forward_nodes;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& n = graph_.nodes[i];
    if (static_cast<int>(i) == forward) forward_steps_ = static_cast<int>(steps_.size());
    if (n.is_input() || passes::is_view(views, i)) continue;
    any_thread_ &= n.kind != GraphNode::Kind::function;
    (static_cast<int>(i) < forward ? forward_work_ : backward_work_) += work_of(graph_, n);
    for (const Place& p : plan_.places[i])
      if (p.kind == Place::Kind::argument) updated_[static_cast<size_t>(p.index)] = updates_any_ = true;
    add_step(static_cast<int32_t>(i));
  }
  if (forward >= static_cast<int>(graph_.nodes.size())) forward_steps_ = static_cast<int>(steps_.size());
  read_backwards_.assign(base_count(), false);
  for (size_t i = static_cast<size_t>(forward_steps_); i < steps_.size(); ++i)
    for (uint32_t k = 0; k < steps_[i].ins; ++k)
      if (const Operand& o = operands_[steps_[i].first_in + k]; o.base > 0)
        read_backwards_[static_cast<size_t>(o.base)] = true;
}

Executable::Operand Executable::operand_of(Edge e) {
  Operand o;
  if (!e.present()) return o;
  o.present = true;
  const Sig& sig = graph_.sig(e);
  const Place& p = plan_.places[static_cast<size_t>(e.node)][static_cast<size_t>(e.output)];
  o.offset = p.offset;
  o.buffer.dtype = sig.dtype;
  o.buffer.rank = static_cast<uint8_t>(sig.rank());
  o.buffer.size = sig.shape.size();
  auto keep = [&](const int64_t* from) {
    auto& to = sizes_.emplace_back();
    std::copy_n(from, sig.rank(), to.begin());
    return to.data();
  };
  o.buffer.dims = keep(sig.shape.data());
  if (p.strided) o.buffer.strides = keep(p.layout.strides);
  switch (p.kind) {
    case Place::Kind::none: break;
    case Place::Kind::arena: o.base = 0; break;
    case Place::Kind::argument: o.base = 1 + p.index; break;
    case Place::Kind::output: o.base = static_cast<int32_t>(first_output()) + p.index; break;
    case Place::Kind::constant: {
      const Value& v = *graph_.at(p.index).value;
      o.buffer.data = v.data + p.offset;
      if (v.has(kStrided) && !p.strided) o.buffer.strides = keep(v.strides);
      break;
    }
  }
  return o;
}

void Executable::add_step(int32_t node) {
  const GraphNode& n = graph_.at(node);
  Step s{
      .node = node, .n = &n, .first_in = static_cast<uint32_t>(operands_.size()), .ins = 0, .first_out = 0, .outs = 0};
  if (n.kind == GraphNode::Kind::call &&
      n.op->pointwise()) {  // only what the formula reads, seen in the output's shape
    const Program& p = *n.op->program;
    const Shape& out = n.out[0].shape;
    for (int i = 0; i < p.input_count; ++i) {
      Operand o = operand_of(n.in[p.sources[i]]);
      auto& strides = sizes_.emplace_back();
      int64_t own[kMaxRank];
      if (o.buffer.strides) std::copy_n(o.buffer.strides, o.buffer.rank, own);
      else contiguous_strides(o.buffer.shape(), own);
      int shift = out.rank() - o.buffer.rank;
      bool plain = shift == 0 && !o.buffer.strides;
      for (int d = 0; d < out.rank(); ++d) {
        bool spread = d < shift || o.buffer.dims[d - shift] == 1;
        strides[static_cast<size_t>(d)] = spread ? 0 : own[d - shift];
        plain &= !(spread && out[d] != 1);
      }
      o.buffer.strides = plain ? nullptr : strides.data();
      operands_.push_back(o);
    }
    s.program = static_cast<int32_t>(programs_.size());
    prepare_program(n, s.first_in);
  } else {
    for (Edge e : n.in) operands_.push_back(operand_of(e));
    if (n.loop) {
      s.loop = static_cast<int32_t>(loops_.size());
      prepare_loop(*n.loop);
    }
  }
  s.first_out = static_cast<uint32_t>(operands_.size());
  s.ins = s.first_out - s.first_in;
  for (int32_t k = 0; k < static_cast<int32_t>(n.out.size()); ++k) operands_.push_back(operand_of({node, k}));
  s.outs = static_cast<uint32_t>(operands_.size()) - s.first_out;
  steps_.push_back(s);
}

void Executable::prepare_program(const GraphNode& n, uint32_t first_in) {
  kernels::Operand in[kMaxInputs];
  size_t count = operands_.size() - first_in;
  for (size_t i = 0; i < count; ++i) {
    const Buffer& b = operands_[first_in + i].buffer;
    in[i] = {nullptr, b.strides, b.dtype};
  }
  programs_.emplace_back(*n.op->program, n.work, std::span<const kernels::Operand>(in, count), params_of(n),
                         kernels::MutableOperand{nullptr, nullptr, n.out[0].dtype}, n.out[0].shape);
}

void Executable::prepare_loop(const RowLoop& loop) {
  Loop made;
  auto prepare = [&](const Graph& g) {
    passes::MemoryPlan plan = passes::plan_memory(g, {});
    made.arena_bytes = std::max(made.arena_bytes, plan.arena_bytes);
    return std::make_unique<const Executable>(g, std::move(plan));
  };
  made.body = prepare(loop.body);
  if (!loop.rest.nodes.empty()) made.rest = prepare(loop.rest);
  made.description =
      text(loop.block, " of ", loop.outer > 1 ? text(loop.outer, " x ") : "", loop.rows, " rows at a time");
  loops_.push_back(std::move(made));
}

Buffer Executable::resolve(const Operand& o, const Frame& f) const {
  Buffer b = o.buffer;
  if (o.base >= 0) b.data = f.bases[static_cast<size_t>(o.base)] + o.offset;
  return b;
}

void Executable::run_pointwise(const Step& s, const Frame& f) const {
  auto data_of = [&](const Operand& o) {
    return o.base >= 0 ? f.bases[static_cast<size_t>(o.base)] + o.offset : o.buffer.data;
  };
  const void* in[kMaxInputs];
  for (uint32_t i = 0; i < s.ins; ++i) in[i] = data_of(operands_[s.first_in + i]);
  programs_[static_cast<size_t>(s.program)].run({in, s.ins}, data_of(operands_[s.first_out]));
}

void Executable::run_kernel(const Step& s, const Frame& f) const {
  alignas(Buffer) std::byte few[kMostOperands * sizeof(Buffer)];
  std::vector<Buffer> many;
  auto* buffers = reinterpret_cast<Buffer*>(few);
  uint32_t n = s.ins + s.outs;
  if (n > kMostOperands) many.resize(n), buffers = many.data();
  for (uint32_t i = 0; i < n; ++i) new (buffers + i) Buffer(resolve(operands_[s.first_in + i], f));
  Call call{.op = *s.n->op,
            .in = {buffers, s.ins},
            .out = {buffers + s.ins, s.outs},
            .training = s.n->training,
            .key = {f.key.seed, f.key.counter + static_cast<uint64_t>(std::max(s.n->random, 0))}};
  s.n->op->kernel(s.n->attrs.data(), call);
}

void Executable::run_function(const Step& s, const Frame& f) const {
  std::vector<Val> in;
  for (uint32_t i = 0; i < s.ins; ++i) {
    const Operand& o = operands_[s.first_in + i];
    if (!o.present) {
      in.emplace_back();
      continue;
    }
    Buffer b = resolve(o, f);
    // A copy: the function may keep its arguments, the arena's bytes move on.
    Val v = Val::adopt(new_value(b.dtype, b.shape()));
    int64_t from[kMaxRank], to[kMaxRank];
    contiguous_strides(b.shape(), to);
    std::copy_n(b.strides ? b.strides : to, b.rank, from);
    if (b.data) kernels::convert(b.dtype, b.dtype, b.shape(), b.data, {from, b.rank}, v->data, {to, b.rank});
    in.push_back(std::move(v));
  }
  std::vector<Val> out = s.n->function->run(in, s.n->training);
  TW_CHECK(out.size() == s.outs, value, s.n->function->name(), ": ", s.outs, " results were promised; got ",
           out.size());
  for (uint32_t k = 0; k < s.outs; ++k) {
    Buffer b = resolve(operands_[s.first_out + k], f);
    wait_to_read(*out[k]);
    TW_CHECK(std::ranges::equal(out[k]->shape(), b.shape()), value, s.n->function->name(), ": result ", k,
             " must have shape ", b.shape(), ", as its rule for shapes says; got ", out[k]->shape());
    int64_t from[kMaxRank], to[kMaxRank];
    out[k]->copy_strides(from);
    contiguous_strides(b.shape(), to);
    kernels::convert(out[k]->dtype(), b.dtype, b.shape(), out[k]->data, {from, b.rank}, b.data, {to, b.rank});
  }
}

void Executable::run_loop(const Step& s, const Frame& f) const {
  const RowLoop& rows = *s.n->loop;
  const Loop& loop = loops_[static_cast<size_t>(s.loop)];
  const int64_t blocks = rows.blocks();
  parallel_for(rows.outer * blocks, 1, [&](int64_t begin, int64_t end) {
    kernels::ScratchFrame scratch;
    Frame inner;
    inner.bases.assign(loop.body->base_count(), nullptr);
    inner.bases[0] = scratch.take<std::byte>(loop.arena_bytes);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / blocks * rows.rows + i % blocks * rows.block;
      for (uint32_t k = 0; k < s.ins; ++k)
        inner.bases[1 + k] = resolve(operands_[s.first_in + k], f).data + first * rows.in_step[k];
      for (uint32_t k = 0; k < s.outs; ++k) {
        const Operand& o = operands_[s.first_out + k];
        const int64_t bytes = o.buffer.size / (rows.outer * blocks) * size_of(o.buffer.dtype);  // of a part
        inner.bases[1 + s.ins + k] = resolve(o, f).data + (rows.out_part[k] ? i * bytes : first * rows.out_step[k]);
      }
      const bool is_rest = loop.rest && i % blocks == blocks - 1;
      const Executable& part = is_rest ? *loop.rest : *loop.body;
      for (const Step& step : part.steps_) part.run_step(step, inner);
    }
  });
}

void Executable::run_step(const Step& s, const Frame& f) const {
  try {
    if (s.n->kind == GraphNode::Kind::function) run_function(s, f);
    else if (s.n->op->pointwise()) run_pointwise(s, f);
    else if (s.n->loop) run_loop(s, f);
    else run_kernel(s, f);
  } catch (Error& e) {
    if (s.n->kind == GraphNode::Kind::call) name_error(*s.n->op, e);
    if (!s.n->site.empty()) e.suffix(text(" (called at ", s.n->site, ")"));
    else if (!s.n->name.empty()) e.suffix(text(" (node ", s.n->name, ")"));
    throw;
  }
}

void Executable::run(Frame& frame, Part part) const {
  auto begin = part == Part::backward ? forward_steps_ : 0;
  auto end = part == Part::forward ? forward_steps_ : static_cast<int>(steps_.size());
  if (profile::on(profile::kSymbolic)) [[unlikely]]
    return run_profiled(begin, end, frame);
  for (int i = begin; i < end; ++i) run_step(steps_[static_cast<size_t>(i)], frame);
}

void Executable::run_profiled(int begin, int end, const Frame& f) const {
  const std::vector<StepFacts>& all = facts();
  for (int i = begin; i < end; ++i) {
    const auto k = static_cast<size_t>(i);
    const StepFacts& fact = all[k];
    profile::Event e{.kind = profile::Kind::kernel, .name = fact.name, .detail = fact.signatures, .node = fact.node};
    e.number = fact.bytes;
    e.operations = fact.operations;
    e.begin = profile::now();
    run_step(steps_[k], f);
    e.end = profile::now();
    profile::record(e);
    profiler::sample_memory(e.end);
  }
}

const std::vector<Executable::StepFacts>& Executable::facts() const {
  std::call_once(facts_once_, [this] {
    for (const Step& s : steps_) {
      const GraphNode& n = *s.n;
      std::vector<Sig> in;
      StepFacts fact;
      for (Edge e : n.in) {
        in.push_back(e.present() ? graph_.sig(e) : Sig());
        if (e.present() && graph_.at(e.node).kind != GraphNode::Kind::shape) fact.bytes += bytes_of(in.back());
      }
      for (const Sig& sig : n.out) fact.bytes += bytes_of(sig);
      fact.name =
          profile::intern(n.kind == GraphNode::Kind::function ? std::string_view(n.function->name()) : n.op->name);
      fact.node = n.name.empty() ? nullptr : profile::intern(n.name);
      fact.signatures = profiler::signatures(in, n.out);
      const char* algorithm = algorithm_of_step(static_cast<int>(facts_.size()));
      if (algorithm && *algorithm) fact.signatures = profile::intern(text(fact.signatures, "; ", algorithm));
      if (n.loop) {
        const Loop& loop = loops_[static_cast<size_t>(s.loop)];
        const int64_t rests = loop.rest ? n.loop->outer : 0;
        auto add = [&](const Executable& part, int64_t times) {
          for (const StepFacts& inner : part.facts()) fact.operations += inner.operations * static_cast<double>(times);
        };
        add(*loop.body, n.loop->outer * n.loop->blocks() - rests);
        if (loop.rest) add(*loop.rest, rests);
      } else if (n.kind == GraphNode::Kind::call && n.op->cost) {
        fact.operations = n.op->cost(n.attrs.data(), in, n.out);
      }
      facts_.push_back(fact);
    }
  });
  return facts_;
}

/// Asks a step's operator about a call without data.
template <class F> auto Executable::with_sizes(const Step& s, F&& ask) const {
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < s.ins + s.outs; ++i) {
    buffers.push_back(operands_[s.first_in + i].buffer);
    buffers.back().data = nullptr;
  }
  std::span<Buffer> all(buffers);
  Call call{.op = *s.n->op, .in = all.first(s.ins), .out = all.subspan(s.ins), .training = s.n->training, .key = {}};
  return ask(s.n->attrs.data(), call);
}

const char* Executable::algorithm_of_step(int step) const {
  const Step& s = steps_[static_cast<size_t>(step)];
  if (s.loop >= 0) return loops_[static_cast<size_t>(s.loop)].description.c_str();
  bool known = s.n->kind == GraphNode::Kind::call && s.n->op->algorithm;
  return known ? with_sizes(s, s.n->op->algorithm) : "";
}

std::vector<AlgorithmVerdict> Executable::verdicts_of_step(int step) const {
  const Step& s = steps_[static_cast<size_t>(step)];
  bool known = s.loop < 0 && s.n->kind == GraphNode::Kind::call && s.n->op->verdicts;
  return known ? with_sizes(s, s.n->op->verdicts) : std::vector<AlgorithmVerdict>();
}

std::vector<double> Executable::time_steps(Frame& frame) const {
  std::vector<double> seconds;
  for (const Step& s : steps_) {
    auto begin = std::chrono::steady_clock::now();
    run_step(s, frame);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return seconds;
}

}  // namespace twibil
