// SPDX-License-Identifier: Apache-2.0
// The attributes of an ONNX node as those of an operator. One that the operator takes as an input (sizes, axes and
// bounds, which older opsets have as attributes) becomes a constant.
#pragma once
#include "api/io/onnx_file.h"
#include "ir/graph.h"

namespace twibil::io {

struct OnnxCall {
  AttrBytes attrs;
  std::vector<std::pair<size_t, Val>> constants;  // by input
};
/// A value error for an attribute of a wrong kind, a not-implemented error for one that the operator does not have.
OnnxCall read_onnx_call(const OpDef& op, const OnnxNode& node, int64_t version);

}  // namespace twibil::io
