// SPDX-License-Identifier: Apache-2.0
// What a compilation did, as Python's lists and dictionaries; python/twibil/explain makes text and pictures of it.
#pragma once
#include "array_object.h"
#include "runtime/compiled_graph.h"

namespace twibil::python {

/// ([(shape, dtype)] of all inputs, training, [wants a gradient]); None before the first call.
PyObject* last_signature(const CompiledGraph& g);
/// `signature` as above. Compiles once more if that was not done to be explained.
PyObject* describe_compilation(CompiledGraph& g, PyObject* signature);
/// (signature, arrays for all inputs but captured ones, seconds) -> seconds of each step.
PyObject* measure_compilation(CompiledGraph& g, PyObject* args);

}  // namespace twibil::python
