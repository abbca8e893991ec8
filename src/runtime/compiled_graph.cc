// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiled_graph.h"

#include <chrono>

#include "base/profile.h"
#include "base/settings.h"
#include "engine/engine.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "kernels/scratch.h"
#include "passes/split_prologue.h"
#include "runtime/backward.h"
#include "runtime/eager.h"
#include "runtime/launch.h"
#include "runtime/random_state.h"

namespace twibil {

namespace {

using CompiledPtr = std::shared_ptr<const CompiledGraph::Compiled>;
constexpr double kInlineWork = 1 << 18;   // elements: below it a queue costs more than it gives
constexpr int64_t kSmallArena = 1 << 18;  // bytes that the scratch memory of a thread may grow by

Val copied(const Val& v) {
  ModeScope quiet(false, modes.training);
  return apply(op_with_role(Role::copy), {v});
}

/// Everything that one run touches; held until it is done.
struct RunState {
  CompiledPtr compiled;
  const Executable* executable;  // of `compiled`: the graph or its prologue
  Executable::Frame frame;
  std::vector<Val> arguments;  // as the kernels see them: row-major
  std::vector<Val> outputs;    // of the part that runs; in a backward part also those that it reads. Null: not there
  Val arena;
  std::shared_ptr<const Executable> owned = {};  // `executable`, where nobody else keeps it
};

void set_bases(RunState& s) {
  const Executable& e = *s.executable;
  s.frame.bases.assign(e.base_count(), nullptr);
  if (s.arena) s.frame.bases[0] = s.arena->data;
  for (size_t i = 0; i < s.arguments.size(); ++i)
    if (s.arguments[i]) s.frame.bases[1 + i] = s.arguments[i]->data;
  for (size_t k = 0; k < s.outputs.size(); ++k)
    if (s.outputs[k]) s.frame.bases[e.first_output() + k] = s.outputs[k]->data;
}

class RunTask final : public engine::Task {
 public:
  RunTask(RunState s, Executable::Part part) : engine::Task("a compiled graph"), state_(std::move(s)), part_(part) {
    for (const Val& v : state_.outputs)
      if (v) bytes += v->size() * size_of(v->dtype());
    if (state_.arena) bytes += state_.arena->size();
  }
  void run() override { state_.executable->run(state_.frame, part_); }

