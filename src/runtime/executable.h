// SPDX-License-Identifier: Apache-2.0
// A planned graph, ready to run: a flat list of kernel calls whose operands are known up to a few base pointers (arena,
// arguments, outputs). Immutable; any number of threads may run it at once, each with an arena of its own.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <mutex>

#include "kernels/tile.h"
#include "passes/plan_memory.h"

namespace twibil {

class Executable {
 public:
  Executable(Graph g, passes::MemoryPlan plan);

  /// Where the arena, the arguments and the outputs of one run stand, in this order.
  class Bases {
   public:
    Bases() = default;
    explicit Bases(size_t n) { assign(n, nullptr); }
    void assign(size_t n, std::byte* p) {
      if (n > few_.size()) many_.assign(n, p);
      else few_.fill(p);
    }
    std::byte*& operator[](size_t i) { return many_.empty() ? few_[i] : many_[i]; }
    std::byte* operator[](size_t i) const { return many_.empty() ? few_[i] : many_[i]; }

   private:
    std::array<std::byte*, 16> few_;
    std::vector<std::byte*> many_;
  };
  /// Memory and random numbers of one run; a backward part continues with those of its forward part.
  struct Frame {
    Bases bases;
    RandomKey key;
  };
  enum class Part { all, forward, backward };
  /// Runs on the calling thread. The kernels use the thread team; what they throw names the operator and the line.
  void run(Frame& frame, Part part) const;

  const Graph& graph() const { return graph_; }
  const passes::MemoryPlan& plan() const { return plan_; }
  int steps() const { return static_cast<int>(steps_.size()); }
  double work(Part part) const { return part == Part::backward ? backward_work_ : forward_work_; }
  /// Whether it may run on any thread: functions of a front end run where they were called.
  bool any_thread() const { return any_thread_; }
  bool updates(size_t argument) const { return updated_[argument]; }
  bool updates_any() const { return updates_any_; }
  /// Whether the backward part reads this argument, or this output of the forward part.
  bool reads_backwards(size_t argument) const { return read_backwards_[1 + argument]; }
  bool reads_output_backwards(size_t output) const { return read_backwards_[first_output() + output]; }
  size_t first_output() const { return 1 + graph_.arguments.size(); }  // among the bases
  size_t base_count() const { return 1 + graph_.arguments.size() + graph_.outputs.size(); }

  /// For pictures and measurements: seconds of each step of one run.
  std::vector<double> time_steps(Frame& frame) const;
  /// The algorithm that the step's kernel takes, where the operator can tell; else "".
  const char* algorithm_of_step(int step) const;
  /// What is said of all algorithms that the step could take; empty where there is no choice.
  std::vector<AlgorithmVerdict> verdicts_of_step(int step) const;
  int forward_steps() const { return forward_steps_; }
  const GraphNode& node_of_step(int step) const { return graph_.at(steps_[static_cast<size_t>(step)].node); }
  int32_t node_index_of_step(int step) const { return steps_[static_cast<size_t>(step)].node; }

 private:
  struct Operand {
    int32_t base = -1;   // into Frame::bases; -1: at `data`, or nowhere
    int64_t offset = 0;  // bytes
    Buffer buffer;       // sizes and strides; data of constants
    bool present = false;
  };
  struct Step {
    int32_t node;
    const GraphNode* n;
    uint32_t first_in, ins, first_out, outs;
    int32_t program = -1;  // of a pointwise operator: in programs_
    int32_t loop = -1;     // of operators that run by rows: in loops_
  };
  /// The parts of a RowLoop, on a whole block of rows and on those that are left.
  struct Loop {
    std::unique_ptr<const Executable> body, rest;
    int64_t arena_bytes = 0;
    std::string description;  // for people
  };
  /// What the profiler says of a step; put together when it first asks.
  struct StepFacts {
    const char *name, *node, *signatures;
    int64_t bytes = 0;
    double operations = 0;
  };
  void add_step(int32_t node);
  void prepare_program(const GraphNode& n, uint32_t first_in);
  void prepare_loop(const RowLoop& loop);
  Operand operand_of(Edge e);
  Buffer resolve(const Operand& o, const Frame& f) const;
  void run_step(const Step& s, const Frame& f) const;
  void run_profiled(int begin, int end, const Frame& f) const;
  const std::vector<StepFacts>& facts() const;
  void run_pointwise(const Step& s, const Frame& f) const;
  void run_kernel(const Step& s, const Frame& f) const;
  void run_function(const Step& s, const Frame& f) const;
  void run_loop(const Step& s, const Frame& f) const;
  template <class F> auto with_sizes(const Step& s, F&& ask) const;

  Graph graph_;
  passes::MemoryPlan plan_;
  std::vector<Step> steps_;
  int forward_steps_ = 0;
  std::vector<Operand> operands_;
  std::deque<std::array<int64_t, kMaxRank>> sizes_;  // what buffers point to
  std::vector<kernels::PreparedProgram> programs_;
  std::vector<Loop> loops_;
  std::vector<bool> updated_, read_backwards_;
  bool updates_any_ = false;
  double forward_work_ = 0, backward_work_ = 0;
  bool any_thread_ = true;
  mutable std::once_flag facts_once_;
  mutable std::vector<StepFacts> facts_;
};

}  // namespace twibil
