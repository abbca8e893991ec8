// SPDX-License-Identifier: Apache-2.0
// Symbols, compiled graphs and traces for Python. What is only convenience stands in python/twibil/sym.
#pragma once
#include "array_object.h"
#include "ir/symbol.h"

namespace twibil::python {

extern PyTypeObject SymbolType;
inline bool is_symbol(PyObject* o) { return PyObject_TypeCheck(o, &SymbolType); }
/// Thrown where an array was expected and a symbol came: the call starts again as a symbolic one.
struct SymbolArgument {};

const std::vector<SymbolRef>& heads_of(PyObject* symbol);
/// The one output of a symbol; a value error when it has several.
SymbolRef head_of(PyObject* symbol, const char* who);
PyObject* wrap_symbol(std::vector<SymbolRef> heads);
/// An input of a symbolic call: a symbol, or a number or array that becomes a constant. Empty for None.
SymbolRef to_symbol(PyObject* o, const char* op, const char* argument);
/// Calls an operator on symbols with the arguments of a Python call. Parameters that are not given become variables
/// called after the node ("conv0_weight").
/// `graph_form`: with the words and defaults of MXNet's graphs, as mx.sym has them.
PyObject* call_symbolically(const OpDef& op, const char* name, PyObject* const* args, Py_ssize_t n, PyObject* names,
                            bool graph_form = false);

void add_symbol(PyObject* module);

}  // namespace twibil::python