 private:
  RunState state_;
  Executable::Part part_;
};

bool is_small(const Executable& e, Executable::Part part) {
  return e.work(part) <= kInlineWork || !e.any_thread() || engine::engine_kind() == engine::Kind::naive;
}

/// Runs a part now, when it is small and everything is ready, else queues it.
void start(RunState s, Executable::Part part) {
  const Executable& e = *s.executable;
  bool backward = part == Executable::Part::backward;
  auto written = [&](size_t i) { return !backward && e.updates(i); };
  auto read_only = [&](size_t k) { return backward && static_cast<int>(k) < e.graph().forward_outputs; };
  bool now = true;
  for (size_t i = 0; i < s.arguments.size(); ++i) {
    if (!s.arguments[i]) continue;
    engine::Variable* state = state_of(*s.arguments[i]);
    now &= written(i) ? engine::idle(state) : engine::ready_to_read(state);
  }
  for (size_t k = 0; k < s.outputs.size(); ++k)
    if (s.outputs[k] && read_only(k)) now &= engine::ready_to_read(state_of(*s.outputs[k]));
  if (s.arena) now &= engine::idle(state_of(*s.arena));
  if (!e.any_thread() && !now) {
    for (size_t i = 0; i < s.arguments.size(); ++i)
      if (s.arguments[i]) written(i) ? wait_to_write(*s.arguments[i]) : wait_to_read(*s.arguments[i]);
    for (size_t k = 0; k < s.outputs.size(); ++k)
      if (s.outputs[k] && read_only(k)) wait_to_read(*s.outputs[k]);
    if (s.arena) wait_to_write(*s.arena);
    now = true;
  }
  if (now && is_small(e, part)) return e.run(s.frame, part);
  std::vector<engine::Variable*> reads, writes;
  for (size_t i = 0; i < s.arguments.size(); ++i) {
    if (!s.arguments[i]) continue;
    reads.push_back(make_state(*s.arguments[i]));
    if (written(i)) writes.push_back(reads.back());
  }
  for (size_t k = 0; k < s.outputs.size(); ++k)
    if (s.outputs[k]) (read_only(k) ? reads : writes).push_back(make_state(*s.outputs[k]));
  if (s.arena) {
    writes.push_back(make_state(*s.arena));
    if (backward) reads.push_back(writes.back());
  }
  engine::push(std::make_unique<RunTask>(std::move(s), part), reads, writes);
}

/// Whether an argument that the graph writes shares memory with another one: then the order of the calls matters.
bool overlaps(const Executable& e, std::span<const Val> arguments) {
  std::vector<std::pair<const Value*, bool>> roots;
  for (size_t i = 0; i < arguments.size(); ++i) roots.emplace_back(arguments[i]->root, e.updates(i));
  std::ranges::sort(roots);
  for (size_t i = 1; i < roots.size(); ++i)
    if (roots[i].first == roots[i - 1].first && (roots[i].second || roots[i - 1].second)) return true;
  return false;
}

/// Row-major arrays for the kernels; those that are written and are not so are written back after the run.
struct Arguments {
  std::vector<Val> rows;
  std::vector<std::pair<Val, Val>> write_back;  // to, from
};
Arguments prepare(const Executable& e, std::span<const Val> given) {
  Arguments a;
  a.rows.reserve(e.graph().arguments.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const Val& v = given[i];
    bool writes = e.updates(i);
    TW_CHECK(!writes || !v->has(kReadOnly), value, "argument ", e.graph().at(e.graph().arguments[i]).name,
             " is written by the graph; it is read-only");
    if (!v->has(kStrided)) {
      a.rows.push_back(v);
      continue;
    }
    a.rows.push_back(copied(v));
    if (writes) a.write_back.push_back({v, a.rows.back()});
  }
  a.rows.resize(e.graph().arguments.size());
  return a;
}

Val new_output(const Sig& s) { return Val::adopt(new_value(s.dtype, s.shape)); }

Val new_arena(const Executable& e) {
  int64_t bytes = e.plan().arena_bytes;
  int64_t dims[1] = {bytes};
  return bytes ? Val::adopt(new_value(DType::uint8, dims)) : Val();
}

/// The common case of prediction: everything is ready, nothing is written but new outputs, the work is small. Nothing
/// is queued then and nobody has to hold anything. False: it is another case, and nothing happened.
bool run_small(const Executable& e, std::span<const Val> arguments, std::vector<Val>& results) {
  const Graph& g = e.graph();
  if (e.updates_any() || !e.any_thread() || !is_small(e, Executable::Part::all)) return false;
  for (const Val& v : arguments)
    if (v->has(kStrided) || !engine::ready_to_read(state_of(*v))) return false;
  if (e.plan().arena_bytes > kSmallArena) return false;
  kernels::ScratchFrame scratch;
  Executable::Frame frame{Executable::Bases(e.base_count()), {}};
  frame.bases[0] = scratch.take<std::byte>(e.plan().arena_bytes);
  for (size_t i = 0; i < arguments.size(); ++i) frame.bases[1 + i] = arguments[i]->data;
  auto outputs = static_cast<size_t>(g.forward_outputs);
  results.reserve(outputs);
  for (size_t k = 0; k < outputs; ++k) {
    results.push_back(new_output(g.sig(g.outputs[k])));
    frame.bases[e.first_output() + k] = results.back()->data;
  }
  if (g.random_keys) frame.key = next_random_keys(g.random_keys);
  e.run(frame, Executable::Part::all);
  return true;
}

/// The backward part as a node of the tape. It owns the arena of the forward part, which holds what gradients read, and
/// the storage of outputs that they read: the caller's arrays are views of it.
class GraphGradient final : public CustomGradient {
 public:
  GraphGradient(std::shared_ptr<CompiledGraph> graph, RunState s, std::span<const Val> given)
      : graph_(std::move(graph)), state_(std::move(s)), given_(given.begin(), given.end()) {
    for (const Val& v : given_) versions_.push_back(v->root->version);
  }
  const char* name() const override { return "a compiled graph"; }

