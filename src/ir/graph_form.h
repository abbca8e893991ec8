// SPDX-License-Identifier: Apache-2.0
// How MXNet's graph files name operators, attributes and inputs. Each operator says it in OpDef::graph; what it does
// not say follows from its public names: "nd.relu" is the files' relu, "nd.contrib.X" their _contrib_X, "np.X" _npi_X.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace twibil {

/// The operator that files call `name`; null where there is none.
const OpDef* find_graph_op(std::string_view name);
/// The same, or a key error with the nearest names.
const OpDef& require_graph_op(std::string_view name);
/// All names of files, sorted.
std::vector<std::string_view> graph_op_names();
/// The name that files get.
std::string graph_name(const OpDef& op);

/// The files' word for an attribute, and the file's default where it differs from ours (else empty).
struct GraphWord {
  std::string_view word, fallback;
  bool always = false;  // stands in files even where it has its default
};
GraphWord graph_word(const OpDef& op, const Field& field);
/// The attribute that files call `word`; null where there is none.
const Field* find_graph_field(const OpDef& op, std::string_view word);
/// Attributes of a call of which the file says nothing.
AttrBytes graph_defaults(const OpDef& op);
/// Whether a call with these attributes needs optional input i: a bias without no_bias, the gamma of a prelu.
bool wants_input(const OpDef& op, const AttrBytes& attrs, size_t i);
/// What variables made for input i are called after the node.
std::string graph_input(const OpDef& op, size_t i);

}  // namespace twibil
