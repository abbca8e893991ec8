// SPDX-License-Identifier: Apache-2.0
// MXNet's graph files, `-symbol.json`: reading those of versions 0.8 to 2.0, writing what 1.x reads.
//
//   {"nodes": [{"op": "null", "name": "x", "inputs": []},                          a variable
//              {"op": "FullyConnected", "name": "fc1", "attrs": {"num_hidden": "10"}, "inputs": [[0, 0, 0], ...]}],
//    "arg_nodes": [0, ...], "heads": [[7, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
//
// What MXNet has no form for is written so that this library reads it back: constant and captured arrays are variables
// that carry their value in an attribute, the gradient of a node is an operator of its own name.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "api/io/file.h"
#include "ir/symbol.h"

namespace twibil::io {

/// The outputs of the graph in a file. Errors name the file, the place or node, and the reason.
std::vector<SymbolRef> read_symbol(const std::string& path);
/// The same from text; `source` stands for it in messages.
std::vector<SymbolRef> parse_symbol(std::string_view text, const std::string& source = "<text>");

/// Replaces the file completely or not at all.
void write_symbol(const std::string& path, std::span<const SymbolRef> heads);
std::string format_symbol(std::span<const SymbolRef> heads);

/// Attributes of a node in the words of files: those of the operator, then what users attached ("__lr_mult__").
std::map<std::string, std::string> graph_attributes(const SymbolNode& n);
/// Reads attributes of a call in the words of files into `attrs`; false where there is none of this name.
bool set_graph_attribute(const OpDef& op, AttrBytes& attrs, std::string_view word, std::string_view value);
/// Whether a file (or a caller of mx.sym) may say this, and nothing follows from it here: "cudnn_tune".
bool is_without_effect(std::string_view word);
/// Attributes of old files that belong to users ("lr_mult" is "__lr_mult__" today); empty for others.
std::string hidden_attribute(std::string_view word);

}  // namespace twibil::io