  Vals backward(std::span<const Val> dy, bool keep) override {
    if (modes.recording) return again(dy);
    const Executable& e = *state_.compiled->executable;
    const Graph& g = e.graph();
    check_versions(e);
    RunState s{state_.compiled, state_.executable, state_.frame, state_.arguments, state_.outputs, state_.arena};
    if (keep && s.arena) s.arena = copied(s.arena);
    for (size_t k = 0; k < g.head_grads.size(); ++k) {
      Val d = dy[k];
      s.arguments[static_cast<size_t>(g.head_grads[k].argument)] = d->has(kStrided) ? copied(d) : d;
    }
    Vals dx;
    for (size_t k = static_cast<size_t>(g.forward_outputs); k < g.outputs.size(); ++k) {
      if (g.outputs[k].present()) s.outputs[k] = new_output(g.sig(g.outputs[k]));
      dx.push_back(s.outputs[k]);
    }
    set_bases(s);
    if (!keep) {  // whoever keeps the loss must not keep the memory of its graph
      state_.arena = {};
      state_.arguments.clear();
      state_.outputs.clear();
      given_.clear();
      versions_.clear();
    }
    start(std::move(s), Executable::Part::backward);
    return dx;
  }

 private:
  void check_versions(const Executable& e) const {
    for (size_t i = 0; i < given_.size(); ++i)
      TW_CHECK(versions_[i] == given_[i]->root->version || !e.reads_backwards(i), runtime,
               "backward: the gradient of a compiled graph reads its argument ",
               e.graph().at(e.graph().arguments[i]).name,
               ", which was overwritten in place after the graph ran. Use a copy, or write before the call");
    for (size_t k = 0; k < state_.outputs.size(); ++k)
      TW_CHECK(!state_.outputs[k] || state_.outputs[k]->version == 0, runtime,
               "backward: the gradient of a compiled graph reads its output ", k,
               ", which was overwritten in place after the graph ran. Use a copy");
  }
  /// Gradients that are recorded themselves: the graph is run once more, call by call, on the tape.
  Vals again(std::span<const Val> dy) {
    RandomStream same(state_.frame.key);
    std::vector<Val> inputs(given_);
    const Executable& e = *state_.compiled->executable;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (e.updates(i)) inputs[i] = copied(inputs[i]);
    std::vector<Val> y = graph_->interpret(inputs);
    std::vector<Val> heads, dys;
    for (size_t i = 0; i < e.graph().head_grads.size(); ++i) {
      heads.push_back(y[static_cast<size_t>(e.graph().head_grads[i].output)]);
      dys.push_back(dy[i]);
    }
    return grad(heads, inputs, dys,
                {.retain_graph = true, .create_graph = true, .training = modes.training, .allow_unused = true});
  }

  std::shared_ptr<CompiledGraph> graph_;
  RunState state_;
  std::vector<Val> given_;
  std::vector<uint32_t> versions_;
};

bool wants_gradient(const Value& v) { return modes.recording && v.node && is_floating(v.dtype()); }

bool fits(const CompiledGraph::Signature& s, std::span<const Val> arguments) {
  if (s.training != modes.training || s.wants.size() != arguments.size()) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& v = *arguments[i];
    const Sig& sig = s.sigs[i];
    if (sig.dtype != v.dtype() || !std::ranges::equal(sig.shape.span(), v.shape()) || s.wants[i] != wants_gradient(v))
      return false;
  }
  return true;
}

std::string signature(std::span<const Sig> sigs, bool training, const std::vector<bool>& wants) {
  std::string s(1, training ? 't' : 'p');
  for (size_t i = 0; i < sigs.size(); ++i) {
    s += static_cast<char>(sigs[i].dtype);
    s += static_cast<char>('0' + sigs[i].rank());
    s += i < wants.size() && wants[i] ? 'g' : '-';
    for (int64_t d : sigs[i].shape) s.append(reinterpret_cast<const char*>(&d), sizeof d);
  }
  return s;
}

}  // namespace

/// What the prologues of all signatures computed, by what it is computed from: weights that are laid out for one batch
/// size serve the others.
struct CompiledGraph::Prepared {
  /// The arrays that a value was computed from, as they were then.
  struct Source {
    std::vector<Val> arrays;
    std::vector<uint32_t> versions;

