// SPDX-License-Identifier: Apache-2.0
// Traced values: they have a shape and a dtype but no data, and stand for an edge of the graph that a tracer collects.
// Every function of arrays, gradients included, works on them, so that one program serves both edges.
#pragma once
#include "ir/graph.h"
#include "ir/modes.h"

namespace twibil {

/// The edge of a view of an array that was written since.
inline constexpr Edge kStale = {-2, 0};

/// Collects calls. While one is installed on a thread, calls with a traced input come here instead of running.
class Tracer {
 public:
  virtual ~Tracer() = default;
  /// Whether composed operators stay one node, as the user called them; else their parts are collected.
  virtual bool keeps_calls() const { return false; }
  /// A node for a call; returns its number. Absent inputs have no edge.
  virtual int32_t add_call(const OpDef& op, const void* attrs, std::span<const Edge> in, std::span<const Sig> out,
                           DType work, bool training) = 0;
  /// A node for a function on arrays.
  virtual int32_t add_function(std::shared_ptr<const GraphFunction> f, std::span<const Edge> in,
                               std::span<const Sig> out, bool training) = 0;
  /// A node for an array of the outside, a number, or (of a ghost) a shape alone.
  virtual Edge add_outside(Value& v) = 0;
  /// A node for elements that never change.
  virtual Edge add_constant(Value& v) { return add_outside(v); }
  /// An array of the outside was written: from now on it stands for `e`.
  virtual void written(Value& v, Edge e) = 0;
  /// What views of an array of the outside share, so that a write under living views is noticed.
  virtual std::shared_ptr<bool> storage_of(Value&) { return std::make_shared<bool>(true); }
  uint64_t serial() const { return serial_; }
  bool met_data_dependence = false;  // the function cannot be traced, as a shape in it depends on elements
  Tracer* outer = nullptr;  // the trace that this one runs inside of; its values are arrays of the outside here

 private:
  uint64_t serial_ = next_serial();  // so that a value that outlives its trace is noticed
  static uint64_t next_serial();
};
extern constinit thread_local Tracer* tracer;

/// Installs a tracer on this thread, or none: then calls run. Returns the one before.
Tracer* install_tracer(Tracer* t);

/// Installs a tracer on this thread for a scope; null: calls run.
class TraceScope {
 public:
  explicit TraceScope(Tracer* t) : before_(install_tracer(t)) {}
  ~TraceScope() { install_tracer(before_); }
  TraceScope(const TraceScope&) = delete;

 private:
  Tracer* before_;
};

/// What a traced value stands for.
struct TraceLink {
  Tracer* owner;
  uint64_t serial;  // of the owner, so that a value that outlives it is noticed
  Edge edge;
  std::shared_ptr<bool> storage;  // shared by views of one array; true: an array of the outside, or an argument
};

/// A value for an edge of the tracer. `storage`: of the array that it is a view of.
Value* new_traced(Tracer& owner, Edge edge, const Sig& sig, std::shared_ptr<bool> storage = {}, bool outside = false);
inline TraceLink& link_of(const Value& v) { return *static_cast<TraceLink*>(v.release_context); }
/// Elements known while tracing (from a list, a number, NumPy) as a traced value.
Val traced_constant(Val v);
/// Another value for the same edge.
Value* new_traced_alias(const Value& v);
/// What a gradient may ask of a value that it does not read: in a graph the value itself, of which only the shape is
/// used.
Value* new_traced_ghost(const Value& like);
/// The edge of any value in the running trace: its own, or that of a node for an array of the outside.
Edge edge_of(Value& v);
/// The same traced value under another edge, as after a write.
void relink(Value& v, Edge edge);
/// A runtime error that says why the elements of a traced value cannot be looked at.
[[noreturn]] void no_data_error(const char* who);
/// The error of data_dependent_error(): whoever runs a whole graph can run it node by node instead.
class DataDependence : public Error {
 public:
  using Error::Error;
};
/// For operators whose result's shape depends on elements; marks the running traces.
[[noreturn]] void data_dependent_error(const char* who);
/// The same for `if x:`.
[[noreturn]] void no_truth_error();

}  // namespace twibil
