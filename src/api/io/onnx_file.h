// SPDX-License-Identifier: Apache-2.0
// What stands in an ONNX model: nodes, attributes and tensors, as plain structs. Reading checks every length and is
// all or nothing; what the nodes mean is the matter of onnx_import.h.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/io/file.h"
#include "ir/value.h"

namespace twibil::io {

struct OnnxTensor {
  std::string name;
  Val value;            // null: of a type that has no dtype here, see `refused`
  std::string refused;  // "dtype STRING is not supported"
};

struct OnnxGraph;
struct OnnxAttribute {
  enum class Kind : uint8_t { none, real, integer, string, tensor, graph, reals, integers, strings, other };
  Kind kind = Kind::none;
  std::string name;
  std::string refers;  // inside a function: the attribute of its call that this one stands for
  double real = 0;
  int64_t integer = 0;
  std::string string;
  std::vector<double> reals;
  std::vector<int64_t> integers;
  std::vector<std::string> strings;
  OnnxTensor tensor;
  std::shared_ptr<const OnnxGraph> graph;
};

struct OnnxNode {
  std::string name, type, domain;
  std::vector<std::string> inputs, outputs;  // an empty name: left out
  std::vector<OnnxAttribute> attributes;
  int64_t offset = 0;  // in the file
  const OnnxAttribute* find(std::string_view attribute) const {
    for (const OnnxAttribute& a : attributes)
      if (a.name == attribute) return &a;
    return nullptr;
  }
};

/// An input or output: its type as far as the model says it.
struct OnnxValue {
  std::string name;
  bool is_tensor = false, has_shape = false;
  int64_t type = 0;                 // ONNX's number of the element type
  std::vector<int64_t> dims;        // -1: not known
  std::vector<std::string> labels;  // names of sizes, empty where they have none
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValue> inputs, outputs;
};

/// A function that the model brings along: nodes in place of an operator.
struct OnnxFunction {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> defaults;
  std::vector<OnnxNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct OnnxModel {
  int64_t ir_version = 0, model_version = 0;
  std::string producer, producer_version, domain, doc;
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  std::map<std::string, std::string> metadata;
  std::vector<OnnxFunction> functions;
  OnnxGraph graph;
};

/// A value error names the file, the offset, the part of the model and the reason; an OS error a file that cannot be
/// read. Tensors in files of their own must lie in the model's folder.
OnnxModel read_onnx(const std::string& path);
/// The same from memory; such a model cannot have tensors in other files.
OnnxModel parse_onnx(ByteView bytes, const std::string& source = "<bytes>");

/// ONNX's number for a dtype to ours; the unknown dtype where there is none.
DType dtype_of_onnx(int64_t type);
/// "INT4", for messages.
std::string name_of_onnx_type(int64_t type);

}  // namespace twibil::io