    static Source of(std::span<const Val> arguments, std::span<const size_t> reads) {
      Source s;
      for (size_t i : reads) {
        s.arrays.push_back(arguments[i]);
        s.versions.push_back(arguments[i]->root->version);
      }
      return s;
    }
    bool is_current(std::span<const Val> arguments, std::span<const size_t> reads) const {
      for (size_t k = 0; k < reads.size(); ++k) {
        const Val& v = arguments[reads[k]];
        // Memory of others may be written without notice.
        if (!same_array(v, arrays[k]) || v->root->version != versions[k] || v->root->release_data) return false;
      }
      return true;
    }
    static bool same_array(const Val& a, const Val& b) {
      bool plain = !a->has(kStrided) && !b->has(kStrided);
      return a.get() == b.get() || (plain && a->root == b->root && a->data == b->data);
    }
  };
  struct Entry {
    Source source;
    Val value;
  };

  /// A number for each node: the same for nodes, also of other graphs, that compute the same from the same arguments.
  std::vector<int> number_nodes(const Graph& g) {
    std::lock_guard lock(mutex);
    std::vector<int> ids;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      std::string key = describe(g, i, ids);
      auto [place, fresh] = known.try_emplace(std::move(key), static_cast<int>(known.size()));
      if (fresh && g.nodes[i].kind == GraphNode::Kind::constant) constants.push_back(g.nodes[i].value);
      ids.push_back(place->second);
    }
    return ids;
  }

  std::mutex mutex;
  std::map<std::string, int> known;
  std::vector<Val> constants;  // they are known by their addresses, which nobody else may get meanwhile
  std::map<std::pair<int, int>, Entry> entries;  // by node and output

 private:
  template <class T> static void add(std::string& to, const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    to.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  static std::string describe(const Graph& g, size_t i, const std::vector<int>& ids) {
    const GraphNode& n = g.nodes[i];
    std::string key(1, static_cast<char>(n.kind));
    if (n.kind == GraphNode::Kind::argument)
      add(key, std::ranges::find(g.arguments, static_cast<int32_t>(i)) - g.arguments.begin());
    if (n.kind == GraphNode::Kind::constant) add(key, n.value.get());
    for (const Sig& s : n.out) key += text(s);
    if (n.kind != GraphNode::Kind::call) return key;
    if (n.owned) add_program(key, n.owned->program);
    else add(key, n.op);
    add(key, n.work);
    key.append(reinterpret_cast<const char*>(n.attrs.data()), n.attrs.size());
    for (Edge e : n.in) {
      add(key, e.present() ? ids[static_cast<size_t>(e.node)] : -1);
      add(key, e.output);
    }
    return key;
  }
  static void add_program(std::string& key, const Program& p) {
    auto add_ref = [&](const Ref& r) {
      add(key, r.kind);
      add(key, r.index);
    };
    for (int i = 0; i < p.instruction_count; ++i) {
      add(key, p.instructions[i].prim);
      add(key, p.instructions[i].dst);
      for (const Ref& r : p.instructions[i].operands) add_ref(r);
    }
    for (int i = 0; i < p.constant_count; ++i) {
      add(key, p.constants[i].kind);
      add(key, p.constants[i].number.kind);
      add(key, p.constants[i].number.integer);
    }
    for (int i = 0; i < p.input_count; ++i) add(key, p.sources[i]);
    add(key, p.mask_inputs);
  }
};

/// Runs what depends on parameters alone, and keeps the results until a parameter is written or replaced.
struct CompiledGraph::Prologue {
  Prologue(Graph g, passes::MemoryPlan plan, std::shared_ptr<Prepared> prepared)
      : executable_(std::make_shared<Executable>(std::move(g), std::move(plan))), prepared_(std::move(prepared)) {
    const Graph& graph = executable_->graph();
    reads_ = arguments_of(graph, graph.outputs);
    ids_ = prepared_->number_nodes(graph);
    for (Edge e : graph.outputs) reads_of_output_.push_back(arguments_of(graph, {&e, 1}));
  }

  /// Appends the results for these arguments.
  void add_values(const CompiledPtr& compiled, std::vector<Val>& arguments) {
    // The lock is not held while it runs: a wait gives the interpreter's lock to a thread that may come for this one.
    std::vector<Val> now;
    if (std::lock_guard lock(mutex_); !values_.empty() && source_.is_current(arguments, reads_)) now = values_;
    if (now.empty()) now = compute(compiled, arguments);
    arguments.insert(arguments.end(), now.begin(), now.end());
  }

