// SPDX-License-Identifier: Apache-2.0
// Compiled graphs and traces for Python.
#pragma once
#include "array_object.h"
#include "runtime/compiled_graph.h"

namespace twibil::python {
void add_compiled(PyObject* module);
void add_signature(PyObject* module);
void add_control_flow(PyObject* module);
void add_host_function(PyObject* module);
/// Calls a function on arrays, traced or run now, or on symbols, for which `outputs` says how many it gives; `hidden`
/// ones come behind them.
PyObject* call_on(const std::shared_ptr<const GraphFunction>& f, PyObject* inputs, size_t outputs, const char* name,
                  size_t hidden = 0);
/// The graph of a `Compiled` object; a type error for another object.
std::shared_ptr<CompiledGraph> shared_graph(PyObject* compiled);
PyObject* wrap_compiled(std::shared_ptr<CompiledGraph> g);
}  // namespace twibil::python
