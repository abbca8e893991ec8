// SPDX-License-Identifier: Apache-2.0
// How ONNX models name operators and attributes. Each operator says it in OpDef::onnx.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace twibil {

/// The first opset whose operators are read, and the last one whose operators are known.
inline constexpr int64_t kFirstOpset = 7, kLastOpset = 28;

/// The operator that computes what ONNX calls `name` in this version of the domain ("" is ONNX's own); null where there
/// is none.
const OpDef* find_onnx_op(std::string_view domain, std::string_view name, int64_t version);
/// "Relu", "com.microsoft.Gelu": every name that some version has, sorted.
std::vector<std::string> onnx_op_names();

/// The attribute that ONNX calls `word`; null where there is none.
const Field* find_onnx_field(const OpDef& op, std::string_view word);
/// Attributes of a call of which the model says nothing; `outputs` of the node, `version` of its domain.
AttrBytes onnx_defaults(const OpDef& op, int64_t outputs, int64_t version);
/// Whether an attribute with this value (as text) changes nothing.
bool is_unused_onnx(const OpDef& op, std::string_view word, std::string_view value);

}  // namespace twibil