 private:
  /// Positions of the arguments that some values depend on.
  static std::vector<size_t> arguments_of(const Graph& g, std::span<const Edge> values) {
    std::vector<bool> needed(g.nodes.size());
    for (Edge e : values) needed[static_cast<size_t>(e.node)] = true;
    for (size_t i = g.nodes.size(); i-- > 0;)
      if (needed[i])
        for (Edge e : g.nodes[i].in)
          if (e.present()) needed[static_cast<size_t>(e.node)] = true;
    std::vector<size_t> positions;
    for (size_t i = 0; i < g.arguments.size(); ++i)
      if (g.arguments[i] >= 0 && needed[static_cast<size_t>(g.arguments[i])]) positions.push_back(i);
    return positions;
  }

  std::vector<Val> compute(const CompiledPtr& compiled, const std::vector<Val>& arguments) {
    const Graph& graph = executable_->graph();
    std::vector<Val> results(graph.outputs.size());
    std::vector<size_t> missing;
    {
      std::lock_guard lock(prepared_->mutex);
      for (size_t k = 0; k < results.size(); ++k) {
        auto found = prepared_->entries.find(key_of(k));
        if (found != prepared_->entries.end() && found->second.source.is_current(arguments, reads_of_output_[k]))
          results[k] = found->second.value;
        else missing.push_back(k);
      }
    }
    Prepared::Source now = Prepared::Source::of(arguments, reads_);
    if (!missing.empty()) {
      {  // what nobody can use any more makes room first
        std::lock_guard lock(mutex_);
        values_.clear();
        std::lock_guard shared(prepared_->mutex);
        for (size_t k : missing) prepared_->entries.erase(key_of(k));
      }
      std::vector<Prepared::Source> sources;
      for (size_t k : missing) sources.push_back(Prepared::Source::of(arguments, reads_of_output_[k]));
      run(compiled, arguments, missing, results);
      std::lock_guard lock(prepared_->mutex);
      for (size_t i = 0; i < missing.size(); ++i)
        prepared_->entries[key_of(missing[i])] = {std::move(sources[i]), results[missing[i]]};
    }
    std::lock_guard lock(mutex_);
    values_ = results;
    source_ = std::move(now);
    return results;
  }
  std::pair<int, int> key_of(size_t output) const {
    Edge e = executable_->graph().outputs[output];
    return {ids_[static_cast<size_t>(e.node)], e.output};
  }

  /// Computes some of the results.
  void run(const CompiledPtr& compiled, const std::vector<Val>& arguments, std::span<const size_t> which,
           std::vector<Val>& results) {
    std::shared_ptr<const Executable> part = executable_;
    if (which.size() < results.size()) {
      Graph g = executable_->graph();
      g.outputs.clear();
      for (size_t k : which) g.outputs.push_back(executable_->graph().outputs[k]);
      g.forward_outputs = static_cast<int>(g.outputs.size());
      passes::keep_needed(g);
      passes::MemoryPlan plan = passes::plan_memory(g, {});
      part = std::make_shared<Executable>(std::move(g), std::move(plan));
    }
    RunState s{compiled, part.get(), {}, arguments, {}, new_arena(*part), part};
    for (size_t i : reads_)
      if (arguments[i]->has(kStrided)) s.arguments[i] = copied(arguments[i]);
    for (size_t i = 0; i < which.size(); ++i) {
      results[which[i]] = new_output(part->graph().sig(part->graph().outputs[i]));
      s.outputs.push_back(results[which[i]]);
    }
    set_bases(s);
    start(std::move(s), Executable::Part::all);
  }

  std::shared_ptr<const Executable> executable_;
  std::shared_ptr<Prepared> prepared_;
  std::vector<int> ids_;       // of the graph's nodes, in prepared_
  std::vector<size_t> reads_;  // arguments
  std::vector<std::vector<size_t>> reads_of_output_;
  std::mutex mutex_;
  Prepared::Source source_;
  std::vector<Val> values_;
};
CompiledGraph::Compiled::Compiled() = default;
CompiledGraph::Compiled::~Compiled() = default;

