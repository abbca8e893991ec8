// SPDX-License-Identifier: Apache-2.0
// From an ONNX model to a symbol and its parameters. Which operator stands for which ONNX operator is said by the
// operators (ir/onnx_form.h).
#pragma once
#include "api/io/onnx_file.h"
#include "ir/symbol.h"

namespace twibil::io {

struct OnnxProgram {
  std::vector<SymbolRef> heads;                         // in the order of the model's outputs
  std::vector<std::string> outputs;                     // their names in the model
  std::vector<OnnxValue> inputs;                        // those that are no parameters
  std::vector<std::pair<std::string, Val>> parameters;  // floating tensors, by the names of their variables
  std::map<std::string, int64_t> operators;             // how often each ONNX operator stands in the model
};

/// A not-implemented error lists every node that has no operator here, with its opset. `source` stands in messages.
OnnxProgram import_onnx(const OnnxModel& model, const std::string& source);

}  // namespace twibil::io