CompiledGraph::CompiledGraph(std::vector<SymbolRef> heads, std::vector<SymbolRef> effects,
                             std::vector<SymbolNodePtr> inputs, CompileOptions options)
    : heads_(std::move(heads)),
      effects_(std::move(effects)),
      inputs_(std::move(inputs)),
      options_(std::move(options)),
      prepared_(std::make_shared<Prepared>()) {
  std::vector<SymbolRef> all(heads_);
  all.insert(all.end(), effects_.begin(), effects_.end());
  TW_CHECK(!all.empty(), value, "compile: at least one output is needed");
  for (const SymbolNode* n : reachable(all)) {
    if (n->kind == SymbolNode::Kind::call) depends_on_data_ = depends_on_data_ || n->op->data_dependent;
    if (n->is_input())
      TW_CHECK(std::ranges::any_of(inputs_, [&](const SymbolNodePtr& i) { return i.get() == n; }), value,
               "compile: variable ", n->name, " is not among the inputs");
  }
}

CompiledPtr CompiledGraph::compile(std::span<const Sig> sigs, bool training, const std::vector<bool>& wants,
                                   bool explain) {
  std::string key = signature(sigs, training, wants);
  CompileOptions options;
  int change = 0;
  {
    std::lock_guard lock(mutex_);
    auto known = cache_.find(key);
    if (known != cache_.end() && (!explain || known->second->report.explain)) return last_ = known->second;
    options = options_;
    change = changes_;
  }
  profile::Timer timer(profile::kApi, profile::Kind::call, "compile a graph");
  // The lock is not held while it compiles: functions of a front end may give the interpreter's lock to a thread that
  // comes for this one. Two threads may then compile the same; the first to finish is kept.
  auto made = std::make_shared<Compiled>();
  made->signature = {{sigs.begin(), sigs.end()}, training, wants};
  auto begin = std::chrono::steady_clock::now();
  std::vector<Argument> arguments;
  bool gradients = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    bool wanted = i < wants.size() && wants[i];
    gradients |= wanted;
    bool fixed = inputs_[i]->kind == SymbolNode::Kind::captured || (i < options.fixed.size() && options.fixed[i]);
    arguments.push_back({inputs_[i].get(), sigs[i], wanted, fixed && !training});
  }
  Graph g = lower(heads_, effects_, arguments, {.training = training, .gradients = gradients});
  made->lower_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  g.keep = options.keep;
  g.exact = options.exact || setting_integer(Setting::exact, 0) != 0;
  g.autotune = options.autotune;
  made->report.explain = explain;
  Graph prologue;
  passes::MemoryPlan plan = passes::run_pipeline(g, {.without = options.without, .memory = {.donate = options.donate}},
                                                 &made->report, &prologue);
  if (!prologue.nodes.empty()) {
    passes::MemoryPlan its_plan = passes::plan_memory(prologue, {});
    made->prologue = std::make_unique<Prologue>(std::move(prologue), std::move(its_plan), prepared_);
  }
  made->executable = std::make_unique<Executable>(std::move(g), std::move(plan));
  std::lock_guard lock(mutex_);
  if (change != changes_) return made;  // by the options of before: for this call only
  auto& place = cache_[key];
  if (place && (!explain || place->report.explain)) return last_ = place;
  if (!place) ++compilations_;  // once more, to be explained, is no other signature
  return last_ = place = made;
}

void CompiledGraph::set_keep(double share) {
  TW_CHECK(share >= 0 && share <= 1, value, "recompute: a share between 0 and 1 is needed; got ", share);
  std::lock_guard lock(mutex_);
  if (options_.keep == share) return;
  options_.keep = share;
  forget();
}

void CompiledGraph::set_rules(bool exact, bool autotune) {
  std::lock_guard lock(mutex_);
  if (options_.exact == exact && options_.autotune == autotune) return;
  options_.exact = exact;
  options_.autotune = autotune;
  forget();
}

void CompiledGraph::set_fixed(const std::vector<std::string>& names) {
  std::lock_guard lock(mutex_);
  std::vector<bool> fixed(inputs_.size());
  for (const std::string& name : names) {
    auto found = std::ranges::find_if(inputs_, [&](const SymbolNodePtr& n) { return n->name == name; });
    TW_CHECK(found != inputs_.end(), value, "compile: fixed names ", name, ", which is no variable of the symbol");
    fixed[static_cast<size_t>(found - inputs_.begin())] = true;
  }
  options_.fixed = std::move(fixed);
  forget();
}

void CompiledGraph::forget() {
  ++changes_;
  cache_.clear();
  last_ = {};
}

CompiledPtr CompiledGraph::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

std::vector<Val> CompiledGraph::interpret(std::span<const Val> arguments, Interpreter::Watch watch) const {
  std::unordered_map<const SymbolNode*, Val> given;
  for (size_t i = 0; i < inputs_.size(); ++i) given[inputs_[i].get()] = arguments[i];
  std::vector<SymbolRef> all(heads_);
  all.insert(all.end(), effects_.begin(), effects_.end());
  Interpreter interpreter(std::move(given));
  interpreter.watch = std::move(watch);
  std::vector<Val> results = interpreter.run(all);
  results.resize(heads_.size());
  return results;
}

CompiledPtr CompiledGraph::compiled_for(std::span<const Val> arguments) {
  if (CompiledPtr last = this->last(); last && fits(last->signature, arguments)) return last;
  std::vector<Sig> sigs;
  std::vector<bool> wants;
  for (const Val& v : arguments) {
    sigs.push_back({Shape(v->shape()), v->dtype()});
    wants.push_back(wants_gradient(*v));
  }
  return compile(sigs, modes.training, wants);
}

std::vector<Val> CompiledGraph::call(std::span<const Val> arguments) {
  profile::Timer timer(profile::kApi, profile::Kind::call, "a compiled graph");
  TW_CHECK(arguments.size() == inputs_.size(), type, "the graph takes ", inputs_.size(), " arrays; got ",
           arguments.size());
  bool traced = modes.tracing;
  for (size_t i = 0; i < arguments.size(); ++i) {
    TW_CHECK(arguments[i], value, "input ", inputs_[i]->name, " is given no array");
    traced |= arguments[i]->has(kTraced);
  }
  if (traced || depends_on_data_) return interpret(arguments);

  CompiledPtr compiled;
  try {
    compiled = compiled_for(arguments);
  } catch (const DataDependence&) {  // a composed operator met elements that it needs to know
    depends_on_data_ = true;
    return interpret(arguments);
  }
  const Executable& e = *compiled->executable;
  if (e.updates_any() && overlaps(e, arguments)) return interpret(arguments);
  const Graph& g = e.graph();
  bool backward = !g.head_grads.empty();
  std::vector<Val> results;
  std::vector<Val> more;
  std::span<const Val> all = arguments;
  if (compiled->prologue) {
    more.assign(arguments.begin(), arguments.end());
    compiled->prologue->add_values(compiled, more);
    all = more;
  }
  if (!backward && run_small(e, all, results)) return results;

  Arguments prepared = prepare(e, all);
  RunState s{compiled, &e, {}, std::move(prepared.rows), {}, new_arena(e)};
  if (g.random_keys) s.frame.key = next_random_keys(g.random_keys);
  auto outputs = static_cast<size_t>(g.forward_outputs);
  s.outputs.resize(g.outputs.size());
  for (size_t k = 0; k < outputs; ++k) {
    int32_t donated = e.plan().output_is_argument[k];
    if (donated < 0) s.outputs[k] = new_output(g.sig(g.outputs[k]));
    bool shared = backward && donated < 0 && e.reads_output_backwards(k);
    results.push_back(shared        ? Val::adopt(new_alias(*s.outputs[k]))
                      : donated < 0 ? s.outputs[k]
                                    : arguments[static_cast<size_t>(donated)]);
  }
  set_bases(s);
  RunState kept;
  if (backward) {
    kept = s;
    for (size_t k = 0; k < outputs; ++k)
      if (!e.reads_output_backwards(k)) kept.outputs[k] = {};
  }
  start(std::move(s), backward ? Executable::Part::forward : Executable::Part::all);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (e.updates(i)) bump_version(arguments[i].get());
  for (auto& [to, from] : prepared.write_back) assign(*to, *from);
  if (backward) {
    std::vector<Value*> in, out;
    for (const Val& v : arguments) in.push_back(v.get());
    for (HeadGradient h : g.head_grads) out.push_back(results[static_cast<size_t>(h.output)].get());
    record_custom(in, out, std::make_unique<GraphGradient>(shared_from_this(), std::move(kept), arguments));
  }
  return results;
}

}  // namespace twibil
